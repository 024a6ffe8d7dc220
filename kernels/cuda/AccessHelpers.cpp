// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and stores of several elements, and tiles of shared memory.
#include "kernels/cuda/CudaHelpers.h"

namespace mgpu::kernels::cuda {

static const Helper accessTable[] = {
    {"vec", "", R"(template <class T, int N> struct vec {
  T lane[N];
  __device__ __forceinline__ T &operator[](int k) { return lane[k]; }
  __device__ __forceinline__ const T &operator[](int k) const { return lane[k]; }
};
)"},
    {"loadAligned", "vec",
     R"(// One access of Bytes bytes, which the address must be a multiple of.
template <int Bytes, class T, int N> __device__ __forceinline__ vec<T, N> loadAligned(const T *from) {
  struct __align__(Bytes) wide { vec<T, N> value; };
  return ((const wide *)from)->value;
}
template <int Bytes, class T, int N> __device__ __forceinline__ void storeAligned(T *to, const vec<T, N> &value) {
  struct __align__(Bytes) wide { vec<T, N> value; };
  ((wide *)to)->value = value;
}
)"},
    {"partOf", "",
     R"(// The ids of the thread that follows after `part`, in the same block.
__device__ __forceinline__ MgpuThread partOf(MgpuThread at, int part) {
  at.threadX += part;
  return at;
}
)"},
    {"pieces", "",
     R"(// Elements of a piece in which N neighbours are accessed. Their place is a multiple
// of Divisor or of the power of two in N; that of their buffer, of MGPU_ALIGN bytes.
template <int Divisor, int N, int Bytes> struct pieces {
  static constexpr int ofPlace = (N & -N) < Divisor ? N & -N : Divisor;
  static constexpr int ofBuffer = MGPU_ALIGN > Bytes ? MGPU_ALIGN / Bytes : 1;
  static constexpr int size = ofPlace < ofBuffer ? ofPlace : ofBuffer;
};
)"},
    {"loadParts", "pieces",
     R"(template <int Divisor, class T, int N> __device__ __forceinline__ void loadParts(T (&to)[N], const T *from) {
  constexpr int M = pieces<Divisor, N, sizeof(T)>::size;
  struct __align__(sizeof(T) * M) wide { T parts[M]; };
#pragma unroll
  for (int first = 0; first < N; first += M) {
    const wide all = *(const wide *)(from + first);
#pragma unroll
    for (int k = 0; k < M; ++k)
      to[first + k] = all.parts[k];
  }
}
)"},
    {"storeParts", "pieces",
     R"(template <int Divisor, class T, int N> __device__ __forceinline__ void storeParts(T *to, const T (&from)[N]) {
  constexpr int M = pieces<Divisor, N, sizeof(T)>::size;
  struct __align__(sizeof(T) * M) wide { T parts[M]; };
#pragma unroll
  for (int first = 0; first < N; first += M) {
    wide all;
#pragma unroll
    for (int k = 0; k < M; ++k)
      all.parts[k] = from[first + k];
    *(wide *)(to + first) = all;
  }
}
)"},
    {"streamParts", "loadParts",
     R"(// loadParts() of what nobody reads again: the first cache keeps other things. What
// the kernel before may still write is no constant (.nc).
#if MGPU_PDL
#define MGPU_STREAM "ld.global.L1::no_allocate"
#else
#define MGPU_STREAM "ld.global.nc.L1::no_allocate"
#endif
template <int Divisor, class T, int N> __device__ __forceinline__ void streamParts(T (&to)[N], const T *from) {
#ifdef __CUDA_ARCH__
  struct __align__(sizeof(T) * N) wide { T parts[N]; };
  constexpr bool isOne = pieces<Divisor, N, sizeof(T)>::size == N;
  if (isOne && sizeof(wide) == 16) {
    unsigned words[4];
    asm volatile(MGPU_STREAM ".v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "l"(from));
    memcpy(to, words, sizeof words);
    return;
  }
  if (isOne && sizeof(wide) == 8) {
    unsigned words[2];
    asm volatile(MGPU_STREAM ".v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "l"(from));
    memcpy(to, words, sizeof words);
    return;
  }
#endif
  loadParts<Divisor>(to, from);
}
)"},
    {"stageTile", "",
     R"(// The block's threads copy a tile of width x height x depth elements, of which
// those that a buffer of `size` elements has not are left out.
template <int Threads, class T> __device__ __forceinline__ void stageTile(T *tile, const T *from, long long first, long long size, int width, int height, int depth, long long strideY, long long strideZ, int thread) {
  for (int k = thread; k < width * height * depth; k += Threads) {
    const long long at = first + k % width + k / width % height * strideY + k / (width * height) * strideZ;
    if (at >= 0 && at < size)
      tile[k] = from[at];
  }
}
)"},
    {"stageColumns", "stageTile",
     R"(// The same of a tile whose rows are width + 1 elements apart: a column lies in many banks.
template <int Threads, class T> __device__ __forceinline__ void stageColumns(T *tile, const T *from, long long first, long long size, int width, int height, int depth, long long strideY, long long strideZ, int thread) {
  const int count = width * height * depth;
#pragma unroll 4
  for (int begin = 0; begin < count; begin += Threads) {
    const int k = begin + thread;
    const long long at = first + k % width + k / width % height * strideY + k / (width * height) * strideZ;
    if (k < count && at >= 0 && at < size)
      tile[k / width * (width + 1) + k % width] = from[at];
  }
}
)"},
};

llvm::ArrayRef<Helper> accessHelpers() { return accessTable; }

} // namespace mgpu::kernels::cuda
