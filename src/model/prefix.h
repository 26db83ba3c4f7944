#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "model/config.h"
#include "ops/ops.h"
#include "tensor/tensor_view.h"
#include "tensor/workspace.h"

namespace treble {

/// Of an attention layer: of every token its keys, then its values.
struct KeptKeyValues {
  TensorView rows;  // [capacity, 2 * num_key_value_heads * head_dim] act; those of later tokens hold anything
};

/// Of a DeltaNet layer, after the last token.
struct KeptStates {
  TensorView conv_state;       // [1, conv_dim, linear_conv_kernel_dim - 1] act
  TensorView recurrent_state;  // [1, linear_num_value_heads, linear_key_head_dim, linear_value_head_dim] f32
};

using KeptOfLayer = std::variant<KeptStates, KeptKeyValues>;

/// What the layers keep of a record's tokens that have been read, so that those behind them can be read in a pass of
/// their own.
struct Prefix {
  std::int64_t num_tokens = 0;  // read so far
  std::vector<KeptOfLayer> layers;
};

/// A prefix of no tokens, with memory for so many.
Prefix take_prefix(const TextConfig& config, std::int64_t capacity, Ops& ops, Workspace& workspace);

}  // namespace treble
