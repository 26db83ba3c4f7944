#include "model/prefix.h"

namespace treble {

Prefix take_prefix(const TextConfig& config, std::int64_t capacity, Ops& ops, Workspace& workspace) {
  const DType act = ops.activation_dtype();
  Prefix prefix;
  for (const LayerKind kind : config.layer_types) {
    if (kind == LayerKind::kAttention) {
      prefix.layers.emplace_back(
          KeptKeyValues{workspace.take(act, {capacity, 2 * config.num_key_value_heads * config.head_dim})});
      continue;
    }
    const KeptStates states{workspace.take(act, {1, config.conv_dim(), config.linear_conv_kernel_dim - 1}),
                            workspace.take(DType::kF32, {1, config.linear_num_value_heads, config.linear_key_head_dim,
                                                         config.linear_value_head_dim})};
    ops.fill_zero({.x = states.conv_state});
    ops.fill_zero({.x = states.recurrent_state});
    prefix.layers.emplace_back(states);
  }
  return prefix;
}

}  // namespace treble
