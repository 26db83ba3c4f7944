#pragma once

#include <treble/json.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
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

/// [grid_t * grid_h * grid_w, 1536] fp32: what the tower makes of the item's levels, as the reference returns it.
std::vector<float> pixel_values(const MediaItem& item);

/// Checks an array against {"shape", "sha256", "step", "values"} of the original stack.
struct Tolerance {
  double largest = 0;    ///< difference of a value
  bool is_exact = true;  ///< the digest has to be equal too
};
void check_pixels(std::span<const float> values, const Json& expected, Tolerance tolerance = {});
void check_levels(const Picture& picture, const Json& expected, Tolerance tolerance = {});

}  // namespace treble::testing
