// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_REHEARSAL_KERNELTEXTS_H
#define MGPU_TESTS_REHEARSAL_KERNELTEXTS_H

// The kernels of a cubin, run on the processor: the text that NVRTC made it of
// was kept by its SHA-256 when it was made (Nvrtc.cpp), and is compiled with
// tests/unit/kernels/CudaShim.h.

#include "tests/unit/cuda/FakeCuda.h"

#include <span>
#include <string>

namespace mgpu::rehearsal {

/// Where texts and what they became are kept: MGPU_REHEARSAL in the
/// environment. Ends the process where it is not set.
std::string folder();
/// The name that what belongs to a cubin has in that folder.
std::string nameOf(std::span<const std::byte> cubin, const char *suffix);

/// For FakeCuda::kernelsOf. Empty, after a line on stderr, for a cubin whose
/// text was not kept or does not compile. A kernel that faults gives CUDA's
/// error, and one that does not end leaves the driver busy for ever.
std::map<std::string, fake::FakeKernel> kernelsOf(const void *code);

} // namespace mgpu::rehearsal

#endif // MGPU_TESTS_REHEARSAL_KERNELTEXTS_H
