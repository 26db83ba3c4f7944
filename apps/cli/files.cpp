#include "cli/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <treble/error.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace treble::cli {
namespace {

[[noreturn]] void fail_with_errno(ErrorCode code, const std::string& name, const char* action) {
  const std::string reason = std::generic_category().message(errno);
  throw Error(code, fmt::format("file: {} cannot be {}: {}", name, action, reason));
}

struct stat status_of(int descriptor, const std::string& name) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) fail_with_errno(ErrorCode::kDevice, name, "examined");
  return status;
}

}  // namespace

File::File(std::string name, int descriptor, bool is_ours)
    : name_(std::move(name)), descriptor_(descriptor), is_ours_(is_ours) {}

File::File(File&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      is_ours_(std::exchange(other.is_ours_, false)),
      is_new_(std::exchange(other.is_new_, false)) {}

File::~File() {
  struct stat status = {};
  if (is_new_ && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0)
    ::unlink(name_.c_str());
  if (is_ours_) ::close(descriptor_);
}

File File::input(const std::string& path) {
  if (path == "-") return File("standard input", STDIN_FILENO, false);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_with_errno(ErrorCode::kArgument, path, "opened");
  File file(path, descriptor, true);
  if (S_ISDIR(status_of(descriptor, path).st_mode)) {
    throw Error(ErrorCode::kArgument, fmt::format("file: {} is a folder; give a file of JSON", path));
  }
  return file;
}

File File::output(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC;
  int descriptor = ::open(path.c_str(), kFlags | O_EXCL, 0666);
  const bool is_new = descriptor >= 0;
  if (!is_new) descriptor = ::open(path.c_str(), kFlags, 0666);
  if (descriptor < 0) fail_with_errno(ErrorCode::kArgument, path, "written");
  File file(path, descriptor, true);
  file.is_new_ = is_new;
  if (S_ISREG(status_of(descriptor, path).st_mode) && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 &&
      errno == EWOULDBLOCK) {
    throw Error(ErrorCode::kArgument,
                fmt::format("file: {} is being written by another run; wait for it or stop it", path));
  }
  return file;
}

File File::standard_output() {
  return File("standard output", STDOUT_FILENO, false);
}

std::size_t File::read(char* data, std::size_t num_bytes) {
  while (true) {
    const ssize_t count = ::read(descriptor_, data, num_bytes);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) fail_with_errno(ErrorCode::kDevice, name_, "read");
  }
}

void File::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor_, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      fail_with_errno(ErrorCode::kDevice, name_, "written");
    }
  }
}

std::uint64_t File::size() const {
  const struct stat status = status_of(descriptor_, name_);
  return S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool File::is_same_file(const File& other) const {
  const struct stat ours = status_of(descriptor_, name_);
  const struct stat theirs = status_of(other.descriptor_, other.name_);
  return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

void File::truncate(std::uint64_t num_bytes) {
  if (!S_ISREG(status_of(descriptor_, name_).st_mode)) return;
  if (::ftruncate(descriptor_, static_cast<off_t>(num_bytes)) != 0) fail_with_errno(ErrorCode::kDevice, name_, "cut");
}

std::filesystem::path folder_of_requests(const std::string& path) {
  const std::filesystem::path folder =
      path == "-" ? std::filesystem::path() : std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

std::string read_request(const std::string& path) {
  File file = File::input(path);
  std::string text;
  std::vector<char> chunk(std::size_t{1} << 16);
  while (const std::size_t count = file.read(chunk.data(), chunk.size())) {
    if (text.size() + count > kMaxRequestBytes) {
      throw Error(ErrorCode::kRequest, fmt::format("request: {} is longer than {} MiB; shorten \"state\"", file.name(),
                                                   kMaxRequestBytes >> 20));
    }
    text.append(chunk.data(), count);
  }
  return text;
}

}  // namespace treble::cli
