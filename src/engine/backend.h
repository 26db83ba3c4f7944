#pragma once

#include <treble/engine.h>

#include <memory>
#include <string>

#include "ops/ops.h"

namespace treble {

/// What kAuto is on a device.
Precision resolve_precision(Precision precision, const std::string& device);

/// The operations of a device: "cpu", and "cuda" or "cuda:N" in a build that has it. The only place that names
/// backends.
/// @throws Error kDevice naming the device and those there are, or what is wrong with it
std::unique_ptr<Ops> make_ops(const std::string& device, Precision precision,
                              Int8Activations int8_activations = Int8Activations::kPrecise,
                              const DeviceOptions& options = {});

}  // namespace treble
