#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/backend.h"
#include "engine/pack.h"
#include "engine/pipeline.h"
#include "fixture.h"
#include "model/backbone.h"
#include "model/vision.h"
#include "record/encode.h"
#include "text/tokenizer.h"

/// Running a fixture's requests, and comparing logits [question][option].
namespace treble::testing {

using Logits = std::vector<std::vector<std::vector<float>>>;  // [record][question][option]

inline Pipeline open(const Fixture& fixture, Precision precision, int num_threads = 0,
                     Int8Activations int8_activations = Int8Activations::kPrecise, const std::string& device = "cpu") {
  std::unique_ptr<Ops> ops = make_ops(device, precision, int8_activations);
  Model model = load_model(fixture.release(), *ops);
  return Pipeline(std::move(ops), std::move(model), num_threads);
}

inline EncodedRecord encode(const FixtureCase& fixture_case, const Tokenizer& tokenizer) {
  return encode_record(fixture_case.request, tokenizer, fixture_case.encode_options, read_media(fixture_case));
}

/// Hidden states [T, h] of one record, from the workspace.
inline TensorView run_record(const Model& model, const EncodedRecord& record, Ops& ops, Workspace& workspace,
                             const Trace& trace = {}) {
  const PackedBatch batch = pack_batch(std::span(&record, 1), model.config.text.vocab_size);
  TensorView features;
  if (!batch.media.empty()) features = run_vision(model, batch.media, ops, workspace, trace);
  return run_backbone(model, batch, features, ops, workspace, trace);
}

inline double largest_difference(const std::vector<std::vector<float>>& got,
                                 const std::vector<std::vector<double>>& expected) {
  REQUIRE(got.size() == expected.size());
  double largest = 0;
  for (std::size_t q = 0; q < got.size(); ++q) {
    REQUIRE(got[q].size() == expected[q].size());
    for (std::size_t o = 0; o < got[q].size(); ++o) {
      REQUIRE(std::isfinite(got[q][o]));
      largest = std::max(largest, std::abs(got[q][o] - expected[q][o]));
    }
  }
  return largest;
}

inline double largest_difference(const std::vector<std::vector<float>>& got,
                                 const std::vector<std::vector<float>>& expected) {
  std::vector<std::vector<double>> widened;
  for (const std::vector<float>& of_question : expected) widened.emplace_back(of_question.begin(), of_question.end());
  return largest_difference(got, widened);
}

template <typename Value>
std::vector<double> softmax(const std::vector<Value>& logits) {
  std::vector<double> p(logits.begin(), logits.end());
  const double largest = *std::max_element(p.begin(), p.end());
  for (double& x : p) x = std::exp(x - largest);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

inline double largest_probability_difference(const std::vector<std::vector<float>>& got,
                                             const std::vector<std::vector<double>>& expected) {
  double largest = 0;
  for (std::size_t q = 0; q < got.size(); ++q) {
    const std::vector<double> a = softmax(got[q]), b = softmax(expected[q]);
    for (std::size_t o = 0; o < a.size(); ++o) largest = std::max(largest, std::abs(a[o] - b[o]));
  }
  return largest;
}

}  // namespace treble::testing
