#pragma once

#include <treble/engine.h>

#include <cstddef>
#include <cstdint>
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

/// The plan of a GPU's memory, of this machine's or of any: it needs none.
std::unique_ptr<Planner> make_planner(Precision precision = Precision::kBf16, const DeviceOptions& options = {});

/// What a model may take of a GPU whose memory is limited, or that has no more: bytes beside the driver's and the
/// libraries' own.
std::size_t room_of_limit(std::uint64_t limit_bytes);

/// What watches a device's memory, made before make_ops opens the device; nullptr for a device that is the host.
std::unique_ptr<DeviceMeter> make_device_meter(const std::string& device);

}  // namespace treble
