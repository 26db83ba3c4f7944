#include "record/media_source.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <treble/error.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string_view>
#include <utility>

#include "media/sample_frames.h"

namespace treble {
namespace {

namespace fs = std::filesystem;

template <typename... Args>
[[noreturn]] void refuse(const std::string& where, fmt::format_string<Args...> problem, Args&&... args) {
  throw Error(ErrorCode::kRequest,
              fmt::format("request: {} {}", where, fmt::format(problem, std::forward<Args>(args)...)));
}

bool starts_with_any_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char expected, char c) {
           return expected == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
         });
}

bool is_remote(std::string_view text) {
  const auto has_scheme = [&](std::string_view scheme) { return starts_with_any_case(text, scheme); };
  return has_scheme("http://") || has_scheme("https://") || has_scheme("file:") || has_scheme("ftp://") ||
         has_scheme("s3://") || has_scheme("gs://");
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMostBytes = 40;
  std::size_t end = std::min(text.size(), kMostBytes);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return dump_json(Json(std::string(text.substr(0, end)) + (end < text.size() ? "…" : "")));
}

/// The text without ASCII blanks and padding, if what is left are digits of base64; nullopt otherwise.
std::optional<std::string> base64_digits(std::string_view text) {
  std::string digits;
  digits.reserve(text.size() + 3);
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  std::size_t padding = 0;
  for (const char c : text) {
    if (is_blank(c)) continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const bool is_digit =
        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
    if (!is_digit || padding > 0) return std::nullopt;
    digits.push_back(c);
  }
  const std::size_t rest = digits.size() % 4;
  const std::size_t missing = rest == 0 ? 0 : 4 - rest;
  if (rest == 1 || (padding != 0 && padding != missing)) return std::nullopt;
  return digits;
}

std::optional<FileContent> decode_base64(std::string_view text) {
  std::optional<std::string> digits = base64_digits(text);
  if (!digits || digits->empty()) return std::nullopt;
  const std::size_t padding = (4 - digits->size() % 4) % 4;
  digits->append(padding, '=');
  FileContent bytes(digits->size() / 4 * 3);
  constexpr std::size_t kDigitsPerCall = std::size_t{1} << 24;  // the library counts in int
  for (std::size_t begin = 0; begin < digits->size(); begin += kDigitsPerCall) {
    const std::size_t count = std::min(kDigitsPerCall, digits->size() - begin);
    const int decoded =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()) + begin / 4 * 3,
                        reinterpret_cast<const unsigned char*>(digits->data()) + begin, static_cast<int>(count));
    if (decoded != static_cast<int>(count / 4 * 3)) return std::nullopt;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

/// Reads the sources of one image or clip.
class Reader {
 public:
  Reader(std::string where, const MediaSourceRules& rules, bool is_video)
      : where_(std::move(where)), rules_(rules), is_video_(is_video) {}

  MediaSource read(const Json& json) const {
    if (json.is_string()) return read_string(json.as_string());
    if (is_video_ && json.is_array()) return read_frames(json, nullptr);
    if (!json.is_object())
      refuse(where_, "is {}, expected base64, a data URL or an object with \"base64\"", json.type_name());
    if (const Json* frames = json.find("frames"); is_video_ && frames) return read_frames(*frames, json.find("fps"));
    for (const char* key : {"base64", "data_base64", "data"}) {
      const Json* value = json.find(key);
      if (value && !value->is_null()) return {.files = {read_base64(*value, key)}};
    }
    for (const char* key : {"url", "image_url", "video_url"}) {
      const Json* value = json.find(key);
      if (!value || value->is_null()) continue;
      if (const Json* inner = value->find("url")) value = inner;
      if (!value->is_string()) refuse(where_, "has {} that is {}, expected a data URL", key, value->type_name());
      return {.files = {read_url(value->as_string())}};
    }
    refuse(where_, "has none of \"base64\", \"data_base64\", \"url\"{}; expected one of them",
           is_video_ ? ", \"frames\"" : "");
  }

 private:
  std::size_t max_bytes() const { return is_video_ ? rules_.limits.max_video_bytes : rules_.limits.max_image_bytes; }

  void check_size(std::size_t num_bytes) const {
    if (num_bytes > max_bytes()) refuse(where_, "has {} bytes, limit is {}; make it smaller", num_bytes, max_bytes());
  }

  MediaSource read_string(const std::string& text) const {
    if (starts_with_any_case(text, "data:") || is_remote(text)) return {.files = {read_url(text)}};
    if (rules_.folder) {
      if (std::optional<MediaSource> source = read_path(text)) return std::move(*source);
    }
    check_size(text.size() / 4 * 3);
    if (std::optional<FileContent> bytes = decode_base64(text)) return {.files = {std::move(*bytes)}};
    if (rules_.folder) refuse(where_, "is {}: no file of that name in {}", shown(text), shown(rules_.folder->string()));
    refuse(where_, "is {}: neither a data URL nor base64; send the file's content", shown(text));
  }

  FileContent read_base64(const Json& value, const char* key) const {
    if (!value.is_string()) refuse(where_, "has {} that is {}, expected base64 text", key, value.type_name());
    if (starts_with_any_case(value.as_string(), "data:")) return read_url(value.as_string());
    check_size(value.as_string().size() / 4 * 3);
    std::optional<FileContent> bytes = decode_base64(value.as_string());
    if (!bytes) refuse(where_, "has {} that is no base64", key);
    return std::move(*bytes);
  }

  FileContent read_url(std::string_view url) const {
    if (!starts_with_any_case(url, "data:"))
      refuse(where_, "is {}: no URL is fetched; send the file's content as a data URL or base64", shown(url));
    const std::size_t comma = url.find(',');
    constexpr std::string_view kBase64 = ";base64";
    const std::string_view head = url.substr(0, comma);
    if (comma == std::string_view::npos || head.size() < kBase64.size() ||
        !starts_with_any_case(head.substr(head.size() - kBase64.size()), kBase64))
      refuse(where_, "is a data URL without \";base64,\"; encode it so");
    const std::string_view text = url.substr(comma + 1);
    check_size(text.size() / 4 * 3);
    std::optional<FileContent> bytes = decode_base64(text);
    if (!bytes) refuse(where_, "is a data URL whose content is no base64");
    return std::move(*bytes);
  }

  MediaSource read_frames(const Json& frames, const Json* frame_rate) const {
    if (!frames.is_array() || frames.as_array().empty())
      refuse(where_, "has frames that are {}, expected an array of pictures",
             frames.is_array() ? "none" : frames.type_name());
    check_count(frames.as_array().size());
    MediaSource source{.files = {}, .is_frames = true};
    std::size_t num_bytes = 0;
    for (const Json& frame : frames.as_array()) {
      const std::string where = fmt::format("{}.frames[{}]", where_, source.files.size());
      source.files.push_back(std::move(Reader(where, rules_, false).read(frame).files.front()));
      check_size(num_bytes += source.files.back().size());
    }
    if (frame_rate && !frame_rate->is_null()) {
      if (!frame_rate->is_number() || !is_frame_rate(frame_rate->as_double()))
        refuse(where_, "has fps that is {}, expected a number from {} to {} frames a second",
               shown(dump_json(*frame_rate)), kLeastRate, kMostRate);
      source.frame_rate = frame_rate->as_double();
    }
    return source;
  }

  void check_count(std::size_t num_frames) const {
    if (num_frames > static_cast<std::size_t>(rules_.limits.max_frames))
      refuse(where_, "has {} frames, limit is {}; send fewer", num_frames, rules_.limits.max_frames);
  }

  /// nullopt if there is nothing of that name.
  std::optional<MediaSource> read_path(const std::string& text) const {
    constexpr std::size_t kLongestPath = 4096;
    if (text.empty() || text.size() > kLongestPath || text.find('\0') != std::string::npos) return std::nullopt;
    const fs::path path = *rules_.folder / text;
    std::error_code failed;
    const fs::file_status status = fs::status(path, failed);
    if (!fs::exists(status)) return std::nullopt;
    if (is_video_ && fs::is_directory(status)) return read_folder(path);
    return MediaSource{.files = {read_file(path)}};
  }

  MediaSource read_folder(const fs::path& folder) const {
    std::vector<fs::path> paths;
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
      if (entry->path().filename().string().starts_with('.')) continue;
      paths.push_back(entry->path());
      check_count(paths.size());
    }
    if (failed) refuse(where_, "cannot be read: {}: {}", shown(folder.string()), failed.message());
    if (paths.empty()) refuse(where_, "is a folder without pictures: {}", shown(folder.string()));
    std::ranges::sort(paths);
    MediaSource source{.files = {}, .is_frames = true};
    std::size_t num_bytes = 0;
    for (const fs::path& path : paths) {
      source.files.push_back(Reader(where_, rules_, false).read_file(path));
      check_size(num_bytes += source.files.back().size());
    }
    return source;
  }

  FileContent read_file(const fs::path& path) const {
    std::error_code failed;
    if (!fs::is_regular_file(path, failed)) refuse(where_, "is {}, which is no file", shown(path.string()));
    const auto num_bytes = static_cast<std::size_t>(fs::file_size(path, failed));
    if (!failed) check_size(num_bytes);
    std::ifstream file(path, std::ios::binary);
    FileContent bytes(failed ? 0 : num_bytes);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (failed || !file) refuse(where_, "cannot be read: {}", shown(path.string()));
    return bytes;
  }

  std::string where_;
  const MediaSourceRules& rules_;
  bool is_video_;
};

}  // namespace

MediaSource read_image_source(const Json& json, const std::string& where, const MediaSourceRules& rules) {
  return Reader(where, rules, false).read(json);
}

MediaSource read_video_source(const Json& json, const std::string& where, const MediaSourceRules& rules) {
  return Reader(where, rules, true).read(json);
}

}  // namespace treble
