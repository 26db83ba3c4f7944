#include "cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/text_width.h"

namespace treble::cli {

bool is_terminal(int descriptor) {
  return ::isatty(descriptor) == 1;
}

int terminal_width(int descriptor) {
  constexpr int kLeast = 40;
  constexpr int kUnknown = 100;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknown;
  return std::max<int>(kLeast, size.ws_col);
}

void write_to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void report(std::string_view message) {
  write_to_stderr(fmt::format("treble: {}\n", printable(message)));
}

void hold_standard_streams() {
  // Only for reading: writing to a stream that the caller has closed stays an error.
  int descriptor = 0;
  do {
    descriptor = ::open("/dev/null", O_RDONLY);
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

}  // namespace treble::cli
