#pragma once

#include <cstdint>

namespace treble::cuda {

/// How rows are rotated and quantised.
enum class Quantizer {
  kGroup256,  ///< a row stays in a block's registers; a producer of rows may do it itself: quantize_rows.cuh
  kAnyGroup,  ///< any group and width, rows are read twice: quantize_rows.cu
};

struct QuantizerShape {
  std::int64_t width, rotation_group;
  bool is_aligned;  ///< every row of values and of codes starts at a multiple of 16 bytes
};

Quantizer choose_quantizer(const QuantizerShape& shape);

inline constexpr int kQuantizerThreads = 640;     // of a block at most
inline constexpr int kTwoGroupThreads = 17 * 32;  // where a half warp takes two groups: 17,408 features, of which two
                                                  // blocks' registers fit in a multiprocessor

/// Groups of 256 that a half warp takes of a row of so many: 1, 2 or 4.
int groups_of_half_warp(std::int64_t num_groups);

/// Whether a gated norm writes codes itself, beside what choose_quantizer says of its rows: half warps take two whole
/// heads.
constexpr bool gated_norm_quantizes(std::int64_t head_dim) {
  return head_dim == 128;
}

}  // namespace treble::cuda
