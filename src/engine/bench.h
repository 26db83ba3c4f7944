#pragma once

#include <treble/engine.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/profiled_ops.h"
#include "media/fitted_size.h"

namespace treble {

/// What `treble bench` measures. Either a release folder or a synthetic model.
struct BenchOptions {
  std::filesystem::path model;                     ///< release folder; empty: synthetic
  std::string synthetic;                           ///< "9b", "8x1024", ...: see synthetic_config
  std::vector<std::int64_t> tokens = {298, 1502};  ///< lengths of the made-up records
  std::filesystem::path records;                   ///< JSONL of real requests, timed one at a time, instead of `tokens`
  int questions = 8;
  int options = 4;
  std::optional<PictureSize> image;  ///< of a made-up picture before each made-up record, before it is resized
  int batch = 1;                     ///< records in one pass
  int repeats = 5;       ///< timed passes after one untimed; the fastest steps are no use, so medians are reported
  bool profile = false;  ///< measure each operation apart
  EngineOptions engine;
};

/// Median, and the spread from the 10th to the 90th percentile, milliseconds.
struct BenchFigure {
  double median_ms = 0, p10_ms = 0, p90_ms = 0;
};

struct BenchRow {
  std::string name;               ///< "298 tokens x 1", "298 tokens + 640x480 x 1", or "records"
  std::int64_t total_tokens = 0;  ///< in one pass (of `records`: the mean), a picture's included
  std::int64_t decisions = 0;     ///< questions answered in one pass (of `records`: the mean)
  BenchFigure total, encode, vision, backbone, head;
  double tokens_per_s = 0;     ///< at the median
  double decisions_per_s = 0;  ///< at the median
  std::vector<OpTime> ops;     ///< of one pass, means of the timed ones, the longest first; only with `profile`
};

struct BenchReport {
  std::string model;   ///< "0.8b synthetic" or the folder's name
  std::string device;  ///< "cpu, 2 threads, AVX2, bf16"
  std::size_t weight_bytes = 0;
  std::size_t activation_bytes = 0;     ///< most at once
  std::size_t peak_resident_bytes = 0;  ///< of the process, as the kernel counts it
  std::vector<BenchRow> rows;
};

/// Runs the benchmark. @param progress  called with a short line before each step
BenchReport run_bench(const BenchOptions& options, const std::function<void(const std::string&)>& progress = {});

/// As `treble bench --json` prints it.
Json to_json(const BenchReport& report);

}  // namespace treble
