#include "checkpoint/release_folder.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace treble {

void check_release_folder(const std::filesystem::path& folder) {
  const auto fail = [&](const std::string& what) {
    const std::string shown = folder.empty() ? "\"\"" : folder.string();
    throw Error(ErrorCode::kCheckpoint, fmt::format("checkpoint: {} {}", shown, what));
  };
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(folder, error);
  if (status.type() == std::filesystem::file_type::not_found)
    fail("does not exist, expected a release folder; check the path");
  if (error) fail(fmt::format("cannot be opened: {}; check the path and its permissions", error.message()));
  if (std::filesystem::is_regular_file(status) && folder.extension() == ".gguf")
    fail("is a GGUF file, expected a folder of safetensors; use the original release, not its GGUF form");
  if (!std::filesystem::is_directory(status))
    fail("is a file, expected a release folder; name the folder that holds config.json");
  if (::access(folder.c_str(), R_OK | X_OK) != 0)
    fail(fmt::format("cannot be opened: {}; check its permissions", std::generic_category().message(errno)));
}

}  // namespace treble
