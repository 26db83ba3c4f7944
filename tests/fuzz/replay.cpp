// Runs a fuzz target without libFuzzer: PROGRAM ROUNDS FOLDER, every file of the folder as it is, and ROUNDS times with
// parts of it changed, cut off or doubled, always in the same way.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void mutate(Bytes& bytes, std::mt19937& random) {
  for (unsigned left = 1 + random() % 4; left > 0 && !bytes.empty(); --left) {
    const auto at = static_cast<std::ptrdiff_t>(random() % bytes.size());
    const auto count = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(1 + random() % 16), std::ssize(bytes) - at);
    const auto begin = bytes.begin() + at;
    switch (random() % 5) {
      case 0:
        std::generate_n(begin, count, [&random] { return static_cast<std::uint8_t>(random()); });
        break;
      case 1:
        std::fill_n(begin, count, random() % 2 ? std::uint8_t{0xff} : std::uint8_t{0});
        break;
      case 2:
        *begin ^= static_cast<std::uint8_t>(1u << random() % 8);
        break;
      case 3:
        bytes.erase(begin, begin + count);
        break;
      default: {
        const Bytes part(begin, begin + count);
        bytes.insert(begin, part.begin(), part.end());
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s ROUNDS FOLDER\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[2])) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::mt19937 random(1);
  const int rounds = std::atoi(argv[1]);
  for (const auto& path : paths) {
    const Bytes whole = read(path);
    LLVMFuzzerTestOneInput(whole.data(), whole.size());
    for (int round = 0; round < rounds; ++round) {
      Bytes changed = whole;
      mutate(changed, random);
      // A copy of its own size: a read past the end shows under the address sanitizer.
      const Bytes exact(changed.begin(), changed.end());
      LLVMFuzzerTestOneInput(exact.data(), exact.size());
    }
  }
  std::printf("%zu files\n", paths.size());
  return paths.empty() ? 1 : 0;
}
