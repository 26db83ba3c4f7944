#include "cpu/onednn_bf16.h"

#include <fmt/format.h>
#include <treble/error.h>

namespace treble::cpu {
namespace {

using dnnl::memory;

memory::data_type type_of(const TensorView& view) {
  return view.dtype() == DType::kF32 ? memory::data_type::f32 : memory::data_type::bf16;
}

/// Rows of contiguous elements.
memory::desc rows_desc(const TensorView& view) {
  return {{view.size(0), view.size(1)}, type_of(view), memory::dims{view.stride(0), 1}};
}

/// A weight [out_features, in_features] seen as the right factor [in_features, out_features].
memory::desc weight_desc(const TensorView& weight) {
  return {{weight.size(1), weight.size(0)}, type_of(weight), memory::dims{1, weight.stride(0)}};
}

memory::desc bias_desc(const LinearWeight& weight) {
  if (!weight.bias) return {};
  return {{1, weight.out_features()}, type_of(weight.bias), memory::dims{weight.out_features(), 1}};
}

// Every number of tokens is a shape of its own, so a long-lived process sees many.
constexpr std::size_t kMostPrimitives = 512;

}  // namespace

bool OnednnBf16::is_supported() {
  // Each set holds the bits of those it extends, AMX those of AVX512_BF16.
  const auto bits = [](dnnl::cpu_isa isa) { return static_cast<unsigned>(isa); };
  const unsigned bf16 = bits(dnnl::cpu_isa::avx512_core_bf16);
  return (bits(dnnl::get_effective_cpu_isa()) & bf16) == bf16;
}

OnednnBf16::OnednnBf16() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

const dnnl::matmul& OnednnBf16::primitive(const TensorView& input, const LinearWeight& weight, const TensorView& out) {
  const Key key = {
      input.size(0),           weight.out_features(), weight.in_features(),           input.stride(0),
      weight.weight.stride(0), out.stride(0),         static_cast<bool>(weight.bias), out.dtype() == DType::kF32};
  if (const auto found = primitives_.find(key); found != primitives_.end()) return found->second;
  if (primitives_.size() == kMostPrimitives) primitives_.clear();
  const dnnl::matmul::desc desc(rows_desc(input), weight_desc(weight.weight), bias_desc(weight), rows_desc(out));
  return primitives_.emplace(key, dnnl::matmul(dnnl::matmul::primitive_desc(desc, engine_))).first->second;
}

void OnednnBf16::multiply(const TensorView& input, const LinearWeight& weight, const TensorView& out) {
  // oneDNN refuses products without elements.
  if (out.num_elements() == 0) return;
  try {
    std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_SRC, memory(rows_desc(input), engine_, input.data())},
        {DNNL_ARG_WEIGHTS, memory(weight_desc(weight.weight), engine_, weight.weight.data())},
        {DNNL_ARG_DST, memory(rows_desc(out), engine_, out.data())},
    };
    if (weight.bias) arguments.emplace(DNNL_ARG_BIAS, memory(bias_desc(weight), engine_, weight.bias.data()));
    primitive(input, weight, out).execute(stream_, arguments);
    stream_.wait();
  } catch (const dnnl::error& error) {
    const ErrorCode code = error.status == dnnl_out_of_memory ? ErrorCode::kDevice : ErrorCode::kInternal;
    throw Error(code, fmt::format("cpu: linear {} by {}: oneDNN: {}", input.describe(), weight.weight.describe(),
                                  error.message));
  }
}

}  // namespace treble::cpu
