#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <treble/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace treble {
namespace {

/// A file descriptor, closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

[[noreturn]] void fail_with_errno(const std::filesystem::path& path, const char* action) {
  const std::string reason = std::generic_category().message(errno);
  throw Error(ErrorCode::kCheckpoint, fmt::format("checkpoint: {} cannot be {}: {}", path.string(), action, reason));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK (in Descriptor): a pipe without a writer must be refused below, not waited for here.
  Descriptor file(path);
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) fail_with_errno(path, "opened");
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kCheckpoint, fmt::format("checkpoint: {} is not a regular file", path.string()));
  }
  const auto num_bytes = static_cast<std::size_t>(status.st_size);
  if (num_bytes == 0) return;  // mmap refuses an empty range

  void* data = ::mmap(nullptr, num_bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) fail_with_errno(path, "mapped");
  data_ = static_cast<const std::byte*>(data);
  num_bytes_ = num_bytes;
  descriptor_ = file.release();
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), num_bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      num_bytes_(std::exchange(other.num_bytes_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

std::optional<FileRange> MappedFile::range_of(const void* data, std::size_t num_bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(data_), wanted = reinterpret_cast<std::uintptr_t>(data);
  if (!data_ || wanted < begin || wanted - begin > num_bytes_ || num_bytes > num_bytes_ - (wanted - begin))
    return std::nullopt;
  return FileRange{descriptor_, wanted - begin};
}

void read_bytes(const FileRange& from, std::size_t num_bytes, void* to) {
  for (std::size_t done = 0; done < num_bytes;) {
    const ::ssize_t count = ::pread(from.descriptor, static_cast<std::byte*>(to) + done, num_bytes - done,
                                    static_cast<::off_t>(from.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw Error(
          ErrorCode::kCheckpoint,
          fmt::format("checkpoint: a file of weights cannot be read at byte {}: {}; was it changed while it was "
                      "being loaded?",
                      from.offset + done, count == 0 ? "it ends there" : std::generic_category().message(errno)));
    done += static_cast<std::size_t>(count);
  }
}

void drop_resident_pages(const void* data, std::size_t num_bytes) {
  // Whole pages alone: a neighbour's bytes may share the first and the last.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + num_bytes) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::string read_text_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

}  // namespace treble
