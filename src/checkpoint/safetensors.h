#pragma once

#include <treble/json.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/tensor_view.h"

namespace treble {

/// A dtype as the format spells it: "BF16", "F8_E4M3".
std::string_view safetensors_dtype(DType dtype);

/// One safetensors file, mapped. Format: 8 bytes little-endian header length n, n bytes of JSON
/// {name: {dtype, shape, data_offsets}}, then the data, offsets counted from the header's end.
class SafetensorsFile {
 public:
  struct Tensor {
    std::string name;
    TensorView view;  ///< read-only memory of the mapping; may be less aligned than its dtype
  };

  /// Reads and checks the header: every later access through a view is inside the file. As strict as the format's own
  /// library: the tensors cover the data without gaps, overlaps or bytes left over.
  /// @throws Error kCheckpoint naming the file and the tensor: header longer than the file or than 100 MB, offsets out
  ///         of range, overlapping, or not the size that shape and dtype give, unknown dtype, a name twice
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Where a tensor's bytes are in the file; nullopt if they are not this file's.
  std::optional<FileRange> range_of(const TensorView& tensor) const {
    return file_.range_of(tensor.data(), tensor.num_bytes());
  }
  /// The header's `__metadata__`, texts by name; null if there is none.
  const Json& metadata() const { return metadata_; }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  Json metadata_;
  std::vector<Tensor> tensors_;  // in the order of their data
};

}  // namespace treble
