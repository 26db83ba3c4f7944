#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>

#include "base/parallel.h"
#include "cpu/cpu_ops.h"

namespace treble::cpu {
namespace {

template <typename T>
void copy_row(const bfloat16* from, std::int64_t count, T* to) {
  std::transform(from, from + count, to, [](bfloat16 x) { return T{to_float(x)}; });
}

template <>
void copy_row(const bfloat16* from, std::int64_t count, bfloat16* to) {
  std::copy_n(from, count, to);
}

template <typename T>
void copy_rows(const Embedding& args) {
  const std::int64_t vocab_size = args.table.size(0), hidden_size = args.table.size(1);
  const std::int32_t* ids = args.ids.as<std::int32_t>();
  constexpr std::int64_t kTokensPerTask = 32;
  parallel_ranges(args.ids.size(0), kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      if (ids[t] < 0 || ids[t] >= vocab_size) {
        throw Error(ErrorCode::kInternal,
                    fmt::format("cpu: embedding: token {} has id {}, expected 0 to {}", t, ids[t], vocab_size - 1));
      }
      copy_row(args.table.as<bfloat16>() + ids[t] * args.table.stride(0), hidden_size,
               args.out.as<T>() + t * args.out.stride(0));
    }
  });
}

}  // namespace

void CpuOps::do_embedding(const Embedding& args) {
  if (args.out.dtype() == DType::kBF16) {
    copy_rows<bfloat16>(args);
  } else {
    copy_rows<float>(args);
  }
}

}  // namespace treble::cpu
