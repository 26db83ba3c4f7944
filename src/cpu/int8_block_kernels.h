#pragma once

#include <cstdint>

// The part of int8_blocks.h that differs from processor to processor: one block.

namespace treble::cpu {

struct Int8BlockKernel {
  /// sums[o, t] = weight row o . token t, for 32 rows and 32 tokens.
  /// @param weight       32 rows of in_features codes, `stride` bytes apart; in_features is a multiple of 64
  /// @param tokens       two panels of 16 tokens: [2, in_features / 4, 16, 4]. Codes, or codes + 128 without sign if
  /// the
  ///                     kernel has offset_sums
  /// @param offset_sums  [32], what that function writes for the rows
  /// @param sums         [32, 32] i32, contiguous
  void (*multiply)(const std::int8_t* weight, std::int64_t stride, const std::int8_t* tokens, std::int64_t in_features,
                   const std::int32_t* offset_sums, std::int32_t* sums);
  /// What 128 more in every code of a token adds to the sums: offset_sums[o] = 128 * (sum of row o). Or null.
  void (*offset_sums)(const std::int8_t* weight, std::int64_t stride, std::int64_t in_features,
                      std::int32_t* offset_sums);
};

void multiply_block_portable(const std::int8_t* weight, std::int64_t stride, const std::int8_t* tokens,
                             std::int64_t in_features, const std::int32_t* offset_sums, std::int32_t* sums);
void offset_sums_portable(const std::int8_t* weight, std::int64_t stride, std::int64_t in_features,
                          std::int32_t* offset_sums);

/// AVX512_VNNI.
bool has_vnni();
void multiply_block_vnni(const std::int8_t* weight, std::int64_t stride, const std::int8_t* tokens,
                         std::int64_t in_features, const std::int32_t* offset_sums, std::int32_t* sums);
void offset_sums_vnni(const std::int8_t* weight, std::int64_t stride, std::int64_t in_features,
                      std::int32_t* offset_sums);

/// Whether there is AMX-INT8 and the system keeps its tiles for this process; asks for that.
bool has_amx();
/// Between these two on the same thread the tiles have the shapes that multiply_block_amx() wants.
void configure_amx_tiles();
void release_amx_tiles();
/// Codes have their sign: no offset_sums.
void multiply_block_amx(const std::int8_t* weight, std::int64_t stride, const std::int8_t* tokens,
                        std::int64_t in_features, const std::int32_t* offset_sums, std::int32_t* sums);

}  // namespace treble::cpu
