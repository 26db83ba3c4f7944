// How fast Linears are, at the sizes of the models' layers, beside oneDNN's sgemm on weights that lie in fp32 already,
// and how fast those of the quantised formats are beside the plain ones.
//
//   treble_linear_bench [f32|bf16] [RUNS] [THREADS] [LAYERS] [INT8]   median, fastest and slowest of the runs
//                                                                     (default: bf16, 7, all threads, all layers, the
//                                                                     fastest products of 8-bit codes)
//
// LAYERS is a part of their names: "0.8b". INT8 is none, VNNI or AMX.
//
// Runs of both take turns, so that a busy machine slows both down. One thread is measured in processor time, which
// other programs do not count in; more in wall time.

#include <dnnl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "cpu/cpu_ops.h"

namespace treble {
namespace {

struct Layer {
  const char* name;
  std::int64_t in_features, out_features;
  bool is_swiglu;  // gate and up, of out_features each
};

constexpr Layer kLayers[] = {
    {"0.8b mixer in", 1024, 8192, false}, {"0.8b mixer out", 2048, 1024, false}, {"0.8b gate, up", 1024, 3584, true},
    {"0.8b down", 3584, 1024, false},     {"9b mixer in", 4096, 12288, false},   {"9b mixer out", 4096, 4096, false},
    {"9b gate, up", 4096, 12288, true},   {"9b down", 12288, 4096, false},
};

constexpr std::int64_t kTokens[] = {1, 8, 64, 298, 1502};

/// Seconds of some runs, sorted.
using Timing = std::vector<double>;

class Bench {
 public:
  Bench(DType activation_dtype, cpu::Int8Blocks int8_blocks, int num_runs, int num_threads)
      : ops_(activation_dtype, Int8Activations::kPrecise, int8_blocks),
        num_runs_(num_runs),
        num_threads_(num_threads),
        thread_count_(num_threads) {}

  void run(const Layer& layer) {
    const Workspace::Scope scope(memory_);
    const auto [name, in_features, out_features, is_swiglu] = layer;
    const LinearWeight gate = random_weight(out_features, in_features);
    const LinearWeight up = is_swiglu ? random_weight(out_features, in_features) : gate;
    const LinearWeight int8 = random_int8(out_features, in_features), nf4 = random_nf4(out_features, in_features);
    const TensorView widened = memory_.take(DType::kF32, {out_features, in_features});
    std::transform(gate.weight.as<bfloat16>(), gate.weight.as<bfloat16>() + gate.weight.num_elements(),
                   widened.as<float>(), [](bfloat16 x) { return to_float(x); });

    for (const std::int64_t num_tokens : kTokens) {
      const Workspace::Scope tokens_scope(memory_);
      const TensorView input = memory_.take(ops_.activation_dtype(), {num_tokens, in_features});
      const TensorView input_f32 = memory_.take(DType::kF32, {num_tokens, in_features});
      fill_input(input, input_f32);
      const TensorView out = memory_.take(ops_.activation_dtype(), {num_tokens, out_features});
      const TensorView reference = memory_.take(DType::kF32, {num_tokens, out_features});

      const auto sgemm = [&] {
        dnnl_sgemm('N', 'T', num_tokens, out_features, in_features, 1, input_f32.as<float>(), in_features,
                   widened.as<float>(), in_features, 0, reference.as<float>(), out_features);
      };
      const auto linear = [&] {
        const Linear::Output output{&gate, out};
        ops_.linear({.input = input, .outputs = {&output, 1}});
      };
      sgemm();
      linear();
      if (!agree(out, reference)) {
        std::printf("%-15s %6ld tokens: WRONG\n", name, static_cast<long>(num_tokens));
        std::exit(EXIT_FAILURE);
      }
      const auto ours = [&] {
        if (!is_swiglu) return linear();
        ops_.linear_swiglu({.input = input, .gate = &gate, .up = &up, .out = out});
      };
      const double flop = 2.0 * static_cast<double>(num_tokens * in_features * out_features);
      const auto [ours_timing, sgemm_timing] = time(ours, sgemm);
      std::printf("%-15s %6ld tokens:", name, static_cast<long>(num_tokens));
      print(ours_timing, is_swiglu ? 2 * flop : flop);
      std::printf("   sgemm");
      print(sgemm_timing, flop);
      std::printf("\n");
      if (is_swiglu) continue;
      for (const auto& [format, weight] : {std::pair("int8", &int8), {"nf4", &nf4}}) {
        const auto quantised = [&, linear_weight = weight] {
          const Linear::Output output{linear_weight, out};
          ops_.linear({.input = input, .outputs = {&output, 1}});
        };
        quantised();
        const auto [quantised_timing, plain_timing] = time(quantised, linear);
        std::printf("%15s %6ld tokens:", format, static_cast<long>(num_tokens));
        print(quantised_timing, flop);
        std::printf("   plain");
        print(plain_timing, flop);
        std::printf("\n");
      }
    }
  }

 private:
  LinearWeight random_weight(std::int64_t out_features, std::int64_t in_features) {
    const TensorView weight = memory_.take(DType::kBF16, {out_features, in_features});
    std::uniform_real_distribution<float> distribution(-1, 1);
    std::generate_n(weight.as<bfloat16>(), weight.num_elements(),
                    [&] { return to_bfloat16(distribution(generator_)); });
    return {.format = WeightFormat::kDense, .weight = weight, .bias = {}};
  }

  TensorView random_bytes(DType dtype, std::initializer_list<std::int64_t> shape) {
    const TensorView bytes = memory_.take(dtype, shape);
    std::generate_n(static_cast<std::uint8_t*>(bytes.data()), bytes.num_bytes(),
                    [&] { return static_cast<std::uint8_t>(generator_()); });
    return bytes;
  }

  TensorView filled(std::int64_t count, float value) {
    const TensorView out = memory_.take(DType::kF32, {count});
    std::fill_n(out.as<float>(), count, value);
    return out;
  }

  /// In groups of 256.
  LinearWeight random_int8(std::int64_t out_features, std::int64_t in_features) {
    LinearWeight linear;
    linear.format = WeightFormat::kInt8;
    linear.weight = random_bytes(DType::kI8, {out_features, in_features});
    linear.int8 = {.row_scale = filled(out_features, 0.01f), .rotation_group = 256};
    return linear;
  }

  /// Doubly quantised.
  LinearWeight random_nf4(std::int64_t out_features, std::int64_t in_features) {
    const std::int64_t num_blocks = out_features * in_features / 64;
    LinearWeight linear;
    linear.format = WeightFormat::kNf4;
    linear.weight = random_bytes(DType::kU8, {out_features * in_features / 2});
    linear.nf4.out_features = out_features;
    linear.nf4.in_features = in_features;
    linear.nf4.code_values = filled(16, 0.5f);
    linear.nf4.absmax = random_bytes(DType::kU8, {num_blocks});
    linear.nf4.nested_values = filled(256, 0.5f);
    linear.nf4.nested_absmax = filled((num_blocks + 255) / 256, 0.1f);
    return linear;
  }

  /// The same values twice: as the operation reads them and as sgemm does.
  void fill_input(const TensorView& input, const TensorView& input_f32) {
    std::uniform_real_distribution<float> distribution(-1, 1);
    for (std::int64_t i = 0; i < input.num_elements(); ++i) {
      const bfloat16 x = to_bfloat16(distribution(generator_));
      input_f32.as<float>()[i] = to_float(x);
      if (input.dtype() == DType::kBF16) {
        input.as<bfloat16>()[i] = x;
      } else {
        input.as<float>()[i] = to_float(x);
      }
    }
  }

  /// Results of n terms of size 1/3: sums wander to sqrt(n) / 3.
  static bool agree(const TensorView& out, const TensorView& reference) {
    for (std::int64_t i = 0; i < out.num_elements(); ++i) {
      const float expected = reference.as<float>()[i];
      const bool is_bf16 = out.dtype() == DType::kBF16;
      const float actual = is_bf16 ? to_float(out.as<bfloat16>()[i]) : out.as<float>()[i];
      const float allowed = 2e-3f + (is_bf16 ? 0.004f * std::abs(expected) : 0.0f);
      if (!(std::abs(actual - expected) <= allowed)) return false;
    }
    return true;
  }

  std::pair<Timing, Timing> time(const auto& first, const auto& second) const {
    Timing a, b;
    for (int i = 0; i < num_runs_; ++i) {
      a.push_back(seconds_of(first));
      b.push_back(seconds_of(second));
    }
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    return {a, b};
  }

  double seconds_of(const auto& run) const {
    const double begin = now();
    run();
    return now() - begin;
  }

  double now() const {
    if (num_threads_ == 1) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  static void print(const Timing& timing, double flop) {
    const double median = timing[timing.size() / 2];
    std::printf(" %9.3f ms (%.3f to %.3f) %6.1f GFLOP/s", median * 1e3, timing.front() * 1e3, timing.back() * 1e3,
                flop / median * 1e-9);
  }

  cpu::CpuOps ops_;
  int num_runs_, num_threads_;
  ThreadCount thread_count_;
  Workspace memory_{host_memory()};
  std::mt19937 generator_{1};
};

}  // namespace
}  // namespace treble

namespace {

/// The way of that name, or the fastest for none; exits if this processor does not have it.
treble::cpu::Int8Blocks int8_blocks_of(std::string_view name) {
  using treble::cpu::Int8Blocks;
  if (name.empty()) return treble::cpu::best_int8_blocks();
  for (const Int8Blocks blocks : {Int8Blocks::kNone, Int8Blocks::kVnni, Int8Blocks::kAmx})
    if (to_string(blocks) == name && is_supported(blocks)) return blocks;
  std::fprintf(stderr, "treble_linear_bench: no %s on this processor\n", std::string(name).c_str());
  std::exit(EXIT_FAILURE);
}

}  // namespace

int main(int argc, char** argv) {
  const auto dtype = argc > 1 && std::string_view(argv[1]) == "f32" ? treble::DType::kF32 : treble::DType::kBF16;
  const int num_runs = argc > 2 ? std::max(std::atoi(argv[2]), 1) : 7;
  const int num_threads = argc > 3 ? std::max(std::atoi(argv[3]), 1) : treble::available_threads();
  const auto int8_blocks = int8_blocks_of(argc > 5 ? argv[5] : "");
  const treble::cpu::CpuOps ops(dtype, treble::Int8Activations::kPrecise, int8_blocks);
  std::printf("%s, activations %s, %d threads, median of %d runs\n", ops.name().c_str(),
              std::string(treble::to_string(dtype)).c_str(), num_threads, num_runs);
  treble::Bench bench(dtype, int8_blocks, num_runs, num_threads);
  const std::string_view wanted = argc > 4 ? argv[4] : "";
  for (const treble::Layer& layer : treble::kLayers) {
    if (std::string_view(layer.name).find(wanted) != std::string_view::npos) bench.run(layer);
  }
}
