// main_kernel0: the launch at saxpy.mlir:37:3.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has 64 x 1 x 1 threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
//   MGPU_BLOCK_X, _Y, _Z  threads of a block; any: the kernel
//                         depends on its ids only through the global index
//   MGPU_ITEMS            threads of the source, a block apart along x, that one
//                         thread is
//   MGPU_VECTOR           neighbours along x that one thread is, computed together
//                         and loaded and stored at once where their place is known
//                         to allow it; a divisor of 64
//   MGPU_ALIGN            bytes that the addresses of all buffers are multiples of: no
//                         access is wider
//   MGPU_MIN_BLOCKS       blocks that must fit one multiprocessor (__launch_bounds__)
//   MGPU_CLUSTER_X        blocks of a cluster, along x, of which a launch has whole
//                         ones alone; more than 1 from sm_90 on
//   MGPU_FAST_MATH        1: the fast forms of exp, log, sin, division, ...
//   MGPU_PDL              1: may be launched to begin before the kernel it follows has
//                         ended, for which it waits; from sm_90 on
// Launch with the grid, in blocks of the source, in `launch`, and with
//   ceil(gridX * 64 / (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR)) blocks along x. A part of the grid is a launch of
// fewer blocks from block first on, or of the source's blocks base to end.
#ifndef MGPU_BLOCK_X
#define MGPU_BLOCK_X 64
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
#if MGPU_VECTOR < 1 || 64 % MGPU_VECTOR != 0
#error "MGPU_VECTOR must divide 64"
#endif
#define MGPU_PARTS _Pragma("unroll") for (int part = 0; part < MGPU_VECTOR; ++part)

struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
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

#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
// How the entry is to be launched, for whoever loads it.
extern "C" __constant__ const unsigned mgpu_form_main_kernel0[] = {
    1, MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    MGPU_CLUSTER_X, 1, 1, 0, MGPU_PDL};
extern "C" __global__ void
#if MGPU_CLUSTER_X > 1
__cluster_dims__(MGPU_CLUSTER_X, 1, 1)
#endif
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, MGPU_MIN_BLOCKS)
main_kernel0(const float *MGPU_UNWRITTEN x0, float *y0, const float a, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
#if MGPU_BLOCK_Y * MGPU_BLOCK_Z > 1
  if (threadIdx.y != 0 || threadIdx.z != 0)
    return;
#endif
#if MGPU_ITEMS == 1
  const unsigned item = 0;
  {
#else
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
#endif
    const unsigned globalX = (unsigned)launch.baseX * 64 + (((unsigned)(blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * MGPU_BLOCK_X + threadIdx.x) * MGPU_VECTOR;
    if ((64 % (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR * MGPU_CLUSTER_X) == 0 || globalX < (unsigned)launch.endX * 64)) {
#if MGPU_VECTOR == 1
#line 41 "examples/saxpy/saxpy.mlir"
      const int i = (int)globalX;
      const float xi = x0[i];
      const float yi = y0[i];
      const float ax = a * xi;
      const float sum = ax + yi;
      y0[i] = sum;
#else
#line 41 "examples/saxpy/saxpy.mlir"
      int i[MGPU_VECTOR]; MGPU_PARTS i[part] = (int)globalX + part;
      float xi[MGPU_VECTOR]; loadParts<16>(xi, &x0[i[0]]);
      float yi[MGPU_VECTOR]; loadParts<16>(yi, &y0[i[0]]);
      float ax[MGPU_VECTOR]; MGPU_PARTS ax[part] = a * xi[part];
      float sum[MGPU_VECTOR]; MGPU_PARTS sum[part] = ax[part] + yi[part];
      storeParts<16>(&y0[i[0]], sum);
#endif
#line 155 "main_kernel0.cu"
    }
  }
}
