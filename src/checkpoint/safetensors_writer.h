#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace treble {

/// A tensor of a file that is to be written.
struct PlannedTensor {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<std::int64_t> shape;

  std::uint64_t num_bytes() const;
};

/// Writes one safetensors file piece by piece, so that no more than a piece is in memory. Tensors lie by the size of
/// their elements, largest first, as the format's own library puts them: each is aligned. The header is written last;
/// until then the file cannot be taken for a complete one.
class SafetensorsWriter {
 public:
  /// The longest of the texts below.
  static constexpr std::size_t kMostTextBytes = 1024;

  /// Creates the file.
  /// @param tensors  all tensors but those below, names all different
  /// @param texts  names of u8 tensors whose length is not known yet; they lie last
  /// @throws Error kDevice naming the file if it cannot be created
  SafetensorsWriter(const std::filesystem::path& path, std::vector<PlannedTensor> tensors,
                    std::vector<std::string> texts);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// Writes bytes of a planned tensor from `offset` on. @throws Error kDevice if the disk does not take them
  void write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes);
  /// Sets the whole of a text. @pre at most kMostTextBytes
  void set_text(std::string_view name, std::string text);
  /// Writes texts and header, and hands all to the disk. @throws Error kDevice; kInternal if bytes were left out
  void finish();

 private:
  struct Place {
    PlannedTensor tensor;
    std::uint64_t begin = 0, written = 0;
  };

  std::string header() const;
  void write_at(std::uint64_t position, std::string_view bytes);

  std::filesystem::path path_;
  std::vector<Place> places_;  // in the order of their data
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<std::string> texts_;
  std::map<std::string, std::string, std::less<>> text_bytes_;
  std::uint64_t texts_begin_ = 0;
  std::size_t header_bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace treble
