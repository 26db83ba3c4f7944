#include "quantize/quantize.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/progress_bar.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"

namespace treble::cli {
namespace {

const CommandText kQuantizeText = {
    .name = "quantize",
    .summary = "make an INT8 or NF4 release of a BF16 one",
    .usage = "--format FORMAT --out DIR [options] IN",
    .notes =
        "int8-convrot and int8 (the same without rotation, a baseline) convert the large projections of the text "
        "model;\n"
        "nf4 converts every Linear but lm_head, as bitsandbytes does. All other files are copied. The new release "
        "appears\n"
        "when it is complete; until then its files lie in DIR.partial.\n",
    .example = "quantize --format nf4 --out clef-27b-nf4 clef-27b",
};

std::string format_gb(std::uint64_t bytes) {
  return bytes < 100'000'000 ? fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6)
                             : fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

/// The bar counts weights in MB.
QuantizeSummary quantize_with_bar(const QuantizeOptions& options) {
  const StopSignals stop;
  std::unique_ptr<ProgressBar> bar;
  return quantize_release(options, [&](std::uint64_t done_bytes, std::uint64_t total_bytes) {
    stop.throw_if_requested();
    if (!bar) bar = std::make_unique<ProgressBar>(true, 0, total_bytes, "MB");
    bar->update(static_cast<std::int64_t>(done_bytes / 1'000'000), done_bytes);
  });
}

void run(const QuantizeOptions& options) {
  const QuantizeSummary summary = quantize_with_bar(options);
  std::string text = fmt::format("{}: {} modules as {}, {} to {} of weights in {} file{}", options.out.string(),
                                 summary.converted, to_string(options.format), format_gb(summary.bytes_before),
                                 format_gb(summary.bytes_after), summary.shards, summary.shards == 1 ? "" : "s");
  if (summary.kept > 0) text += fmt::format(", {} kept", summary.kept);
  report(text);
}

}  // namespace

void add_quantize(CLI::App& program) {
  CLI::App& command = add_command(program, kQuantizeText);
  const auto options = std::make_shared<QuantizeOptions>();
  add_word_option(
      command, "--format", "FORMAT", options->format,
      {{"int8-convrot", QuantizeFormat::kInt8Convrot}, {"int8", QuantizeFormat::kInt8}, {"nf4", QuantizeFormat::kNf4}},
      "int8-convrot, int8 or nf4")
      ->required();
  command.add_option("--out", options->out, "folder of the new release")->type_name("DIR")->required();
  command
      .add_option("--keep", options->keep,
                  "leave modules as they are, e.g. '*.layers.0.*' or '*.down_proj'; may be given several times")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  command
      .add_option("--group-size", options->group_size,
                  "inputs rotated together (default: 256) or weights of an nf4 block (default: 64)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{4}, std::int64_t{4096}).description(""));
  command.add_flag("--force", options->is_replaced, "replace a release that is there already");
  command.add_option("IN", options->release, "folder of the BF16 release")->required();
  command.callback([options] { run(*options); });
}

}  // namespace treble::cli
