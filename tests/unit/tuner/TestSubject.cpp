// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/unit/tuner/TestSubject.h"

#ifndef MGPU_FAULTY_KERNELS
#error "where the kernels were built"
#endif

namespace mgpu::tuner {

std::string kernelFile(uint32_t fault) {
  return fault ? MGPU_FAULTY_KERNELS + std::to_string(fault) + ".so"
               : std::string(MGPU_TEST_KERNEL);
}

} // namespace mgpu::tuner
