#include "engine/agreement.h"

#include <doctest/doctest.h>
#include <treble/error.h>

#include <cmath>
#include <limits>

namespace treble {
namespace {

using Logits = std::vector<std::vector<float>>;

TEST_CASE("agreement: the largest difference of a probability, and decisions that fall otherwise") {
  Agreement agreement;
  add_record(agreement, Logits{{0, 0}, {1, 0, 0}}, Logits{{0, 0}, {1, 0, 0}});
  CHECK(agreement.decisions == 2);
  CHECK(agreement.differing == 0);
  CHECK(agreement.max_difference == 0);
  const float third = std::log(3.0f);  // 3 : 1
  add_record(agreement, Logits{{third, 0}, {0, 1}}, Logits{{0, third}, {5, 6}});
  CHECK(agreement.decisions == 4);
  CHECK(agreement.differing == 1);
  CHECK(agreement.max_difference == doctest::Approx(0.5));
}

TEST_CASE("agreement: what is not a number, and other questions, do not agree") {
  Agreement agreement;
  add_record(agreement, Logits{{0, 0}}, Logits{{std::numeric_limits<float>::quiet_NaN(), 0}});
  CHECK(std::isnan(agreement.max_difference));
  CHECK_THROWS_AS(add_record(agreement, Logits{{0, 0}}, Logits{}), Error);
  CHECK_THROWS_AS(add_record(agreement, Logits{{0, 0}}, Logits{{0}}), Error);
}

}  // namespace
}  // namespace treble
