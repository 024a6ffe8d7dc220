// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// arguments: float *y, const float *x, float a, int64_t n.
// y[i] += a * x[i], four elements per block; one thread per element.
#include "kernels/abi/HostKernelAbi.h"

#include <bit>

extern "C" __attribute__((visibility("default"))) void
mgt_host_kernel_v1(const uint64_t *arguments,
                   const mgpu::kernels::HostLaunch *launch) {
  auto *y = reinterpret_cast<float *>(arguments[0]);
  auto *x = reinterpret_cast<const float *>(arguments[1]);
  float a = std::bit_cast<float>(uint32_t(arguments[2]));
  for (uint64_t block = launch->firstBlock; block < launch->lastBlock; ++block)
    for (uint64_t i = 4 * block; i < 4 * block + 4 && i < arguments[3]; ++i)
      y[i] += a * x[i];
}
