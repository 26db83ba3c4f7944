// How fast the token mixers are: attention and the gated delta rule with its inputs, at the sizes of the models.
//
//   treble_mixer_bench [f32|bf16] [RUNS] [THREADS]     median and spread of the runs (default: bf16, 7, all threads),
//   and
//                                                      the share of what oneDNN's sgemm reaches on as many threads
//
// One thread is measured in processor time, which other programs of a busy machine do not count in; more in wall time.
// Operations are counted as in the chunked form, triangles as halves.

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
#include <vector>

#include "base/parallel.h"
#include "cpu/cpu_ops.h"

namespace treble {
namespace {

/// Median, least and most seconds of some runs.
struct Timing {
  double median, least, most;
};

class Bench {
 public:
  Bench(DType dtype, int num_runs, int num_threads)
      : ops_(dtype), num_runs_(num_runs), num_threads_(num_threads), thread_count_(num_threads) {}

  cpu::CpuOps& ops() { return ops_; }
  DType act() const { return ops_.activation_dtype(); }

  TensorView random(DType dtype, std::initializer_list<std::int64_t> shape, float scale = 1) {
    const TensorView view = memory_.take(dtype, shape);
    std::normal_distribution<float> distribution(0, scale);
    for (std::int64_t i = 0; i < view.num_elements(); ++i) {
      const float x = distribution(generator_);
      if (dtype == DType::kF32) {
        view.as<float>()[i] = x;
      } else {
        view.as<bfloat16>()[i] = to_bfloat16(x);
      }
    }
    return view;
  }

  TensorView borders(std::int64_t total_tokens) {
    const TensorView view = memory_.take(DType::kI32, {2});
    view.as<std::int32_t>()[0] = 0;
    view.as<std::int32_t>()[1] = static_cast<std::int32_t>(total_tokens);
    return view;
  }

  Workspace& memory() { return memory_; }

  Timing time(const auto& run) const {
    run();  // warms up
    std::vector<double> seconds;
    for (int i = 0; i < num_runs_; ++i) {
      const double begin = now();
      run();
      seconds.push_back(now() - begin);
    }
    std::sort(seconds.begin(), seconds.end());
    return {seconds[seconds.size() / 2], seconds.front(), seconds.back()};
  }

  void measure_sgemm() {
    const dnnl_dim_t n = 1536;
    const TensorView a = random(DType::kF32, {n, n}), b = random(DType::kF32, {n, n}), c = random(DType::kF32, {n, n});
    const Timing timing =
        time([&] { dnnl_sgemm('N', 'N', n, n, n, 1, a.as<float>(), n, b.as<float>(), n, 0, c.as<float>(), n); });
    const double flop = 2.0 * n * n * n;
    sgemm_flops_ = flop / timing.median;
    print("sgemm 1536", timing, flop);
  }

  void print(const std::string& name, const Timing& timing, double flop) const {
    std::printf("%-52s %9.2f ms (%.2f to %.2f)  %6.1f GFLOP/s  %3.0f %%\n", name.c_str(), timing.median * 1e3,
                timing.least * 1e3, timing.most * 1e3, flop / timing.median * 1e-9,
                100 * flop / timing.median / sgemm_flops_);
  }

  void print_bandwidth(const std::string& name, const Timing& timing, double num_bytes) const {
    std::printf("%-52s %9.2f ms (%.2f to %.2f)  %6.1f GB/s\n", name.c_str(), timing.median * 1e3, timing.least * 1e3,
                timing.most * 1e3, num_bytes / timing.median * 1e-9);
  }

 private:
  double now() const {
    if (num_threads_ == 1) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  cpu::CpuOps ops_;
  int num_runs_;
  int num_threads_;
  ThreadCount thread_count_;
  Workspace memory_{host_memory()};
  std::mt19937 generator_{1};
  double sgemm_flops_ = 1;
};

struct AttentionSizes {
  const char* name;
  std::int64_t num_queries, num_keys, num_q_heads, num_kv_heads, head_dim;
  bool causal;
};

void measure_attention(Bench& bench, const AttentionSizes& sizes) {
  const Workspace::Scope scope(bench.memory());
  const auto [name, queries, keys, q_heads, kv_heads, head_dim, causal] = sizes;
  const TensorView query = bench.random(bench.act(), {queries, q_heads, head_dim});
  const TensorView gate = bench.random(bench.act(), {queries, q_heads, head_dim});
  const TensorView key = bench.random(bench.act(), {keys, kv_heads, head_dim});
  const TensorView value = bench.random(bench.act(), {keys, kv_heads, head_dim});
  const Attention args = {.query = query,
                          .key = key,
                          .value = value,
                          .gate = gate,
                          .cu_seqlens_q = bench.borders(queries),
                          .cu_seqlens_k = bench.borders(keys),
                          .causal = causal,
                          .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                          .out = bench.memory().take(bench.act(), {queries, q_heads * head_dim})};
  const double pairs = static_cast<double>(queries) *
                       (static_cast<double>(keys) - (causal ? (static_cast<double>(queries) - 1) / 2 : 0));
  const double flop = 4 * pairs * static_cast<double>(q_heads * head_dim);
  bench.print(std::string("attention ") + name, bench.time([&] { bench.ops().attention(args); }), flop);
}

void measure_delta_rule(Bench& bench, std::int64_t tokens, std::int64_t k_heads, std::int64_t v_heads) {
  const Workspace::Scope scope(bench.memory());
  constexpr std::int64_t kHeadDim = 128, kTaps = 4, kChunk = 64;
  Workspace& memory = bench.memory();
  const DType act = bench.act();
  const std::int64_t conv_dim = (2 * k_heads + v_heads) * kHeadDim;
  const DeltaRuleInputs inputs = {.mixed = bench.random(act, {tokens, conv_dim}),
                                  .a = bench.random(act, {tokens, v_heads}),
                                  .b = bench.random(act, {tokens, v_heads}),
                                  .conv_weight = bench.random(DType::kBF16, {conv_dim, kTaps}, 0.5f),
                                  .A_log = bench.random(DType::kBF16, {v_heads}),
                                  .dt_bias = bench.random(DType::kBF16, {v_heads}),
                                  .conv_state = {},
                                  .cu_seqlens = bench.borders(tokens),
                                  .query = memory.take(act, {tokens, k_heads, kHeadDim}),
                                  .key = memory.take(act, {tokens, k_heads, kHeadDim}),
                                  .value = memory.take(act, {tokens, v_heads, kHeadDim}),
                                  .log_decay = memory.take(DType::kF32, {tokens, v_heads}),
                                  .beta = memory.take(DType::kF32, {tokens, v_heads})};
  const GatedDeltaRule rule = {.query = inputs.query,
                               .key = inputs.key,
                               .value = inputs.value,
                               .out = memory.take(act, {tokens, v_heads, kHeadDim}),
                               .log_decay = inputs.log_decay,
                               .beta = inputs.beta,
                               .recurrent_state = {},
                               .cu_seqlens = inputs.cu_seqlens,
                               .scale = 1 / std::sqrt(static_cast<float>(kHeadDim))};
  const std::string name =
      std::to_string(k_heads) + "/" + std::to_string(v_heads) + " heads, T=" + std::to_string(tokens);
  bench.print_bandwidth("delta_rule_inputs " + name, bench.time([&] { bench.ops().delta_rule_inputs(inputs); }),
                        2.0 * static_cast<double>(tokens * conv_dim) * static_cast<double>(size_of(act)));
  // Per token: two reads and one write of the state and two triangles for each value head, two for each key head.
  const double flop_per_token =
      2.0 * static_cast<double>(v_heads * (3 * kHeadDim * kHeadDim + kChunk * kHeadDim) + k_heads * kChunk * kHeadDim);
  bench.print("gated_delta_rule " + name, bench.time([&] { bench.ops().gated_delta_rule(rule); }),
              flop_per_token * static_cast<double>(tokens));
}

}  // namespace
}  // namespace treble

int main(int argc, char** argv) {
  using namespace treble;
  const bool f32 = argc > 1 && std::string_view(argv[1]) == "f32";
  const int num_runs = argc > 2 ? std::max(std::atoi(argv[2]), 1) : 7;
  const int num_threads = argc > 3 ? std::max(std::atoi(argv[3]), 1) : available_threads();
  Bench bench(f32 ? DType::kF32 : DType::kBF16, num_runs, num_threads);
  bench.measure_sgemm();
  for (const AttentionSizes& sizes : {
           AttentionSizes{"16/4 heads of 256, causal, T=100", 100, 100, 16, 4, 256, true},
           AttentionSizes{"16/4 heads of 256, causal, T=1502", 1502, 1502, 16, 4, 256, true},
           AttentionSizes{"24/4 heads of 256, causal, T=1502", 1502, 1502, 24, 4, 256, true},
           AttentionSizes{"16/4 heads of 256, causal, T=8192", 8192, 8192, 16, 4, 256, true},
           AttentionSizes{"16 heads of 64, 12 queries of 1502", 12, 1502, 16, 16, 64, false},
           AttentionSizes{"1 head of 1024, 12 queries of 1502", 12, 1502, 1, 1, 1024, false},
           AttentionSizes{"16 heads of 72, T=1024", 1024, 1024, 16, 16, 72, false},
       }) {
    measure_attention(bench, sizes);
  }
  for (const std::int64_t v_heads : {16, 32, 48}) measure_delta_rule(bench, 2048, 16, v_heads);
  measure_delta_rule(bench, 100, 16, 32);
}
