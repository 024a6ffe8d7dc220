// main_kernel0: the launch at examples/source/source.mlir:49:3.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has 300 x 1 x 1 threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
//   MGPU_BLOCK_X, _Y, _Z  threads of a block; any: the kernel
//                         its threads never meet; its ids are recovered from the global index, because it uses gpu.block_id (line 50)
//   MGPU_ITEMS            threads of the source, a block apart along x, that one
//                         thread is
//   MGPU_VECTOR           neighbours along x that one thread is, computed together
//                         and loaded and stored at once where the address allows;
//                         a divisor of 300
//   MGPU_MIN_BLOCKS       blocks that must fit one multiprocessor (__launch_bounds__)
//   MGPU_CLUSTER_X        blocks of a cluster, along x, of which a launch has whole
//                         ones alone; more than 1 from sm_90 on
//   MGPU_FAST_MATH        1: the fast forms of exp, log, sin, division, ...
//   MGPU_PDL              1: may be launched to begin before the kernel it follows has
//                         ended, for which it waits; from sm_90 on
// Launch with the grid, in blocks of the source, in `launch`, and with
//   ceil(gridX * 300 / (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR)) blocks along x. A part of the grid is a launch of
// fewer blocks from block first on, or of the source's blocks base to end.
#ifndef MGPU_BLOCK_X
#define MGPU_BLOCK_X 300
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
#if MGPU_VECTOR < 1 || 300 % MGPU_VECTOR != 0
#error "MGPU_VECTOR must divide 300"
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
// Neighbours in memory, by accesses as wide as the address allows.
template <class T, int N> __device__ __forceinline__ void loadParts(T (&to)[N], const T *from) {
  const int M = sizeof(T) * N > 16 ? 16 / sizeof(T) : N;
  struct __align__(sizeof(T) * M) wide { T parts[M]; };
  if ((unsigned long long)from % sizeof(wide) == 0) {
#pragma unroll
    for (int first = 0; first < N; first += M) {
      const wide all = *(const wide *)(from + first);
#pragma unroll
      for (int k = 0; k < M; ++k)
        to[first + k] = all.parts[k];
    }
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k)
      to[k] = from[k];
  }
}

template <class T, int N> __device__ __forceinline__ void storeParts(T *to, const T (&from)[N]) {
  const int M = sizeof(T) * N > 16 ? 16 / sizeof(T) : N;
  struct __align__(sizeof(T) * M) wide { T parts[M]; };
  if ((unsigned long long)to % sizeof(wide) == 0) {
#pragma unroll
    for (int first = 0; first < N; first += M) {
      wide all;
#pragma unroll
      for (int k = 0; k < M; ++k)
        all.parts[k] = from[first + k];
      *(wide *)(to + first) = all;
    }
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k)
      to[k] = from[k];
  }
}
#endif

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
main_kernel0(float *b, const float *mean, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
#if MGPU_BLOCK_Y * MGPU_BLOCK_Z > 1
  if (threadIdx.y != 0 || threadIdx.z != 0)
    return;
#endif
  MgpuThread at;
#if MGPU_ITEMS == 1
  const unsigned item = 0;
  {
#else
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
#endif
    const unsigned globalX = (unsigned)launch.baseX * 300 + (((unsigned)(blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * MGPU_BLOCK_X + threadIdx.x) * MGPU_VECTOR;
    at.blockX = (int)(globalX / 300);
    at.threadX = (int)(globalX % 300);
    if ((300 % (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR * MGPU_CLUSTER_X) == 0 || globalX < (unsigned)launch.endX * 300)) {
#if MGPU_VECTOR == 1
#line 50 "examples/source/source.mlir"
      const int row = at.blockX;
      const int column = at.threadX;
      const float v = b[row * 300 + column];
      const float m = mean[row];
      const float centre = v - m;
      b[row * 300 + column] = centre;
#else
#line 50 "examples/source/source.mlir"
      const int row = at.blockX;
      int column[MGPU_VECTOR]; MGPU_PARTS column[part] = at.threadX + part;
      float v[MGPU_VECTOR]; loadParts(v, &b[row * 300 + column[0]]);
      const float m = mean[row];
      float centre[MGPU_VECTOR]; MGPU_PARTS centre[part] = v[part] - m;
      storeParts(&b[row * 300 + column[0]], centre);
#endif
#line 151 "main_kernel0.cu"
    }
  }
}
