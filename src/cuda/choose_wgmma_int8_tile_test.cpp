#include "cuda/choose_wgmma_int8_tile.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace treble::cuda;

namespace {

/// What is multiplied for the result, as a share of what the multiprocessors could multiply until all tiles are done.
double share_of_use(std::int64_t num_tokens, std::int64_t weight_rows, std::int64_t in_features, int num_sms) {
  const auto [rows, tokens, shares_weight] =
      shape_of(choose_wgmma_int8_tile(num_tokens, weight_rows, in_features, num_sms));
  const std::int64_t unit_tokens = tokens * (shares_weight ? 2 : 1), unit_rows = rows * (shares_weight ? 1 : 2);
  const std::int64_t units = (num_tokens + unit_tokens - 1) / unit_tokens * ((weight_rows + unit_rows - 1) / unit_rows);
  const std::int64_t clusters = num_sms / 2, rounds = (units + clusters - 1) / clusters;
  return static_cast<double>(num_tokens * weight_rows) /
         static_cast<double>(rounds * clusters * unit_tokens * unit_rows);
}

}  // namespace

TEST_CASE("cuda: int8 tiles leave little of the device idle at the model's sizes") {
  constexpr int kSms = 132;
  for (const std::int64_t num_tokens : {1502, 2270, 24032}) {
    CAPTURE(num_tokens);
    CHECK(share_of_use(num_tokens, 16384, 5120, kSms) >= 0.8);
    CHECK(share_of_use(num_tokens, 2 * 17408, 5120, kSms) >= 0.8);
    CHECK(share_of_use(num_tokens, 5120, 6144, kSms) >= 0.7);
    CHECK(share_of_use(num_tokens, 5120, 17408, kSms) >= 0.7);
  }
}

TEST_CASE("cuda: an int8 tile is chosen for any number of tokens and multiprocessors") {
  for (const std::int64_t num_tokens : {1, 7, 65536})
    for (const int num_sms : {1, 2, 78, 114, 132})
      CHECK(shape_of(choose_wgmma_int8_tile(num_tokens, 16, 16, num_sms)).num_tokens > 0);
}
