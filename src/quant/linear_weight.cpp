#include "quant/linear_weight.h"

namespace treble {

LinearWeight LinearWeight::rows(std::int64_t begin, std::int64_t end) const {
  LinearWeight out = *this;
  out.weight = weight.rows(begin, end);
  if (bias) out.bias = bias.rows(begin, end);
  return out;
}

}  // namespace treble
