// fill_generic_fill_generic_and_1_kernel0: the launch at rows.mlir:40:3 + rows.mlir:41:3 + rows.mlir:47:3 + rows.mlir:48:3 + rows.mlir:57:3.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has 32 x 8 x 1 threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
//   MGPU_BLOCK_X, _Y, _Z  threads of a block; MGPU_BLOCK_X * MGPU_VECTOR is fixed: the kernel
//                         keeps its block: uses gpu.subgroup_reduce (line 41)
//   MGPU_ITEMS            blocks of the source, along x, that one block is
//   MGPU_VECTOR           neighbours along x that one thread is, computed together
//                         and loaded and stored at once where their place is known
//                         to allow it; a divisor of 32
//   MGPU_ALIGN            bytes that the addresses of all buffers are multiples of: no
//                         access is wider
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
#define MGPU_BLOCK_X 32
#endif
#ifndef MGPU_BLOCK_Y
#define MGPU_BLOCK_Y 8
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
#if MGPU_BLOCK_X * MGPU_VECTOR != 32 || MGPU_BLOCK_Y != 8 || MGPU_BLOCK_Z != 1
#error "fill_generic_fill_generic_and_1_kernel0 keeps its block: uses gpu.subgroup_reduce (line 41)"
#endif
#define MGPU_MEET() __syncthreads()
#if MGPU_VECTOR < 1 || 32 % MGPU_VECTOR != 0
#error "MGPU_VECTOR must divide 32"
#endif
#define MGPU_PARTS _Pragma("unroll") for (int part = 0; part < MGPU_VECTOR; ++part)

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

template <int Divisor, class T, int N> __device__ __forceinline__ void storeParts(T *to, const T (&from)[N]) {
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

#endif
__device__ __forceinline__ float mathDivide(float x, float y) {
#if MGPU_FAST_MATH
  return __fdividef(x, y);
#else
  return x / y;
#endif
}

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

// The values of Size lanes, Stride apart, combined for each of them: neighbours, then pairs.
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

#if MGPU_VECTOR > 1
// The same of a whole subgroup, where one thread is V of the source's: those of a
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
#endif

#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
// How the entry is to be launched, for whoever loads it.
extern "C" __constant__ const unsigned mgpu_form_fill_generic_fill_generic_and_1_kernel0[] = {
    1, MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    32 * MGPU_ITEMS, 8, 1,
    MGPU_CLUSTER_X, 1, 1, 0, MGPU_PDL};
extern "C" __global__ void
#if MGPU_CLUSTER_X > 1
__cluster_dims__(MGPU_CLUSTER_X, 1, 1)
#endif
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, MGPU_MIN_BLOCKS)
fill_generic_fill_generic_and_1_kernel0(float *dt, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
  MgpuThread at;
  at.threadX = (int)threadIdx.x * MGPU_VECTOR;
  at.threadY = (int)threadIdx.y;
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
    const unsigned sourceX = launch.baseX + (blockIdx.x + launch.firstX) * MGPU_ITEMS + item;
    if (sourceX >= launch.endX) // for all threads of it alike
      break;
    at.blockX = (int)sourceX;
#if MGPU_VECTOR == 1
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    const int row = at.blockX;
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    const int rowInBlock = at.threadY;
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    const int v = row * 8;
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    const int row_1 = v + rowInBlock;
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    const int first = at.threadX;
    const float v_1 = dt[row_1 * 48 + first];
#line 44 "tests/lit/kernels/Inputs/rows.mlir"
    const float next = -0.0f + v_1;
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    const bool hasRest = first < 16;
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    float v_2;
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    if (hasRest) {
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
      const int k = first + 32;
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
      const float v_3 = dt[row_1 * 48 + k];
#line 44 "tests/lit/kernels/Inputs/rows.mlir"
      const float next_1 = next + v_3;
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
      v_2 = next_1;
    } else {
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
      v_2 = next;
    }
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    const float v_4 = subgroupReduce<256, 32, 1>((float)v_2, (at.threadX + 32 * at.threadY), [](float a, float b) -> float { return a + b; });
#line 44 "tests/lit/kernels/Inputs/rows.mlir"
    const float next_2 = 0.0f + v_4;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    const float v_5 = dt[row_1 * 48 + first];
#line 51 "tests/lit/kernels/Inputs/rows.mlir"
    const float average = mathDivide(next_2, 48.0f);
    const float below = v_5 - average;
    const float power = below * below;
    const float next_3 = -0.0f + power;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    const bool hasRest_1 = first < 16;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    float v_6;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    if (hasRest_1) {
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
      const int k_1 = first + 32;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
      const float v_7 = dt[row_1 * 48 + k_1];
#line 51 "tests/lit/kernels/Inputs/rows.mlir"
      const float average_1 = mathDivide(next_2, 48.0f);
      const float below_1 = v_7 - average_1;
      const float power_1 = below_1 * below_1;
      const float next_4 = next_3 + power_1;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
      v_6 = next_4;
    } else {
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
      v_6 = next_3;
    }
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    const float v_8 = subgroupReduce<256, 32, 1>((float)v_6, (at.threadX + 32 * at.threadY), [](float a, float b) -> float { return a + b; });
#line 54 "tests/lit/kernels/Inputs/rows.mlir"
    const float next_5 = 0.0f + v_8;
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
    const float v_9 = dt[row_1 * 48 + first];
#line 60 "tests/lit/kernels/Inputs/rows.mlir"
    const float average_2 = mathDivide(next_2, 48.0f);
    const float variance = mathDivide(next_5, 48.0f);
    const float deviation = sqrtf(variance);
    const float below_2 = v_9 - average_2;
    const float normal = mathDivide(below_2, deviation);
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
    dt[row_1 * 48 + first] = normal;
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
    const bool hasRest_2 = first < 16;
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
    if (hasRest_2) {
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
      const int k_2 = first + 32;
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
      const float v_10 = dt[row_1 * 48 + k_2];
#line 60 "tests/lit/kernels/Inputs/rows.mlir"
      const float average_3 = mathDivide(next_2, 48.0f);
      const float variance_1 = mathDivide(next_5, 48.0f);
      const float deviation_1 = sqrtf(variance_1);
      const float below_3 = v_10 - average_3;
      const float normal_1 = mathDivide(below_3, deviation_1);
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
      dt[row_1 * 48 + k_2] = normal_1;
    }
#else
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    const int row = at.blockX;
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    const int rowInBlock = at.threadY;
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    const int v = row * 8;
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    const int row_1 = v + rowInBlock;
#line 40 "tests/lit/kernels/Inputs/rows.mlir"
    int first[MGPU_VECTOR]; MGPU_PARTS first[part] = at.threadX + part;
    float v_1[MGPU_VECTOR]; loadParts<16>(v_1, &dt[row_1 * 48 + first[0]]);
#line 44 "tests/lit/kernels/Inputs/rows.mlir"
    float next[MGPU_VECTOR]; MGPU_PARTS next[part] = -0.0f + v_1[part];
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    bool hasRest[MGPU_VECTOR]; MGPU_PARTS hasRest[part] = first[part] < 16;
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    float v_2[MGPU_VECTOR];
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    bool all = true; MGPU_PARTS all = all && hasRest[part];
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    if (all) {
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
      int k[MGPU_VECTOR]; MGPU_PARTS k[part] = first[part] + 32;
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
      float v_3[MGPU_VECTOR]; loadParts<16>(v_3, &dt[row_1 * 48 + k[0]]);
#line 44 "tests/lit/kernels/Inputs/rows.mlir"
      float next_1[MGPU_VECTOR]; MGPU_PARTS next_1[part] = next[part] + v_3[part];
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
      MGPU_PARTS v_2[part] = next_1[part];
    } else
    MGPU_PARTS {
      if (hasRest[part]) {
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
        const int k_1 = first[part] + 32;
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
        const float v_4 = dt[row_1 * 48 + k_1];
#line 44 "tests/lit/kernels/Inputs/rows.mlir"
        const float next_2 = next[part] + v_4;
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
        v_2[part] = next_2;
      } else {
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
        v_2[part] = next[part];
      }
    }
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    float parts[MGPU_VECTOR]; MGPU_PARTS parts[part] = (float)v_2[part];
#line 41 "tests/lit/kernels/Inputs/rows.mlir"
    const float v_5 = subgroupReduceParts(parts, (at.threadX + 32 * at.threadY), [](float a, float b) -> float { return a + b; });
#line 44 "tests/lit/kernels/Inputs/rows.mlir"
    const float next_3 = 0.0f + v_5;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    float v_6[MGPU_VECTOR]; loadParts<16>(v_6, &dt[row_1 * 48 + first[0]]);
#line 51 "tests/lit/kernels/Inputs/rows.mlir"
    const float average = mathDivide(next_3, 48.0f);
    float below[MGPU_VECTOR]; MGPU_PARTS below[part] = v_6[part] - average;
    float power[MGPU_VECTOR]; MGPU_PARTS power[part] = below[part] * below[part];
    float next_4[MGPU_VECTOR]; MGPU_PARTS next_4[part] = -0.0f + power[part];
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    bool hasRest_1[MGPU_VECTOR]; MGPU_PARTS hasRest_1[part] = first[part] < 16;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    float v_7[MGPU_VECTOR];
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    bool all_1 = true; MGPU_PARTS all_1 = all_1 && hasRest_1[part];
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    if (all_1) {
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
      int k_2[MGPU_VECTOR]; MGPU_PARTS k_2[part] = first[part] + 32;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
      float v_8[MGPU_VECTOR]; loadParts<16>(v_8, &dt[row_1 * 48 + k_2[0]]);
#line 51 "tests/lit/kernels/Inputs/rows.mlir"
      const float average_1 = mathDivide(next_3, 48.0f);
      float below_1[MGPU_VECTOR]; MGPU_PARTS below_1[part] = v_8[part] - average_1;
      float power_1[MGPU_VECTOR]; MGPU_PARTS power_1[part] = below_1[part] * below_1[part];
      float next_5[MGPU_VECTOR]; MGPU_PARTS next_5[part] = next_4[part] + power_1[part];
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
      MGPU_PARTS v_7[part] = next_5[part];
    } else
    MGPU_PARTS {
      if (hasRest_1[part]) {
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
        const int k_3 = first[part] + 32;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
        const float v_9 = dt[row_1 * 48 + k_3];
#line 51 "tests/lit/kernels/Inputs/rows.mlir"
        const float average_2 = mathDivide(next_3, 48.0f);
        const float below_2 = v_9 - average_2;
        const float power_2 = below_2 * below_2;
        const float next_6 = next_4[part] + power_2;
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
        v_7[part] = next_6;
      } else {
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
        v_7[part] = next_4[part];
      }
    }
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    float parts_1[MGPU_VECTOR]; MGPU_PARTS parts_1[part] = (float)v_7[part];
#line 48 "tests/lit/kernels/Inputs/rows.mlir"
    const float v_10 = subgroupReduceParts(parts_1, (at.threadX + 32 * at.threadY), [](float a, float b) -> float { return a + b; });
#line 54 "tests/lit/kernels/Inputs/rows.mlir"
    const float next_7 = 0.0f + v_10;
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
    float v_11[MGPU_VECTOR]; loadParts<16>(v_11, &dt[row_1 * 48 + first[0]]);
#line 60 "tests/lit/kernels/Inputs/rows.mlir"
    const float average_3 = mathDivide(next_3, 48.0f);
    const float variance = mathDivide(next_7, 48.0f);
    const float deviation = sqrtf(variance);
    float below_3[MGPU_VECTOR]; MGPU_PARTS below_3[part] = v_11[part] - average_3;
    float normal[MGPU_VECTOR]; MGPU_PARTS normal[part] = mathDivide(below_3[part], deviation);
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
    storeParts<16>(&dt[row_1 * 48 + first[0]], normal);
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
    bool hasRest_2[MGPU_VECTOR]; MGPU_PARTS hasRest_2[part] = first[part] < 16;
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
    bool all_2 = true; MGPU_PARTS all_2 = all_2 && hasRest_2[part];
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
    if (all_2) {
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
      int k_4[MGPU_VECTOR]; MGPU_PARTS k_4[part] = first[part] + 32;
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
      float v_12[MGPU_VECTOR]; loadParts<16>(v_12, &dt[row_1 * 48 + k_4[0]]);
#line 60 "tests/lit/kernels/Inputs/rows.mlir"
      const float average_4 = mathDivide(next_3, 48.0f);
      const float variance_1 = mathDivide(next_7, 48.0f);
      const float deviation_1 = sqrtf(variance_1);
      float below_4[MGPU_VECTOR]; MGPU_PARTS below_4[part] = v_12[part] - average_4;
      float normal_1[MGPU_VECTOR]; MGPU_PARTS normal_1[part] = mathDivide(below_4[part], deviation_1);
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
      storeParts<16>(&dt[row_1 * 48 + k_4[0]], normal_1);
    } else
    MGPU_PARTS {
      if (hasRest_2[part]) {
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
        const int k_5 = first[part] + 32;
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
        const float v_13 = dt[row_1 * 48 + k_5];
#line 60 "tests/lit/kernels/Inputs/rows.mlir"
        const float average_5 = mathDivide(next_3, 48.0f);
        const float variance_2 = mathDivide(next_7, 48.0f);
        const float deviation_2 = sqrtf(variance_2);
        const float below_5 = v_13 - average_5;
        const float normal_2 = mathDivide(below_5, deviation_2);
#line 57 "tests/lit/kernels/Inputs/rows.mlir"
        dt[row_1 * 48 + k_5] = normal_2;
      }
    }
#endif
#line 444 "fill_generic_fill_generic_and_1_kernel0.cu"
  }
}
