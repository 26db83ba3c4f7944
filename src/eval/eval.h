#pragma once

#include <treble/engine.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eval/groups.h"
#include "eval/slices.h"

namespace treble::eval {

/// What `treble eval` measures.
struct EvalOptions {
  std::filesystem::path reference;             ///< release folder, usually bf16 weights
  std::vector<std::filesystem::path> models;   ///< release folders that are compared with it
  std::vector<std::filesystem::path> records;  ///< .jsonl files
  std::filesystem::path groups;                ///< JSON file of option groups; empty: none
  bool has_noise_floor = true;                 ///< also compare the reference with itself, computed in other ways
  /// Of all runs; but `weights` is of the models alone, and the reference stays as it is stored. Without models, it is
  /// compared with itself, quantised.
  EngineOptions engine;
};

/// Everything about one slice of the questions.
struct SliceReport {
  std::string name;
  std::size_t num_questions = 0;
  std::optional<Quality> quality;        ///< where there are labels
  std::optional<Comparison> comparison;  ///< of every run but the reference
};

/// Drift of one stage of the pass, over all tokens.
struct StageReport {
  std::string stage;
  double mean = 0, p95 = 0;  ///< of the tokens' relative L2
  double aggregate = 0;      ///< sqrt(sum of squared errors / sum of squared norms)
};

/// One way of computing the records.
struct RunReport {
  std::string name;
  bool is_noise_floor = false;  ///< the reference's own weights, computed in another way
  std::vector<SliceReport> slices;
  std::vector<StageReport> stages;  ///< empty for the reference and where hidden states cannot be compared
  std::vector<GroupReport> groups;  ///< empty for the reference
};

struct EvalReport {
  std::string device;                                        ///< "cpu (AVX2), 2 threads, f32 activations"
  std::size_t num_records = 0;                               ///< that were run
  std::size_t num_image_records = 0, num_video_records = 0;  ///< left out: a model reads no media
  std::size_t num_questions = 0, num_labelled = 0;
  RunReport reference;
  std::vector<RunReport> runs;  ///< the noise floor, then the models in the order given
};

/// Steps of a run: what is being done, and how many of how many records are done.
using EvalProgress = std::function<void(const std::string& step, std::size_t done, std::size_t total)>;

/// Runs all records through all models. Holds all of them open, and the results of all records.
/// @throws Error kArgument: files, groups; kRequest, kTooLong: a record, naming its line; kCheckpoint: a release, or
/// one
///         that reads a record as other tokens than the reference; kDevice
EvalReport run_eval(const EvalOptions& options, const EvalProgress& progress = {});

/// As `treble eval --json` writes it; figures that do not exist are null.
Json to_json(const EvalReport& report);

/// A page for people, complete in itself: tables and plots as inline SVG, no script, nothing loaded.
std::string to_html(const EvalReport& report);

}  // namespace treble::eval
