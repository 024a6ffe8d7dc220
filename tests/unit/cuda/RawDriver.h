// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_RAWDRIVER_H
#define MGPU_TESTS_UNIT_CUDA_RAWDRIVER_H

#include "device/cuda/CudaApi.h"

#include <vector>

namespace mgpu::fake {

/// The entry points under test, initialised: of the driver that is not there
/// (FakeTwin.cpp) or, in tests/gpu, of a real one.
std::shared_ptr<const device::CudaApi> rawDriver();

/// A cubin for it whose entry "nothing" takes eight bytes and does nothing.
std::vector<std::byte> rawCubin();

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_RAWDRIVER_H
