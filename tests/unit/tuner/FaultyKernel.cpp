// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// tests/unit/device/HostKernel.cpp (y += a * x) with something wrong with it,
// as a miscompiled candidate would have: MGPU_FAULT says what.
#include "kernels/abi/HostKernelAbi.h"

#include <bit>
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) void
mgt_host_kernel_v1(const uint64_t *arguments,
                   const mgpu::kernels::HostLaunch *launch) {
  auto *y = reinterpret_cast<float *>(arguments[0]);
  auto *x = reinterpret_cast<const float *>(arguments[1]);
  float a = std::bit_cast<float>(uint32_t(arguments[2]));
  uint64_t n = arguments[3];
  for (uint64_t block = launch->firstBlock; block < launch->lastBlock; ++block)
    for (uint64_t i = 4 * block; i < 4 * block + 4 && i < n; ++i)
      y[i] += a * x[i];
#if MGPU_FAULT == 1 // crashes
  *reinterpret_cast<volatile int *>(uintptr_t(n)) = 1;
#elif MGPU_FAULT == 2 // never ends
  for (volatile unsigned spin = 0;;)
    spin = spin + 1;
#elif MGPU_FAULT == 3 // writes one element past its end
  y[n] = 1;
#elif MGPU_FAULT == 4 // is off by the last bit of one element
  if (n > 0)
    y[n - 1] = std::bit_cast<float>(std::bit_cast<uint32_t>(y[n - 1]) ^ 1);
#elif MGPU_FAULT == 5 // ends the process as if all were well
  std::_Exit(0);
#elif MGPU_FAULT == 6 // writes one element before its beginning
  y[-1] = 1;
#elif MGPU_FAULT == 7 // forgets a block: shows only where outputs are poisoned
  if (launch->firstBlock == 0 && n > 4)
    y[5] -= a * x[5];
#endif
}
