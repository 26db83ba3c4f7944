#include "quant/linear_weight.h"

namespace treble {

LinearWeight LinearWeight::rows(std::int64_t begin, std::int64_t end) const {
  LinearWeight out = *this;
  if (format == WeightFormat::kNf4) {
    out.nf4.first_element += begin * nf4.in_features;
    out.nf4.out_features = end - begin;
  } else {
    out.weight = weight.rows(begin, end);
  }
  if (int8.row_scale) out.int8.row_scale = int8.row_scale.rows(begin, end);
  if (bias) out.bias = bias.rows(begin, end);
  return out;
}

}  // namespace treble
