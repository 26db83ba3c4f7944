#include "cuda/check_fits.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <string>

namespace treble::cuda {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

std::string refusal(const MemoryNeeds& needs, std::size_t free_bytes, std::size_t total_bytes,
                    std::size_t limit_bytes = 0) {
  try {
    check_fits(
        needs,
        {.name = "cuda:0 (a GPU)", .free_bytes = free_bytes, .total_bytes = total_bytes, .limit_bytes = limit_bytes});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kDevice);
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const MemoryNeeds kNeeds{.pass_tokens = 16384,
                         .weights = 46 * kGiB,
                         .tables = 0,
                         .host_tables = 5 * kGiB,
                         .activations = 3 * kGiB,
                         .scratch = 1 * kGiB};

TEST_CASE("check_fits: what fits is let through, and tables in host memory do not count") {
  CHECK(refusal(kNeeds, 51 * kGiB, 80 * kGiB).empty());
}

TEST_CASE("check_fits: a refusal says what is needed, what is free and what to change") {
  const std::string text = refusal(kNeeds, 48 * kGiB, 80 * kGiB);
  CHECK(contains(text, "cuda:0 (a GPU) has 48.00 GiB free of 80.00 GiB, expected 50.25 GiB: 46.00 GiB of weights"));
  CHECK(contains(text, "passes of 16384 tokens"));
  CHECK(contains(text, "lower --pass-tokens"));
  CHECK(contains(text, "end what else uses"));
  CHECK_FALSE(contains(text, "--embeddings"));
}

TEST_CASE("check_fits: advice that cannot help is not given") {
  const std::string small = refusal(kNeeds, 24 * kGiB, 24 * kGiB);
  CHECK_FALSE(contains(small, "--pass-tokens"));
  CHECK_FALSE(contains(small, "end what else uses"));
  CHECK(contains(small, "use a smaller model"));
  MemoryNeeds with_tables = kNeeds;
  with_tables.tables = 5 * kGiB;
  CHECK(contains(refusal(with_tables, 24 * kGiB, 24 * kGiB), "--embeddings host"));
}

TEST_CASE("check_fits: what a limit leaves is called so, and raising it advised") {
  const std::string text = refusal(kNeeds, 47 * kGiB, 80 * kGiB, 48 * kGiB);
  CHECK(contains(text, "has 47.00 GiB left of --memory-limit 48.00 GiB, expected 50.25 GiB"));
  CHECK(contains(text, "raise --memory-limit"));
  CHECK_FALSE(contains(text, "end what else uses"));
}

}  // namespace
}  // namespace treble::cuda
