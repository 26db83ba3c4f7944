#include "model/vision.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "model/host_view.h"

namespace treble {
namespace {

constexpr std::int64_t kMerge = VisionConfig::kSpatialMergeSize;
constexpr std::int64_t kTaps = 4;

/// What all blocks of one pass share.
struct Pass {
  const VisionConfig& config;
  Ops& ops;
  Workspace& workspace;
  std::int64_t num_patches;  // N
  TensorView cu_seqlens;     // borders of frame groups
  TensorView cos, sin;       // [N, head_dim / 2]

  TensorView activations(std::int64_t rows, std::int64_t features) const {
    return workspace.take(ops.activation_dtype(), {rows, features});
  }
};

void apply(Ops& ops, const LinearWeight& weight, const LinearInput& input, const TensorView& out) {
  ops.linear({.input = input, .outputs = std::array{Linear::Output{&weight, out}}});
}

void check(std::span<const VisionItem> items) {
  for (const VisionItem& item : items) {
    const bool is_grid =
        item.grid_t > 0 && item.grid_h > 0 && item.grid_w > 0 && item.grid_h % kMerge == 0 && item.grid_w % kMerge == 0;
    const std::int64_t frames = item.frames_per_patch;
    const bool fits = (frames == 1 || frames == VisionConfig::kTemporalPatchSize) &&
                      std::ssize(item.levels) ==
                          item.num_patches() * frames * VisionConfig::kPatchFeatures / VisionConfig::kTemporalPatchSize;
    if (!is_grid || !fits)
      throw Error(ErrorCode::kInternal, fmt::format("vision: {} levels of {} frames for a grid of {} x {} x {} patches",
                                                    item.levels.size(), frames, item.grid_t, item.grid_h, item.grid_w));
  }
}

/// Where the patches stand, [N] each, in merge-block order: the four patches of a block of 2 x 2 follow each other.
struct Layout {
  std::vector<std::int32_t> positions;   // [2, N]: row, column, counted in each frame group
  std::vector<std::int32_t> cu_seqlens;  // borders of frame groups
  std::vector<std::int32_t> tap_index;   // [N, 4] rows of the position embedding
  std::vector<float> tap_weights;        // [N, 4]
};

/// One axis of the position embedding's table, resampled to `count` places with both ends kept.
struct AxisTaps {
  std::int32_t low, high;
  float weight;  // of `high`

  AxisTaps(std::int64_t place, std::int64_t count, std::int64_t side) {
    const float source =
        static_cast<float>(place * (side - 1)) / static_cast<float>(std::max<std::int64_t>(count - 1, 1));
    low = static_cast<std::int32_t>(source);
    high = std::min(low + 1, static_cast<std::int32_t>(side - 1));
    weight = source - static_cast<float>(low);
  }
};

void add_frame_group(Layout& layout, const VisionItem& item, std::int64_t side, std::vector<std::int32_t>& columns) {
  for (std::int64_t block = 0; block < item.num_patches() / item.grid_t / (kMerge * kMerge); ++block) {
    const std::int64_t blocks_in_row = item.grid_w / kMerge;
    for (std::int64_t inside = 0; inside < kMerge * kMerge; ++inside) {
      const std::int64_t row = block / blocks_in_row * kMerge + inside / kMerge;
      const std::int64_t column = block % blocks_in_row * kMerge + inside % kMerge;
      layout.positions.push_back(static_cast<std::int32_t>(row));
      columns.push_back(static_cast<std::int32_t>(column));
      const AxisTaps r(row, item.grid_h, side), c(column, item.grid_w, side);
      const auto at = [&](std::int32_t i, std::int32_t j) { return i * static_cast<std::int32_t>(side) + j; };
      layout.tap_index.insert(layout.tap_index.end(),
                              {at(r.low, c.low), at(r.low, c.high), at(r.high, c.low), at(r.high, c.high)});
      layout.tap_weights.insert(layout.tap_weights.end(), {(1 - r.weight) * (1 - c.weight), (1 - r.weight) * c.weight,
                                                           r.weight * (1 - c.weight), r.weight * c.weight});
    }
  }
  layout.cu_seqlens.push_back(static_cast<std::int32_t>(columns.size()));
}

Layout lay_out(std::span<const VisionItem> items, const VisionConfig& config) {
  const auto side = std::llround(std::sqrt(static_cast<double>(config.num_position_embeddings)));
  Layout layout{.cu_seqlens = {0}};
  std::vector<std::int32_t> columns;
  for (const VisionItem& item : items)
    for (std::int64_t t = 0; t < item.grid_t; ++t) add_frame_group(layout, item, side, columns);
  layout.positions.insert(layout.positions.end(), columns.begin(), columns.end());
  return layout;
}

/// The items' pixel values end to end, [N, kPatchFeatures] act.
TensorView pixel_values(const Pass& pass, std::span<const VisionItem> items) {
  constexpr std::int64_t kPixels = VisionConfig::kPatchSize * VisionConfig::kPatchSize;
  const TensorView pixels = pass.activations(pass.num_patches, VisionConfig::kPatchFeatures);
  std::int64_t row = 0;
  for (const VisionItem& item : items) {
    const std::int64_t count = item.num_patches();
    const Workspace::Scope scope(pass.workspace);
    auto* host = const_cast<std::uint8_t*>(item.levels.data());  // operations only read them
    const TensorView levels = pass.ops.upload(
        pass.workspace,
        TensorView(host, DType::kU8, {count, VisionConfig::kInChannels, item.frames_per_patch, kPixels}));
    pass.ops.normalize_patches(
        {.levels = levels,
         .mean = item.mean,
         .deviation = item.deviation,
         .out = pixels.rows(row, row + count)
                    .reshape({count, VisionConfig::kInChannels, VisionConfig::kTemporalPatchSize, kPixels})});
    row += count;
  }
  return pixels;
}

/// Multi-head attention inside each frame group, [N, D] -> out [N, D].
void run_attention(const Pass& pass, const VisionBlockWeights& weights, const LinearInput& input,
                   const TensorView& out) {
  const std::int64_t N = pass.num_patches, D = pass.config.hidden_size;
  const std::int64_t heads = pass.config.num_heads, head_dim = pass.config.head_dim();
  const TensorView qkv = pass.activations(N, 3 * D);
  apply(pass.ops, weights.qkv, input, qkv);

  const TensorView all_heads = qkv.reshape({N, 3 * heads, head_dim});
  const TensorView query = all_heads.slice(1, 0, heads), key = all_heads.slice(1, heads, 2 * heads);
  pass.ops.rotate_heads({.query = query, .key = key, .cos = pass.cos, .sin = pass.sin});
  const LinearInput attended = pass.ops.linear_input(pass.workspace, N, {&weights.proj});
  pass.ops.attention({.query = query,
                      .key = key,
                      .value = all_heads.slice(1, 2 * heads, 3 * heads),
                      .gate = {},
                      .cu_seqlens_q = pass.cu_seqlens,
                      .cu_seqlens_k = pass.cu_seqlens,
                      .causal = false,
                      .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                      .out = attended});
  apply(pass.ops, weights.proj, attended, out);
}

/// [N, D] -> out [N, D]
void run_mlp(const Pass& pass, const VisionBlockWeights& weights, const LinearInput& input, const TensorView& out) {
  const TensorView inner = pass.activations(pass.num_patches, pass.config.intermediate_size);
  apply(pass.ops, weights.fc1, input, inner);
  pass.ops.gelu({.x = inner, .form = GeluForm::kTanh});
  apply(pass.ops, weights.fc2, inner, out);
}

/// x += delta; norm of x.
void add_and_norm(const Pass& pass, const TensorView& x, const TensorView& delta, const LayerNormWeights& weights,
                  const LinearInput& out) {
  pass.ops.layer_norm({.x = x,
                       .delta = delta,
                       .weight = weights.weight,
                       .bias = weights.bias,
                       .eps = pass.config.layer_norm_eps,
                       .out = out});
}

/// Norm, the four patches of a block side by side, two Linears: x [N, D] -> out [N / 4, h].
void run_merger(const Pass& pass, const VisionWeights& weights, const TensorView& x, const TensorView& delta,
                const TensorView& out) {
  const std::int64_t D = pass.config.hidden_size, merged = VisionConfig::kMergedPatches * D;
  const TensorView blocks = pass.activations(out.size(0), merged), inner = pass.activations(out.size(0), merged);
  add_and_norm(pass, x, delta, weights.merger_norm, blocks.reshape({pass.num_patches, D}));
  apply(pass.ops, weights.merger_fc1, blocks, inner);
  pass.ops.gelu({.x = inner, .form = GeluForm::kErf});
  apply(pass.ops, weights.merger_fc2, inner, out);
}

}  // namespace

TensorView run_vision(const Model& model, std::span<const VisionItem> items, Ops& ops, Workspace& workspace,
                      const Trace& trace) {
  if (!model.vision) throw Error(ErrorCode::kInternal, "vision: the model has no vision tower");
  check(items);
  const VisionConfig& config = *model.config.vision;
  const VisionWeights& weights = *model.vision;
  const Layout layout = lay_out(items, config);
  const std::int64_t N = layout.cu_seqlens.back(), half = config.head_dim() / 2;
  const TensorView features =
      workspace.take(ops.activation_dtype(), {N / VisionConfig::kMergedPatches, config.out_hidden_size});

  const Workspace::Scope scope(workspace);
  const Pass pass{config,
                  ops,
                  workspace,
                  N,
                  host_view(layout.cu_seqlens),
                  workspace.take(DType::kF32, {N, half}),
                  workspace.take(DType::kF32, {N, half})};
  ops.axial_rotary_tables(
      {.positions = host_view(layout.positions, {2, N}), .theta = config.rope_theta, .cos = pass.cos, .sin = pass.sin});
  const TensorView x = pass.activations(N, config.hidden_size);  // the residual stream
  const TensorView attention_delta = pass.activations(N, config.hidden_size);
  const TensorView mlp_delta = pass.activations(N, config.hidden_size);
  {
    const Workspace::Scope pixel_scope(workspace);
    apply(ops, weights.patch_embed, pixel_values(pass, items), x);
    if (trace) trace("vision.patch_embed", x);
  }
  ops.add_interpolated_rows(
      {.x = x,
       .table = weights.pos_embed,
       .index = host_view(layout.tap_index, {N, kTaps}),
       .weights = TensorView(const_cast<float*>(layout.tap_weights.data()), DType::kF32, {N, kTaps})});

  TensorView delta;  // added to x by the next norm
  for (std::size_t i = 0; i < weights.blocks.size(); ++i) {
    const VisionBlockWeights& block = weights.blocks[i];
    {
      const Workspace::Scope attention_scope(workspace);
      const LinearInput input = ops.linear_input(workspace, N, {&block.qkv});
      add_and_norm(pass, x, delta, block.norm1, input);
      if (trace && i > 0) trace(fmt::format("vision.block{}", i - 1), x);
      run_attention(pass, block, input, attention_delta);
    }
    {
      const Workspace::Scope mlp_scope(workspace);
      const LinearInput input = ops.linear_input(workspace, N, {&block.fc1});
      add_and_norm(pass, x, attention_delta, block.norm2, input);
      run_mlp(pass, block, input, mlp_delta);
    }
    delta = mlp_delta;
  }
  run_merger(pass, weights, x, delta, features);
  if (trace) {
    trace(fmt::format("vision.block{}", weights.blocks.size() - 1), x);
    trace("vision.merger", features);
  }
  return features;
}

}  // namespace treble
