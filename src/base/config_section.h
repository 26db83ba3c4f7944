#pragma once

#include <treble/json.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace treble {

/// Reads a JSON file of a release folder. @throws Error kCheckpoint naming the file
Json read_config_file(const std::filesystem::path& path);

/// One object of a configuration file, with errors (kCheckpoint) that name the file and the key. Borrows the object.
class ConfigSection {
 public:
  /// Sizes up to this keep products of two of them inside 64 bits.
  static constexpr std::int64_t kLargestSize = 1 << 30;

  /// @param where  file and section, as errors name them
  ConfigSection(const Json& object, std::string where);

  /// nullptr if the key is absent or null.
  const Json* find(std::string_view key) const;
  ConfigSection section(std::string_view key) const;

  /// An integer from 1 to `most`.
  std::int64_t positive(std::string_view key) const;
  std::int64_t positive(std::string_view key, std::int64_t fallback, std::int64_t most = kLargestSize) const;
  /// A positive finite number.
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  /// A key that only one value is implemented of; absent counts as that value.
  void require(std::string_view key, const Json& implemented) const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::int64_t to_positive(const Json& value, std::string_view key, std::int64_t most) const;

  const Json& object_;
  std::string where_;
};

}  // namespace treble
