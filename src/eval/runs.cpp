#include "eval/runs.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace treble::eval {
namespace {

// Hidden states of so many records are held at once: a pass of several records is compared with passes of one.
constexpr std::size_t kMostRecords = 8;
constexpr std::size_t kMostTokens = 4096;

/// Hidden states of the records of one chunk, end to end.
struct StageRows {
  std::string stage;
  std::vector<float> rows;  // [T, hidden_size]
};

class Runner {
 public:
  Runner(const Run& reference, std::span<const Run> others, std::span<const LabelledRecord> records,
         std::span<EncodedRecord> encoded, MediaReader& media)
      : reference_(reference),
        others_(others),
        records_(records),
        encoded_(encoded),
        media_(media),
        results_(others.size() + 1) {}

  /// Computes records [begin, end) with every run.
  void run_chunk(std::size_t begin, std::size_t end) {
    std::vector<MediaItems> without_pixels;
    for (std::size_t r = begin; r < end; ++r)
      without_pixels.push_back(
          std::exchange(encoded_[r].media, media_.read(records_[r].request, std::ssize(encoded_[r].input_ids))));
    run_reference(begin, end);
    for (std::size_t i = 0; i < others_.size(); ++i) {
      for (std::size_t first = begin, row = 0; first < end;) {
        const std::size_t last = std::min(end, first + others_[i].records_per_pass);
        run_other(i, first, last, row);
        for (; first < last; ++first) row += encoded_[first].input_ids.size();
      }
    }
    for (std::size_t r = begin; r < end; ++r) encoded_[r].media = std::move(without_pixels[r - begin]);
  }

  std::vector<RunResult> take() { return std::move(results_); }

 private:
  void run_reference(std::size_t begin, std::size_t end) {
    reference_rows_.clear();
    for (std::size_t r = begin; r < end; ++r) {
      HiddenObserver observer;
      if (!others_.empty()) {
        observer = [&](const std::string& stage, std::span<const float> rows) {
          std::vector<float>& all = of_stage(reference_rows_, stage).rows;
          all.insert(all.end(), rows.begin(), rows.end());
        };
      }
      const auto logits = compute(reference_, r, r + 1, observer);
      add_logits(reference_, results_.front(), r, logits);
    }
  }

  /// @param row  first token of the records in the chunk
  void run_other(std::size_t index, std::size_t begin, std::size_t end, std::size_t row) {
    const Run& run = others_[index];
    RunResult& result = results_[index + 1];
    HiddenObserver observer;
    std::map<std::string, std::size_t> seen;  // values of each stage: a record in pieces comes piece by piece
    if (is_comparable(run)) {
      observer = [&](const std::string& stage, std::span<const float> rows) {
        const std::span<const float> expected(of_stage(reference_rows_, stage).rows);
        std::size_t& first = seen.try_emplace(stage, row * width()).first->second;
        add_rows(of_stage(result.stages, stage), expected.subspan(first, rows.size()), rows);
        first += rows.size();
      };
    }
    const auto logits = compute(run, begin, end, observer);
    add_logits(run, result, begin, logits);
  }

  /// The entry of a stage, a new one at the end if there is none.
  template <typename Stage>
  static Stage& of_stage(std::vector<Stage>& stages, const std::string& name) {
    const auto found = std::ranges::find(stages, name, &Stage::stage);
    if (found != stages.end()) return *found;
    stages.emplace_back().stage = name;
    return stages.back();
  }

  /// One pass; an error says which records and which model it was.
  std::vector<std::vector<std::vector<float>>> compute(const Run& run, std::size_t begin, std::size_t end,
                                                       const HiddenObserver& observer) const {
    try {
      return run.pipeline->run(encoded_.subspan(begin, end - begin), nullptr, observer);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("{} (at {}, computed by {})", error.what(), records_[begin].place, run.name));
    }
  }

  void add_rows(StageDrift& drift, std::span<const float> expected, std::span<const float> rows) const {
    for (std::size_t begin = 0; begin < rows.size(); begin += width()) {
      const SquaredError sums = squared_error(expected.subspan(begin, width()), rows.subspan(begin, width()));
      drift.sums += sums;
      drift.per_token.push_back(static_cast<float>(sums.relative_l2()));
    }
  }

  /// Checks the logits of records from `begin` on and puts their options into the request's order.
  void add_logits(const Run& run, RunResult& result, std::size_t begin,
                  const std::vector<std::vector<std::vector<float>>>& logits) const {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const EncodedRecord& encoded = encoded_[begin + i];
      try {
        decode_answers(records_[begin + i].request, encoded, logits[i]);
      } catch (const Error& error) {
        throw Error(error.code(),
                    fmt::format("{} (at {}, computed by {})", error.what(), records_[begin + i].place, run.name));
      }
      auto& of_record = result.logits.emplace_back();
      for (std::size_t q = 0; q < logits[i].size(); ++q) {
        auto& of_question = of_record.emplace_back(logits[i][q].size());
        for (std::size_t o = 0; o < of_question.size(); ++o)
          of_question[static_cast<std::size_t>(encoded.questions[q].request_order[o])] = logits[i][q][o];
      }
    }
  }

  bool is_comparable(const Run& run) const {
    const TextConfig& a = reference_.pipeline->model().config.text;
    const TextConfig& b = run.pipeline->model().config.text;
    return a.hidden_size == b.hidden_size && a.num_hidden_layers == b.num_hidden_layers;
  }

  std::size_t width() const { return static_cast<std::size_t>(reference_.pipeline->model().config.text.hidden_size); }

  const Run& reference_;
  std::span<const Run> others_;
  std::span<const LabelledRecord> records_;
  std::span<EncodedRecord> encoded_;
  MediaReader& media_;
  std::vector<StageRows> reference_rows_;
  std::vector<RunResult> results_;
};

}  // namespace

std::vector<RunResult> run_records(const Run& reference, std::span<const Run> others,
                                   std::span<const LabelledRecord> records, std::span<EncodedRecord> encoded,
                                   MediaReader& media, const std::function<void(std::size_t)>& progress) {
  Runner runner(reference, others, records, encoded, media);
  for (std::size_t begin = 0; begin < records.size();) {
    std::size_t end = begin, num_tokens = 0;
    do {
      num_tokens += encoded[end++].input_ids.size();
    } while (end < records.size() && end - begin < kMostRecords &&
             num_tokens + encoded[end].input_ids.size() <= kMostTokens);
    runner.run_chunk(begin, end);
    begin = end;
    if (progress) progress(end);
  }
  return runner.take();
}

}  // namespace treble::eval
