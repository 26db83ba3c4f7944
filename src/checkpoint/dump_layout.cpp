#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <system_error>

#include "base/mapped_file.h"
#include "checkpoint/inspect.h"
#include "checkpoint/release_folder.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard_index.h"
#include "checkpoint/storage_format.h"
#include "checkpoint/tensor_names.h"

namespace treble {
namespace {

namespace fs = std::filesystem;

struct Module {
  ModuleParts parts;
  std::vector<std::string> lines;  // one a tensor
};

/// Every safetensors file of the folder, the head's too, by name.
std::vector<fs::path> safetensors_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".safetensors") files.push_back(it->path());
  std::ranges::sort(files);
  return files;
}

/// What config.json says of a quantisation.
std::string config_line(const fs::path& folder) {
  try {
    const Json config =
        parse_json(read_text_file(folder / "config.json"), "checkpoint: config.json", ErrorCode::kCheckpoint);
    const Json* quantization = config.find("quantization_config");
    return fmt::format("config.json: {}\n", quantization ? "quantization_config " + printable(dump_json(*quantization))
                                                         : "no quantization_config");
  } catch (const Error& error) {
    return printable(error.what()) + '\n';
  }
}

}  // namespace

std::string dump_layout(const fs::path& folder) {
  check_release_folder(folder);
  std::string out = config_line(folder);
  std::list<SafetensorsFile> files;
  std::map<std::string, Module> modules;
  for (const fs::path& path : safetensors_files(folder)) {
    const std::string file_name = path.filename().string();
    try {
      const SafetensorsFile& file = files.emplace_back(path);
      out += fmt::format("{}: {} tensors, metadata {}\n", printable(file_name), file.tensors().size(),
                         printable(dump_json(file.metadata())));
      for (const SafetensorsFile::Tensor& tensor : file.tensors()) {
        const std::string name = file_name == kHeadFile ? "head." + tensor.name : canonical_name(tensor.name);
        const ModulePart split = split_module(name);
        Module& module = modules[std::string(split.module)];
        module.parts.emplace(split.part, tensor.view);
        module.lines.push_back(fmt::format("    {}  {}  {}{}", printable(tensor.name), tensor.view.describe(),
                                           printable(file_name), is_ignored(tensor.name) ? "  (not read)" : ""));
      }
    } catch (const Error& problem) {
      out += printable(problem.what()) + '\n';
    }
  }
  for (const auto& [name, module] : modules) {
    const StorageFormat format = recognise_format(module.parts);
    out += fmt::format("{}  {}: {}\n", printable(name), format.name, printable(format.reason));
    if (!format.problem.empty()) out += fmt::format("    problem: {}\n", printable(format.problem));
    for (const std::string& line : module.lines) out += line + '\n';
  }
  return out;
}

}  // namespace treble
