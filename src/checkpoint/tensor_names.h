#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/tensor_view.h"

namespace treble {

/// A name out of a file, for a message: in quotes, control characters escaped, cut after 200 bytes.
std::string quote_name(std::string_view name);

/// Text out of a file for a table: control characters become '?'.
std::string printable(std::string_view text);

/// A name around its first number between dots: "text.layers.12.norm" -> "text.layers.", 12, ".norm".
struct LayerName {
  std::string before;
  std::int64_t number = -1;  ///< -1 if there is none; `before` is the whole name then
  std::string after;
};
LayerName split_layer(std::string_view name);

/// The name of a backbone tensor without its layout's prefix, e.g. "model.language_model.norm.weight" and
/// "model.norm.weight" -> "text.norm.weight". A name of no known layout is returned as it is.
std::string canonical_name(std::string_view stored_name);

/// True for the tensors of multi-token prediction, which nothing reads.
bool is_ignored(std::string_view stored_name);

/// True for a delta-net convolution stored [conv_dim, kernel, 1], which only MLX conversions do; their norm weights
/// are shifted by one as well, so such a file must not be read as if it were the release's layout.
bool is_mlx_convolution(std::string_view name, const TensorView& view);

}  // namespace treble
