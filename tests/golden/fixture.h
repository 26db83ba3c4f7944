#pragma once

#include <treble/json.h>
#include <treble/record.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "record/encode.h"

namespace treble::testing {

/// One request of tests/data/micro and what the original stack answered.
struct FixtureCase {
  std::string name;
  Request request;
  std::filesystem::path release;
  EncodeOptions encode_options;
  Json expected;  ///< {"input_ids", "questions", "logits", "response"} of the fp32 (or precise) run
};

/// The images and videos of a case, prepared as its release says.
MediaItems read_media(const FixtureCase& fixture_case);

/// A release with random weights that the original stack was run on, and the requests of them all.
class Fixture {
 public:
  /// @param release  a folder of tests/data: "micro", "micro-nf4"
  explicit Fixture(std::string_view release = "micro");

  std::filesystem::path release() const { return folder_ / "release"; }
  const std::vector<FixtureCase>& cases() const { return cases_; }
  const FixtureCase& find(std::string_view name) const;

  /// Expected logits of a case, [question][option]. @param run  "fp32", "bf16": of expected_<run>.json
  std::vector<std::vector<double>> logits(const FixtureCase& fixture_case, std::string_view run) const;

  /// A tensor of the folder's .safetensors files; empty if there is none.
  TensorView tensor(std::string_view name) const;

 private:
  std::filesystem::path folder_;
  std::vector<FixtureCase> cases_;
  std::map<std::string, Json, std::less<>> runs_;
  std::vector<SafetensorsFile> tensors_;
};

/// Traces and hidden states are kept of every row of that number.
inline constexpr std::int64_t kTraceRowStep = 8;

/// |got - expected| / |expected| over all elements, both [rows, columns] f32; row i of expected is row i * step of got.
double relative_l2(const TensorView& got, const TensorView& expected, std::int64_t step = 1);

}  // namespace treble::testing
