// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_GPU_GPUTARGET_H
#define MGPU_TESTS_GPU_GPUTARGET_H

#include "device/api/GraphDriver.h"
#include "kernels/compile/NvrtcCompiler.h"

namespace mgpu::gpu {

/// GPU 0 as `numDevices` devices.
Result<std::unique_ptr<device::Driver>> openGpu(uint32_t numDevices);
Result<std::vector<std::byte>> compile(const std::string &source,
                                       const std::string &name,
                                       const std::string &arch);

} // namespace mgpu::gpu

#endif // MGPU_TESTS_GPU_GPUTARGET_H
