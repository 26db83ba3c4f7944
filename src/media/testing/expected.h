#pragma once

#include <treble/json.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "media/media_item.h"
#include "media/picture.h"

namespace treble::testing {

/// tests/data
std::filesystem::path data_folder();

std::vector<std::byte> read_file(const std::filesystem::path& path);
Json read_json(const std::filesystem::path& path);

/// SHA-256 as 64 hexadecimal digits.
std::string sha256(const void* bytes, std::size_t count);

/// Checks pixel values [N, 1536] against {"shape", "sha256", "every_4099th"}: the digest, since they are exact, and the
/// single values, which show where they are not.
void check_pixels(const PixelValues& values, const Json& expected);

}  // namespace treble::testing
