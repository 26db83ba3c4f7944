#include "media/patches.h"

#include <optional>
#include <vector>

#include "media/media_config.h"
#include "media/pixel_rows.h"
#include "media/resize_taps.h"

namespace treble {
namespace {

/// The rows of a picture, resized to a width. Each is made when it is first asked for, and kept until `num_kept` later
/// ones are.
class ResizedRows {
 public:
  ResizedRows(const Picture& picture, std::int64_t width, std::int64_t num_kept) : picture_(picture) {
    if (picture.width == width) return;  // a pass that changes nothing is left out
    taps_ = make_resize_taps(picture.width, width);
    num_kept_ = num_kept;
    stride_ = 3 * width + kRowPadding;
    kept_.resize(static_cast<std::size_t>(num_kept * stride_));
    planes_.resize(static_cast<std::size_t>(3 * (picture.width + kRowPadding)));
  }

  /// Asked for with y that never falls below an earlier one by `num_kept` or more.
  const std::uint8_t* row(std::int64_t y) {
    if (!taps_) return picture_.row(y);
    for (; next_ <= y; ++next_) resize_row(picture_.row(next_), picture_.width, *taps_, planes_.data(), kept(next_));
    return kept(y);
  }

 private:
  std::uint8_t* kept(std::int64_t y) { return kept_.data() + y % num_kept_ * stride_; }

  const Picture& picture_;
  std::optional<ResizeTaps> taps_;
  std::int64_t num_kept_ = 0, stride_ = 0, next_ = 0;
  std::vector<std::uint8_t> kept_;
  std::vector<std::int16_t> planes_;
};

/// Calls sink(y, row) for each row of the picture resized to `size`, from top to bottom.
template <typename Sink>
void resize(const Picture& picture, const PictureSize& size, const Sink& sink) {
  if (picture.height == size.height) {
    ResizedRows rows(picture, size.width, 1);
    for (std::int64_t y = 0; y < size.height; ++y) sink(y, rows.row(y));
    return;
  }
  const ResizeTaps taps = make_resize_taps(picture.height, size.height);
  ResizedRows rows(picture, size.width, taps.num_taps);
  std::vector<const std::uint8_t*> inputs(static_cast<std::size_t>(taps.num_taps));
  std::vector<std::uint8_t> out(static_cast<std::size_t>(3 * size.width));
  for (std::int64_t y = 0; y < size.height; ++y) {
    const std::int64_t first = taps.first[static_cast<std::size_t>(y)], count = taps.count[static_cast<std::size_t>(y)];
    for (std::int64_t k = 0; k < count; ++k) inputs[static_cast<std::size_t>(k)] = rows.row(first + k);
    resize_column(inputs.data(), taps.of(y), count, taps.fraction_bits, 3 * size.width, out.data());
    sink(y, out.data());
  }
}

}  // namespace

void write_frame(const Picture& picture, std::int64_t frame, MediaItem& item) {
  const std::int64_t frames = item.frames_per_patch();
  constexpr std::int64_t kFrame = kPatchSize * kPatchSize;
  const std::int64_t channel = frames * kFrame, patch = 3 * channel;
  // Patches of a token: two of its upper row, then two of its lower one.
  const PatchStrides strides = {.from_even = patch, .from_odd = 3 * patch, .channel = channel};
  std::uint8_t* const levels =
      item.levels.data() + frame / frames * item.grid_h * item.grid_w * patch + frame % frames * kFrame;
  const PictureSize size = {item.grid_h * kPatchSize, item.grid_w * kPatchSize};
  resize(picture, size, [&](std::int64_t y, const std::uint8_t* row) {
    const std::int64_t patch_row = y / kPatchSize;
    const std::int64_t first_patch =
        patch_row / kMergeSize * kMergeSize * item.grid_w + patch_row % kMergeSize * kMergeSize;
    write_patch_row(row, item.grid_w, strides, levels + first_patch * patch + y % kPatchSize * kPatchSize);
  });
}

}  // namespace treble
