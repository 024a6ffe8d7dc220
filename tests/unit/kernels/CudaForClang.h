// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What emitted texts have of CUDA's headers, for clang without a toolkit.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __grid_constant__ __attribute__((grid_constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __cluster_dims__(...) __attribute__((cluster_dims(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#include <__clang_cuda_builtin_vars.h>

#define __trap() __builtin_trap()
#define __syncthreads() __nvvm_bar_sync(0)
#define __syncwarp(mask) __nvvm_bar_warp_sync(mask)

#define MGPU_BITS(name, to, from)                                              \
  static __device__ inline to name(from x) { return __builtin_bit_cast(to, x); }
MGPU_BITS(__int_as_float, float, int)
MGPU_BITS(__uint_as_float, float, unsigned)
MGPU_BITS(__float_as_int, int, float)
MGPU_BITS(__float_as_uint, unsigned, float)
MGPU_BITS(__longlong_as_double, double, long long)
MGPU_BITS(__double_as_longlong, long long, double)
#define fmaf __builtin_fmaf
#define fma __builtin_fma
#define fmaxf __nvvm_fmax_f
#define fminf __nvvm_fmin_f
#define fmax __nvvm_fmax_d
#define fmin __nvvm_fmin_d

static __device__ inline int __shfl_sync(unsigned mask, int x, int lane) {
  return __nvvm_shfl_sync_idx_i32(mask, x, lane, 31);
}
static __device__ inline float __shfl_sync(unsigned mask, float x, int lane) {
  return __nvvm_shfl_sync_idx_f32(mask, x, lane, 31);
}
static __device__ inline long long __shfl_sync(unsigned mask, long long x,
                                               int lane) {
  const int low = __shfl_sync(mask, (int)x, lane);
  const int high = __shfl_sync(mask, (int)(x >> 32), lane);
  return (long long)high << 32 | (unsigned)low;
}
static __device__ inline double __shfl_sync(unsigned mask, double x, int lane) {
  return __longlong_as_double(__shfl_sync(mask, __double_as_longlong(x), lane));
}
