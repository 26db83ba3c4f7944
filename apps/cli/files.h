#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace treble::cli {

/// The longest request, alone or as one line of a file.
constexpr std::size_t kMaxRequestBytes = std::size_t{64} << 20;

/// An open file or standard stream, unbuffered.
class File {
 public:
  /// Opens a file for reading; "-" is standard input. @throws Error kArgument if that fails or it is a folder
  static File input(const std::string& path);
  /// Opens a file for reading and appending, creates it if need be, and keeps other runs of ours from writing to it. A
  /// file that was created here goes again if the run fails before anything is written: call keep() when it succeeds.
  /// @throws Error kArgument if it cannot be written
  static File output(const std::string& path);
  static File standard_output();

  ~File();
  File(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// A new file stays, even if it is empty.
  void keep() { is_new_ = false; }

  /// For messages: the path, "standard input" or "standard output".
  const std::string& name() const { return name_; }

  /// @return bytes read, 0 at the end @throws Error kDevice
  std::size_t read(char* data, std::size_t num_bytes);
  /// Hands all of the text to the system. @throws Error kDevice if it takes less, e.g. because the disk is full
  void write(std::string_view text);

  /// Bytes of a regular file; 0 for a pipe or a terminal.
  std::uint64_t size() const;
  bool is_same_file(const File& other) const;
  /// Cuts the file after so many bytes; the next write appends. Pipes and terminals stay as they are.
  void truncate(std::uint64_t num_bytes);

 private:
  File(std::string name, int descriptor, bool is_ours);

  std::string name_;
  int descriptor_;
  bool is_ours_;         // standard streams stay open
  bool is_new_ = false;  // created here, and not kept yet
};

/// The folder that paths in requests count from: that of their file, or the current one for standard input.
std::filesystem::path folder_of_requests(const std::string& path);

/// The whole text of a request. @throws Error kArgument as File::input; kRequest if it is longer than the limit
std::string read_request(const std::string& path);

}  // namespace treble::cli
