#include "engine/bench.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "cli/columns.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/loading_bar.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/text_width.h"

namespace treble::cli {
namespace {

const CommandText kBenchText = {
    .name = "bench",
    .summary = "measure how fast a model answers on this machine",
    .usage = "(--model DIR | --synthetic SIZE) [options]",
    .notes =
        "Times are medians of the repeats, with the 10th and 90th percentile, in milliseconds. Made-up records have no "
        "text,\n"
        "so only --records measures encoding. A picture's tokens come on top of --tokens; its file is not read, so "
        "vision is "
        "the\n"
        "tower alone. TFLOP/s count matrix products, at two operations a product and sum; GB/s what an operation must\n"
        "at least read and write.\n",
    .example = "bench --synthetic 0.8b --tokens 298,1502",
};

struct BenchArguments {
  BenchOptions options;
  bool is_json = false;
};

/// "640x480"
PictureSize parse_image_size(const std::string& text) {
  PictureSize size;
  const char* const end = text.data() + text.size();
  const auto [cross, width_error] = std::from_chars(text.data(), end, size.width);
  if (width_error == std::errc() && cross != end && *cross == 'x') {
    const auto [rest, height_error] = std::from_chars(cross + 1, end, size.height);
    if (height_error == std::errc() && rest == end) return size;
  }
  throw Error(ErrorCode::kArgument,
              fmt::format("bench: --image {} is no size; give WIDTHxHEIGHT in pixels, e.g. 640x480", printable(text)));
}

std::string format_bytes(std::size_t bytes) {
  const auto mebibytes = static_cast<double>(bytes) / (1 << 20);
  return mebibytes < 1024 ? fmt::format("{:.1f} MiB", mebibytes) : fmt::format("{:.2f} GiB", mebibytes / 1024);
}

std::string format_ms(double ms) {
  return fmt::format("{:.{}f}", ms, ms < 100 ? 2 : 0);
}

/// A table for each run whose operations were measured.
std::string print_profile(const BenchReport& report) {
  std::string text;
  for (const BenchRow& row : report.rows) {
    if (row.ops.empty()) continue;
    Columns table({{.title = row.name},
                   {.title = "calls", .is_right = true},
                   {.title = "ms a pass", .is_right = true, .is_bold = true},
                   {.title = "share %", .is_right = true},
                   {.title = "GB/s", .is_right = true},
                   {.title = "TFLOP/s", .is_right = true}});
    double total = 0;
    for (const OpTime& op : row.ops) total += op.ms;
    for (const OpTime& op : row.ops)
      table.add({op.name, std::to_string(op.calls), format_ms(op.ms), fmt::format("{:.1f}", 100 * op.ms / total),
                 fmt::format("{:.{}f}", op.cost.bytes / op.ms / 1e6, op.cost.bytes / op.ms < 1e8 ? 1 : 0),
                 op.cost.flops > 0 ? fmt::format("{:.2f}", op.cost.flops / op.ms / 1e9) : "-"});
    text += "\n" + table.print({.has_colour = is_terminal(STDOUT_FILENO)});
  }
  return text;
}

/// What a GPU's memory is taken for.
std::string print_device_memory(const BenchReport& report) {
  if (report.pass_tokens == 0) return "";
  const HeldMemory& held = report.held;
  return fmt::format(
      "taken   {} weights, {} activations, {} scratch, {} other, for passes of {} tokens; {} carried between pieces; "
      "{} tables in host memory\n"
      "room    for texts of {} tokens, as found before loading\n"
      "driver  {} at most: {}\n",
      format_bytes(held.weights), format_bytes(report.held_activation_bytes), format_bytes(held.scratch),
      format_bytes(held.other), report.pass_tokens, format_bytes(report.held_carried_bytes),
      format_bytes(held.host_tables), report.longest_tokens, format_bytes(report.peak_device_bytes),
      report.peak_device_source);
}

/// What a batch changes in its records' answers, and, of GPUs, what the products reach alone and how far ahead the host
/// is.
std::string print_notes(const BenchReport& report) {
  std::string text;
  for (const BenchRow& row : report.rows) {
    if (row.agreement)
      text += fmt::format("{}: {} of {} decisions are others than alone, |dp| at most {:.2g}\n", row.name,
                          row.agreement->differing, row.agreement->decisions, row.agreement->max_difference);
    if (row.product_tflops > 0)
      text += fmt::format("{}: {:.0f} % of the {:.0f} TFLOP/s of the MLP's first product alone\n", row.name,
                          100 * row.tflops / row.product_tflops, row.product_tflops);
    if (report.pass_tokens > 0)
      text +=
          fmt::format("{}: the host had queued the backbone after {} ms\n", row.name, format_ms(row.queue.median_ms));
  }
  return text.empty() ? "" : "\n" + text;
}

std::string print_report(const BenchReport& report) {
  Columns table({{.title = "run"},
                 {.title = "median ms", .is_right = true, .is_bold = true},
                 {.title = "p10", .is_right = true},
                 {.title = "p90", .is_right = true},
                 {.title = "encode", .is_right = true},
                 {.title = "vision", .is_right = true},
                 {.title = "backbone", .is_right = true},
                 {.title = "head", .is_right = true},
                 {.title = "tokens/s", .is_right = true},
                 {.title = "decisions/s", .is_right = true},
                 {.title = "TFLOP/s", .is_right = true}});
  for (const BenchRow& row : report.rows) {
    table.add({row.name, format_ms(row.total.median_ms), format_ms(row.total.p10_ms), format_ms(row.total.p90_ms),
               format_ms(row.encode.median_ms), format_ms(row.vision.median_ms), format_ms(row.backbone.median_ms),
               format_ms(row.head.median_ms), fmt::format("{:.0f}", row.tokens_per_s),
               fmt::format("{:.1f}", row.decisions_per_s),
               row.tflops > 0 ? fmt::format("{:.{}f}", row.tflops, row.tflops < 10 ? 2 : 0) : "-"});
  }
  return fmt::format("model   {}\ndevice  {}\nmemory  {} weights, {} activations, {} peak resident\n",
                     printable(report.model), report.device, format_bytes(report.weight_bytes),
                     format_bytes(report.activation_bytes), format_bytes(report.peak_resident_bytes)) +
         print_device_memory(report) + "\n" + table.print({.has_colour = is_terminal(STDOUT_FILENO)}) +
         print_notes(report) + print_profile(report);
}

void show_step(const std::string& step) {
  if (is_terminal(STDERR_FILENO)) report(step);
}

void run(const BenchArguments& args) {
  BenchOptions options = args.options;
  options.engine.load_progress = loading_bar();
  const BenchReport report = run_bench(options, show_step);
  File::standard_output().write(args.is_json ? dump_json_pretty(to_json(report)) + "\n" : print_report(report));
}

}  // namespace

void add_bench(CLI::App& program) {
  CLI::App& command = add_command(program, kBenchText);
  const auto args = std::make_shared<BenchArguments>();
  BenchOptions& options = args->options;
  CLI::Option* model = command.add_option("--model", options.model, "release folder")->type_name("DIR");
  command
      .add_option("--synthetic", options.synthetic,
                  "random weights, made in memory, of the size 27b, 9b, 4b, 2b, 0.8b or LAYERSxHIDDEN")
      ->type_name("SIZE")
      ->excludes(model);
  CLI::Option* tokens = command
                            .add_option("--tokens", options.tokens,
                                        "lengths of the made-up records, separated by commas (default: 298,1502)")
                            ->type_name("N,...")
                            ->delimiter(',')
                            ->allow_extra_args(false);
  CLI::Option* questions =
      command.add_option("--questions", options.questions, "of a made-up record           (default: 8)")
          ->type_name("N");
  CLI::Option* per_question =
      command.add_option("--options", options.options, "of a question                 (default: 4)")->type_name("N");
  CLI::Option* image = command.add_option_function<std::string>(
      "--image", [&options](const std::string& text) { options.image = parse_image_size(text); },
      "also a made-up picture of that size in each record");
  image->type_name("WxH");
  CLI::Option* batch =
      command
          .add_option("--batch", options.batch, "records answered at once; several numbers: one run each  (default: 1)")
          ->type_name("N,...")
          ->delimiter(',')
          ->allow_extra_args(false);
  CLI::Option* repeats =
      command.add_option("--repeats", options.repeats, "timed passes of each length   (default: 5)")->type_name("N");
  CLI::Option* records =
      command
          .add_option("--records", options.records, "time the real requests of a .jsonl file, one at a time, each once")
          ->type_name("FILE");
  for (CLI::Option* made_up : {tokens, questions, per_question, image, batch, repeats}) records->excludes(made_up);
  add_device_options(command, options.engine);
  command.add_flag("--profile", options.profile, "also print what each kind of operation takes");
  command.add_flag("--json", args->is_json, "as JSON instead of a table");
  command.callback([args] { run(*args); });
}

}  // namespace treble::cli
