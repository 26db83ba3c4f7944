// How long it takes to prepare an image: decoding, resizing, patches.
//
//   treble_media_bench FILE [RUNS]      milliseconds of each step on one core: median, least and most
//
// Processor time of the process, not wall time: other programs of a busy machine do not count, while the system's work
// on the memory of the picture and of its patches does. bench/compare_media.py makes a 12-megapixel JPEG and times
// torchvision beside this.

#include <treble/error.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "base/mapped_file.h"
#include "media/picture.h"
#include "media/prepare.h"

namespace treble {
namespace {

struct Timing {
  std::vector<double> milliseconds;

  template <typename Run>
  void add(const Run& run) {
    const std::clock_t begin = std::clock();
    run();
    milliseconds.push_back(1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  void print(const char* name) {
    std::sort(milliseconds.begin(), milliseconds.end());
    std::printf("{\"step\":\"%s\",\"median_ms\":%.2f,\"least_ms\":%.2f,\"most_ms\":%.2f,\"runs\":%zu}\n", name,
                milliseconds[milliseconds.size() / 2], milliseconds.front(), milliseconds.back(), milliseconds.size());
  }
};

void measure(const char* path, int num_runs) {
  const MappedFile file(path);
  Timing decode, prepare;
  for (int run = 0; run < num_runs; ++run) {
    decode.add([&] { decode_picture(file.bytes(), MediaLimits()); });
    prepare.add([&] { prepare_image(file.bytes(), MediaConfig(), MediaLimits()); });
  }
  decode.print("decode");
  prepare.print("prepare");
}

}  // namespace
}  // namespace treble

int main(int argc, char** argv) {
  const int num_runs = argc > 2 ? std::atoi(argv[2]) : 11;
  if (argc < 2 || argc > 3 || num_runs < 1) {
    std::fputs("usage: treble_media_bench FILE [RUNS]\n", stderr);
    return 2;
  }
  try {
    treble::measure(argv[1], num_runs);
  } catch (const treble::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
