// Work on tiles, small matrices that lie in the second-level cache: products, and moves from and to tensors.
// Included once per instruction set, like simd-inl.h.

#if defined(TREBLE_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TREBLE_CPU_TILE_INL_H_
#undef TREBLE_CPU_TILE_INL_H_
#else
#define TREBLE_CPU_TILE_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>

#include "cpu/simd-inl.h"
#include "cpu/tile.h"

HWY_BEFORE_NAMESPACE();
namespace treble::cpu::HWY_NAMESPACE {

/// Rows of C that stay in registers, two vectors wide: 12 (24) sums of 16 (32) registers, the rest is for A and B.
constexpr int kRegisterRows = HWY_MAX_BYTES == 64 ? 12 : 6;
/// Terms summed before C goes back to memory: so much of two vectors' width of B stays in the first-level cache.
constexpr std::int64_t kProductDepth = 256;

/// How A is read: a_ik is row(i)[k], or row(k)[i].
enum class Layout { kRows, kColumns };

/// What the products are added to: nothing, or what C holds.
enum class Start { kZero, kAdd };

template <int kRows, Layout kLayout>
HWY_INLINE void register_product(std::int64_t depth, Tile a_tile, Tile b_tile, Tile c_tile, Start start) {
  const float* HWY_RESTRICT a = a_tile.data;
  const float* HWY_RESTRICT b = b_tile.data;
  VecF32 left[kRows];
  VecF32 right[kRows];
  for (int i = 0; i < kRows; ++i) {
    left[i] = start == Start::kZero ? zero() : load(c_tile.row(i));
    right[i] = start == Start::kZero ? zero() : load(c_tile.row(i) + kLanes);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const VecF32 b_left = load(b);
    const VecF32 b_right = load(b + kLanes);
    for (int i = 0; i < kRows; ++i) {
      const VecF32 a_ik = fill(kLayout == Layout::kRows ? a[i * a_tile.stride] : a[i]);
      left[i] = hn::MulAdd(a_ik, b_left, left[i]);
      right[i] = hn::MulAdd(a_ik, b_right, right[i]);
    }
    a += kLayout == Layout::kRows ? 1 : a_tile.stride;
    b += b_tile.stride;
  }
  for (int i = 0; i < kRows; ++i) {
    store(left[i], c_tile.row(i));
    store(right[i], c_tile.row(i) + kLanes);
  }
}

/// The last rows, fewer than kRegisterRows.
template <int kRows, Layout kLayout>
HWY_INLINE void last_register_product(std::int64_t num_rows, std::int64_t depth, Tile a, Tile b, Tile c, Start start) {
  if constexpr (kRows > 0) {
    if (num_rows == kRows) return register_product<kRows, kLayout>(depth, a, b, c, start);
    last_register_product<kRows - 1, kLayout>(num_rows, depth, a, b, c, start);
  }
}

/// C = start + A B with A [m, k], B [k, n], C [m, n]. The columns of B and C count up to the next multiple of two
/// vectors: those of B past n must not be NaN or infinite if anything reads C's.
template <Layout kLayout = Layout::kRows>
HWY_NOINLINE void tile_product(std::int64_t m, std::int64_t n, std::int64_t k, Tile a, Tile b, Tile c, Start start) {
  std::int64_t first = 0;
  do {
    const std::int64_t depth = std::min(k - first, kProductDepth);
    for (std::int64_t column = 0; column < n; column += 2 * kLanes) {
      const Tile b_part = {b.row(first) + column, b.stride};
      for (std::int64_t row = 0; row < m; row += kRegisterRows) {
        const Tile a_part = {kLayout == Layout::kRows ? a.row(row) + first : a.row(first) + row, a.stride};
        const Tile c_part = {c.row(row) + column, c.stride};
        if (m - row >= kRegisterRows) {
          register_product<kRegisterRows, kLayout>(depth, a_part, b_part, c_part, start);
        } else {
          last_register_product<kRegisterRows - 1, kLayout>(m - row, depth, a_part, b_part, c_part, start);
        }
      }
    }
    start = Start::kAdd;
    first += depth;
  } while (first < k);
}

/// Widens and scales `count` elements; a tile's row takes them up to a whole vector, zeros at the end.
template <typename T>
HWY_INLINE void load_row(const T* from, std::int64_t count, float scale, float* to) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(hn::Mul(load(from + i, count - i), fill(scale)), to + i);
}

/// Starts to fetch `count` elements that are wanted soon: rows of a tensor lie too far apart for the processor to
/// guess.
template <typename T>
HWY_INLINE void prefetch_row(const T* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(64 / sizeof(T))) hwy::Prefetch(from + i);
}

/// to = from^T for a tile `from` [m, n].
HWY_INLINE void transpose(std::int64_t m, std::int64_t n, Tile from, Tile to) {
  const hn::FixedTag<float, 4> four;
  // The last rows and columns of blocks reach into the tiles' padding.
  for (std::int64_t i = 0; i < m; i += 4) {
    for (std::int64_t j = 0; j < n; j += 4) {
      const auto a = hn::Load(four, from.row(i) + j), b = hn::Load(four, from.row(i + 1) + j);
      const auto c = hn::Load(four, from.row(i + 2) + j), d = hn::Load(four, from.row(i + 3) + j);
      const auto ac_low = hn::InterleaveLower(four, a, c), ac_high = hn::InterleaveUpper(four, a, c);
      const auto bd_low = hn::InterleaveLower(four, b, d), bd_high = hn::InterleaveUpper(four, b, d);
      hn::Store(hn::InterleaveLower(four, ac_low, bd_low), four, to.row(j) + i);
      hn::Store(hn::InterleaveUpper(four, ac_low, bd_low), four, to.row(j + 1) + i);
      hn::Store(hn::InterleaveLower(four, ac_high, bd_high), four, to.row(j + 2) + i);
      hn::Store(hn::InterleaveUpper(four, ac_high, bd_high), four, to.row(j + 3) + i);
    }
  }
}

}  // namespace treble::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once per instruction set
