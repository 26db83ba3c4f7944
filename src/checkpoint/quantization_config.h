#pragma once

#include <treble/json.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "checkpoint/safetensors.h"

namespace treble {

/// How modules are quantised by what stands outside of their tensors.
class QuantizationConfig {
 public:
  /// `_quantization_metadata` of a file's header, a description a module. @throws Error kCheckpoint
  void add_header(const SafetensorsFile& file);
  /// What config.json (`quantization_config` of ConvRot or compressed-tensors) or a JSON file beside it says of all
  /// modules. @throws Error kCheckpoint
  void read_folder(const std::filesystem::path& folder);

  /// nullptr if nothing says.
  /// @param module  its canonical name
  const Json* find(std::string_view module) const;

 private:
  std::map<std::string, Json, std::less<>> of_module_;
  Json of_release_;  // of modules that have none there; null if nothing says
};

}  // namespace treble
