#include "checkpoint/inspect.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <treble/version.h>

#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/files.h"

namespace treble::cli {
namespace {

const CommandText kInspectText = {
    .name = "inspect",
    .summary = "show what a release folder holds, what it lacks and the memory it needs",
    .usage = "[options] DIR",
    .notes =
        "Weights are not read, so it is quick. A release that cannot be used is shown too; the exit status is then "
        "4.\n",
    .example = "inspect clef-27b",
};

struct InspectArguments {
  std::filesystem::path folder;
  bool is_json = false;
  bool has_layout = false;
};

void run(const InspectArguments& args) {
  if (args.has_layout) {
    File::standard_output().write(fmt::format("treble {}\n{}", version(), dump_layout(args.folder)));
    return;
  }
  const ReleaseSummary summary = inspect_release(args.folder);
  File::standard_output().write(args.is_json ? dump_json_pretty(to_json(summary)) + "\n" : to_table(summary));
  if (!summary.is_complete()) {
    throw Error(
        ErrorCode::kCheckpoint,
        fmt::format("inspect: {} cannot be used as it is: {} files missing, {} tensors missing, {} unknown, {} other "
                    "problems",
                    args.folder.string(), summary.missing_files.size(), summary.missing_tensors.size(),
                    summary.unknown_tensors.size(), summary.problems.size()));
  }
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
  command.add_option("DIR", args->folder, "release folder")->required();
  command.callback([args] { run(*args); });
}

}  // namespace treble::cli
