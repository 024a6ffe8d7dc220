// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stands in for the rest of the folder in a build without CUDA's headers.
#include "device/cuda/CudaDriver.h"
#include "device/cuda/GpuContext.h"

namespace mgpu::device {

static tl::unexpected<Error> notBuilt() {
  return fail(ErrorKind::Absent,
              "this build has no CUDA target, because cuda.h was not found "
              "when it was configured: install the CUDA toolkit (12.9 or "
              "later) and configure again with -DMGPU_CUDA=ON");
}

Result<std::unique_ptr<Driver>> createCudaDriver(const CudaOptions &) {
  return notBuilt();
}

Result<CudaMachine> inspectCuda() { return notBuilt(); }

Result<std::shared_ptr<GpuContext>> GpuContext::open(int) { return notBuilt(); }

Result<void> awaitStream(void *, std::chrono::milliseconds) {
  return notBuilt();
}

bool hasOpenedCuda() { return false; }

std::string cudaHeaderVersion() { return ""; }

} // namespace mgpu::device
