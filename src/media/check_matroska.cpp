#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>

#include "media/container.h"

// Matroska: RFC 9559. Its elements are EBML's (RFC 8794): an id, a size, and that many bytes.

namespace treble {
namespace {

// Ids, with their length markers.
constexpr std::uint64_t kEbmlHeader = 0x1a45dfa3, kSegment = 0x18538067, kVoid = 0xec, kCrc32 = 0xbf;
constexpr std::uint64_t kSeekHead = 0x114d9b74, kInfo = 0x1549a966, kTracks = 0x1654ae6b, kCluster = 0x1f43b675,
                        kCues = 0x1c53bb6b, kAttachments = 0x1941a469, kChapters = 0x1043a770, kTags = 0x1254c367;
constexpr std::uint64_t kTimestamp = 0xe7, kPosition = 0xa7, kPreviousSize = 0xab, kSilentTracks = 0x5854,
                        kSimpleBlock = 0xa3, kBlockGroup = 0xa0, kBlock = 0xa1, kEncryptedBlock = 0xaf;
constexpr std::uint64_t kTrackEntry = 0xae, kTrackNumber = 0xd7, kTrackType = 0x83;

constexpr std::uint64_t kInSegment[] = {kSeekHead,    kInfo,     kTracks, kCluster, kCues,
                                        kAttachments, kChapters, kTags,   kVoid,    kCrc32};
constexpr std::uint64_t kInCluster[] = {kTimestamp,  kPosition,       kPreviousSize, kSilentTracks, kSimpleBlock,
                                        kBlockGroup, kEncryptedBlock, kVoid,         kCrc32};

bool is_one_of(std::span<const std::uint64_t> ids, std::uint64_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

struct Element {
  std::uint64_t id = 0;
  std::size_t start = 0;  // of its id
  std::size_t begin = 0;  // of its content
  std::size_t end = 0;    // behind its content; of its parent if the size is unknown
  bool has_size = true;
};

/// The checksum of EBML: the one of Ethernet and zlib.
std::uint32_t crc32(std::span<const std::byte> bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t index = 0; index < 256; ++index) {
      std::uint32_t value = index;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xedb88320U : 0U);
      table[index] = value;
    }
    return table;
  }();
  std::uint32_t crc = 0xffffffffU;
  for (const std::byte byte : bytes) crc = kTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 255] ^ (crc >> 8);
  return ~crc;
}

class Walk {
 public:
  explicit Walk(std::span<const std::byte> file) : file_(file) {}

  std::optional<std::int64_t> run() {
    std::size_t at = 0;
    bool has_segment = false;
    while (at < file_.size() && !has_segment) {
      const Element element = read_element(at, file_.size());
      if (element.id == kSegment) {
        has_segment = true;
        at = walk_segment(element);
      } else if (element.id == kEbmlHeader || element.id == kVoid) {
        at = whole(element).end;
      } else {
        fail_damaged_at(at, "no Matroska segment is there");
      }
    }
    if (!has_segment) fail_damaged_at(at, "it ends before its segment");
    // What stands behind the segment is never shown; other bytes than a clip's do no harm there.
    if (at + 4 <= file_.size() && number(at, 4) == kEbmlHeader) fail_damaged_at(at, "a second clip is appended to it");
    return num_video_frames();
  }

 private:
  std::uint64_t number(std::size_t at, std::size_t length) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < length; ++i) value = value << 8 | std::to_integer<std::uint64_t>(file_[at + i]);
    return value;
  }

  /// Bytes of the variable-length number at `at`, by the zeros its first byte begins with.
  std::size_t vint_length(std::size_t at, std::size_t longest, std::size_t end) const {
    if (at >= end) fail_damaged_at(at, "it is cut off");
    const auto length = static_cast<std::size_t>(std::countl_zero(std::to_integer<std::uint8_t>(file_[at]))) + 1;
    if (length > longest) fail_damaged_at(at, "no Matroska element begins there");
    if (length > end - at) fail_damaged_at(at, "it is cut off");
    return length;
  }

  static std::uint64_t without_marker(std::uint64_t value, std::size_t length) {
    return value & ((std::uint64_t{1} << (7 * length)) - 1);
  }

  Element read_element(std::size_t at, std::size_t end) const {
    Element element{.start = at};
    const std::size_t id_length = vint_length(at, 4, end);
    element.id = number(at, id_length);
    const std::size_t size_length = vint_length(at + id_length, 8, end);
    const std::uint64_t size = without_marker(number(at + id_length, size_length), size_length);
    element.begin = at + id_length + size_length;
    // All ones stand for "unknown".
    element.has_size = size != (std::uint64_t{1} << (7 * size_length)) - 1;
    if (element.has_size && size > end - element.begin)
      fail_damaged_at(at, "an element is longer than what holds it, so a part of the file is missing");
    element.end = element.has_size ? element.begin + static_cast<std::size_t>(size) : end;
    return element;
  }

  /// The element, whose size must be known: only segments and clusters are written before their end is.
  const Element& whole(const Element& element) const {
    if (!element.has_size) fail_damaged_at(element.start, "an element lacks its size");
    return element;
  }

  /// If the element begins with a checksum, the rest of it must have that.
  void check_crc(const Element& element) const {
    constexpr std::size_t kElementBytes = 6;  // id, size, four bytes, the lowest first
    if (!element.has_size || element.end - element.begin < kElementBytes || number(element.begin, 2) != 0xbf84) return;
    std::uint32_t expected = 0;
    for (std::size_t i = 0; i < 4; ++i)
      expected |= static_cast<std::uint32_t>(number(element.begin + 2 + i, 1)) << 8 * i;
    const std::size_t begin = element.begin + kElementBytes;
    if (crc32(file_.subspan(begin, element.end - begin)) != expected)
      fail_damaged_at(element.start, "an element does not have its checksum");
  }

  std::size_t walk_segment(const Element& segment) {
    check_crc(segment);
    std::size_t at = segment.begin;
    while (at < segment.end) {
      const Element element = read_element(at, segment.end);
      if (!segment.has_size && element.id == kEbmlHeader) return at;
      if (!is_one_of(kInSegment, element.id)) fail_damaged_at(at, "no element of a Matroska segment is there");
      check_crc(element);
      if (element.id == kCluster) {
        at = walk_cluster(element);
        continue;
      }
      at = whole(element).end;
      if (element.id == kTracks) read_tracks(element);
    }
    return at;
  }

  std::size_t walk_cluster(const Element& cluster) {
    std::size_t at = cluster.begin;
    while (at < cluster.end) {
      const Element element = read_element(at, cluster.end);
      // One of unknown size ends where something begins that no cluster holds.
      if (!cluster.has_size &&
          (element.id == kEbmlHeader || (is_one_of(kInSegment, element.id) && !is_one_of(kInCluster, element.id))))
        return at;
      if (!is_one_of(kInCluster, element.id)) fail_damaged_at(at, "no element of a Matroska cluster is there");
      at = whole(element).end;
      if (element.id == kSimpleBlock) count_frames(element);
      if (element.id == kBlockGroup) walk_block_group(element);
    }
    return at;
  }

  void walk_block_group(const Element& group) {
    bool has_block = false;
    for (std::size_t at = group.begin; at < group.end;) {
      const Element element = read_element(at, group.end);
      at = whole(element).end;
      if (element.id != kBlock) continue;
      has_block = true;
      count_frames(element);
    }
    if (!has_block) fail_damaged_at(group.start, "a Matroska block group has no block");
  }

  /// A block: its track's number, two bytes of time, one of flags, and one frame, or several behind their count.
  void count_frames(const Element& block) {
    const std::size_t track_length = vint_length(block.begin, 8, block.end);
    const std::uint64_t track = without_marker(number(block.begin, track_length), track_length);
    const std::size_t flags_at = block.begin + track_length + 2;
    if (flags_at >= block.end) fail_damaged_at(block.start, "a Matroska block is cut off");
    const bool is_laced = (number(flags_at, 1) & 6) != 0;
    if (is_laced && flags_at + 1 >= block.end) fail_damaged_at(block.start, "a Matroska block is cut off");
    num_frames_[track] += is_laced ? static_cast<std::int64_t>(number(flags_at + 1, 1)) + 1 : 1;
    first_of_track_.emplace(track, block.start);
  }

  void read_tracks(const Element& tracks) {
    for (std::size_t at = tracks.begin; at < tracks.end;) {
      const Element entry = read_element(at, tracks.end);
      at = whole(entry).end;
      if (entry.id != kTrackEntry) continue;
      std::uint64_t track = 0, type = 0;
      for (std::size_t inner = entry.begin; inner < entry.end;) {
        const Element element = read_element(inner, entry.end);
        inner = whole(element).end;
        const std::size_t length = std::min<std::size_t>(element.end - element.begin, 8);
        if (element.id == kTrackNumber) track = number(element.begin, length);
        if (element.id == kTrackType) type = number(element.begin, length);
      }
      tracks_.insert(track);
      constexpr std::uint64_t kVideo = 1;
      if (type == kVideo) video_tracks_.insert(track);
    }
  }

  std::optional<std::int64_t> num_video_frames() const {
    for (const auto& [track, at] : first_of_track_)
      if (!tracks_.contains(track)) fail_damaged_at(at, "a Matroska block belongs to no track");
    if (video_tracks_.size() != 1) return std::nullopt;
    const auto found = num_frames_.find(*video_tracks_.begin());
    return found == num_frames_.end() ? 0 : found->second;
  }

  std::span<const std::byte> file_;
  std::set<std::uint64_t> tracks_, video_tracks_;  // their numbers
  std::map<std::uint64_t, std::int64_t> num_frames_;
  std::map<std::uint64_t, std::size_t> first_of_track_;  // where its first block is
};

}  // namespace

std::optional<std::int64_t> check_matroska(std::span<const std::byte> file) {
  return Walk(file).run();
}

}  // namespace treble
