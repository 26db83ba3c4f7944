#pragma once

#include <doctest/doctest.h>
#include <treble/error.h>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quant/module_tensors.h"

namespace treble::testing {

/// Weights as models have them. The same count gives the same numbers.
inline std::vector<float> normal_numbers(std::size_t count) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> out(count);
  for (float& x : out) x = normal(random);
  return out;
}

/// The tensors of one Linear, to be changed and read.
struct Module {
  std::map<std::string, std::string, std::less<>> bytes;  // by part
  std::map<std::string, TensorView, std::less<>> views;   // over those bytes without their memory

  void put(std::string_view name, DType dtype, std::vector<std::int64_t> shape, std::string data) {
    bytes.insert_or_assign(std::string(name), std::move(data));
    views.insert_or_assign(std::string(name), TensorView(nullptr, dtype, shape.data(), static_cast<int>(shape.size())));
  }
  void put(std::string_view name, DType dtype, std::string data) {
    const auto count = static_cast<std::int64_t>(data.size() / size_of(dtype));
    put(name, dtype, {count}, std::move(data));
  }
  void put_floats(std::string_view name, const std::vector<float>& values) {
    put(name, DType::kF32, {reinterpret_cast<const char*>(values.data()), 4 * values.size()});
  }
  void erase(std::string_view name) { bytes.erase(bytes.find(name)); }

  ModuleTensors tensors(ReadDepth depth = ReadDepth::kValues) {
    ModuleTensors::Parts parts;
    for (auto& [name, data] : bytes) {
      const TensorView& view = views.at(name);
      std::vector<std::int64_t> shape;
      for (int dim = 0; dim < view.rank(); ++dim) shape.push_back(view.size(dim));
      parts.emplace(name, TensorView(data.data(), view.dtype(), shape.data(), view.rank()));
    }
    return ModuleTensors("checkpoint: f: \"m\"", std::move(parts), depth);
  }
};

/// The message of the Error kCheckpoint that `read` throws.
template <typename Read>
std::string error_of(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kCheckpoint);
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

}  // namespace treble::testing
