// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKELIBRARIES_H
#define MGPU_TESTS_UNIT_CUDA_FAKELIBRARIES_H

// Shared libraries with the names of CUDA's, so that whole commands run over
// the doubles: a program that is linked to them has them where it opens
// libcuda.so.1 and libcupti.so.13. They know no double; who uses them gives
// them theirs.

#include "device/cuda/api/CudaApi.h"
#include "device/cuda/cupti/CuptiApi.h"

extern "C" {
/// The function of that name, or null.
extern void *(*mgpuFakeCudaEntry)(const char *name);
extern const mgpu::device::CuptiApi *mgpuFakeCupti;
}

#endif // MGPU_TESTS_UNIT_CUDA_FAKELIBRARIES_H
