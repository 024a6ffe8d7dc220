// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_CALIBRATECARDS_H
#define MGPU_TOOLS_MGPU_TUNE_CALIBRATECARDS_H

// Several cards as one topology, measured by all of them at once.

#include "bench/profile/Calibrate.h"
#include "tools/mgpu-tune/CardWorkers.h"

namespace mgpu::tune {

/// What is measured with, for a driver, in the process of its rank. `largest`
/// need not be set.
using MakeCalibration =
    std::function<Result<bench::CalibrationInput>(device::Driver &)>;

/// Calibrates the `devices` cards that `open` opens. Errors: as those of
/// CardWorkers and bench::calibrate().
Result<device::Topology> calibrateCards(uint32_t devices,
                                        CardWorkers::Open open,
                                        CardWorkers::Options options,
                                        MakeCalibration make);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_CALIBRATECARDS_H
