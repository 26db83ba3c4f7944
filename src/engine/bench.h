#pragma once

#include <treble/engine.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/agreement.h"
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
  std::vector<int> batch = {1};      ///< records that are answered at once, one run for each number
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
  std::int64_t tokens = 0;        ///< of one record, without a picture's (of `records`: the mean)
  int batch = 1;                  ///< records answered at once
  std::int64_t total_tokens = 0;  ///< of all of them, a picture's included (of `records`: the mean)
  std::int64_t decisions = 0;     ///< questions answered at once (of `records`: the mean)
  BenchFigure total, encode, vision, backbone, head;
  BenchFigure queue;           ///< until the host had queued the backbone's work; on CPUs the backbone itself
  double tokens_per_s = 0;     ///< at the median
  double decisions_per_s = 0;  ///< at the median
  /// 10^12 products and sums in a second at the median, as op_cost.h counts them; 0 of `records`.
  double tflops = 0;
  /// The same of the MLP's first product alone, with as many tokens; 0 where it is not measured: on CPUs.
  double product_tflops = 0;
  std::optional<Agreement> agreement;  ///< with each record alone; of batches above 1
  std::vector<OpTime> ops;             ///< means of the timed runs, the longest first; only with `profile`
};

struct BenchReport {
  std::string model;                ///< "0.8b synthetic" or the folder's name
  std::string device;               ///< "cpu, 2 threads, AVX2, bf16"
  std::int64_t pass_tokens = 0;     ///< the longest pass that memory was taken for; 0: taken as needed
  std::int64_t longest_tokens = 0;  ///< the longest text that its memory was found to have room for, in pieces
  std::size_t weight_bytes = 0;
  std::size_t activation_bytes = 0;       ///< most at once
  std::size_t held_activation_bytes = 0;  ///< taken for them
  std::size_t held_carried_bytes = 0;     ///< and for what records in pieces carry from one to the next
  HeldMemory held;                        ///< beside them, as allocated; zeros on CPUs
  std::size_t peak_resident_bytes = 0;    ///< of the process in the host's memory, as the kernel counts it
  std::size_t peak_device_bytes = 0;      ///< as the driver sees it; 0: no GPU, or it could not be read
  std::string peak_device_source;         ///< what that figure is
  std::vector<BenchRow> rows;
};

/// Runs the benchmark. @param progress  called with a short line before each step
BenchReport run_bench(const BenchOptions& options, const std::function<void(const std::string&)>& progress = {});

/// As `treble bench --json` prints it.
Json to_json(const BenchReport& report);

}  // namespace treble
