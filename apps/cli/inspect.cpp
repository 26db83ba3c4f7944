#include "checkpoint/inspect.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/version.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/files.h"
#include "cli/options.h"
#include "engine/fit.h"

namespace treble::cli {
namespace {

const CommandText kInspectText = {
    .name = "inspect",
    .summary = "show what a release folder holds, what it lacks and the memory it needs",
    .usage = "[options] DIR",
    .notes =
        "Weights are not read, so it is quick. A release that cannot be used is shown too; the exit status is then "
        "4.\nWith --memory-limit it says what a GPU of so much memory has room for; the exit status is 5 if not for "
        "the "
        "model.\n",
    .example = "inspect clef-27b",
};

struct InspectArguments {
  std::filesystem::path folder;
  EngineOptions engine;
  bool is_json = false;
  bool has_layout = false;
};

void run(const InspectArguments& args) {
  if (args.has_layout) {
    File::standard_output().write(fmt::format("treble {}\n{}", version(), dump_layout(args.folder)));
    return;
  }
  const ReleaseSummary summary = inspect_release(args.folder);
  std::optional<FitReport> fit;
  if (summary.is_complete() && args.engine.gpu.memory_limit > 0) fit = plan_fit(args.folder, args.engine);
  if (args.is_json) {
    Json json = to_json(summary);
    if (fit) json.as_object().push_back({"gpu_memory", to_json(*fit)});
    File::standard_output().write(dump_json_pretty(json) + "\n");
  } else {
    File::standard_output().write(to_table(summary) + (fit ? "\n" + to_text(*fit) : ""));
  }
  if (!summary.is_complete()) {
    throw Error(
        ErrorCode::kCheckpoint,
        fmt::format("inspect: {} cannot be used as it is: {} files missing, {} tensors missing, {} unknown, {} other "
                    "problems",
                    args.folder.string(), summary.missing_files.size(), summary.missing_tensors.size(),
                    summary.unknown_tensors.size(), summary.problems.size()));
  }
  if (fit && !fit->fits)
    throw Error(ErrorCode::kDevice, fmt::format("inspect: {} does not fit into that much of a GPU's memory; raise "
                                                "--memory-limit or use a smaller model",
                                                args.folder.string()));
}

}  // namespace

void add_inspect(CLI::App& program) {
  CLI::App& command = add_command(program, kInspectText);
  const auto args = std::make_shared<InspectArguments>();
  command.add_flag("--json", args->is_json, "as JSON instead of a table");
  command
      .add_flag("--dump-layout", args->has_layout,
                "every tensor, how its module is read and why: for a report of a bug")
      ->excludes("--json");
  add_plan_options(command, args->engine);
  add_max_tokens_option(command, args->engine);
  command.add_option("DIR", args->folder, "release folder")->required();
  command.callback([args] { run(*args); });
}

}  // namespace treble::cli
