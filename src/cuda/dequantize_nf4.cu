#include <bit>

#include "cuda/dequantize_nf4.h"
#include "cuda/launch.cuh"
#include "cuda/rows.cuh"

// NF4 weights as bf16. A thread decodes four times eight elements, so that a warp reads 128 bytes of codes and writes
// 512 at once; values of codes come from registers of the warp's lanes. Codes are read before the kernel waits for the
// ones before it: no kernel writes weights.
//
// Limit: 0.5 bytes read and 2 written an element; shuffles, one an element: 7.2e12 a second on an H200.

namespace treble::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kGroups = 4;  // of eight elements, a thread's
constexpr std::int64_t kBlockGroups = kThreads * kGroups;

/// Several of them, one kernel's work.
struct Nf4Stretches {
  static constexpr int kMost = 4;  // projections that read one input
  Nf4Stretch stretches[kMost];
  int first_block[kMost + 1];  // of the grid
  int count;
};

/// The fp32 scale of a block, each step rounded.
__device__ __forceinline__ float nf4_scale(const Nf4Stretch& of, std::int64_t block) {
  if (!of.nested_values) return static_cast<const float*>(of.absmax)[block];
  const float value = of.nested_values[static_cast<const std::uint8_t*>(of.absmax)[block]];
  return add_rounded(multiply_rounded(value, of.nested_absmax[block >> of.nested_block_shift]), of.nested_offset);
}

/// value * scale as the weight's type holds it.
__device__ __forceinline__ float nf4_product(const Nf4Stretch& of, float value, float scale) {
  const float product = multiply_rounded(value, scale);
  return of.is_half ? low_half(pack_half(product, 0)) : product;
}

/// Eight elements, which 32 bits hold and which have one scale, as bf16. Lane i of the calling warp, of which all lanes
/// call, gives the value of code i % 16.
__device__ __forceinline__ uint4 nf4_decode(const Nf4Stretch& of, std::uint32_t codes, float scale, float lane_value) {
  std::uint32_t words[4];
#pragma unroll
  for (int byte = 0; byte < 4; ++byte) {
    // The high half of a byte is the even element. Of a lane's number the lowest five bits count.
    const int even = static_cast<int>(codes >> (8 * byte + 4)), odd = static_cast<int>(codes << 4 >> (8 * byte + 4));
    words[byte] =
        pack_bf16(nf4_product(of, shuffle(lane_value, even), scale), nf4_product(of, shuffle(lane_value, odd), scale));
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ __forceinline__ const Nf4Stretch& find_stretch(const Nf4Stretches& of, int& block) {
  int i = 0;
  while (i + 1 < of.count && block >= of.first_block[i + 1]) ++i;
  block -= of.first_block[i];
  return of.stretches[i];
}

__global__ void __launch_bounds__(kThreads) dequantize_nf4_kernel(const __grid_constant__ Nf4Stretches all) {
  int block = static_cast<int>(blockIdx.x);
  const Nf4Stretch& of = find_stretch(all, block);
  const std::int64_t num_groups = of.num_elements / kGroup;
  const std::int64_t first = block * kBlockGroups + threadIdx.x;
  const float lane_value = of.code_values[lane_id() % 16];
  std::uint32_t codes[kGroups] = {};
  float scales[kGroups] = {};
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    const std::int64_t group = first + i * kThreads;
    if (group >= num_groups) continue;
    const std::int64_t element = of.first_element + group * kGroup;
    codes[i] = *reinterpret_cast<const std::uint32_t*>(of.codes + element / 2);
    scales[i] = nf4_scale(of, element >> of.block_shift);
  }
  wait_for_earlier_kernels();
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    const std::int64_t group = first + i * kThreads;
    const uint4 decoded = nf4_decode(of, codes[i], scales[i], lane_value);
    if (group < num_groups) reinterpret_cast<uint4*>(of.out)[group] = decoded;
  }
}

/// Of any place and size: an element a thread.
__global__ void __launch_bounds__(kThreads) dequantize_nf4_elements_kernel(const __grid_constant__ Nf4Stretch of) {
  wait_for_earlier_kernels();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= of.num_elements) return;
  const std::int64_t element = of.first_element + i;
  const std::uint8_t byte = of.codes[element / 2];
  const float value = of.code_values[element % 2 == 0 ? byte >> 4 : byte & 15];
  of.out[i] = narrow<bfloat16>(nf4_product(of, value, nf4_scale(of, element >> of.block_shift)));
}

int log2_of(std::int64_t size) {
  return std::countr_zero(static_cast<std::uint64_t>(size));
}

/// Groups of eight elements are 32 bits of codes, with one scale, and 16 bytes of bf16.
bool is_whole_groups(const Nf4Stretch& of) {
  return of.first_element % kGroup == 0 && of.num_elements % kGroup == 0 && is_aligned_address(of.out) &&
         reinterpret_cast<std::uintptr_t>(of.codes) % sizeof(std::uint32_t) == 0;
}

void launch_groups(Nf4Stretches& all, cudaStream_t stream) {
  launch("dequantize_nf4", stream, early(dim3(static_cast<unsigned>(all.first_block[all.count])), kThreads),
         dequantize_nf4_kernel, all);
  all.count = 0;
}

}  // namespace

Nf4Stretch nf4_stretch(const LinearWeight& weight, std::int64_t begin, std::int64_t end, bfloat16* out) {
  const Nf4& nf4 = weight.nf4;
  const bool is_nested = static_cast<bool>(nf4.nested_values);
  return {.codes = weight.weight.as<std::uint8_t>(),
          .code_values = nf4.code_values.as<float>(),
          .absmax = nf4.absmax.data(),
          .nested_values = is_nested ? nf4.nested_values.as<float>() : nullptr,
          .nested_absmax = is_nested ? nf4.nested_absmax.as<float>() : nullptr,
          .nested_offset = nf4.nested_offset,
          .block_shift = log2_of(nf4.block_size),
          .nested_block_shift = log2_of(nf4.nested_block_size),
          .is_half = nf4.dtype == DType::kF16,
          .first_element = nf4.first_element + begin * nf4.in_features,
          .num_elements = (end - begin) * nf4.in_features,
          .out = out};
}

void dequantize_nf4(std::span<const Nf4Stretch> stretches, cudaStream_t stream) {
  Nf4Stretches together{};
  for (const Nf4Stretch& stretch : stretches) {
    if (!is_whole_groups(stretch)) {
      launch("dequantize_nf4: elements", stream, early(dim3(blocks_for(stretch.num_elements, kThreads)), kThreads),
             dequantize_nf4_elements_kernel, stretch);
      continue;
    }
    if (together.count == Nf4Stretches::kMost) launch_groups(together, stream);
    together.stretches[together.count] = stretch;
    const auto num_blocks = static_cast<int>(blocks_for(stretch.num_elements / kGroup, kBlockGroups));
    together.first_block[together.count + 1] = together.first_block[together.count] + num_blocks;
    ++together.count;
  }
  if (together.count > 0) launch_groups(together, stream);
}

}  // namespace treble::cuda
