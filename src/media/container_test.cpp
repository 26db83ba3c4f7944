#include "media/container.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>

#include "media/testing/expected.h"

namespace treble::testing {
namespace {

template <typename Check>
std::string refusal(const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kRequest);
    return error.what();
  }
  return "";
}

std::string mp4_refusal(const std::string& file) {
  return refusal([&] { check_mp4(std::as_bytes(std::span(file))); });
}

/// Four bytes, the highest first.
std::string number(std::size_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift & 255));
  return bytes;
}

std::string box(const std::string& type, const std::string& content) {
  return number(8 + content.size()) + type + content;
}

/// An index for fragments of track 1.
std::string fragmented_index() {
  return box("ftyp", "isom") + box("moov", box("mvex", box("trex", number(0) + number(1) + std::string(16, '\0'))));
}

/// A fragment of `num_frames` frames whose sizes are given.
std::string fragment(std::size_t track, std::size_t num_frames) {
  const std::string run = number(0x000200) + number(num_frames) + std::string(4 * num_frames, '\1');
  return box("moof", box("traf", box("tfhd", number(0) + number(track)) + box("trun", run))) + box("mdat", "frames");
}

TEST_CASE("container: a fragmented MP4 is whole only if every box is, and may end behind any fragment") {
  const std::string whole = fragmented_index() + fragment(1, 5) + fragment(1, 3);
  CHECK(mp4_refusal(whole) == "");
  CHECK(mp4_refusal(fragmented_index() + fragment(1, 5)) == "");
  CHECK(mp4_refusal(whole + std::string(100, '\0')) == "");
  CHECK(mp4_refusal(whole.substr(0, whole.size() - 1)).find("a part of the file is missing") != std::string::npos);
  CHECK(mp4_refusal(whole + "garbage between boxes").find("is damaged at byte") != std::string::npos);
  std::string holed = whole;
  holed.erase(fragmented_index().size() + 20, 9);
  CHECK(mp4_refusal(holed).find("is damaged at byte") != std::string::npos);
}

TEST_CASE("container: a fragment of an MP4 has a track and an index of all of its frames") {
  CHECK(mp4_refusal(fragmented_index() + fragment(2, 5)).find("belongs to no track") != std::string::npos);
  CHECK(mp4_refusal(fragmented_index() + box("moof", "")).find("has no track") != std::string::npos);
  CHECK(mp4_refusal(fragmented_index() + box("moof", box("traf", ""))).find("has no header") != std::string::npos);
  const std::string short_run = box("trun", number(0x000200) + number(5) + number(1));
  const std::string header = box("tfhd", number(0) + number(1));
  CHECK(mp4_refusal(fragmented_index() + box("moof", box("traf", header + short_run))).find("index is cut off") !=
        std::string::npos);
}

TEST_CASE("container: bytes that a camera appends to an MP4 are no damage, a box that ends beyond the file is") {
  const std::string clip = box("ftyp", "isom") + box("mdat", "frames") + box("moov", "");
  CHECK(mp4_refusal(clip + "a maker's own bytes") == "");
  CHECK(mp4_refusal(box("ftyp", "isom") + box("moov", "") + number(0) + "mdat and all up to the end") == "");
  CHECK(mp4_refusal(box("ftyp", "isom") + box("moov", "") + number(100) + "mdat cut off").find("is missing") !=
        std::string::npos);
}

TEST_CASE("container: a clip that is appended to another would not be shown, so both are refused") {
  const auto twice = [](const char* name) {
    const std::vector<std::byte> file = read_file(data_folder() / "media" / name);
    std::vector<std::byte> both = file;
    both.insert(both.end(), file.begin(), file.end());
    return both;
  };
  const std::string problem = "a second clip is appended";
  CHECK(refusal([&] { check_mp4(twice("h264_25.mp4")); }).find(problem) != std::string::npos);
  CHECK(refusal([&] { check_matroska(twice("vp9.webm")); }).find(problem) != std::string::npos);
  CHECK(refusal([&] { check_gif(twice("animated.gif"), {}); }).find(problem) != std::string::npos);
}

}  // namespace
}  // namespace treble::testing
