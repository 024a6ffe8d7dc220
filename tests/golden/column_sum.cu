// column_sum_kernel0: the launch at rows.mlir:26:3.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has 16 x 16 x 1 threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
//   MGPU_BLOCK_X, _Y, _Z  threads of a block; fixed: the kernel
//                         keeps its block: uses memref.alloca (line 26)
//   MGPU_ITEMS            blocks of the source, along x, that one block is
//   MGPU_VECTOR           1: the kernel keeps its block: uses memref.alloca (line 26)
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
#define MGPU_BLOCK_X 16
#endif
#ifndef MGPU_BLOCK_Y
#define MGPU_BLOCK_Y 16
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
#if MGPU_BLOCK_X != 16 || MGPU_BLOCK_Y != 16 || MGPU_BLOCK_Z != 1
#error "column_sum_kernel0 keeps its block: uses memref.alloca (line 26)"
#endif
#if MGPU_VECTOR != 1
#error "column_sum_kernel0 keeps its block: uses memref.alloca (line 26)"
#endif
enum { mgpuUnroll = MGPU_UNROLL };

struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};
struct MgpuThread { // ids and sizes as the source sees them
  int blockX, blockY, blockZ, threadX, threadY, threadZ, gridX, gridY, gridZ;
};

#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
// How the entry is to be launched, for whoever loads it.
extern "C" __constant__ const unsigned mgpu_form_column_sum_kernel0[] = {
    1, MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    16 * MGPU_ITEMS, 16, 1,
    MGPU_CLUSTER_X, 1, 1, 0, MGPU_PDL};
extern "C" __global__ void
#if MGPU_CLUSTER_X > 1
__cluster_dims__(MGPU_CLUSTER_X, 1, 1)
#endif
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, MGPU_MIN_BLOCKS)
column_sum_kernel0(float *dc, const float *MGPU_UNWRITTEN dx, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
  MgpuThread at;
  at.threadX = (int)threadIdx.x;
  at.threadY = (int)threadIdx.y;
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
    const unsigned sourceX = launch.baseX + (blockIdx.x + launch.firstX) * MGPU_ITEMS + item;
    if (sourceX >= launch.endX) // for all threads of it alike
      break;
    at.blockX = (int)sourceX;
    if (item > 0)
      __syncthreads(); // shared memory is used again
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    static __shared__ __align__(16) float tile[256];
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const int row = at.blockX;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const int rowInBlock = at.threadX;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const int v = row * 16;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const int row_1 = v + rowInBlock;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const bool isRow = row_1 < 1000;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const int first = at.threadY;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const int rowInBlock_1 = at.threadX;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    float v_1;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    if (isRow) {
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      const float v_2 = dc[row_1];
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      v_1 = v_2;
    } else {
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      v_1 = -0.0f;
    }
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    float v_3;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    if (isRow) {
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      float v_4;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      v_4 = -0.0f;
#if MGPU_UNROLL
#pragma unroll mgpuUnroll
#endif
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      for (int i = 0; i < 4; ++i) {
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
        const int v_5 = i * 16;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
        const int k = v_5 + first;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
        const float v_6 = dx[k * 1000 + row_1];
#line 28 "tests/lit/kernels/Inputs/rows.mlir"
        const float next = v_4 + v_6;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
        v_4 = next;
      }
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      v_3 = v_4;
    } else {
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      v_3 = -0.0f;
    }
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    tile[first * 16 + rowInBlock_1] = v_3;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    __syncthreads();
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const float v_7 = tile[rowInBlock_1];
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    float v_8;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    v_8 = v_7;
#if MGPU_UNROLL
#pragma unroll mgpuUnroll
#endif
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    for (int i_1 = 0; i_1 < 15; ++i_1) {
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      const int v_9 = i_1 + 1;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      const float v_10 = tile[v_9 * 16 + rowInBlock_1];
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      const float v_11 = v_8 + v_10;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      v_8 = v_11;
    }
    const float next_1 = v_1 + v_8;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const bool v_12 = first == 0;
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    const bool v_13 = (bool)(v_12 & isRow);
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
    if (v_13) {
#line 26 "tests/lit/kernels/Inputs/rows.mlir"
      dc[row_1] = next_1;
    }
#line 196 "column_sum_kernel0.cu"
  }
}
