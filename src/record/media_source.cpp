#include "record/media_source.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <treble/error.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>
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

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

std::string_view without_leading_blanks(std::string_view text) {
  return text.substr(static_cast<std::size_t>(std::ranges::find_if_not(text, is_blank) - text.begin()));
}

/// What a text is as base64.
struct Base64 {
  FileContent bytes;
  std::string problem;  // why it is none; empty if it is some
};

/// The text without ASCII blanks and padding. Only the standard alphabet: of the URL-safe one are many file names.
std::string base64_digits(std::string_view text, std::string& problem) {
  std::string digits;
  digits.reserve(text.size() + 3);
  std::size_t padding = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_blank(c)) continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const bool is_digit =
        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
    if (!is_digit) {
      const bool is_printable = c > ' ' && c <= '~';
      problem =
          fmt::format("its character {} is {}{}", i + 1, is_printable ? shown({&c, 1}) : "none of ASCII's printable",
                      c == '-' || c == '_' ? ", of the URL-safe alphabet; the standard one has + and /" : "");
    } else if (padding > 0) {
      problem = fmt::format("a = stands before its character {}", i + 1);
    }
    if (!problem.empty()) return {};
    digits.push_back(c);
  }
  const std::size_t rest = digits.size() % 4;
  const std::size_t missing = rest == 0 ? 0 : 4 - rest;
  if (digits.empty()) {
    problem = "it is empty";
  } else if (rest == 1) {
    problem = fmt::format("it has {} digits, one too many or some too few", digits.size());
  } else if (padding != 0 && padding != missing) {
    problem = fmt::format("it ends with {} =, where its {} digits need {}", padding, digits.size(), missing);
  }
  return digits;
}

Base64 decode_base64(std::string_view text) {
  Base64 decoded;
  std::string digits = base64_digits(text, decoded.problem);
  if (!decoded.problem.empty()) return decoded;
  const std::size_t padding = (4 - digits.size() % 4) % 4;
  digits.append(padding, '=');
  decoded.bytes.resize(digits.size() / 4 * 3);
  constexpr std::size_t kDigitsPerCall = std::size_t{1} << 24;  // the library counts in int
  for (std::size_t begin = 0; begin < digits.size(); begin += kDigitsPerCall) {
    const std::size_t count = std::min(kDigitsPerCall, digits.size() - begin);
    const int num_bytes =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(decoded.bytes.data()) + begin / 4 * 3,
                        reinterpret_cast<const unsigned char*>(digits.data()) + begin, static_cast<int>(count));
    if (num_bytes != static_cast<int>(count / 4 * 3)) decoded.problem = "it cannot be decoded";
  }
  decoded.bytes.resize(decoded.bytes.size() - padding);
  return decoded;
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
    check_members(json);
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

  /// Of several sources one would be read and the others passed over, and so would a rate that is not read.
  void check_members(const Json& json) const {
    const char* first = nullptr;
    for (const char* key : {"frames", "base64", "data_base64", "data", "url", "image_url", "video_url"}) {
      const Json* value = json.find(key);
      if (!value || value->is_null()) continue;
      if (first) refuse(where_, "has both \"{}\" and \"{}\"; leave one out", first, key);
      first = key;
    }
    const Json* rate = json.find("fps");
    if (is_video_ && rate && !rate->is_null() && !json.find("frames"))
      refuse(where_, "has \"fps\" without \"frames\"; a video file says its own rate: leave it out");
  }

  MediaSource read_string(const std::string& text) const {
    const std::string_view trimmed = without_leading_blanks(text);
    if (starts_with_any_case(trimmed, "data:") || is_remote(trimmed)) return {.files = {read_url(trimmed)}};
    std::string why_no_path;
    if (rules_.folder) {
      if (std::optional<MediaSource> source = read_path(text, why_no_path)) return std::move(*source);
    }
    check_size(text.size() / 4 * 3);
    Base64 decoded = decode_base64(text);
    if (decoded.problem.empty()) return {.files = {std::move(decoded.bytes)}};
    if (!why_no_path.empty())
      refuse(where_, "is {}: {}, and no base64 ({})", shown(text), why_no_path, decoded.problem);
    refuse(where_, "is {}: neither a data URL nor base64 ({}); send the file's content", shown(text), decoded.problem);
  }

  FileContent read_base64(const Json& value, const char* key) const {
    if (!value.is_string()) refuse(where_, "has {} that is {}, expected base64 text", key, value.type_name());
    const std::string_view trimmed = without_leading_blanks(value.as_string());
    if (starts_with_any_case(trimmed, "data:")) return read_url(trimmed);
    check_size(trimmed.size() / 4 * 3);
    Base64 decoded = decode_base64(trimmed);
    if (!decoded.problem.empty()) refuse(where_, "has {} that is no base64: {}", key, decoded.problem);
    return std::move(decoded.bytes);
  }

  FileContent read_url(std::string_view url) const {
    url = without_leading_blanks(url);
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
    Base64 decoded = decode_base64(text);
    if (!decoded.problem.empty()) refuse(where_, "is a data URL whose content is no base64: {}", decoded.problem);
    return std::move(decoded.bytes);
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

  /// nullopt if there is nothing of that name, with what to say of it; nothing, if no path is like that.
  std::optional<MediaSource> read_path(const std::string& text, std::string& why) const {
    constexpr std::size_t kLongestPath = 4096;
    if (text.empty() || text.size() > kLongestPath || text.find('\0') != std::string::npos) return std::nullopt;
    const fs::path path = *rules_.folder / text;
    std::error_code failed;
    const fs::file_status status = fs::status(path, failed);
    if (!fs::exists(status)) {
      const std::string folder = shown(rules_.folder->empty() ? "." : rules_.folder->string());
      // Others, such as a name that is too long, are those of base64.
      const bool is_out_of_reach =
          failed == std::errc::permission_denied || failed == std::errc::too_many_symbolic_link_levels;
      why = is_out_of_reach ? fmt::format("no file of that name can be reached in {} ({})", folder, failed.message())
                            : fmt::format("no file of that name in {}", folder);
      return std::nullopt;
    }
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
    const int opened_with = file.is_open() ? 0 : errno;
    FileContent bytes(failed ? 0 : num_bytes);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (failed || !file) {
      refuse(where_, "cannot be read: {}{}", shown(path.string()),
             opened_with == 0 ? "" : ": " + std::generic_category().message(opened_with));
    }
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
