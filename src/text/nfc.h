#pragma once

#include <string>
#include <string_view>

namespace treble {

/// The text in Unicode Normalization Form C.
/// Text that is NFC already, nearly all there is, is only looked through; of other text only the characters around
/// each deviation are decomposed and composed again. O(n log n) at worst, in one run of combining marks.
/// Follows the Unicode of utf8proc. The `tokenizers` library's tables are older: there some hundred marks, assigned
/// since, are not put in order (python/tools/compare_tokenizer.py lists them).
/// @param text     valid UTF-8
/// @param storage  receives the result where it differs from text
/// @return text itself, or all of storage
std::string_view to_nfc(std::string_view text, std::string& storage);

}  // namespace treble
