// main_kernel0: the launch at examples/saxpy/saxpy.mlir:37:3.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has 64 x 1 x 1 threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
//   MGPU_BLOCK_X, _Y, _Z  threads of a block; any: the kernel
//                         depends on its ids only through the global index
//   MGPU_ITEMS            threads of the source, along x, that one thread is
//   MGPU_MIN_BLOCKS       blocks that must fit one multiprocessor (__launch_bounds__)
//   MGPU_FAST_MATH        1: the fast forms of exp, log, sin, division, ...
// Launch with the grid, in blocks of the source, in `launch`, and with
//   ceil(gridX * 64 / (MGPU_BLOCK_X * MGPU_ITEMS)) blocks along x. A part of the grid is a launch of
// fewer blocks from block first on.
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
#ifndef MGPU_MIN_BLOCKS
#define MGPU_MIN_BLOCKS 1
#endif
#ifndef MGPU_FAST_MATH
#define MGPU_FAST_MATH 0
#endif

struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
};
struct MgpuThread { // ids and sizes as the source sees them
  int blockX, blockY, blockZ, threadX, threadY, threadZ, gridX, gridY, gridZ;
};

static __device__ __forceinline__ void main_kernel0_thread(const MgpuThread &at, const float *x0, float *y0, const float a) {
#line 38 "examples/saxpy/saxpy.mlir"
  const int block = at.blockX;
  const int thread = at.threadX;
  const int base = block * 64;
  const int i = base + thread;
  const float xi = x0[i];
  const float yi = y0[i];
  const float ax = a * xi;
  const float sum = ax + yi;
  y0[i] = sum;
}

#line 54 "main_kernel0.cu"
extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, MGPU_MIN_BLOCKS)
main_kernel0(const float *x0, float *y0, const float a, const MgpuLaunch launch) {
  MgpuThread at;
  at.gridX = (int)launch.gridX;
  at.gridY = (int)launch.gridY;
  at.gridZ = (int)launch.gridZ;
  at.blockY = at.threadY = 0;
  at.blockZ = at.threadZ = 0;
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
    const unsigned x = ((unsigned)(blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * MGPU_BLOCK_X + threadIdx.x;
    at.blockX = (int)(x / 64);
    at.threadX = (int)(x % 64);
    if (x < (unsigned)launch.gridX * 64 && threadIdx.y == 0 && threadIdx.z == 0)
      main_kernel0_thread(at, x0, y0, a);
  }
}
