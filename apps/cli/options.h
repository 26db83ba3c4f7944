#pragma once

#include <treble/engine.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace treble::cli {

/// An option whose value is one of a few words.
template <typename T>
CLI::Option* add_word_option(CLI::App& command, const std::string& name, const std::string& value_name, T& value,
                             const std::vector<std::pair<std::string, T>>& words, const std::string& description) {
  std::vector<std::string> names;
  for (const auto& word : words) names.push_back(word.first);
  const auto set_value = [&value, words](const std::string& given) {
    for (const auto& [word, meaning] : words) {
      if (word == given) value = meaning;
    }
  };
  return command.add_option_function<std::string>(name, set_value, description)
      ->type_name(value_name)
      ->check(CLI::IsMember(names).description(""));
}

/// "15.5GiB", "16GB", "16000MiB", "17179869184"; nullopt for anything else.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// What a GPU's memory depends on: --precision, --weights, --embeddings, --pass-tokens, --memory-limit, --vision and
/// --kernels.
void add_plan_options(CLI::App& command, EngineOptions& options);

/// Those, --device, --threads and --int8-activations.
void add_device_options(CLI::App& command, EngineOptions& options);

/// --max-tokens.
void add_max_tokens_option(CLI::App& command, EngineOptions& options);

/// --max-tokens and --truncate-state.
void add_length_options(CLI::App& command, EngineOptions& options);

/// --max-media, --max-megapixels, --max-image-mib and --max-video-mib.
void add_media_options(CLI::App& command, EngineOptions& options);

/// --pretokenizer.
void add_pretokenizer_option(CLI::App& command, PretokenizerChoice& choice);

}  // namespace treble::cli
