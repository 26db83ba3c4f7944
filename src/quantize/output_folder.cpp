#include "quantize/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <treble/error.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace treble {
namespace {

namespace fs = std::filesystem;

// Says that a .partial folder is ours to remove, and is locked by the run that writes it.
constexpr const char* kMarker = ".treble-partial";

[[noreturn]] void refuse(const fs::path& path, std::string_view what) {
  throw Error(ErrorCode::kArgument, fmt::format("quantize: {} {}", path.string(), what));
}

[[noreturn]] void fail(const fs::path& path, const char* action, const std::error_code& error) {
  throw Error(ErrorCode::kDevice, fmt::format("file: {} cannot be {}: {}", path.string(), action, error.message()));
}

std::error_code last_error() {
  return {errno, std::generic_category()};
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

bool is_empty_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) && fs::is_empty(path, error) && !error;
}

/// Only what looks like a release is replaced: --force is not for somebody's documents.
bool may_be_replaced(const fs::path& path) {
  std::error_code error;
  if (fs::is_symlink(path, error) || !fs::is_directory(path, error)) return false;
  return fs::is_empty(path, error) || (is_there(path / "config.json") && is_there(path / "joint_head.safetensors"));
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& path, bool is_replaced) {
  std::error_code error;
  path_ = fs::absolute(path, error).lexically_normal();
  if (error) refuse(path, fmt::format("cannot be written: {}; name another folder", error.message()));
  if (!path_.has_filename()) path_ = path_.parent_path();  // it ended in a slash
  partial_ = path_;
  partial_ += ".partial";

  if (!fs::is_directory(path_.parent_path(), error))
    refuse(path_.parent_path(), "is no folder; create it before a release is written there");
  if (is_there(path_) && !is_replaced) refuse(path_, "is there already; name another folder or give --force");
  if (is_there(path_) && !may_be_replaced(path_))
    refuse(path_, "is not a release, so --force does not replace it; name another folder");

  if (is_there(partial_) && !is_there(partial_ / kMarker) && !is_empty_folder(partial_))
    refuse(partial_, "is in the way: new releases are written there first; move it");
  fs::create_directory(partial_, error);
  if (error) fail(partial_, "created", error);
  lock_ = ::open((partial_ / kMarker).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) fail(partial_ / kMarker, "created", last_error());
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(std::exchange(lock_, -1));
    refuse(partial_, "is being written by another run; wait for it or stop it");
  }
  // What a run that was killed has left.
  std::error_code ignored;
  for (fs::directory_iterator left(partial_, error), end; !error && left != end; left.increment(error))
    if (left->path().filename() != kMarker) fs::remove_all(left->path(), ignored);
}

OutputFolder::~OutputFolder() {
  if (lock_ < 0) return;
  std::error_code ignored;
  if (!is_published_) fs::remove_all(partial_, ignored);
  ::close(lock_);
}

void OutputFolder::publish() {
  std::error_code error;
  fs::path replaced = path_;
  replaced += ".replaced";
  const bool has_old = is_there(path_);
  if (has_old) fs::rename(path_, replaced, error);
  if (error) fail(path_, "replaced", error);
  fs::rename(partial_, path_, error);
  if (error) {
    std::error_code ignored;
    if (has_old) fs::rename(replaced, path_, ignored);
    fail(path_, "created", error);
  }
  is_published_ = true;
  fs::remove(path_ / kMarker, error);
  if (has_old) fs::remove_all(replaced, error);
}

}  // namespace treble
