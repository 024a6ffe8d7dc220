// main_kernel0: the launch at subgroup-matrix.mlir:40:3.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has 64 x 1 x 1 threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
//   MGPU_BLOCK_X, _Y, _Z  threads of a block; fixed: the kernel
//                         keeps its block: uses gpu.subgroup_id (line 45)
//   MGPU_ITEMS            blocks of the source, along x, that one block is
//   MGPU_VECTOR           1: the kernel keeps its block: uses gpu.subgroup_id (line 45)
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
#if MGPU_BLOCK_X != 64 || MGPU_BLOCK_Y != 1 || MGPU_BLOCK_Z != 1
#error "main_kernel0 keeps its block: uses gpu.subgroup_id (line 45)"
#endif
#if MGPU_VECTOR != 1
#error "main_kernel0 keeps its block: uses gpu.subgroup_id (line 45)"
#endif

struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};
struct MgpuThread { // ids and sizes as the source sees them
  int blockX, blockY, blockZ, threadX, threadY, threadZ, gridX, gridY, gridZ;
};

// IEEE half precision: every operation is computed in float and rounded.
#ifndef MGPU_F16
struct f16 {
  unsigned short bits;
  f16() = default;
  __device__ __forceinline__ explicit f16(float x) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  }
  __device__ __forceinline__ explicit f16(double x) {
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x));
  }
  __device__ __forceinline__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
#endif

template <class T, int N> struct vec {
  T lane[N];
  __device__ __forceinline__ T &operator[](int k) { return lane[k]; }
  __device__ __forceinline__ const T &operator[](int k) const { return lane[k]; }
};

// By a whole subgroup, on its tensor cores: d += a * b, m16n8k16. At least sm_80.
#ifndef MGPU_MMA
__device__ __forceinline__ void mmaF16(float *d, const unsigned *a, const unsigned *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// Neighbouring elements in registers, the first of them in the low bits.
template <int Registers, class T> __device__ __forceinline__ void packed(unsigned (&to)[Registers], const T *from) {
  memcpy(to, from, sizeof to);
}

struct TileF16 { // and how many elements of a tile a lane has
  enum { ofA = 8, ofB = 4, ofC = 4 };
  static __device__ __forceinline__ void multiply(float *d, const f16 *a, const f16 *b) {
    unsigned left[4], right[2];
    packed(left, a);
    packed(right, b);
    mmaF16(d, left, right);
  }
};

// d += a * b of a subgroup's matrices; Columns tiles of d lie side by side.
template <int Columns, class Tile, class D, class A, class B> __device__ __forceinline__ void matrixProduct(D &d, const A &a, const B &b) {
#pragma unroll
  for (int tile = 0; tile < (int)(sizeof d.lane / sizeof d.lane[0] / Tile::ofC); ++tile)
    Tile::multiply(d.lane + tile * Tile::ofC, a.lane + tile / Columns * Tile::ofA, b.lane + tile % Columns * Tile::ofB);
}

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
    64 * MGPU_ITEMS, 1, 1,
    MGPU_CLUSTER_X, 1, 1, 0, MGPU_PDL};
extern "C" __global__ void
#if MGPU_CLUSTER_X > 1
__cluster_dims__(MGPU_CLUSTER_X, 1, 1)
#endif
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, MGPU_MIN_BLOCKS)
main_kernel0(const f16 *MGPU_UNWRITTEN da, const f16 *MGPU_UNWRITTEN db, float *dc, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
  MgpuThread at;
  at.threadX = (int)threadIdx.x;
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
    const unsigned sourceX = launch.baseX + (blockIdx.x + launch.firstX) * MGPU_ITEMS + item;
    if (sourceX >= launch.endX) // for all threads of it alike
      break;
    at.blockX = (int)sourceX;
#line 44 "tests/lit/run/subgroup-matrix.mlir"
    const int block = at.blockX;
    const int subgroup = at.threadX / 32;
    const int row = block * 16;
    const int column = subgroup * 16;
    vec<f16, 8> x;
#line 48 "tests/lit/run/subgroup-matrix.mlir"
    {
#line 48 "tests/lit/run/subgroup-matrix.mlir"
      const int lane_1 = at.threadX % 32;
#line 48 "tests/lit/run/subgroup-matrix.mlir"
      const f16 *from = &da[row * 16] + lane_1 / 4 * 16 + lane_1 % 4 * 2;
#line 48 "tests/lit/run/subgroup-matrix.mlir"
      x[0] = from[0]; x[1] = from[1]; x[2] = from[128]; x[3] = from[129]; x[4] = from[8];
#line 48 "tests/lit/run/subgroup-matrix.mlir"
      x[5] = from[9]; x[6] = from[136]; x[7] = from[137];
#line 48 "tests/lit/run/subgroup-matrix.mlir"
    }
    vec<f16, 8> y;
#line 49 "tests/lit/run/subgroup-matrix.mlir"
    {
#line 49 "tests/lit/run/subgroup-matrix.mlir"
      const int lane_2 = at.threadX % 32;
#line 49 "tests/lit/run/subgroup-matrix.mlir"
      const f16 *from_1 = &db[column] + lane_2 / 4 + lane_2 % 4 * 64;
#line 49 "tests/lit/run/subgroup-matrix.mlir"
      y[0] = from_1[0]; y[1] = from_1[32]; y[2] = from_1[256]; y[3] = from_1[288];
#line 49 "tests/lit/run/subgroup-matrix.mlir"
      y[4] = from_1[8]; y[5] = from_1[40]; y[6] = from_1[264]; y[7] = from_1[296];
#line 49 "tests/lit/run/subgroup-matrix.mlir"
    }
    vec<float, 8> held;
#line 50 "tests/lit/run/subgroup-matrix.mlir"
    for (int lane = 0; lane < 8; ++lane)
#line 50 "tests/lit/run/subgroup-matrix.mlir"
      held[lane] = 0.0f;
    #if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#line 51 "tests/lit/run/subgroup-matrix.mlir"
    #error "gpu.subgroup_mma_compute needs the tensor cores of sm_80 or later"
#line 51 "tests/lit/run/subgroup-matrix.mlir"
    #endif
#line 51 "tests/lit/run/subgroup-matrix.mlir"
    vec<float, 8> sum;
#line 51 "tests/lit/run/subgroup-matrix.mlir"
    sum = held;
#line 51 "tests/lit/run/subgroup-matrix.mlir"
    matrixProduct<2, TileF16>(sum, x, y);
    {
#line 52 "tests/lit/run/subgroup-matrix.mlir"
      const int lane_3 = at.threadX % 32;
#line 52 "tests/lit/run/subgroup-matrix.mlir"
      float *to = &dc[row * 32 + column] + lane_3 / 4 * 32 + lane_3 % 4 * 2;
#line 52 "tests/lit/run/subgroup-matrix.mlir"
      to[0] = sum[0]; to[1] = sum[1]; to[256] = sum[2]; to[257] = sum[3]; to[8] = sum[4];
#line 52 "tests/lit/run/subgroup-matrix.mlir"
      to[9] = sum[5]; to[264] = sum[6]; to[265] = sum[7];
#line 52 "tests/lit/run/subgroup-matrix.mlir"
    }
#line 208 "main_kernel0.cu"
  }
}
