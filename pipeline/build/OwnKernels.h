// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_BUILD_OWNKERNELS_H
#define MGPU_PIPELINE_BUILD_OWNKERNELS_H

// The kernels of the CUDA target's own (device/cuda/api/DeviceKernels.h):
// compiled once for a database, and once for a bundle.

#include "capture/replay/Bundle.h"
#include "device/api/BlobCache.h"
#include "device/cuda/CudaDriver.h"

#include <set>

namespace mgpu::pipeline {

/// The texts of the programs that `dag` may need: of copies, and of the
/// reductions of its collectives.
std::set<std::string> ownPrograms(const planner::Dag &dag);

/// All of them, for a bundle. `cache` may be null.
Result<capture::OwnCubins> compileOwn(const planner::Dag &dag,
                                      std::span<const std::string> archs,
                                      device::BlobCache *cache);

/// A CudaOptions::compile: what is given, else what NVRTC makes, which is kept
/// in `database` ("": the user's; none: nowhere). Nothing is open between
/// calls, so that it may be called in a process that was forked since.
device::CudaCompile ownCompiler(std::optional<std::string> database,
                                capture::OwnCubins given = {});

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_BUILD_OWNKERNELS_H
