#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace treble {

/// Where bytes of an open file are.
struct FileRange {
  int descriptor = -1;
  std::uint64_t offset = 0;
};

/// Copies bytes of a file to memory without mapping them: a page that is mapped for one copy costs more than the copy
/// of it (a fault, and taking it out again). @throws Error kCheckpoint: the file cannot be read, or ends before
void read_bytes(const FileRange& from, std::size_t num_bytes, void* to);

/// A file's bytes, mapped read-only. They stay valid as long as this lives; moving does not move them.
class MappedFile {
 public:
  MappedFile() = default;
  /// @throws Error kCheckpoint, naming the file, if it cannot be opened or is no regular file
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, num_bytes_}; }
  /// Where some of these bytes are in the file, for read_bytes(); as long as this lives.
  /// @return nullopt if they are not this file's
  std::optional<FileRange> range_of(const void* data, std::size_t num_bytes) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t num_bytes_ = 0;
  int descriptor_ = -1;
};

/// Lets go of the memory behind some bytes of a mapped file. They are read from the file again when they are needed, so
/// a program that walks through a large file holds only where it is.
void drop_resident_pages(const void* data, std::size_t num_bytes);

/// A whole small file as text. @throws Error kCheckpoint, naming the file
std::string read_text_file(const std::filesystem::path& path);

}  // namespace treble
