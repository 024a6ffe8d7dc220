// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_BUILD_PREDICTKERNELS_H
#define MGPU_PIPELINE_BUILD_PREDICTKERNELS_H

// Predicts the times of configurations of kernels on a GPU that need not be
// here.

#include "device/api/DeviceProfile.h"
#include "pipeline/program/LoadedProgram.h"
#include "planner/cost/TargetMachine.h"

namespace mgpu::pipeline {

/// Microseconds of the largest launch of a kernel, one for each configuration
/// of `text`'s space; empty where the kernel is not launched or has no facts.
std::vector<double>
predictConfigs(const LoadedProgram &program, const planner::Machine &machine,
               uint32_t kernel, const kernels::CudaText &text,
               std::span<const kernels::KernelConfig> configs);

/// The default of a kernel and the configuration predicted to be the fastest.
struct PredictedKernel {
  double defaultUs = 0, bestUs = 0;
  kernels::KernelConfig best;
};
/// Among those legal on `gpu`, or on any where it is null; none where
/// predictConfigs() is empty.
std::optional<PredictedKernel> predictKernel(const LoadedProgram &program,
                                             const planner::Machine &machine,
                                             uint32_t kernel,
                                             const kernels::CudaText &text,
                                             const device::DeviceProfile *gpu);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_BUILD_PREDICTKERNELS_H
