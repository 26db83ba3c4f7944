#include "eval/eval.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/columns.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/loading_bar.h"
#include "cli/options.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "cli/text_width.h"

namespace treble::cli {
namespace {

using eval::EvalReport;
using eval::RunReport;
using eval::SliceReport;

const CommandText kEvalText = {
    .name = "eval",
    .summary = "measure what a release changes in the decisions of another",
    .usage = "--reference DIR [--model DIR]... [options] RECORDS.jsonl...",
    .notes =
        "A line is {\"request\": {...}, \"answers\": {id: true | label | level}, \"set\": name, \"family\": name}, all "
        "but the\n"
        "request optional, or a plain request. Labels add accuracy, Brier, ECE and McNemar's test. The noise floor is "
        "the\n"
        "reference against itself, with other activations and with several records a pass. --weights quantises the "
        "models,\n"
        "or without --model the reference itself for a run beside it as it is stored; without either, only the\n"
        "reference is measured. Records with images or videos are counted and left out where a release reads text\n"
        "only. docs/quality.md has the formulas.\n",
    .example = "eval --reference clef-flash --model clef-flash-int8 records.jsonl --report eval.html",
};

struct EvalArguments {
  eval::EvalOptions options;
  std::string html, json;
  bool is_without_noise_floor = false;
  bool force = false;
};

/// Three significant digits; "-" where there is no figure.
std::string figure(std::optional<double> value) {
  return value ? fmt::format("{:.3g}", *value) : "-";
}

std::string percent(double share) {
  return fmt::format("{:.2f}", 100 * share);
}

std::string interval(const eval::Proportion& proportion) {
  return fmt::format("{:.1f}-{:.1f}", 100 * proportion.low, 100 * proportion.high);
}

std::string print_table(const Columns& table) {
  return table.print({.has_colour = is_terminal(STDOUT_FILENO)});
}

/// Of the noise floor the total is enough for a terminal.
std::span<const SliceReport> shown_slices(const RunReport& run) {
  return std::span(run.slices).first(run.is_noise_floor ? 1 : run.slices.size());
}

std::string comparison_table(const EvalReport& report) {
  Columns table({{.title = "run", .max_width = 40},
                 {.title = "slice", .max_width = 24},
                 {.title = "questions", .is_right = true},
                 {.title = "agree %", .is_right = true, .is_bold = true},
                 {.title = "95 %", .is_right = true},
                 {.title = "records %", .is_right = true},
                 {.title = "flips>=0.9", .is_right = true},
                 {.title = "drift mean", .is_right = true},
                 {.title = "max", .is_right = true},
                 {.title = "TV", .is_right = true},
                 {.title = "KL", .is_right = true},
                 {.title = "logit L2 centred", .is_right = true},
                 {.title = "raw", .is_right = true},
                 {.title = "hidden L2", .is_right = true},
                 {.title = "p95", .is_right = true}});
  for (const RunReport& run : report.runs) {
    for (const SliceReport& slice : shown_slices(run)) {
      const eval::Comparison& c = *slice.comparison;
      table.add({run.name, slice.name, std::to_string(slice.num_questions), percent(c.agreement.share),
                 interval(c.agreement), percent(c.record_agreement.share), std::to_string(c.confident_flips),
                 figure(c.mean_drift), figure(c.max_drift), figure(c.mean_total_variation), figure(c.mean_kl),
                 figure(c.logit_l2_centred), figure(c.logit_l2_raw), figure(c.hidden_mean), figure(c.hidden_p95)});
    }
  }
  return "\nagainst the reference\n" + print_table(table);
}

std::string quality_table(const EvalReport& report) {
  Columns table({{.title = "run", .max_width = 40},
                 {.title = "slice", .max_width = 24},
                 {.title = "labelled", .is_right = true},
                 {.title = "accuracy %", .is_right = true, .is_bold = true},
                 {.title = "95 %", .is_right = true},
                 {.title = "Brier", .is_right = true},
                 {.title = "ECE", .is_right = true},
                 {.title = "equal mass", .is_right = true},
                 {.title = "right alone", .is_right = true},
                 {.title = "McNemar p", .is_right = true}});
  const auto add = [&](const RunReport& run, const std::string& name) {
    for (const SliceReport& slice : shown_slices(run)) {
      if (!slice.quality) continue;
      const eval::Quality& q = *slice.quality;
      const eval::Comparison* c = slice.comparison ? &*slice.comparison : nullptr;
      table.add({name, slice.name, std::to_string(q.accuracy.total), percent(q.accuracy.share), interval(q.accuracy),
                 figure(q.brier), figure(q.ece), figure(q.ece_equal_mass),
                 c ? fmt::format("{}:{}", c->only_reference_right, c->only_run_right) : "-",
                 c ? figure(c->mcnemar) : "-"});
    }
  };
  add(report.reference, "reference");
  for (const RunReport& run : report.runs) add(run, run.name);
  return "\nagainst the labels (right alone: reference:run)\n" + print_table(table);
}

std::string group_table(const EvalReport& report) {
  Columns table({{.title = "run", .max_width = 40},
                 {.title = "question", .max_width = 24},
                 {.title = "group", .max_width = 24},
                 {.title = "agree %", .is_right = true, .is_bold = true},
                 {.title = "flips", .is_right = true},
                 {.title = "|dp| mean", .is_right = true},
                 {.title = "max", .is_right = true},
                 {.title = "Brier reference", .is_right = true},
                 {.title = "run", .is_right = true}});
  bool is_empty = true;
  for (const RunReport& run : report.runs) {
    for (const eval::GroupReport& of_question : run.groups) {
      const bool is_labelled = of_question.num_labelled > 0;
      for (const eval::GroupDrift& group : of_question.groups) {
        is_empty = false;
        table.add({run.name, of_question.question_id, group.name, percent(of_question.agreement.share),
                   std::to_string(of_question.flips.size()), figure(group.mean_difference),
                   figure(group.max_difference), is_labelled ? figure(group.brier_reference) : "-",
                   is_labelled ? figure(group.brier_model) : "-"});
      }
    }
  }
  return is_empty ? "" : "\noption groups\n" + print_table(table);
}

std::string print_report(const EvalReport& report) {
  std::string out = fmt::format("reference  {}\ndevice     {}\nrecords    {}, {} questions, {} labelled\n",
                                printable(report.reference.name), report.device, report.num_records,
                                report.num_questions, report.num_labelled);
  if (!report.runs.empty()) out += comparison_table(report);
  if (report.num_labelled > 0) out += quality_table(report);
  return out + group_table(report);
}

/// Opens a file that the report goes to; nullopt: none is wanted.
std::optional<File> open_output(const std::string& option, const std::string& path, bool force) {
  if (path.empty()) return std::nullopt;
  File out = File::output(path);
  if (out.size() > 0 && !force) {
    throw Error(ErrorCode::kArgument,
                fmt::format("eval: {} {} has text already; give --force to overwrite it", option, path));
  }
  return out;
}

/// --report and --json must not be a file that the figures are made of.
void check_output(const std::string& option, const std::string& path, const eval::EvalOptions& options) {
  std::vector<std::filesystem::path> inputs = options.records;
  inputs.push_back(options.groups);
  std::vector<std::filesystem::path> folders = options.models;
  folders.push_back(options.reference);
  std::error_code failed, ignored;
  for (const std::filesystem::path& folder : folders)
    for (std::filesystem::directory_iterator file(folder, failed), end; !failed && file != end; file.increment(failed))
      inputs.push_back(file->path());
  for (const std::filesystem::path& input : inputs) {
    if (!path.empty() && std::filesystem::equivalent(path, input, ignored)) {
      throw Error(ErrorCode::kArgument, fmt::format("eval: {} {} is a file that is read; name another", option, path));
    }
  }
}

void replace(std::optional<File>& out, const std::string& text) {
  if (!out) return;
  out->truncate(0);
  out->write(text);
}

EvalReport measure(eval::EvalOptions options) {
  options.engine.load_progress = loading_bar();
  std::optional<ProgressBar> bar;  // counts records where others count bytes
  return run_eval(options, [&](const std::string&, std::size_t done, std::size_t total) {
    if (!bar) bar.emplace(true, 0, total);
    if (done > 0) bar->update(static_cast<std::int64_t>(done), done);
  });
}

void run(EvalArguments& args) {
  args.options.has_noise_floor = !args.is_without_noise_floor;
  check_output("--report", args.html, args.options);
  check_output("--json", args.json, args.options);
  std::optional<File> html = open_output("--report", args.html, args.force);
  std::error_code ignored;
  if (html && !args.json.empty() && std::filesystem::equivalent(args.html, args.json, ignored))
    throw Error(ErrorCode::kArgument,
                fmt::format("eval: --report {} and --json {} are one file; name two", args.html, args.json));
  std::optional<File> json = open_output("--json", args.json, args.force);

  const EvalReport measured = measure(args.options);
  if (measured.num_image_records + measured.num_video_records > 0) {
    report(fmt::format("{} records with images and {} with videos were left out: not every model reads them",
                       measured.num_image_records, measured.num_video_records));
  }
  replace(html, to_html(measured));
  replace(json, dump_json_pretty(to_json(measured)) + "\n");
  File::standard_output().write(print_report(measured));
}

}  // namespace

void add_eval(CLI::App& program) {
  CLI::App& command = add_command(program, kEvalText);
  const auto args = std::make_shared<EvalArguments>();
  eval::EvalOptions& options = args->options;
  command.add_option("--reference", options.reference, "release folder that the others are held against")
      ->type_name("DIR")
      ->required();
  command.add_option("--model", options.models, "release folder to compare; may be given several times")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command
      .add_option("--groups", options.groups,
                  "JSON of options that count together: {question: {group: [option, ...], ...}}")
      ->type_name("FILE");
  command.add_option("--report", args->html, "write a page with tables and plots there (HTML)")->type_name("FILE");
  command.add_option("--json", args->json, "write all figures there")->type_name("FILE");
  command.add_flag("--force", args->force, "overwrite --report and --json");
  command.add_flag("--no-noise-floor", args->is_without_noise_floor,
                   "do not compute the reference a second and third time");
  add_device_options(command, options.engine);
  add_length_options(command, options.engine);
  add_media_options(command, options.engine);
  add_pretokenizer_option(command, options.engine.pretokenizer);
  command.add_option("RECORDS", options.records, "files of records, one a line")->required();
  command.callback([args] { run(*args); });
}

}  // namespace treble::cli
