// plane: the launch at stencil.mlir:1.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has 8 x 2 x 1 threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
//   MGPU_BLOCK_X, _Y, _Z  threads of a block; any: the kernel
//                         depends on its ids only through the global index
//   MGPU_ITEMS            threads of the source, a block apart along x, that one
//                         thread is
//   MGPU_VECTOR           neighbours along x that one thread is, computed together
//                         and loaded and stored at once where their place is known
//                         to allow it; a divisor of 8
//   MGPU_ALIGN            bytes that the addresses of all buffers are multiples of: no
//                         access is wider
//   MGPU_STAGE            1: a block copies what its threads read of some buffers, and
//                         what lies around it, to shared memory first
//   MGPU_MIN_BLOCKS       blocks that must fit one multiprocessor (__launch_bounds__)
//   MGPU_CLUSTER_X        blocks of a cluster, along x, of which a launch has whole
//                         ones alone; more than 1 from sm_90 on
//   MGPU_FAST_MATH        1: the fast forms of exp, log, sin, division, ...
//   MGPU_PDL              1: may be launched to begin before the kernel it follows has
//                         ended, for which it waits; from sm_90 on
// Launch with the grid, in blocks of the source, in `launch`, and with
//   ceil(gridX * 8 / (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR)) blocks along x. A part of the grid is a launch of
// fewer blocks from block first on, or of the source's blocks base to end.
#ifndef MGPU_BLOCK_X
#define MGPU_BLOCK_X 8
#endif
#ifndef MGPU_BLOCK_Y
#define MGPU_BLOCK_Y 2
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
#ifndef MGPU_STAGE
#define MGPU_STAGE 0
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
#if MGPU_VECTOR < 1 || 8 % MGPU_VECTOR != 0
#error "MGPU_VECTOR must divide 8"
#endif
#define MGPU_PARTS _Pragma("unroll") for (int part = 0; part < MGPU_VECTOR; ++part)
#if MGPU_STAGE // how a load reads: from a tile, or as it is written behind it
#define MGPU_STAGED_arg(X, Y, otherwise) (true ? mgpuTile_arg[(threadIdx.y + (Y)) * (MGPU_BLOCK_X * MGPU_VECTOR + 2) + threadIdx.x * MGPU_VECTOR + (X)] : otherwise)
#else
#define MGPU_STAGED_arg(X, Y, otherwise) otherwise
#endif

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
// The block's threads copy a tile of width x height x depth elements, of which
// those that a buffer of `size` elements has not are left out.
template <int Threads, class T> __device__ __forceinline__ void stageTile(T *tile, const T *from, long long first, long long size, int width, int height, int depth, long long strideY, long long strideZ, int thread) {
  for (int k = thread; k < width * height * depth; k += Threads) {
    const long long at = first + k % width + k / width % height * strideY + k / (width * height) * strideZ;
    if (at >= 0 && at < size)
      tile[k] = from[at];
  }
}

#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
// How the entry is to be launched, for whoever loads it.
extern "C" __constant__ const unsigned mgpu_form_plane[] = {
    1, MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    MGPU_CLUSTER_X, 1, 1, 0, MGPU_PDL};
extern "C" __global__ void
#if MGPU_CLUSTER_X > 1
__cluster_dims__(MGPU_CLUSTER_X, 1, 1)
#endif
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, MGPU_MIN_BLOCKS)
plane(const float *arg, float *arg_1, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
#if MGPU_STAGE
  static __shared__ __align__(16) float mgpuTile_arg[(MGPU_BLOCK_Y + 2) * (MGPU_BLOCK_X * MGPU_VECTOR + 2)];
#endif
#if MGPU_BLOCK_Z > 1
  if (threadIdx.z != 0)
    return;
#endif
  const unsigned globalY = (unsigned)launch.baseY * 2 + (unsigned)(blockIdx.y + launch.firstY) * MGPU_BLOCK_Y + threadIdx.y;
#if MGPU_ITEMS == 1
  const unsigned item = 0;
  {
#else
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
#endif
    const unsigned globalX = (unsigned)launch.baseX * 8 + (((unsigned)(blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * MGPU_BLOCK_X + threadIdx.x) * MGPU_VECTOR;
#if MGPU_STAGE
    if (item > 0)
      __syncthreads(); // the tiles are read no more
    stageTile<MGPU_BLOCK_X * MGPU_BLOCK_Y>(mgpuTile_arg, arg + 5, -41 + (long long)(globalX - threadIdx.x * MGPU_VECTOR) + (long long)(globalY - threadIdx.y) * 40,
              1040ll, (MGPU_BLOCK_X * MGPU_VECTOR + 2), (MGPU_BLOCK_Y + 2), 1, 40ll, 0ll, threadIdx.x + MGPU_BLOCK_X * threadIdx.y);
    __syncthreads();
#endif
    if ((8 % (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR * MGPU_CLUSTER_X) == 0 || globalX < (unsigned)launch.endX * 8) && (2 % MGPU_BLOCK_Y == 0 || globalY < (unsigned)launch.endY * 2)) {
#if MGPU_VECTOR == 1
#line 3 "-"
      const int v = (int)globalX;
      const int v_1 = (int)globalY;
#line 9 "-"
      const bool v_2 = v > 0;
      const bool v_3 = v < 39;
      const bool v_4 = v_1 > 0;
      const bool v_5 = v_1 < 25;
      const bool v_6 = (bool)(v_2 & v_3);
      const bool v_7 = (bool)(v_4 & v_5);
      const bool v_8 = (bool)(v_6 & v_7);
      const float v_9 = MGPU_STAGED_arg(1, 1, arg[v_1 * 40 + v + 5]);
      float v_10;
#line 17 "-"
      if (v_8) {
        const int v_11 = v - 1;
        const int v_12 = v + 1;
        const int v_13 = v_1 - 1;
        const int v_14 = v_1 + 1;
        const float v_15 = MGPU_STAGED_arg(0, 1, arg[v_1 * 40 + v_11 + 5]);
        const float v_16 = MGPU_STAGED_arg(2, 1, arg[v_1 * 40 + v_12 + 5]);
        const float v_17 = MGPU_STAGED_arg(1, 0, arg[v_13 * 40 + v + 5]);
        const float v_18 = MGPU_STAGED_arg(1, 2, arg[v_14 * 40 + v + 5]);
        const float v_19 = v_15 + v_16;
        const float v_20 = v_17 - v_18;
        const float v_21 = v_19 + v_20;
        v_10 = v_21;
      } else {
        v_10 = v_9;
      }
      const float v_22 = v_10 + v_9;
      arg_1[v_1 * 40 + v] = v_22;
#else
#line 3 "-"
      int v[MGPU_VECTOR]; MGPU_PARTS v[part] = (int)globalX + part;
      const int v_1 = (int)globalY;
#line 9 "-"
      bool v_2[MGPU_VECTOR]; MGPU_PARTS v_2[part] = v[part] > 0;
      bool v_3[MGPU_VECTOR]; MGPU_PARTS v_3[part] = v[part] < 39;
      const bool v_4 = v_1 > 0;
      const bool v_5 = v_1 < 25;
      bool v_6[MGPU_VECTOR]; MGPU_PARTS v_6[part] = (bool)(v_2[part] & v_3[part]);
      const bool v_7 = (bool)(v_4 & v_5);
      bool v_8[MGPU_VECTOR]; MGPU_PARTS v_8[part] = (bool)(v_6[part] & v_7);
      float v_9[MGPU_VECTOR]; loadParts<1>(v_9, &MGPU_STAGED_arg(1, 1, arg[v_1 * 40 + v[0] + 5]));
      float v_10[MGPU_VECTOR];
#line 17 "-"
      bool all = true; MGPU_PARTS all = all && v_8[part];
#line 17 "-"
      if (all) {
        int v_11[MGPU_VECTOR]; MGPU_PARTS v_11[part] = v[part] - 1;
        int v_12[MGPU_VECTOR]; MGPU_PARTS v_12[part] = v[part] + 1;
        const int v_13 = v_1 - 1;
        const int v_14 = v_1 + 1;
        float v_15[MGPU_VECTOR]; loadParts<1>(v_15, &MGPU_STAGED_arg(0, 1, arg[v_1 * 40 + v_11[0] + 5]));
        float v_16[MGPU_VECTOR]; loadParts<1>(v_16, &MGPU_STAGED_arg(2, 1, arg[v_1 * 40 + v_12[0] + 5]));
        float v_17[MGPU_VECTOR]; loadParts<1>(v_17, &MGPU_STAGED_arg(1, 0, arg[v_13 * 40 + v[0] + 5]));
        float v_18[MGPU_VECTOR]; loadParts<1>(v_18, &MGPU_STAGED_arg(1, 2, arg[v_14 * 40 + v[0] + 5]));
        float v_19[MGPU_VECTOR]; MGPU_PARTS v_19[part] = v_15[part] + v_16[part];
        float v_20[MGPU_VECTOR]; MGPU_PARTS v_20[part] = v_17[part] - v_18[part];
        float v_21[MGPU_VECTOR]; MGPU_PARTS v_21[part] = v_19[part] + v_20[part];
        MGPU_PARTS v_10[part] = v_21[part];
      } else
      MGPU_PARTS {
        if (v_8[part]) {
#line 18 "-"
          const int v_22 = v[part] - 1;
          const int v_23 = v[part] + 1;
          const int v_24 = v_1 - 1;
          const int v_25 = v_1 + 1;
          const float v_26 = MGPU_STAGED_arg(0 + part, 1, arg[v_1 * 40 + v_22 + 5]);
          const float v_27 = MGPU_STAGED_arg(2 + part, 1, arg[v_1 * 40 + v_23 + 5]);
          const float v_28 = MGPU_STAGED_arg(1 + part, 0, arg[v_24 * 40 + v[part] + 5]);
          const float v_29 = MGPU_STAGED_arg(1 + part, 2, arg[v_25 * 40 + v[part] + 5]);
          const float v_30 = v_26 + v_27;
          const float v_31 = v_28 - v_29;
          const float v_32 = v_30 + v_31;
          v_10[part] = v_32;
        } else {
          v_10[part] = v_9[part];
        }
      }
#line 33 "-"
      float v_33[MGPU_VECTOR]; MGPU_PARTS v_33[part] = v_10[part] + v_9[part];
      storeParts<8>(&arg_1[v_1 * 40 + v[0]], v_33);
#endif
#line 251 "plane.cu"
    }
  }
}
