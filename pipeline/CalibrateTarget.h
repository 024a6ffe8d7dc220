// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `calibrate` needs to know of a target, and the measurement by several
// ranks.
#ifndef MGPU_PIPELINE_CALIBRATETARGET_H
#define MGPU_PIPELINE_CALIBRATETARGET_H

#include "bench/profile/CalibrateRanks.h"
#include "device/api/GraphDriver.h"
#include "device/api/Topology.h"
#include "pipeline/GpuRanks.h"
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
/// The same of GPUs, of which each rank has some, all alike.
Result<device::Topology>
calibrateGpusTogether(const GpuRanks &gpus, const std::string &nccl,
                      const bench::MakeCalibration &make);
/// "cuda:0,1" of the GPUs that this rank has.
std::string targetOf(const std::vector<int> &gpus);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_CALIBRATETARGET_H
