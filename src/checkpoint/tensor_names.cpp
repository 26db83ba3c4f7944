#include "checkpoint/tensor_names.h"

#include <treble/json.h>

#include <algorithm>
#include <charconv>

namespace treble {
namespace {

struct Prefix {
  std::string_view stored, canonical;
};

// A longer prefix stands before the shorter one that it begins with.
constexpr Prefix kPrefixes[] = {
    {"model.language_model.", "text."},  // the multimodal class: the release's own layout
    {"model.visual.", "visual."},
    {"language_model.model.", "text."},  // MLX conversions
    {"language_model.lm_head.", "lm_head."},
    {"vision_tower.", "visual."},
    {"language_model.", "text."},  // the multimodal class saved without its outer "model."
    {"visual.", "visual."},
    {"model.", "text."},  // the text-only class
};

}  // namespace

std::string quote_name(std::string_view name) {
  constexpr std::size_t kMaxBytes = 200;
  if (name.size() <= kMaxBytes) return dump_json(Json(name));
  std::size_t num_bytes = kMaxBytes;
  while (num_bytes > 0 && (name[num_bytes] & 0xC0) == 0x80) --num_bytes;  // not inside a character
  return dump_json(Json(name.substr(0, num_bytes))) + "...";
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return out;
}

LayerName split_layer(std::string_view name) {
  constexpr std::size_t kMaxDigits = 9;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    // A leading zero is no layer's number: joining it with others would lose it.
    const bool is_number = !part.empty() && part.size() <= kMaxDigits && (part[0] != '0' || part.size() == 1) &&
                           part.find_first_not_of("0123456789") == part.npos;
    if (is_number) {
      std::int64_t number = 0;
      std::from_chars(part.data(), part.data() + part.size(), number);
      return {std::string(name.substr(0, begin)), number, std::string(name.substr(end))};
    }
    begin = end + 1;
  }
  return {std::string(name), -1, {}};
}

std::string canonical_name(std::string_view stored_name) {
  constexpr std::string_view kWrapper = "backbone.";  // of a class that holds backbone and head
  if (stored_name.starts_with(kWrapper)) return canonical_name(stored_name.substr(kWrapper.size()));
  for (const Prefix& prefix : kPrefixes)
    if (stored_name.starts_with(prefix.stored))
      return std::string(prefix.canonical).append(stored_name.substr(prefix.stored.size()));
  return std::string(stored_name);
}

bool is_ignored(std::string_view stored_name) {
  return stored_name.starts_with("mtp.") || canonical_name(stored_name).starts_with("text.mtp.");
}

bool is_mlx_convolution(std::string_view name, const TensorView& view) {
  return name.ends_with(".linear_attn.conv1d.weight") && view.rank() == 3 && view.size(1) != 1 && view.size(2) == 1;
}

}  // namespace treble
