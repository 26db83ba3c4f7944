#include "cli/line_reader.h"

#include <algorithm>

namespace treble::cli {

LineReader::LineReader(File& file, std::size_t max_bytes)
    : file_(file), max_bytes_(max_bytes), buffer_(std::size_t{1} << 16) {}

bool LineReader::fill() {
  if (begin_ < end_) return true;
  begin_ = 0;
  end_ = file_.read(buffer_.data(), buffer_.size());
  return end_ > 0;
}

bool LineReader::next(Line& line) {
  line.text.clear();
  line.is_too_long = line.is_complete = false;
  if (!fill()) return false;
  line.number = ++number_;
  while (!line.is_complete && fill()) {
    const auto first = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto last = buffer_.begin() + static_cast<std::ptrdiff_t>(end_);
    const auto feed = std::find(first, last, '\n');
    const auto length = static_cast<std::size_t>(feed - first);
    line.is_too_long = line.is_too_long || length > max_bytes_ - line.text.size();
    if (line.is_too_long) {
      line.text.clear();
    } else {
      line.text.append(first, feed);
    }
    line.is_complete = feed != last;
    const std::size_t taken = length + (line.is_complete ? 1 : 0);
    begin_ += taken;
    consumed_ += taken;
  }
  line.end = consumed_;
  return true;
}

bool LineReader::next_filled(Line& line) {
  while (next(line)) {
    if (!line.is_blank()) return true;
  }
  return false;
}

}  // namespace treble::cli
