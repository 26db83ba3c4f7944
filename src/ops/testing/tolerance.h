#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace treble::testing {

/// |actual - expected| may be relative * |expected| + absolute.
struct Tolerance {
  double relative;
  double absolute;
};

/// What an operation with fp32 arithmetic may differ from its definition in double.
/// @param dtype      of the result (and of every rounding in between)
/// @param summed     the most terms in one sum behind a result; 1 when there is none
/// @param scale      the typical size of one such term, or of the values a result is put together from
/// @param roundings  to dtype on the way to the result, the last one included
Tolerance tolerance(DType dtype, std::int64_t summed, double scale = 1, int roundings = 1);

}  // namespace treble::testing
