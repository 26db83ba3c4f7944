#include "base/config_section.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <cmath>
#include <utility>

#include "base/mapped_file.h"

namespace treble {

Json read_config_file(const std::filesystem::path& path) {
  return parse_json(read_text_file(path), "checkpoint: " + path.string(), ErrorCode::kCheckpoint);
}

ConfigSection::ConfigSection(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) fail(fmt::format("is {}, expected an object", object.type_name()));
}

const Json* ConfigSection::find(std::string_view key) const {
  const Json* value = object_.find(key);
  return value && !value->is_null() ? value : nullptr;
}

ConfigSection ConfigSection::section(std::string_view key) const {
  const Json* value = find(key);
  if (!value) fail(fmt::format("has no \"{}\"", key));
  return ConfigSection(*value, fmt::format("{}: {}", where_, key));
}

std::int64_t ConfigSection::positive(std::string_view key) const {
  const Json* value = find(key);
  if (!value) fail(fmt::format("has no \"{}\"", key));
  return to_positive(*value, key, kLargestSize);
}

std::int64_t ConfigSection::positive(std::string_view key, std::int64_t fallback, std::int64_t most) const {
  const Json* value = find(key);
  return value ? to_positive(*value, key, most) : fallback;
}

double ConfigSection::number(std::string_view key, double fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_number() || !(value->as_double() > 0) || !std::isfinite(value->as_double()))
    fail(fmt::format("\"{}\" is {}, expected a positive number", key, dump_json(*value)));
  return value->as_double();
}

bool ConfigSection::boolean(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_bool()) fail(fmt::format("\"{}\" is {}, expected a boolean", key, dump_json(*value)));
  return value->as_bool();
}

void ConfigSection::require(std::string_view key, const Json& implemented) const {
  const Json* value = find(key);
  if (value && *value != implemented)
    fail(fmt::format("\"{}\" is {}, this engine implements {}", key, dump_json(*value), dump_json(implemented)));
}

void ConfigSection::fail(const std::string& what) const {
  throw Error(ErrorCode::kCheckpoint, fmt::format("checkpoint: {} {}; is this a Clef release?", where_, what));
}

std::int64_t ConfigSection::to_positive(const Json& value, std::string_view key, std::int64_t most) const {
  long long number = 0;
  if (!value.is_number() || !value.as_int64(number) || number < 1 || number > most)
    fail(fmt::format("\"{}\" is {}, expected an integer from 1 to {}", key, dump_json(value), most));
  return number;
}

}  // namespace treble
