// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_RAWDRIVER_H
#define MGPU_TESTS_UNIT_CUDA_RAWDRIVER_H

#include "device/cuda/api/CudaApi.h"

#include <vector>

namespace mgpu::fake {

/// The entry points under test, initialised. They are those of the driver that
/// is not there (FakeTwin.cpp) or, in tests/gpu, a real one's.
std::shared_ptr<const device::CudaApi> rawDriver();

/// A cubin for it whose entry "nothing" takes eight bytes and does nothing.
std::vector<std::byte> rawCubin();

/// Whether it is not for this test to say what the driver does: a rule that a
/// real one does not keep is a fault of the other's.
bool mayDisagree();

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_RAWDRIVER_H
