// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step of `calibrate`: a target is measured, by one process, by a process
// for each GPU, or by all ranks.
#ifndef MGPU_PIPELINE_TUNE_CALIBRATETARGET_H
#define MGPU_PIPELINE_TUNE_CALIBRATETARGET_H

#include "device/api/Topology.h"
#include "pipeline/run/JoinRanks.h"

#include <functional>
#include <string>

namespace mgpu::pipeline {

/// Measures load.target, or the host's devices where it is empty, as a topology
/// called `name`; load.file may name a bundle of the kernels. `progress` is
/// told what is measured next. All ranks find the same. Errors: Usage for
/// options of another kind of target; those of opening it and of measuring.
Result<device::Topology>
calibrateTarget(const LoadOptions &load, const GpuOptions &options,
                const std::string &name,
                const std::function<void(const std::string &)> &progress);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TUNE_CALIBRATETARGET_H
