#include "cpu/int8_block_kernels.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <numeric>

// Not through Highway: the version that we build on has neither instruction. Functions are built for their own
// instruction set whatever the rest is built for, and called only where the processor has it.

namespace treble::cpu {
namespace {

constexpr std::int64_t kRows = 32, kTokens = 32, kPanelTokens = 16;
constexpr std::int64_t kQuad = 4;                          // features multiplied and added at once
constexpr std::int64_t kPanelQuad = kPanelTokens * kQuad;  // bytes of a panel for these: a vector
constexpr std::int64_t kTileDepth = 64, kTileRows = 16;    // features and rows of an AMX tile

}  // namespace

void multiply_block_portable(const std::int8_t* weight, std::int64_t stride, const std::int8_t* tokens,
                             std::int64_t in_features, const std::int32_t* offset_sums, std::int32_t* sums) {
  for (std::int64_t o = 0; o < kRows; ++o) {
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const std::int8_t* panel = tokens + t / kPanelTokens * kPanelTokens * in_features + t % kPanelTokens * kQuad;
      std::int32_t sum = -offset_sums[o];
      for (std::int64_t k = 0; k < in_features; ++k)
        sum += weight[o * stride + k] * static_cast<std::uint8_t>(panel[k / kQuad * kPanelQuad + k % kQuad]);
      sums[o * kTokens + t] = sum;
    }
  }
}

void offset_sums_portable(const std::int8_t* weight, std::int64_t stride, std::int64_t in_features,
                          std::int32_t* offset_sums) {
  for (std::int64_t o = 0; o < kRows; ++o) {
    std::int32_t sum = 0;
    for (std::int64_t k = 0; k < in_features; ++k) sum += weight[o * stride + k];
    offset_sums[o] = 128 * sum;
  }
}

// Sixteen sums, two vectors of tokens: with more rows the loads of weights, four bytes each, would set the pace.
constexpr std::int64_t kVnniRows = 8;

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) void multiply_block_vnni(
    const std::int8_t* weight, std::int64_t stride, const std::int8_t* tokens, std::int64_t in_features,
    const std::int32_t* offset_sums, std::int32_t* sums) {
  const std::int8_t* second_panel = tokens + kPanelTokens * in_features;
  for (std::int64_t first = 0; first < kRows; first += kVnniRows) {
    const std::int8_t* rows = weight + first * stride;
    __m512i left[kVnniRows], right[kVnniRows];
#pragma GCC unroll 8
    for (std::int64_t o = 0; o < kVnniRows; ++o) left[o] = right[o] = _mm512_set1_epi32(-offset_sums[first + o]);
    for (std::int64_t k = 0; k < in_features; k += kQuad) {
      const __m512i left_tokens = _mm512_loadu_si512(tokens + k * kPanelTokens);
      const __m512i right_tokens = _mm512_loadu_si512(second_panel + k * kPanelTokens);
#pragma GCC unroll 8
      for (std::int64_t o = 0; o < kVnniRows; ++o) {
        std::int32_t four;
        __builtin_memcpy(&four, rows + o * stride + k, sizeof(four));
        const __m512i weights = _mm512_set1_epi32(four);
        left[o] = _mm512_dpbusd_epi32(left[o], left_tokens, weights);
        right[o] = _mm512_dpbusd_epi32(right[o], right_tokens, weights);
      }
    }
#pragma GCC unroll 8
    for (std::int64_t o = 0; o < kVnniRows; ++o) {
      std::int32_t* to = sums + (first + o) * kTokens;
      _mm512_storeu_si512(to, left[o]);
      _mm512_storeu_si512(to + kPanelTokens, right[o]);
    }
  }
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) void offset_sums_vnni(const std::int8_t* weight,
                                                                                      std::int64_t stride,
                                                                                      std::int64_t in_features,
                                                                                      std::int32_t* offset_sums) {
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(128));
  for (std::int64_t o = 0; o < kRows; ++o) {
    __m512i sum = _mm512_setzero_si512();
    for (std::int64_t k = 0; k < in_features; k += 64)
      sum = _mm512_dpbusd_epi32(sum, offset, _mm512_loadu_si512(weight + o * stride + k));
    alignas(64) std::int32_t lanes[16];
    _mm512_store_si512(lanes, sum);
    offset_sums[o] = std::accumulate(lanes, lanes + 16, 0);
  }
}

bool has_vnni() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

namespace {

/// What LDTILECFG reads. Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 18.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved = {};
  std::array<std::uint16_t, 16> row_bytes = {};
  std::array<std::uint8_t, 16> num_rows = {};

  constexpr TileConfig() {
    for (std::size_t tile = 0; tile < 8; ++tile) {
      row_bytes[tile] = kTileDepth;
      num_rows[tile] = kTileRows;
    }
  }
};
static_assert(sizeof(TileConfig) == 64);

// In memory from the start: GCC 12 does not know that the instruction reads more than eight bytes, and would leave out
// stores to the rest.
constexpr TileConfig kTileConfig;

}  // namespace

__attribute__((target("amx-tile"))) void configure_amx_tiles() {
  _tile_loadconfig(&kTileConfig);
}

__attribute__((target("amx-tile"))) void release_amx_tiles() {
  _tile_release();
}

// Tiles 0 to 3 hold the sums, 4 and 5 weights [16 rows, 64 features], 6 and 7 tokens [16 quads of features, 16 tokens].
// A product takes 16 cycles and a load from the first-level cache 8, so four products hide four loads, and a sum has
// the 52 cycles that it takes before it is added to again.
__attribute__((target("amx-tile,amx-int8"))) void multiply_block_amx(const std::int8_t* weight, std::int64_t stride,
                                                                     const std::int8_t* tokens,
                                                                     std::int64_t in_features, const std::int32_t*,
                                                                     std::int32_t* sums) {
  const std::int8_t* second_panel = tokens + kPanelTokens * in_features;
  const std::int8_t* second_rows = weight + kTileRows * stride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t k = 0; k < in_features; k += kTileDepth) {
    _tile_loadd(4, weight + k, stride);
    _tile_loadd(6, tokens + k * kPanelTokens, kPanelQuad);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, second_panel + k * kPanelTokens, kPanelQuad);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, second_rows + k, stride);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  constexpr std::size_t kRowBytes = kTokens * sizeof(std::int32_t);
  std::int32_t* second_sums = sums + kTileRows * kTokens;
  _tile_stored(0, sums, kRowBytes);
  _tile_stored(1, sums + kPanelTokens, kRowBytes);
  _tile_stored(2, second_sums, kRowBytes);
  _tile_stored(3, second_sums + kPanelTokens, kRowBytes);
}

bool has_amx() {
  // CPUID 7.0, EDX: bit 24 AMX-TILE, bit 25 AMX-INT8.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  constexpr unsigned kTileAndInt8 = 3u << 24;
  if ((edx & kTileAndInt8) != kTileAndInt8) return false;
  // Linux keeps 8 KiB of tiles for a process that has asked (arch/x86/include/uapi/asm/prctl.h), and refuses where the
  // system or a virtual machine does not enable them.
  constexpr long kRequestState = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
}

}  // namespace treble::cpu
