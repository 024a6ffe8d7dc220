// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TARGET_GPUIDENTITY_H
#define MGPU_PIPELINE_TARGET_GPUIDENTITY_H

// Which GPUs a target names. The driver is asked in a process of its own,
// because this process may be forked, which CUDA does not survive.

#include "planner/cost/GpuTopology.h"
#include "tuner/record/Keys.h"

#include <string>
#include <vector>

namespace mgpu::pipeline {

/// The GPU of a target, as the tuner keys its results. With `inHere`, for a
/// process that uses CUDA already, no other one is started. Errors: Usage for
/// another form, Absent without a driver or the GPU.
Result<tuner::TargetIdentity> identifyGpu(const std::string &target,
                                          bool inHere);

/// A GPU as results on it are known.
struct GpuIdentity {
  std::string name, arch; ///< "NVIDIA H100", "sm_90"
  std::string driver;     ///< "13.0"
};
/// Every GPU that a target of `cuda` names.
Result<std::vector<GpuIdentity>> gpusOfTarget(const std::string &target);

/// The driver's facts about each GPU of a target, by which times are predicted.
Result<std::vector<planner::GpuFacts>> factsOfGpus(const std::string &target);

/// The architecture of several GPUs: "sm_90". Errors: those of the driver;
/// Absent where NCCL is missing or the GPUs are of several architectures.
Result<std::string> architectureOf(const std::vector<int> &gpus);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TARGET_GPUIDENTITY_H
