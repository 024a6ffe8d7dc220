// fill_generic_fill_generic_and_1_kernel0: the launch at rows.mlir:40:3 + rows.mlir:41:3 + rows.mlir:47:3 + rows.mlir:48:3 + rows.mlir:57:3.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has 32 x 8 x 1 threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
//   MGPU_BLOCK_X, _Y, _Z  threads of a block; fixed: the kernel
//                         keeps its block: uses gpu.subgroup_reduce (line 41)
//   MGPU_ITEMS            blocks of the source, along x, that one block is
//   MGPU_VECTOR           1: the kernel keeps its block: uses gpu.subgroup_reduce (line 41)
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
#if MGPU_BLOCK_X != 32 || MGPU_BLOCK_Y != 8 || MGPU_BLOCK_Z != 1
#error "fill_generic_fill_generic_and_1_kernel0 keeps its block: uses gpu.subgroup_reduce (line 41)"
#endif
#if MGPU_VECTOR != 1
#error "fill_generic_fill_generic_and_1_kernel0 keeps its block: uses gpu.subgroup_reduce (line 41)"
#endif

struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};
struct MgpuThread { // ids and sizes as the source sees them
  int blockX, blockY, blockZ, threadX, threadY, threadZ, gridX, gridY, gridZ;
};

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

#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
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
  at.threadX = (int)threadIdx.x;
  at.threadY = (int)threadIdx.y;
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
    const unsigned sourceX = launch.baseX + (blockIdx.x + launch.firstX) * MGPU_ITEMS + item;
    if (sourceX >= launch.endX) // for all threads alike
      break;
    at.blockX = (int)sourceX;
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
#line 224 "fill_generic_fill_generic_and_1_kernel0.cu"
  }
}
