#pragma once

#include <treble/record.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/pipeline.h"
#include "eval/metrics.h"
#include "eval/records.h"
#include "record/media_reader.h"

namespace treble::eval {

/// How far one stage's rows are from the reference's.
struct StageDrift {
  std::string stage;             ///< "embed", "layer00.out", ..., "hidden"
  SquaredError sums;             ///< of all tokens
  std::vector<float> per_token;  ///< relative L2 of each token's row, record after record
};

/// What one way of computing gives for all records.
struct RunResult {
  std::vector<std::vector<std::vector<double>>> logits;  ///< [record][question][option], options in request order
  std::vector<StageDrift> stages;  ///< in the order of computation; empty if rows cannot be compared
};

/// One way of computing records.
struct Run {
  std::string name;
  std::shared_ptr<Pipeline> pipeline;
  std::size_t records_per_pass = 1;
};

/// Computes all records with the reference, one record a pass, and with each of the other runs, and compares hidden
/// states on the way, so that no more than a few records' states are held.
/// A run whose model has another width or number of layers has no stages.
/// @param encoded   one per record, the same for all runs; the pixels of their media are taken from `media` for as long
///                  as they are needed
/// @param progress  called with the number of records that are done
/// @return [0] the reference, then the others in order
/// @throws Error kCheckpoint naming run and record if a logit is not finite; kDevice
std::vector<RunResult> run_records(const Run& reference, std::span<const Run> others,
                                   std::span<const LabelledRecord> records, std::span<EncodedRecord> encoded,
                                   MediaReader& media, const std::function<void(std::size_t)>& progress);

}  // namespace treble::eval
