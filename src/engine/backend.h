#pragma once

#include <treble/engine.h>

#include <memory>
#include <string>

#include "ops/device_meter.h"
#include "ops/planner.h"

namespace treble {

/// What kAuto is on a device.
Precision resolve_precision(Precision precision, const std::string& device);

/// The operations of a device: "cpu", and "cuda" or "cuda:N" in a build that has it. The only place that names
/// backends.
/// @throws Error kDevice naming the device and those there are, or what is wrong with it
std::unique_ptr<Ops> make_ops(const std::string& device, Precision precision,
                              Int8Activations int8_activations = Int8Activations::kPrecise,
                              const DeviceOptions& options = {});

/// The plan of a GPU's memory with bf16 activations, of this machine's or of any: it needs none.
std::unique_ptr<Planner> make_planner();

/// What watches a device's memory, made before make_ops opens the device; nullptr for a device that is the host.
std::unique_ptr<DeviceMeter> make_device_meter(const std::string& device);

}  // namespace treble
