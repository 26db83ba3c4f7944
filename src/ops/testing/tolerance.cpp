#include "ops/testing/tolerance.h"

#include <cmath>

namespace treble::testing {

Tolerance tolerance(DType dtype, std::int64_t summed, double scale, int roundings) {
  // A sum of n terms of random sign and size s wanders to s sqrt(k) after k of them, and each addition is off by up to
  // u32 of that. The n errors add up like a random walk themselves: about 0.4 u32 n s. Blocked sums do better; five
  // times the spread covers the worst of a few million results.
  const double u32 = std::ldexp(1.0, -24);
  const double sums = 2 * u32 * static_cast<double>(summed) * scale;
  // exp, division and square root are within two units each; a chain of four of them stays below 16 u32.
  const double functions = 16 * u32;
  // Half a unit in the last place for each rounding. Those before the last are of intermediate values, which may be
  // larger than the result when terms cancel.
  const double half_unit = dtype == DType::kBF16 ? std::ldexp(1.0, -8) : u32;
  return {roundings * half_unit + functions, sums + functions * scale + (roundings - 1) * half_unit * scale};
}

}  // namespace treble::testing
