// row_sum_kernel0: the launch at rows.mlir:20:3.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has 256 x 1 x 1 threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
//   MGPU_BLOCK_X, _Y, _Z  threads of a block; MGPU_BLOCK_X * MGPU_VECTOR is fixed: the kernel
//                         keeps its block: uses gpu.all_reduce (line 20).
//                         MGPU_BLOCK_Y blocks of the source, along x, lie beside each
//                         other where MGPU_BLOCK_X is 32
//   MGPU_ITEMS            blocks of the source, along x, that one block is
//   MGPU_VECTOR           neighbours along x that one thread is, computed together
//                         and loaded and stored at once where their place is known
//                         to allow it; a divisor of 256
//   MGPU_ALIGN            bytes that the addresses of all buffers are multiples of: no
//                         access is wider
//   MGPU_UNROLL           how often the innermost loops are unrolled; 0: as the
//                         compiler likes
//   MGPU_MIN_BLOCKS       blocks that must fit one multiprocessor (__launch_bounds__)
//   MGPU_CLUSTER_X        blocks of a cluster, along x, of which a launch has whole
//                         ones alone; more than 1 from sm_90 on
//   MGPU_FAST_MATH        1: the fast forms of exp, log, sin, division, ...
//   MGPU_PDL              1: may be launched to begin before the kernel it follows has
//                         ended, for which it waits; from sm_90 on
// Launch with the grid, in blocks of the source, in `launch`, and with
//   ceil(gridX / MGPU_ITEMS) blocks along x. A part of the grid is a launch of
// fewer blocks from block first on, or of the source's blocks base to end.
#ifndef MGPU_BLOCK_X
#define MGPU_BLOCK_X 256
#endif
#ifndef MGPU_BLOCK_Y
#define MGPU_BLOCK_Y 1
#endif
#ifndef MGPU_BLOCK_Z
#define MGPU_BLOCK_Z 1
#endif
#ifndef MGPU_ITEMS
#define MGPU_ITEMS 1
#endif
#ifndef MGPU_VECTOR
#define MGPU_VECTOR 1
#endif
#ifndef MGPU_ALIGN
#define MGPU_ALIGN 16
#endif
#ifndef MGPU_UNROLL
#define MGPU_UNROLL 0
#endif
#ifndef MGPU_MIN_BLOCKS
#define MGPU_MIN_BLOCKS 1
#endif
#ifndef MGPU_CLUSTER_X
#define MGPU_CLUSTER_X 1
#endif
#ifndef MGPU_FAST_MATH
#define MGPU_FAST_MATH 0
#endif
#ifndef MGPU_PDL
#define MGPU_PDL 0
#endif
#if MGPU_PDL
#define MGPU_UNWRITTEN // the kernel before may still write it
#else
#define MGPU_UNWRITTEN __restrict__
#endif
#if MGPU_BLOCK_X * MGPU_VECTOR != 256 || (MGPU_BLOCK_X != 32 && MGPU_BLOCK_Y != 1) || MGPU_BLOCK_Z != 1
#error "row_sum_kernel0 keeps its block: uses gpu.all_reduce (line 20)"
#endif
#if MGPU_BLOCK_Y > 1 // a block of the source is a warp
#define MGPU_MEET() __syncwarp(0xffffffffu)
#else
#define MGPU_MEET() __syncthreads()
#endif
#if MGPU_VECTOR < 1 || 256 % MGPU_VECTOR != 0
#error "MGPU_VECTOR must divide 256"
#endif
#define MGPU_PARTS _Pragma("unroll") for (int part = 0; part < MGPU_VECTOR; ++part)
enum { mgpuUnroll = MGPU_UNROLL };

struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};
struct MgpuThread { // ids and sizes as the source sees them
  int blockX, blockY, blockZ, threadX, threadY, threadZ, gridX, gridY, gridZ;
};

#if MGPU_VECTOR > 1
// Elements of a piece in which N neighbours are accessed. Their place is a multiple
// of Divisor or of the power of two in N; that of their buffer, of MGPU_ALIGN bytes.
template <int Divisor, int N, int Bytes> struct pieces {
  static constexpr int ofPlace = (N & -N) < Divisor ? N & -N : Divisor;
  static constexpr int ofBuffer = MGPU_ALIGN > Bytes ? MGPU_ALIGN / Bytes : 1;
  static constexpr int size = ofPlace < ofBuffer ? ofPlace : ofBuffer;
};

template <int Divisor, class T, int N> __device__ __forceinline__ void loadParts(T (&to)[N], const T *from) {
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

#endif
// The lanes of this subgroup that exist, in a block of `threads`.
__device__ __forceinline__ unsigned laneMask(int thread, int threads) {
  const int rest = threads - thread / 32 * 32;
  return rest >= 32 ? 0xffffffffu : (1u << rest) - 1;
}

// The value of lane `from`; values narrower than 32 bits travel as such.
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

// The values of all threads combined, for every thread: neighbours, then pairs, up
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

#if MGPU_VECTOR > 1
// The same where one thread is V of the source's, from number `thread` on.
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
#endif

#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
// How the entry is to be launched, for whoever loads it.
extern "C" __constant__ const unsigned mgpu_form_row_sum_kernel0[] = {
    1, MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    256 * MGPU_ITEMS * MGPU_BLOCK_Y, 1, 1,
    MGPU_CLUSTER_X, 1, 1, 0, MGPU_PDL};
extern "C" __global__ void
#if MGPU_CLUSTER_X > 1
__cluster_dims__(MGPU_CLUSTER_X, 1, 1)
#endif
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, MGPU_MIN_BLOCKS)
row_sum_kernel0(float *ds, const float *MGPU_UNWRITTEN dx, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
  MgpuThread at;
  at.threadX = (int)threadIdx.x * MGPU_VECTOR;
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
    const unsigned sourceX = launch.baseX + ((blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * MGPU_BLOCK_Y + threadIdx.y;
    if (sourceX >= launch.endX) // for all threads of it alike
      break;
    at.blockX = (int)sourceX;
    if (item > 0)
      MGPU_MEET(); // shared memory is used again
#if MGPU_VECTOR == 1
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    const int row = at.blockX;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    const int first = at.threadX;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    const float v = ds[row];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    float v_1;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    v_1 = -0.0f;
#if MGPU_UNROLL
#pragma unroll mgpuUnroll
#endif
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    for (int i = 0; i < 3; ++i) {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      const int v_2 = i * 256;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      const int k = v_2 + first;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      const float v_3 = dx[row * 1000 + k];
#line 22 "tests/lit/kernels/Inputs/rows.mlir"
      const float next = v_1 + v_3;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      v_1 = next;
    }
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    const bool hasRest = first < 232;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    float v_4;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    if (hasRest) {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      const int k_1 = first + 768;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      const float v_5 = dx[row * 1000 + k_1];
#line 22 "tests/lit/kernels/Inputs/rows.mlir"
      const float next_1 = v_1 + v_5;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      v_4 = next_1;
    } else {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      v_4 = v_1;
    }
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    const float v_6 = blockReduce<256>((float)v_4, at.threadX, [](float a, float b) -> float { return a + b; });
#line 22 "tests/lit/kernels/Inputs/rows.mlir"
    const float next_2 = v + v_6;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    const bool v_7 = first == 0;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    if (v_7) {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      ds[row] = next_2;
    }
#else
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    const int row = at.blockX;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    int first[MGPU_VECTOR]; MGPU_PARTS first[part] = at.threadX + part;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    const float v = ds[row];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    float v_1[MGPU_VECTOR];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    MGPU_PARTS v_1[part] = -0.0f;
#if MGPU_UNROLL
#pragma unroll mgpuUnroll
#endif
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    for (int i = 0; i < 3; ++i) {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      const int v_2 = i * 256;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      int k[MGPU_VECTOR]; MGPU_PARTS k[part] = v_2 + first[part];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      float v_3[MGPU_VECTOR]; loadParts<8>(v_3, &dx[row * 1000 + k[0]]);
#line 22 "tests/lit/kernels/Inputs/rows.mlir"
      float next[MGPU_VECTOR]; MGPU_PARTS next[part] = v_1[part] + v_3[part];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      MGPU_PARTS v_1[part] = next[part];
    }
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    bool hasRest[MGPU_VECTOR]; MGPU_PARTS hasRest[part] = first[part] < 232;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    float v_4[MGPU_VECTOR];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    bool all = true; MGPU_PARTS all = all && hasRest[part];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    if (all) {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      int k_1[MGPU_VECTOR]; MGPU_PARTS k_1[part] = first[part] + 768;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      float v_5[MGPU_VECTOR]; loadParts<8>(v_5, &dx[row * 1000 + k_1[0]]);
#line 22 "tests/lit/kernels/Inputs/rows.mlir"
      float next_1[MGPU_VECTOR]; MGPU_PARTS next_1[part] = v_1[part] + v_5[part];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      MGPU_PARTS v_4[part] = next_1[part];
    } else
    MGPU_PARTS {
      if (hasRest[part]) {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
        const int k_2 = first[part] + 768;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
        const float v_6 = dx[row * 1000 + k_2];
#line 22 "tests/lit/kernels/Inputs/rows.mlir"
        const float next_2 = v_1[part] + v_6;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
        v_4[part] = next_2;
      } else {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
        v_4[part] = v_1[part];
      }
    }
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    float parts[MGPU_VECTOR]; MGPU_PARTS parts[part] = (float)v_4[part];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    const float v_7 = blockReduceParts<256>(parts, at.threadX, [](float a, float b) -> float { return a + b; });
#line 22 "tests/lit/kernels/Inputs/rows.mlir"
    const float next_3 = v + v_7;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    bool v_8[MGPU_VECTOR]; MGPU_PARTS v_8[part] = first[part] == 0;
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    bool all_1 = true; MGPU_PARTS all_1 = all_1 && v_8[part];
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
    if (all_1) {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
      MGPU_PARTS ds[row] = next_3;
    } else
    MGPU_PARTS {
      if (v_8[part]) {
#line 20 "tests/lit/kernels/Inputs/rows.mlir"
        ds[row] = next_3;
      }
    }
#endif
#line 356 "row_sum_kernel0.cu"
  }
}
