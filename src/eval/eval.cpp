#include "eval/eval.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <iterator>

#include "checkpoint/release_folder.h"
#include "engine/backend.h"
#include "engine/load.h"
#include "eval/runs.h"
#include "media/media_config.h"
#include "media/media_item.h"
#include "model/config.h"
#include "record/encode.h"
#include "record/media_reader.h"
#include "text/tokenizer.h"

namespace treble::eval {
namespace {

constexpr std::size_t kRecordsPerPass = 4;  // of the noise floor's other batch split

using Encoded = std::vector<EncodedRecord>;

std::string name_of(const std::filesystem::path& folder) {
  return folder.lexically_normal().string();
}

Precision other_precision(Precision precision) {
  return precision == Precision::kF32 ? Precision::kBf16 : Precision::kF32;
}

std::shared_ptr<Pipeline> open_pipeline(const std::filesystem::path& folder, const EngineOptions& options) {
  std::unique_ptr<Ops> ops = make_ops(options.device, options.precision, options.int8_activations, options.gpu);
  return std::make_shared<Pipeline>(load_release(std::move(ops), folder, options), options.num_threads);
}

/// The same record without the pixels, which would not fit into memory for all records at once.
EncodedRecord without_pixels(EncodedRecord record) {
  for (std::shared_ptr<const MediaItem>& item : record.media) {
    auto copy = std::make_shared<MediaItem>();
    copy->kind = item->kind;
    copy->grid_t = item->grid_t;
    copy->grid_h = item->grid_h;
    copy->grid_w = item->grid_w;
    copy->timestamps = item->timestamps;
    copy->digest = item->digest;
    item = std::move(copy);
  }
  return record;
}

bool read_media(const EvalOptions& options) {
  std::vector<std::filesystem::path> folders = options.models;
  folders.push_back(options.reference);
  return std::ranges::all_of(folders, has_vision_tower);
}

Encoded encode_all(const std::filesystem::path& folder, std::span<const LabelledRecord> records,
                   const EngineOptions& options) {
  const Tokenizer tokenizer(folder, options.pretokenizer);
  check_vocabulary(tokenizer, folder, read_config(folder).text.vocab_size);
  const EncodeOptions encode_options{.max_tokens = std::min(options.max_tokens, read_max_positions(folder)),
                                     .truncate_state = options.truncate_state};
  MediaReader media(read_media_config(folder), options.media_limits);
  Encoded encoded;
  for (const LabelledRecord& record : records) {
    try {
      encoded.push_back(without_pixels(encode_record(record.request, tokenizer, encode_options,
                                                     media.read(record.request, encode_options.max_tokens))));
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("eval: {}: {} (as {} reads it)", record.place, error.what(), name_of(folder)));
    }
  }
  return encoded;
}

const std::string& digest_of(const std::shared_ptr<const MediaItem>& item) {
  return item->digest;
}

bool are_equal(const EncodedRecord& a, const EncodedRecord& b) {
  return a.input_ids == b.input_ids && std::ranges::equal(a.media, b.media, {}, &digest_of, &digest_of) &&
         std::ranges::equal(a.questions, b.questions, [](const EncodedQuestion& x, const EncodedQuestion& y) {
           return x.question_span == y.question_span && x.option_spans == y.option_spans &&
                  x.request_order == y.request_order;
         });
}

/// Tokens of every record, by the reference's tokenizer; every model has to read the same.
Encoded encode_for_all(const EvalOptions& options, std::span<const LabelledRecord> records) {
  Encoded encoded = encode_all(options.reference, records, options.engine);
  for (const std::filesystem::path& model : options.models) {
    const Encoded by_model = encode_all(model, records, options.engine);
    for (std::size_t r = 0; r < records.size(); ++r) {
      if (!are_equal(encoded[r], by_model[r]))
        throw Error(
            ErrorCode::kCheckpoint,
            fmt::format("eval: {} reads {} as other tokens or pixels than {}: its tokenizer, length limit or processor "
                        "configuration differs; only models that read the same can be compared",
                        name_of(model), records[r].place, name_of(options.reference)));
    }
  }
  return encoded;
}

EngineOptions as_stored(EngineOptions options) {
  options.weights = WeightConversion::kNone;
  return options;
}

/// The folders that are compared with the reference, and how they are called.
std::vector<Run> open_models(const EvalOptions& options) {
  const bool is_converted = options.engine.weights != WeightConversion::kNone;
  std::vector<std::filesystem::path> folders = options.models;
  if (folders.empty() && is_converted) folders.push_back(options.reference);
  std::vector<Run> runs;
  for (const std::filesystem::path& folder : folders) {
    std::string name = name_of(folder);
    if (is_converted) name += fmt::format(", {}", to_string(options.engine.weights));
    runs.push_back({.name = std::move(name), .pipeline = open_pipeline(folder, options.engine)});
  }
  return runs;
}

std::vector<Run> open_noise_runs(const EvalOptions& options, const Run& reference, std::size_t num_records) {
  std::vector<Run> runs;
  EngineOptions other = as_stored(options.engine);
  other.precision = other_precision(resolve_precision(options.engine.precision, options.engine.device));
  runs.push_back({.name = fmt::format("reference, {} activations", other.precision == Precision::kF32 ? "f32" : "bf16"),
                  .pipeline = open_pipeline(options.reference, other)});
  if (num_records > 1)
    runs.push_back({.name = fmt::format("reference, {} records a pass", std::min(num_records, kRecordsPerPass)),
                    .pipeline = reference.pipeline,
                    .records_per_pass = kRecordsPerPass});
  return runs;
}

/// [records + 1]: where each record's tokens begin.
std::vector<std::size_t> count_tokens(const Encoded& encoded) {
  std::vector<std::size_t> cu_tokens{0};
  for (const EncodedRecord& record : encoded) cu_tokens.push_back(cu_tokens.back() + record.input_ids.size());
  return cu_tokens;
}

std::vector<StageReport> summarise_stages(const std::vector<StageDrift>& stages) {
  std::vector<StageReport> reports;
  for (const StageDrift& stage : stages) {
    std::vector<double> per_token(stage.per_token.begin(), stage.per_token.end());
    StageReport& report = reports.emplace_back();
    report.stage = stage.stage;
    report.mean = mean(per_token);
    report.p95 = quantile(std::move(per_token), 0.95);
    report.aggregate = stage.sums.relative_l2();
  }
  return reports;
}

/// Where each set of groups applies, and the group of each option there.
struct GroupedQuestion {
  QuestionIndex index;
  std::vector<std::size_t> group_of_option;
};

struct Grouping {
  OptionGroups groups;
  std::vector<GroupedQuestion> questions;
};

std::vector<Grouping> find_groups(const EvalOptions& options, std::span<const LabelledRecord> records) {
  std::vector<Grouping> groupings;
  if (options.groups.empty()) return groupings;
  for (OptionGroups& groups : read_groups(options.groups)) {
    Grouping& grouping = groupings.emplace_back(Grouping{.groups = std::move(groups), .questions = {}});
    for (std::size_t r = 0; r < records.size(); ++r) {
      const std::vector<Question>& questions = records[r].request.questions;
      for (std::size_t q = 0; q < questions.size(); ++q) {
        if (questions[q].id != grouping.groups.question_id) continue;
        try {
          grouping.questions.push_back({{r, q}, group_of_options(grouping.groups, questions[q])});
        } catch (const Error& error) {
          throw Error(error.code(), fmt::format("{} (at {})", error.what(), records[r].place));
        }
      }
    }
    if (grouping.questions.empty())
      throw Error(ErrorCode::kArgument, fmt::format("groups: no record has a question {}; name one that occurs",
                                                    dump_json(grouping.groups.question_id)));
  }
  return groupings;
}

std::vector<GroupReport> measure_groups(std::span<const Grouping> groupings, std::span<const LabelledRecord> records,
                                        const RunResult& reference, const RunResult& run) {
  std::vector<GroupReport> reports;
  for (const Grouping& grouping : groupings) {
    std::vector<GroupedDecision> decisions;
    for (const auto& [index, group_of_option] : grouping.questions) {
      const auto& [r, q] = index;
      const std::size_t num_groups = grouping.groups.groups.size();
      GroupedDecision& decision = decisions.emplace_back();
      decision.place = records[r].place;
      decision.p = group_probabilities(softmax(reference.logits[r][q]), group_of_option, num_groups);
      decision.q = group_probabilities(softmax(run.logits[r][q]), group_of_option, num_groups);
      if (const std::optional<std::size_t> label = records[r].labels[q]) decision.label = group_of_option[*label];
    }
    reports.push_back(compare_groups(grouping.groups, decisions));
  }
  return reports;
}

std::string describe_device(const EngineOptions& options) {
  const std::unique_ptr<Ops> ops = make_ops(options.device, options.precision, options.int8_activations, options.gpu);
  return fmt::format("{}, {} threads, {} activations", ops->name(), resolve_threads(options.num_threads),
                     to_string(ops->activation_dtype()));
}

}  // namespace

EvalReport run_eval(const EvalOptions& options, const EvalProgress& progress) {
  const auto report_step = [&](const std::string& step, std::size_t done, std::size_t total) {
    if (progress) progress(step, done, total);
  };
  check_release_folder(options.reference);
  for (const std::filesystem::path& model : options.models) check_release_folder(model);
  EvalReport report;
  report.device = describe_device(options.engine);

  // Everything that can be wrong with the files is found before weights are touched.
  const RecordFiles files = read_records(options.records, read_media(options));
  const std::span<const LabelledRecord> records(files.records);
  const std::vector<Grouping> groupings = find_groups(options, records);
  report_step("encoding", 0, records.size());
  Encoded encoded = encode_for_all(options, records);
  const std::vector<std::size_t> cu_tokens = count_tokens(encoded);

  report_step("loading weights", 0, records.size());
  const Run reference{.name = name_of(options.reference),
                      .pipeline = open_pipeline(options.reference, as_stored(options.engine))};
  std::vector<Run> runs;
  if (options.has_noise_floor) runs = open_noise_runs(options, reference, records.size());
  const std::size_t num_noise_runs = runs.size();
  std::ranges::move(open_models(options), std::back_inserter(runs));

  MediaReader media(read_media_config(options.reference), options.engine.media_limits);
  const std::vector<RunResult> results = run_records(reference, runs, records, encoded, media, [&](std::size_t done) {
    report_step("answering", done, records.size());
  });

  const std::vector<Slice> slices = make_slices(records);
  for (std::size_t i = 0; i < results.size(); ++i) {
    RunReport& run = i == 0 ? report.reference : report.runs.emplace_back();
    run.name = i == 0 ? reference.name : runs[i - 1].name;
    run.is_noise_floor = i > 0 && i <= num_noise_runs;
    for (const Slice& slice : slices) {
      SliceReport& of_slice = run.slices.emplace_back();
      of_slice.name = slice.name;
      of_slice.num_questions = slice.questions.size();
      of_slice.quality = measure_quality(slice, records, results[i]);
      if (i > 0) of_slice.comparison = compare(slice, records, results.front(), results[i], cu_tokens);
    }
    if (i == 0) continue;
    run.stages = summarise_stages(results[i].stages);
    run.groups = measure_groups(groupings, records, results.front(), results[i]);
  }
  report.num_records = records.size();
  report.num_image_records = files.num_image_records;
  report.num_video_records = files.num_video_records;
  report.num_questions = slices.front().questions.size();
  for (const LabelledRecord& record : records)
    report.num_labelled += static_cast<std::size_t>(
        std::ranges::count_if(record.labels, [](const auto& label) { return label.has_value(); }));
  return report;
}

}  // namespace treble::eval
