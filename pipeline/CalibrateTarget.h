// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `calibrate` needs to know of a target, and the measurement by several
// ranks.
#ifndef MGPU_PIPELINE_CALIBRATETARGET_H
#define MGPU_PIPELINE_CALIBRATETARGET_H

#include "bench/profile/CalibrateRanks.h"
#include "device/api/GraphDriver.h"
#include "device/api/Topology.h"
#include "support/Result.h"

#include <string>

namespace mgpu::pipeline {

/// What no measurement says. For GPUs it asks the driver.
Result<device::Topology> describeTarget(const std::string &target,
                                        uint32_t devices,
                                        const device::Driver &driver);

/// All ranks at once, each with as many of the host's devices. All find the
/// same.
Result<device::Topology> calibrateTogether(const std::string &target,
                                           uint32_t devices,
                                           const bench::MakeCalibration &make);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_CALIBRATETARGET_H
