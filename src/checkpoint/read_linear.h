#pragma once

#include <treble/json.h>

#include "checkpoint/storage_format.h"
#include "quant/linear_weight.h"
#include "quant/module_tensors.h"

namespace treble {

/// Reads a quantised Linear in the format that its tensors say; or, at ReadDepth::kLayout, checks that it could be
/// read.
/// @param format  recognise_format() of the tensors, is_quantized
/// @param config  what is said of it outside of its tensors (QuantizationConfig::find), or nullptr
/// @throws Error kCheckpoint beginning with the tensors' own words: as the format's reader, or a format that is not
/// read
LinearWeight read_quantized_linear(const StorageFormat& format, const Json* config, ModuleTensors& tensors);

}  // namespace treble
