#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace treble {

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

 private:
  const std::byte* data_ = nullptr;
  std::size_t num_bytes_ = 0;
};

/// Lets go of the memory behind some bytes of a mapped file. They are read from the file again when they are needed, so
/// a program that walks through a large file holds only where it is.
void drop_resident_pages(const void* data, std::size_t num_bytes);

/// A whole small file as text. @throws Error kCheckpoint, naming the file
std::string read_text_file(const std::filesystem::path& path);

}  // namespace treble
