// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_REHEARSAL_KERNELPTX_H
#define MGPU_TESTS_REHEARSAL_KERNELPTX_H

// The kernels of a cubin, executed by the PTX that NVRTC made it of
// (kernels/ptx), with all checks, in all memory of the double.

#include "support/Result.h"
#include "tests/unit/cuda/FakeCuda.h"

#include <string>
#include <vector>

namespace mgpu::rehearsal {

/// What a check finds is a line on stderr, a violation, and CUDA's error.
Result<std::map<std::string, fake::FakeKernel>>
kernelsOfPtx(std::string ptx, const std::vector<std::string> &entries);

} // namespace mgpu::rehearsal

#endif // MGPU_TESTS_REHEARSAL_KERNELPTX_H
