#include "cli/options.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <type_traits>

namespace treble::cli {

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 7> kUnits = {
      {{"", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}};
  constexpr double kMost = 0x1p50;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] : kUnits)
    if (unit == name && number * factor >= 1 && number * factor <= kMost)
      return static_cast<std::uint64_t>(number * factor);
  return std::nullopt;
}

void add_plan_options(CLI::App& command, EngineOptions& options) {
  add_word_option<Precision>(command, "--precision", "TYPE", options.precision,
                             {{"auto", Precision::kAuto}, {"f32", Precision::kF32}, {"bf16", Precision::kBf16}},
                             "activations in f32 or bf16    (default: auto: bf16 on GPUs, f32 on CPUs)");
  add_word_option<WeightConversion>(command, "--weights", "FORMAT", options.weights,
                                    {{"as-stored", WeightConversion::kNone},
                                     {"int8-convrot", WeightConversion::kInt8Convrot},
                                     {"int8", WeightConversion::kInt8},
                                     {"nf4", WeightConversion::kNf4}},
                                    "int8-convrot, int8 or nf4: quantise while loading  (default: as-stored)");
  add_word_option<Embeddings>(command, "--embeddings", "WHERE", options.gpu.embeddings,
                              {{"host", Embeddings::kHost}, {"device", Embeddings::kDevice}},
                              "of GPUs: vocabulary tables in host or device memory  (default: host)");
  constexpr std::int64_t kFewestPassTokens = 64, kMostPassTokens = 1 << 17;
  command
      .add_option("--pass-tokens", options.gpu.pass_tokens,
                  "read longer records in pieces; a GPU takes memory for so many tokens at once\n"
                  "(default: 16384 on GPUs, no limit on CPUs)")
      ->type_name("N")
      ->check(CLI::Range(kFewestPassTokens, kMostPassTokens).description(""));
  command
      .add_option_function<std::string>(
          "--memory-limit", [&options](const std::string& text) { options.gpu.memory_limit = *parse_bytes(text); },
          "of GPUs: take at most so much of the device: 15.5GiB, 16GB  (default: what is free)")
      ->type_name("BYTES")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return parse_bytes(text) ? std::string() : "\"" + text + "\" is no amount of memory; write it like 15.5GiB";
          },
          ""));
  add_word_option<VisionTower>(
      command, "--vision", "WHEN", options.vision,
      {{"auto", VisionTower::kAuto}, {"resident", VisionTower::kResident}, {"off", VisionTower::kOff}},
      "vision tower: on a GPU from the first picture on (auto), from the start (resident),\n"
      "or not at all: pictures are refused (off)  (default: auto)");
  add_word_option<Kernels>(command, "--kernels", "SET", options.gpu.kernels,
                           {{"best", Kernels::kBest}, {"sm80", Kernels::kSm80}},
                           "of GPUs: best, or sm80: those of every device  (default: best)");
}

void add_device_options(CLI::App& command, EngineOptions& options) {
  command.add_option("--device", options.device, "cpu, cuda or cuda:N           (default: cpu)")->type_name("NAME");
  command.add_option("--threads", options.num_threads, "threads of the CPU            (default: all it may use)")
      ->type_name("N");
  add_plan_options(command, options);
  add_word_option<Int8Activations>(command, "--int8-activations", "MODE", options.int8_activations,
                                   {{"precise", Int8Activations::kPrecise},
                                    {"comfy-fused", Int8Activations::kComfyFused},
                                    {"comfy-fallback", Int8Activations::kComfyFallback}},
                                   "of INT8 releases: precise, comfy-fused or comfy-fallback  (default: precise)");
}

void add_max_tokens_option(CLI::App& command, EngineOptions& options) {
  command
      .add_option("--max-tokens", options.max_tokens,
                  "refuse longer records         (default: 65536 or the model's limit)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20).description(""));
}

void add_length_options(CLI::App& command, EngineOptions& options) {
  add_max_tokens_option(command, options);
  command.add_flag("--truncate-state", options.truncate_state, "cut the end of a state that is too long, and say so");
}

void add_media_options(CLI::App& command, EngineOptions& options) {
  const auto add = [&](const char* name, auto& limit, int unit_bits, const char* text) {
    constexpr std::int64_t kMost = 1 << 16;
    command
        .add_option_function<std::int64_t>(
            name,
            [&limit, unit_bits](std::int64_t number) {
              limit = static_cast<std::remove_reference_t<decltype(limit)>>(number << unit_bits);
            },
            text)
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, kMost).description(""));
  };
  MediaLimits& limits = options.media_limits;
  add("--max-media", limits.max_items, 0, "refuse more images or videos  (default: 64 of each)");
  add("--max-megapixels", limits.max_pixels, 20, "refuse larger pictures        (default: 16)");
  add("--max-image-mib", limits.max_image_bytes, 20, "refuse larger files of images (default: 16)");
  add("--max-video-mib", limits.max_video_bytes, 20, "refuse larger videos          (default: 256)");
}

void add_pretokenizer_option(CLI::App& command, PretokenizerChoice& choice) {
  add_word_option<PretokenizerChoice>(command, "--pretokenizer", "NAME", choice,
                                      {{"auto", PretokenizerChoice::kAuto},
                                       {"file", PretokenizerChoice::kFile},
                                       {"marks", PretokenizerChoice::kMarks},
                                       {"plain", PretokenizerChoice::kPlain}},
                                      "how text is split: as tokenizer_config.json implies (auto, default),\n"
                                      "as tokenizer.json says (file), with or without marks in words (marks, plain)");
}

}  // namespace treble::cli
