#pragma once

#include <cstddef>
#include <string_view>

namespace treble {

/// Element types of tensors, in files and in memory.
enum class DType { kF64, kF32, kF16, kBF16, kF8E4M3, kI64, kI32, kU32, kI16, kI8, kU8, kBool };

/// Bytes of one element.
std::size_t size_of(DType dtype);

/// "f32", "bf16", ...: for messages and tables.
std::string_view to_string(DType dtype);

}  // namespace treble
