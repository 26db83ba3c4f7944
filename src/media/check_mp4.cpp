#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "media/container.h"

// MP4 and MOV: ISO/IEC 14496-12. A box is its size, its type of four letters, and its content.

namespace treble {
namespace {

constexpr std::uint32_t type_of(const char (&name)[5]) {
  std::uint32_t type = 0;
  for (int i = 0; i < 4; ++i) type = type << 8 | static_cast<unsigned char>(name[i]);
  return type;
}

struct Box {
  std::uint32_t type = 0;
  std::size_t start = 0;
  std::size_t begin = 0;  // of its content
  std::size_t end = 0;
  bool fits = true;  // into what holds it
};

class Walk {
 public:
  explicit Walk(std::span<const std::byte> file) : file_(file) {}

  void run() {
    bool is_fragmented = false, has_index = false;
    for (std::size_t at = 0; at < file_.size();) {
      const std::optional<Box> box = read_box(at, file_.size());
      if (!box) {
        // Some cameras append bytes of their own.
        if (is_fragmented && !is_zero(at)) fail_damaged_at(at, "no MP4 box is there");
        return;
      }
      is_fragmented |= box->type == type_of("moof");
      const bool holds_clip =
          box->type == type_of("mdat") || box->type == type_of("moov") || box->type == type_of("moof");
      if (!box->fits && (holds_clip || is_fragmented))
        fail_damaged_at(at, "an MP4 box is longer than the file, so a part of the file is missing");
      if (box->type == type_of("moov")) {
        // Only the first one counts; fragments bring their own, and repeat it at times.
        if (has_index && !is_fragmented) fail_damaged_at(at, "a second clip is appended to it");
        has_index = true;
        walk_index(*box);
      }
      if (box->type == type_of("moof")) walk_fragment(*box);
      at = box->end;
    }
  }

 private:
  std::uint64_t number(std::size_t at, std::size_t length) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < length; ++i) value = value << 8 | std::to_integer<std::uint64_t>(file_[at + i]);
    return value;
  }

  bool is_zero(std::size_t from) const {
    return std::all_of(file_.begin() + static_cast<std::ptrdiff_t>(from), file_.end(),
                       [](std::byte byte) { return byte == std::byte{0}; });
  }

  /// nullopt if no box can be there.
  std::optional<Box> read_box(std::size_t at, std::size_t end) const {
    if (end - at < 8) return std::nullopt;
    Box box{.type = static_cast<std::uint32_t>(number(at + 4, 4)), .start = at, .begin = at + 8};
    std::uint64_t size = number(at, 4);
    if (size == 1) {
      if (end - at < 16) return std::nullopt;
      size = number(at + 8, 8);
      box.begin = at + 16;
    } else if (size == 0) {
      size = end - at;  // up to the end
      if (end != file_.size()) return std::nullopt;
    }
    if (size < box.begin - at) return std::nullopt;
    box.fits = size <= end - at;
    box.end = box.fits ? at + static_cast<std::size_t>(size) : end;
    return box;
  }

  /// Calls visit(box) for every box inside; a few bytes behind the last one are QuickTime's terminator.
  template <typename Visit>
  void for_each_inside(const Box& outer, const Visit& visit) const {
    for (std::size_t at = outer.begin; outer.end - at >= 8;) {
      const std::optional<Box> box = read_box(at, outer.end);
      if (!box || !box->fits) fail_damaged_at(at, "no whole MP4 box is there");
      visit(*box);
      at = box->end;
    }
  }

  void walk_index(const Box& moov) {
    for_each_inside(moov, [this](const Box& box) {
      if (box.type != type_of("mvex")) return;
      for_each_inside(box, [this](const Box& extends) {
        if (extends.type == type_of("trex") && extends.end - extends.begin >= 8)
          fragmented_tracks_.insert(number(extends.begin + 4, 4));
      });
    });
  }

  void walk_fragment(const Box& moof) const {
    bool has_track = false;
    for_each_inside(moof, [&](const Box& box) {
      if (box.type != type_of("traf")) return;
      has_track = true;
      walk_track_fragment(box);
    });
    if (!has_track) fail_damaged_at(moof.start, "an MP4 fragment has no track");
  }

  void walk_track_fragment(const Box& traf) const {
    bool has_header = false;
    for_each_inside(traf, [&](const Box& box) {
      if (box.type == type_of("tfhd")) {
        has_header = box.end - box.begin >= 8;
        if (has_header && !fragmented_tracks_.contains(number(box.begin + 4, 4)))
          fail_damaged_at(box.start, "an MP4 fragment belongs to no track");
      } else if (box.type == type_of("trun")) {
        check_run(box);
      }
    });
    if (!has_header) fail_damaged_at(traf.start, "an MP4 fragment has no header");
  }

  /// A run of frames: version, flags, their number, two optional numbers of four bytes, and up to four for each frame.
  void check_run(const Box& trun) const {
    const std::size_t num_bytes = trun.end - trun.begin;
    if (num_bytes < 8) fail_damaged_at(trun.start, "an MP4 fragment's index is cut off");
    const std::uint64_t flags = number(trun.begin + 1, 3), num_frames = number(trun.begin + 4, 4);
    const auto numbers = [](std::uint64_t of) { return static_cast<std::uint64_t>(std::popcount(of)); };
    if (num_bytes < 8 + 4 * numbers(flags & 0x5) + 4 * numbers(flags & 0xf00) * num_frames)
      fail_damaged_at(trun.start, "an MP4 fragment's index is cut off");
  }

  std::span<const std::byte> file_;
  std::set<std::uint64_t> fragmented_tracks_;
};

}  // namespace

void check_mp4(std::span<const std::byte> file) {
  Walk(file).run();
}

}  // namespace treble
