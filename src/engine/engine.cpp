#include <treble/engine.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "checkpoint/release_folder.h"
#include "engine/backend.h"
#include "engine/load.h"
#include "engine/pipeline.h"
#include "media/media_config.h"
#include "model/config.h"
#include "record/encode.h"
#include "record/media_reader.h"
#include "text/tokenizer.h"

namespace treble {

struct Engine::State {
  Tokenizer tokenizer;
  EncodeOptions encode_options;
  MediaReader media;
  Pipeline pipeline;
};

namespace {

Tokenizer open_tokenizer(const std::filesystem::path& folder, const EngineOptions& options) {
  check_release_folder(folder);
  return Tokenizer(folder, options.pretokenizer);
}

EncodeOptions encode_options_of(const std::filesystem::path& folder, const EngineOptions& options) {
  return {.max_tokens = std::min(options.max_tokens, read_max_positions(folder)),
          .truncate_state = options.truncate_state};
}

LoadedModel load(const std::filesystem::path& folder, const EngineOptions& options) {
  return load_release(make_ops(options.device, options.precision, options.int8_activations, options.gpu), folder,
                      options);
}

}  // namespace

EncodedRecord encode_request(const std::filesystem::path& folder, const Request& request,
                             const EngineOptions& options) {
  const Tokenizer tokenizer = open_tokenizer(folder, options);
  MediaReader media(read_media_config(folder), options.media_limits);
  const EncodeOptions encode_options = encode_options_of(folder, options);
  return encode_record(request, tokenizer, encode_options, media.read(request, encode_options.max_tokens));
}

Engine::Engine(const std::filesystem::path& folder, const EngineOptions& options)
    : state_(new State{open_tokenizer(folder, options), encode_options_of(folder, options),
                       MediaReader(read_media_config(folder), options.media_limits),
                       Pipeline(load(folder, options), options.num_threads)}) {
  check_vocabulary(state_->tokenizer, folder, state_->pipeline.model().config.text.vocab_size);
}

Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

std::vector<Answers> Engine::answer(std::span<const Request> requests, Timings* timings) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::vector<EncodedRecord> records;
  records.reserve(requests.size());
  for (const Request& request : requests) records.push_back(encode(request));
  if (timings) timings->encode_ms += std::chrono::duration<double, std::milli>(Clock::now() - start).count();

  const auto logits = state_->pipeline.run(records, timings);
  std::vector<Answers> answers;
  answers.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i)
    answers.push_back(decode_answers(requests[i], records[i], logits[i]));
  return answers;
}

Answers Engine::answer(const Request& request, Timings* timings) const {
  return std::move(answer(std::span(&request, 1), timings).front());
}

EncodedRecord Engine::encode(const Request& request) const {
  const EncodeOptions& options = state_->encode_options;
  return encode_record(request, state_->tokenizer, options, state_->media.read(request, options.max_tokens));
}

std::size_t Engine::peak_activation_bytes() const {
  return state_->pipeline.peak_activation_bytes();
}

}  // namespace treble
