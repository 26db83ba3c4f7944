// What the engine computes for the records of .jsonl files, for the scripts in python/reference:
//   treble_passes [OPTIONS] RELEASE OUT.safetensors RECORDS.jsonl...
// OUT holds of record N, counted from 0: "N.input_ids" [T] i32; "N.logits" [options of all questions] f32, in the
// encoder's order; "N.cu_options" [questions + 1] i32, where each question's begin; "N.repeat_error" [1] f32, the
// largest difference of a logit between the repeats; and with --hidden "N.embed", "N.layer00.out", ..., "N.hidden", [T,
// hidden_size] f32 each, what a HiddenObserver sees.

#include <fmt/format.h>
#include <treble/engine.h>
#include <treble/error.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors_writer.h"
#include "engine/backend.h"
#include "engine/pipeline.h"
#include "eval/records.h"
#include "media/media_config.h"
#include "model/config.h"
#include "record/encode.h"
#include "record/media_reader.h"
#include "text/tokenizer.h"

namespace treble {
namespace {

struct Arguments {
  std::filesystem::path release, out;
  std::vector<std::filesystem::path> records;
  EngineOptions engine;
  bool has_hidden = false;
  std::size_t most_records = 0;  ///< 0: all
  std::size_t records_per_pass = 1;
  int repeats = 1;
};

using Logits = std::vector<std::vector<float>>;  // [question][option]

std::vector<EncodedRecord> encode_all(const Arguments& args) {
  const Tokenizer tokenizer(args.release);
  check_vocabulary(tokenizer, args.release, read_config(args.release).text.vocab_size);
  MediaReader media(read_media_config(args.release), args.engine.media_limits);
  const EncodeOptions options{.max_tokens = args.engine.max_tokens, .truncate_state = false};
  std::vector<EncodedRecord> encoded;
  for (const eval::LabelledRecord& record : eval::read_records(args.records, true).records) {
    if (args.most_records > 0 && encoded.size() == args.most_records) break;
    encoded.push_back(
        encode_record(record.request, tokenizer, options, media.read(record.request, options.max_tokens)));
  }
  return encoded;
}

std::vector<float> flatten(const Logits& logits) {
  std::vector<float> flat;
  for (const std::vector<float>& of_question : logits) flat.insert(flat.end(), of_question.begin(), of_question.end());
  return flat;
}

/// Not a number if either is: a difference that no limit allows.
float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

std::vector<std::string> stages_of(const TextConfig& config) {
  std::vector<std::string> stages{"embed"};
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) stages.push_back(fmt::format("layer{:02}.out", i));
  stages.emplace_back("hidden");
  return stages;
}

std::vector<PlannedTensor> plan(const Arguments& args, std::span<const EncodedRecord> records,
                                const TextConfig& config) {
  std::vector<PlannedTensor> tensors;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const auto T = std::ssize(records[r].input_ids);
    std::int64_t num_options = 0;
    for (const EncodedQuestion& question : records[r].questions) num_options += std::ssize(question.option_spans);
    tensors.push_back({.name = fmt::format("{}.input_ids", r), .dtype = DType::kI32, .shape = {T}});
    tensors.push_back({.name = fmt::format("{}.logits", r), .dtype = DType::kF32, .shape = {num_options}});
    const auto num_questions = std::ssize(records[r].questions);
    tensors.push_back({.name = fmt::format("{}.cu_options", r), .dtype = DType::kI32, .shape = {num_questions + 1}});
    tensors.push_back({.name = fmt::format("{}.repeat_error", r), .dtype = DType::kF32, .shape = {1}});
    if (!args.has_hidden) continue;
    for (const std::string& stage : stages_of(config))
      tensors.push_back(
          {.name = fmt::format("{}.{}", r, stage), .dtype = DType::kF32, .shape = {T, config.hidden_size}});
  }
  return tensors;
}

/// Runs records [first, first + pass.size()) together and writes what they give.
void run_pass(const Arguments& args, Pipeline& pipeline, std::span<const EncodedRecord> pass, std::size_t first,
              SafetensorsWriter& writer) {
  const auto width = static_cast<std::size_t>(pipeline.model().config.text.hidden_size);
  HiddenObserver observer;
  std::map<std::string, std::size_t> written;  // bytes of each stage of a record that is read in pieces
  if (args.has_hidden && pass.size() == 1) {
    observer = [&](const std::string& stage, std::span<const float> rows) {
      std::size_t& offset = written[stage];
      writer.write(fmt::format("{}.{}", first, stage), offset, std::as_bytes(rows));
      offset += rows.size_bytes();
    };
  } else if (args.has_hidden) {
    observer = [&](const std::string& stage, std::span<const float> rows) {
      for (std::size_t i = 0, row = 0; i < pass.size(); row += pass[i++].input_ids.size()) {
        const auto own = rows.subspan(row * width, pass[i].input_ids.size() * width);
        writer.write(fmt::format("{}.{}", first + i, stage), 0, std::as_bytes(own));
      }
    };
  }
  const std::vector<Logits> logits = pipeline.run(pass, nullptr, observer);
  std::vector<float> repeat_errors(pass.size());
  for (int repeat = 1; repeat < args.repeats; ++repeat) {
    const std::vector<Logits> again = pipeline.run(pass);
    for (std::size_t i = 0; i < pass.size(); ++i) {
      const float error = largest_difference(flatten(again[i]), flatten(logits[i]));
      if (!(error <= repeat_errors[i])) repeat_errors[i] = error;
    }
  }
  for (std::size_t i = 0; i < pass.size(); ++i) {
    const std::string prefix = fmt::format("{}.", first + i);
    writer.write(prefix + "input_ids", 0, std::as_bytes(std::span(pass[i].input_ids)));
    writer.write(prefix + "logits", 0, std::as_bytes(std::span<const float>(flatten(logits[i]))));
    std::vector<std::int32_t> cu_options{0};
    for (const std::vector<float>& of_question : logits[i])
      cu_options.push_back(cu_options.back() + static_cast<std::int32_t>(of_question.size()));
    writer.write(prefix + "cu_options", 0, std::as_bytes(std::span(cu_options)));
    writer.write(prefix + "repeat_error", 0, std::as_bytes(std::span<const float>(repeat_errors).subspan(i, 1)));
  }
}

void run(const Arguments& args) {
  const std::vector<EncodedRecord> records = encode_all(args);
  std::unique_ptr<Ops> ops =
      make_ops(args.engine.device, args.engine.precision, args.engine.int8_activations, args.engine.gpu);
  Model model = load_model(args.release, *ops, args.engine.weights);
  Pipeline pipeline(std::move(ops), std::move(model), args.engine.num_threads);
  SafetensorsWriter writer(args.out, plan(args, records, pipeline.model().config.text), {});
  for (std::size_t first = 0; first < records.size(); first += args.records_per_pass) {
    const std::size_t count = std::min(args.records_per_pass, records.size() - first);
    run_pass(args, pipeline, std::span(records).subspan(first, count), first, writer);
  }
  writer.finish();
  std::fprintf(stderr, "%zu records, %zu a pass, %d times\n", records.size(), args.records_per_pass, args.repeats);
}

}  // namespace
}  // namespace treble

int main(int argc, char** argv) {
  treble::Arguments args;
  CLI::App program("treble_passes: what the engine computes for the records of .jsonl files");
  program.add_option("--device", args.engine.device);
  program.add_option("--precision", args.engine.precision)
      ->transform(CLI::CheckedTransformer(std::map<std::string, treble::Precision>{
          {"f32", treble::Precision::kF32}, {"bf16", treble::Precision::kBf16}}));
  program.add_option("--kernels", args.engine.gpu.kernels)
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, treble::Kernels>{{"best", treble::Kernels::kBest}, {"sm80", treble::Kernels::kSm80}}));
  const std::map<std::string, treble::WeightConversion> conversions = {
      {"as-stored", treble::WeightConversion::kNone},
      {"int8-convrot", treble::WeightConversion::kInt8Convrot},
      {"int8", treble::WeightConversion::kInt8},
      {"nf4", treble::WeightConversion::kNf4}};
  std::string weights = "as-stored";
  program.add_option("--weights", weights)->check(CLI::IsMember({"as-stored", "int8-convrot", "int8", "nf4"}));
  program.add_flag("--hidden", args.has_hidden);
  program.add_option("--records", args.most_records)->check(CLI::PositiveNumber);
  program.add_option("--records-per-pass", args.records_per_pass)->check(CLI::PositiveNumber);
  program.add_option("--repeats", args.repeats)->check(CLI::PositiveNumber);
  program.add_option("RELEASE", args.release)->required();
  program.add_option("OUT", args.out)->required();
  program.add_option("RECORDS", args.records)->required();
  CLI11_PARSE(program, argc, argv);
  args.engine.weights = conversions.at(weights);
  try {
    treble::run(args);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
