#pragma once

#include "base/simd_targets.h"

#include <doctest/doctest.h>
#include <hwy/highway.h>

#include <cstdint>

namespace treble::testing {

/// Runs `body` once for each instruction set that this machine has.
template <typename Body>
void for_each_instruction_set(const Body& body) {
  hwy::SetSupportedTargetsForTest(0);
  const std::int64_t present = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t rest = present; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    CAPTURE(hwy::TargetName(rest & -rest));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace treble::testing
