#include "fixture.h"

#include <doctest/doctest.h>

#include <treble/error.h>

#include <cmath>
#include <stdexcept>

#include "base/mapped_file.h"
#include "media/media_config.h"
#include "record/media_reader.h"

namespace treble::testing {
namespace {

Json read_json(const std::filesystem::path& path) {
  return parse_json(read_text_file(path), path.string(), ErrorCode::kInternal);
}

}  // namespace

MediaItems read_media(const FixtureCase& fixture_case) {
  return MediaReader(read_media_config(fixture_case.release))
      .read(fixture_case.request, fixture_case.encode_options.max_tokens);
}

Fixture::Fixture(std::string_view release) : folder_(std::filesystem::path(TREBLE_TEST_DATA) / release) {
  constexpr std::string_view kExpected = "expected_";
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    const std::string name = file.path().stem().string();
    if (file.path().extension() == ".safetensors") {
      tensors_.emplace_back(file.path());
    } else if (name.starts_with(kExpected)) {
      runs_.emplace(name.substr(kExpected.size()), read_json(file.path()));
    }
  }
  const Json requests = read_json(folder_.parent_path() / "micro" / "requests.json");
  const Json& expected = runs_.contains("fp32") ? runs_.at("fp32") : runs_.at("precise");
  for (const auto& [name, request] : requests.as_object()) {
    FixtureCase next{name, request_from_json(request), this->release(), {}, *expected.find(name)};
    next.request.media_folder = folder_.parent_path() / "micro";
    // The reference cuts the state of a prompt that is too long.
    if (const Json* max_length = request.find("_max_length"))
      next.encode_options = {.max_tokens = static_cast<std::int64_t>(max_length->as_double()), .truncate_state = true};
    cases_.push_back(std::move(next));
  }
}

const FixtureCase& Fixture::find(std::string_view name) const {
  for (const FixtureCase& fixture_case : cases_)
    if (fixture_case.name == name) return fixture_case;
  throw std::runtime_error("no fixture request is called " + std::string(name));
}

std::vector<std::vector<double>> Fixture::logits(const FixtureCase& fixture_case, std::string_view run) const {
  const Json& expected = *runs_.find(run)->second.find(fixture_case.name);
  std::vector<std::vector<double>> logits;
  for (const auto& [question, values] : expected.find("logits")->as_object()) {
    std::vector<double>& of_question = logits.emplace_back();
    for (const Json& value : values.as_array()) of_question.push_back(value.as_double());
  }
  return logits;
}

TensorView Fixture::tensor(std::string_view name) const {
  for (const SafetensorsFile& file : tensors_)
    for (const SafetensorsFile::Tensor& tensor : file.tensors())
      if (tensor.name == name) return tensor.view;
  return {};
}

double relative_l2(const TensorView& got, const TensorView& expected, std::int64_t step) {
  REQUIRE((expected.size(0) - 1) * step < got.size(0));
  double difference = 0, norm = 0;
  for (std::int64_t row = 0; row < expected.size(0); ++row) {
    const float* a = got.as<float>() + row * step * got.stride(0);
    const float* b = expected.as<float>() + row * expected.stride(0);
    for (std::int64_t i = 0; i < expected.size(1); ++i) {
      difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
      norm += static_cast<double>(b[i]) * b[i];
    }
  }
  return std::sqrt(difference / norm);
}

}  // namespace treble::testing
