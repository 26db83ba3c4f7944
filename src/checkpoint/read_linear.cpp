#include "checkpoint/read_linear.h"

#include <fmt/format.h>

#include "quant/read_fp8.h"
#include "quant/read_int8.h"
#include "quant/read_nf4.h"

namespace treble {
namespace {

bool is_compressed_tensors(const Json& config) {
  const Json* method = config.find("quant_method");
  return method && method->is_string() && method->as_string() == "compressed-tensors";
}

LinearWeight read_compressed_tensors(const Json& config, ModuleTensors& tensors) {
  const Json* transforms = config.find("transform_config");
  if (transforms && transforms->is_object() && !transforms->as_object().empty())
    tensors.fail(
        "has weights that config.json says are transformed (transform_config), which this version does not undo; use "
        "a release without");
  return read_int_quantized(tensors);
}

}  // namespace

LinearWeight read_quantized_linear(const StorageFormat& format, const Json* config, ModuleTensors& tensors) {
  if (format.name == "nf4") return read_nf4(tensors);
  if (format.name == "fp8" || format.name == "fp8-block") return read_fp8(tensors);
  if (format.name == "int8" || format.name == "int8-convrot") {
    if (config && !tensors.has("comfy_quant") && is_compressed_tensors(*config))
      return read_compressed_tensors(*config, tensors);
    return read_int8(tensors, config);
  }
  if (!format.problem.empty()) tensors.fail(format.problem);
  tensors.fail(fmt::format(
      "is stored as {} ({}), which this version does not read; use a bf16, fp8, int8-convrot or nf4 release",
      format.name, format.reason));
}

}  // namespace treble
