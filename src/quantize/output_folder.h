#pragma once

#include <filesystem>

namespace treble {

/// A folder that appears under its name only when it is complete. Until then its files lie beside it in
/// `<name>.partial`, which is removed when this ends early. What a killed run left there is removed by the next one.
class OutputFolder {
 public:
  /// @param is_replaced  whether a release that is there already may be replaced
  /// @throws Error kArgument naming the folder: it is there and may not be replaced, or is no release; another run is
  ///         writing it; its parent is missing. kDevice if it cannot be created
  OutputFolder(const std::filesystem::path& path, bool is_replaced);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Where to write.
  const std::filesystem::path& partial() const { return partial_; }
  /// Gives the folder its name, and removes the one that it replaces. @throws Error kDevice
  void publish();

 private:
  std::filesystem::path path_, partial_;
  int lock_ = -1;  // of the marker in the partial folder
  bool is_published_ = false;
};

}  // namespace treble
