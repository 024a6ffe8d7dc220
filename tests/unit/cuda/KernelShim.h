// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA's built-ins for kernels whose threads never meet, for tests alone: the
// CUDA target's own kernels include this first and are compiled as C++.
#ifndef MGPU_TESTS_UNIT_CUDA_KERNELSHIM_H
#define MGPU_TESTS_UNIT_CUDA_KERNELSHIM_H

#include "FakeCuda.h"

#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

struct ShimIndex {
  unsigned x, y, z;
};
static ShimIndex threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

template <class To, class From>
static inline To shimBits(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __int_as_float(int x) { return shimBits<float>(x); }
static inline int __float_as_int(float x) { return shimBits<int>(x); }
static inline long long __double_as_longlong(double x) {
  return shimBits<long long>(x);
}

/// griddepcontrol.wait, which may run another of these kernels.
#define MGPU_AWAIT_GRIDS 1
static inline void mgpuAwaitGrids() {
  const ShimIndex mine[] = {threadIdx, blockIdx, blockDim, gridDim};
  mgpu::fake::FakeCuda::instance().awaitGrids();
  threadIdx = mine[0], blockIdx = mine[1], blockDim = mine[2],
  gridDim = mine[3];
}

/// Runs every thread of a launch, one after the other.
template <class Body>
static void shimLaunch(const unsigned grid[3], const unsigned block[3],
                       Body body) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  for (unsigned by = 0; by < grid[1]; ++by)
    for (unsigned bx = 0; bx < grid[0]; ++bx)
      for (unsigned t = 0; t < block[0]; ++t) {
        blockIdx = {bx, by, 0};
        threadIdx = {t, 0, 0};
        body();
      }
}

#endif // MGPU_TESTS_UNIT_CUDA_KERNELSHIM_H
