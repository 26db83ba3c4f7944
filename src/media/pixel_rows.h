#pragma once

#include <cstdint>

#include "media/resize_taps.h"

namespace treble {

/// What follows an RGB row so that the functions below may read and write whole vectors, bytes.
constexpr std::int64_t kRowPadding = 64;

/// Resizes along a row: rgb [width_in, 3] -> out [outputs of taps, 3], which kRowPadding bytes follow.
/// @param planes  scratch of 3 * (width_in + kRowPadding) values
void resize_row(const std::uint8_t* rgb, std::int64_t width_in, const ResizeTaps& taps, std::int16_t* planes,
                std::uint8_t* out);

/// Resizes along columns, one output row: out[i] from rows[k][i], k below `count`, for i below `num_bytes`.
void resize_column(const std::uint8_t* const* rows, const std::int16_t* taps, std::int64_t count, int fraction_bits,
                   std::int64_t num_bytes, std::uint8_t* out);

/// Levels from the first one of a row in a patch.
struct PatchStrides {
  std::int64_t from_even = 0;  ///< from an even column to the next patch in the row
  std::int64_t from_odd = 0;   ///< from an odd one
  std::int64_t channel = 0;    ///< to the next channel
};

/// Writes one row of levels into the patches it crosses.
/// @param rgb  [16 * num_patches, 3]
/// @param out  the row's first 16 levels of channel 0 in patch 0
void write_patch_row(const std::uint8_t* rgb, std::int64_t num_patches, const PatchStrides& strides, std::uint8_t* out);

}  // namespace treble
