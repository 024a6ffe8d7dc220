// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Helpers for what threads do together.
#include "kernels/cuda/CudaHelpers.h"

namespace mgpu::kernels::cuda {

static const Helper threadTable[] = {
    {"lanes", "",
     R"(// The lanes of this subgroup that exist, in a block of `threads`.
__device__ __forceinline__ unsigned laneMask(int thread, int threads) {
  const int rest = threads - thread / 32 * 32;
  return rest >= 32 ? 0xffffffffu : (1u << rest) - 1;
}
)"},
    {"exchange", "",
     R"(// The value of lane `from`; values narrower than 32 bits travel as such.
__device__ __forceinline__ int exchange(unsigned mask, int value, int from) { return __shfl_sync(mask, value, from); }
__device__ __forceinline__ long long exchange(unsigned mask, long long value, int from) { return __shfl_sync(mask, value, from); }
__device__ __forceinline__ float exchange(unsigned mask, float value, int from) { return __shfl_sync(mask, value, from); }
__device__ __forceinline__ double exchange(unsigned mask, double value, int from) { return __shfl_sync(mask, value, from); }
__device__ __forceinline__ short exchange(unsigned mask, short value, int from) { return (short)__shfl_sync(mask, (int)value, from); }
__device__ __forceinline__ signed char exchange(unsigned mask, signed char value, int from) { return (signed char)__shfl_sync(mask, (int)value, from); }
__device__ __forceinline__ bool exchange(unsigned mask, bool value, int from) { return __shfl_sync(mask, (int)value, from); }
template <class T> __device__ __forceinline__ T exchange(unsigned mask, T value, int from) {
  T result;
  result.bits = __shfl_sync(mask, (int)value.bits, from);
  return result;
}
)"},
    {"blockReduce", "lanes exchange",
     R"(// The values of all threads combined, for every thread: neighbours, then pairs, up
// to a subgroup; then the subgroups in their order.
template <int Threads, class T, class Combine> __device__ __forceinline__ T blockReduce(T value, int thread, Combine combine) {
  static __shared__ T partial[32];
  const unsigned mask = laneMask(thread, Threads);
  const int lane = thread % 32;
  for (int step = 1; step < 32; step *= 2) {
    const bool exists = lane + step < 32 && thread + step < Threads;
    const T other = exchange(mask, value, exists ? lane + step : lane);
    if (exists)
      value = combine(value, other);
  }
  if (lane == 0)
    partial[thread / 32] = value;
  __syncthreads();
  value = partial[0];
  for (int k = 1; k < (Threads + 31) / 32; ++k)
    value = combine(value, partial[k]);
  __syncthreads();
  return value;
}
)"},
    {"blockReduceParts", "lanes exchange",
     R"(// The same where one thread is V of the source's, from number `thread` on.
template <int Threads, class T, int V, class Combine> __device__ __forceinline__ T blockReduceParts(T (&parts)[V], int thread, Combine combine) {
  static_assert((V & (V - 1)) == 0 && V <= 32 && Threads % V == 0, "V neighbours are of one subgroup");
  static __shared__ T partial[32];
#pragma unroll
  for (int step = 1; step < V; step *= 2)
#pragma unroll
    for (int k = 0; k + step < V; k += 2 * step)
      parts[k] = combine(parts[k], parts[k + step]);
  T value = parts[0];
  const unsigned mask = laneMask(thread / V, Threads / V);
  const int lane = thread / V % 32;
  for (int step = V; step < 32; step *= 2) {
    const bool exists = thread % 32 + step < 32 && thread + step < Threads;
    const T other = exchange(mask, value, exists ? lane + step / V : lane);
    if (exists)
      value = combine(value, other);
  }
  if (Threads / V == 32) { // one warp: its lanes have the subgroups' numbers
    T all = exchange(mask, value, 0);
    for (int k = 1; k < Threads / 32; ++k)
      all = combine(all, exchange(mask, value, k * (32 / V)));
    __syncwarp(mask);
    return all;
  }
  if (thread % 32 == 0)
    partial[thread / 32] = value;
  __syncthreads();
  value = partial[0];
  for (int k = 1; k < (Threads + 31) / 32; ++k)
    value = combine(value, partial[k]);
  __syncthreads();
  return value;
}
)"},
    {"subgroupReduce", "lanes exchange",
     R"(// The values of Size lanes, Stride apart, combined for each of them: neighbours, then pairs.
template <int Threads, int Size, int Stride, class T, class Combine> __device__ __forceinline__ T subgroupReduce(T value, int thread, Combine combine) {
  const unsigned mask = laneMask(thread, Threads);
  const int lane = thread % 32;
  for (int apart = Stride; apart < Size * Stride; apart *= 2) {
    const bool isUpper = lane & apart;
    const int from = lane ^ apart;
    const bool exists = Threads % 32 == 0 || thread - lane + from < Threads;
    const T other = exchange(mask, value, exists ? from : lane);
    if (exists)
      value = isUpper ? combine(other, value) : combine(value, other);
  }
  // Where lanes are missing the first one alone has all.
  return Threads % 32 == 0 ? value : exchange(mask, value, lane / (Size * Stride) * (Size * Stride) + lane % Stride);
}
)"},
    {"subgroupReduceParts", "exchange",
     R"(// The same of a whole subgroup, where one thread is V of the source's: those of a
// subgroup are 32 / V lanes, and others of the warp need not come.
template <class T, int V, class Combine> __device__ __forceinline__ T subgroupReduceParts(T (&parts)[V], int thread, Combine combine) {
  static_assert((V & (V - 1)) == 0 && V > 1 && V <= 32, "V neighbours are of one subgroup");
#pragma unroll
  for (int step = 1; step < V; step *= 2)
#pragma unroll
    for (int k = 0; k + step < V; k += 2 * step)
      parts[k] = combine(parts[k], parts[k + step]);
  T value = parts[0];
  const int lanes = 32 / V, lane = thread / V % 32;
  const unsigned mask = ((1u << lanes) - 1u) << lane / lanes * lanes;
  for (int apart = 1; apart < lanes; apart *= 2) {
    const T other = exchange(mask, value, lane ^ apart);
    value = lane & apart ? combine(other, value) : combine(value, other);
  }
  return value;
}
)"},
    {"atomicUpdate", "",
     R"(// *at = combine(*at) as one step; returns what was there.
__device__ __forceinline__ unsigned short exchangeIf(unsigned short *at, unsigned short old, unsigned short value) { return atomicCAS(at, old, value); }
__device__ __forceinline__ unsigned exchangeIf(unsigned *at, unsigned old, unsigned value) { return atomicCAS(at, old, value); }
__device__ __forceinline__ unsigned long long exchangeIf(unsigned long long *at, unsigned long long old, unsigned long long value) { return atomicCAS(at, old, value); }
__device__ __forceinline__ unsigned char exchangeIf(unsigned char *at, unsigned char old, unsigned char value) {
  // Within its aligned word, again while the others of it change.
  const int shift = (int)((unsigned long long)at & 3) * 8;
  unsigned *const word = (unsigned *)((unsigned long long)at & ~3ull);
  unsigned now = *(volatile unsigned *)word, seen;
  do {
    seen = now;
    if ((unsigned char)(seen >> shift) != old)
      return (unsigned char)(seen >> shift);
    now = atomicCAS(word, seen, (seen & ~(255u << shift)) | (unsigned)value << shift);
  } while (now != seen);
  return old;
}
template <int Bytes> struct wordOf;
template <> struct wordOf<1> { using type = unsigned char; };
template <> struct wordOf<2> { using type = unsigned short; };
template <> struct wordOf<4> { using type = unsigned; };
template <> struct wordOf<8> { using type = unsigned long long; };
template <class T, class Combine> __device__ __forceinline__ T atomicUpdate(T *at, Combine combine) {
  using word = typename wordOf<sizeof(T)>::type;
  word now = *(volatile word *)at, seen;
  do {
    seen = now;
    T value, next;
    memcpy(&value, &seen, sizeof(T));
    next = combine(value);
    word changed;
    memcpy(&changed, &next, sizeof(T));
    now = exchangeIf((word *)at, seen, changed);
  } while (now != seen);
  T old;
  memcpy(&old, &seen, sizeof(T));
  return old;
}
)"},
};

llvm::ArrayRef<Helper> threadHelpers() { return threadTable; }

} // namespace mgpu::kernels::cuda
