#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "checkpoint/inspect.h"
#include "checkpoint/tensor_names.h"

namespace treble {
namespace {

Json::Array strings(const std::vector<std::string>& values) {
  return {values.begin(), values.end()};
}

Json::Array sizes(const std::vector<std::int64_t>& values) {
  Json::Array out;
  for (const std::int64_t value : values) out.push_back(Json::integer(value));
  return out;
}

Json::Object counts(const std::map<std::string, std::int64_t>& values) {
  Json::Object out;
  for (const auto& [name, count] : values) out.emplace_back(name, Json::integer(count));
  return out;
}

Json bytes_json(std::uint64_t bytes) {
  return Json::integer(static_cast<long long>(bytes));
}

/// "27.36 B", "128.1 M", "512".
std::string format_count(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.2f} B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f} K", value / 1e3);
  return fmt::format("{}", count);
}

std::string format_bytes(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value >= 1 << 30) return fmt::format("{:.2f} GiB", value / (1 << 30));
  if (value >= 1 << 20) return fmt::format("{:.1f} MiB", value / (1 << 20));
  if (value >= 1 << 10) return fmt::format("{:.1f} KiB", value / (1 << 10));
  return fmt::format("{} B", bytes);
}

std::string format_shape(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// "bf16", or "int8-convrot 10, bf16 2" when there are several.
std::string format_formats(const std::map<std::string, std::int64_t>& formats) {
  if (formats.size() == 1) return formats.begin()->first;
  std::string out;
  for (const auto& [name, count] : formats) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, count);
  return out;
}

/// Rows of cells in aligned columns. A column named with a leading '>' is set to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) {
    for (std::string& title : header) {
      is_right_.push_back(title.starts_with('>'));
      if (is_right_.back()) title.erase(0, 1);
    }
    rows_.push_back(std::move(header));
  }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string print() const {
    std::vector<std::size_t> widths(is_right_.size());
    for (const auto& row : rows_)
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    std::string out;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t c = 0; c < row.size(); ++c)
        line += is_right_[c] ? fmt::format("{:>{}}  ", row[c], widths[c]) : fmt::format("{:<{}}  ", row[c], widths[c]);
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + '\n';
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> is_right_;
};

/// A heading and lines below it, or nothing if there are none. Names out of files are made printable.
std::string list(std::string_view heading, const std::vector<std::string>& lines) {
  constexpr std::size_t kMaxLines = 40;
  if (lines.empty()) return "";
  std::string out = fmt::format("\n{}\n", heading);
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) out += fmt::format("  {}\n", printable(lines[i]));
  if (lines.size() > kMaxLines) out += fmt::format("  and {} more\n", lines.size() - kMaxLines);
  return out;
}

/// "layer_types: full_attention 16, linear_attention 48" for an array of names, else the value itself.
std::string format_fact(const std::string& key, const Json& value) {
  if (!value.is_array()) return fmt::format("{} {}", key, printable(dump_json(value)));
  std::map<std::string, std::int64_t> names;
  for (const Json& element : value.as_array()) ++names[element.is_string() ? printable(element.as_string()) : "?"];
  return fmt::format("{}: {}", key, format_formats(names));
}

/// Facts side by side in lines of readable length.
std::string format_config(const Json::Object& config) {
  constexpr std::size_t kMaxColumns = 110;
  std::string out, line;
  for (const auto& [key, value] : config) {
    const std::string fact = format_fact(key, value);
    if (!line.empty() && line.size() + 2 + fact.size() > kMaxColumns) {
      out += line + '\n';
      line.clear();
    }
    line += "  " + fact;
  }
  return line.empty() ? out : out + line + '\n';
}

/// "0..2,5"; a long run of ranges that repeats regularly is cut: "3,7,...,63".
std::string format_ranges(const std::set<std::int64_t>& numbers) {
  struct Range {
    std::int64_t first, last;
  };
  std::vector<Range> ranges;
  for (const std::int64_t number : numbers) {
    if (!ranges.empty() && number == ranges.back().last + 1) {
      ranges.back().last = number;
    } else {
      ranges.push_back({number, number});
    }
  }
  bool is_regular = ranges.size() > 4;
  for (std::size_t i = 1; is_regular && i < ranges.size(); ++i)
    is_regular = ranges[i].first - ranges[i - 1].first == ranges[1].first - ranges[0].first &&
                 ranges[i].last - ranges[i].first == ranges[0].last - ranges[0].first;

  std::string out;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (is_regular && i == 2) {
      out += ",...";
      i = ranges.size() - 1;
    }
    out += fmt::format("{}{}", i == 0 ? "" : ",", ranges[i].first);
    if (ranges[i].last > ranges[i].first) out += fmt::format("..{}", ranges[i].last);
  }
  return out;
}

}  // namespace

Json to_json(const ReleaseSummary& summary) {
  Json::Array files, groups, modules;
  for (const auto& file : summary.files)
    files.push_back(Json::Object{{"name", file.name}, {"bytes", bytes_json(file.bytes)}, {"role", file.role}});
  for (const auto& group : summary.groups)
    groups.push_back(Json::Object{{"name", group.name},
                                  {"tensors", Json::integer(group.tensors)},
                                  {"parameters", Json::integer(group.parameters)},
                                  {"bytes", bytes_json(group.bytes)},
                                  {"dtypes", counts(group.dtypes)},
                                  {"formats", counts(group.formats)}});
  for (const auto& module : summary.modules)
    modules.push_back(Json::Object{{"name", module.name},
                                   {"group", module.group},
                                   {"format", module.format},
                                   {"shape", sizes(module.shape)},
                                   {"copies", Json::integer(module.copies)},
                                   {"parameters", Json::integer(module.parameters)},
                                   {"bytes", bytes_json(module.bytes)}});
  return Json::Object{{"folder", summary.folder},
                      {"is_complete", summary.is_complete()},
                      {"known_size", summary.known_size.empty() ? Json() : Json(summary.known_size)},
                      {"backbone_parameters", Json::integer(summary.backbone_parameters)},
                      {"head_parameters", Json::integer(summary.head_parameters)},
                      {"weight_bytes", bytes_json(summary.weight_bytes)},
                      {"activation_bytes_per_1k_tokens", bytes_json(summary.activation_bytes_per_1k_tokens)},
                      {"config", summary.config},
                      {"head_config", summary.head_config},
                      {"files", std::move(files)},
                      {"groups", std::move(groups)},
                      {"modules", std::move(modules)},
                      {"missing_files", strings(summary.missing_files)},
                      {"unknown_files", strings(summary.unknown_files)},
                      {"missing_tensors", strings(summary.missing_tensors)},
                      {"unknown_tensors", strings(summary.unknown_tensors)},
                      {"ignored_tensors", strings(summary.ignored_tensors)},
                      {"problems", strings(summary.problems)}};
}

std::string to_table(const ReleaseSummary& summary) {
  std::string out = fmt::format("release    {}\n", printable(summary.folder));
  out += fmt::format("state      {}\n", summary.is_complete() ? "complete" : "not usable as it is, see below");
  out +=
      fmt::format("model      {} parameters{}, head {}\n", format_count(summary.backbone_parameters),
                  summary.known_size.empty() ? "" : ", " + summary.known_size, format_count(summary.head_parameters));
  out += fmt::format("memory     {} weights", format_bytes(summary.weight_bytes));
  if (summary.activation_bytes_per_1k_tokens > 0)
    out += fmt::format(" + about {} for 1000 tokens", format_bytes(summary.activation_bytes_per_1k_tokens));
  out += '\n';
  if (!summary.config.empty()) out += "\nconfig\n" + format_config(summary.config);

  Table files({"file", ">size", "role"});
  for (const auto& file : summary.files) files.add({printable(file.name), format_bytes(file.bytes), file.role});
  out += '\n' + files.print();

  Table groups({"group", ">tensors", ">parameters", ">size", "stored as"});
  for (const auto& group : summary.groups)
    groups.add({group.name, fmt::format("{}", group.tensors), format_count(group.parameters), format_bytes(group.bytes),
                format_formats(group.formats)});
  out += '\n' + groups.print();

  Table modules({"module", ">copies", "shape", "stored as", ">parameters", ">size"});
  for (const auto& module : summary.modules)
    modules.add({printable(module.name), fmt::format("{}", module.copies), format_shape(module.shape), module.format,
                 format_count(module.parameters), format_bytes(module.bytes)});
  out += '\n' + modules.print();

  out += list("missing files", summary.missing_files);
  out += list("unknown files", summary.unknown_files);
  out += list("missing tensors", collapse_layers(summary.missing_tensors));
  out += list("unknown tensors", collapse_layers(summary.unknown_tensors));
  out += list("ignored tensors", collapse_layers(summary.ignored_tensors));
  out += list("problems", summary.problems);
  return out;
}

std::vector<std::string> collapse_layers(const std::vector<std::string>& names) {
  std::map<std::pair<std::string, std::string>, std::set<std::int64_t>> numbers;
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const LayerName split = split_layer(name);
    if (split.number < 0) {
      out.push_back(name);
    } else {
      numbers[{split.before, split.after}].insert(split.number);
    }
  }
  for (const auto& [around, layers] : numbers) {
    const std::string ranges = format_ranges(layers);
    out.push_back(around.first + (layers.size() == 1 ? ranges : "{" + ranges + "}") + around.second);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace treble
