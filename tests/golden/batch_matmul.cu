// batch_matmul_kernel0: the launch at attention.mlir:53:3.
// scores += q * kT: 2 times 48 x 32 and 32 x 48, tiled through shared memory.
// CUDA C++ that includes nothing, for NVRTC. Each element adds in order of k, so
// that with --fmad=false the bits are those of the source under all macros (-D):
//   MGPU_BLOCK_X, _Y   threads of a block along columns and rows
//   MGPU_TILE_X, _Y    elements of one thread along them
//   MGPU_DEPTH         steps of k in shared memory at a time
//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor
//   MGPU_PDL           1: may be launched to begin before the kernel it follows
//                      has ended, for which it waits; from sm_90 on
// Launch with a block for each MGPU_BLOCK_X * MGPU_TILE_X columns along x, for
// each MGPU_BLOCK_Y * MGPU_TILE_Y rows along y, for each product along z. A part
// of them is a launch of fewer blocks from block first on, or of the source's
// blocks base to end.
#ifndef MGPU_BLOCK_X
#define MGPU_BLOCK_X 16
#endif
#ifndef MGPU_BLOCK_Y
#define MGPU_BLOCK_Y 16
#endif
#ifndef MGPU_TILE_X
#define MGPU_TILE_X 4
#endif
#ifndef MGPU_TILE_Y
#define MGPU_TILE_Y 4
#endif
#ifndef MGPU_DEPTH
#define MGPU_DEPTH 16
#endif
#ifndef MGPU_MIN_BLOCKS
#define MGPU_MIN_BLOCKS 1
#endif
#ifndef MGPU_PDL
#define MGPU_PDL 0
#endif

struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};

#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
batch_matmul_kernel0(float *scores, const float *q, const float *kT, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
  const int rows = MGPU_BLOCK_Y * MGPU_TILE_Y, columns = MGPU_BLOCK_X * MGPU_TILE_X;
  const int threads = MGPU_BLOCK_X * MGPU_BLOCK_Y;
  static __shared__ float tileA[MGPU_DEPTH][MGPU_BLOCK_Y * MGPU_TILE_Y + 1]; // + 1: a column is in all banks
  static __shared__ float tileB[MGPU_DEPTH][MGPU_BLOCK_X * MGPU_TILE_X];
  const int thread = (int)(threadIdx.y * MGPU_BLOCK_X + threadIdx.x);
  const int firstRow = (int)launch.baseY * 8 + (int)(blockIdx.y + launch.firstY) * rows;
  const int firstColumn = (int)launch.baseX * 24 + (int)(blockIdx.x + launch.firstX) * columns;
  const int endRow = launch.endY * 8u < 48u ? (int)launch.endY * 8 : 48;
  const int endColumn = launch.endX * 24u < 48u ? (int)launch.endX * 24 : 48;
  const int batch = (int)(launch.baseZ + blockIdx.z + launch.firstZ);
  float sums[MGPU_TILE_Y][MGPU_TILE_X];
#pragma unroll
  for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
    for (int j = 0; j < MGPU_TILE_X; ++j) {
      const int row = firstRow + i * MGPU_BLOCK_Y + (int)threadIdx.y;
      const int column = firstColumn + j * MGPU_BLOCK_X + (int)threadIdx.x;
      sums[i][j] = row < endRow && column < endColumn ? scores[batch * 2304LL + row * 48LL + column] : 0;
    }
  for (int k = 0; k < 32; k += MGPU_DEPTH) {
    for (int at = thread; at < rows * MGPU_DEPTH; at += threads) {
      const int row = at / MGPU_DEPTH, step = at % MGPU_DEPTH;
      tileA[step][row] = firstRow + row < endRow && k + step < 32 ? q[batch * 1536LL + (firstRow + row) * 32LL + (k + step)] : 0;
    }
    for (int at = thread; at < columns * MGPU_DEPTH; at += threads) {
      const int step = at / columns, column = at % columns;
      tileB[step][column] = firstColumn + column < endColumn && k + step < 32 ? kT[batch * 1536LL + (k + step) * 48LL + (firstColumn + column)] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < MGPU_DEPTH; ++step) {
      if (32 % MGPU_DEPTH != 0 && k + step >= 32) // no zeros are added: they would change -0
        break;
#pragma unroll
      for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
        for (int j = 0; j < MGPU_TILE_X; ++j)
          sums[i][j] += tileA[step][i * MGPU_BLOCK_Y + threadIdx.y] * tileB[step][j * MGPU_BLOCK_X + threadIdx.x];
    }
    __syncthreads(); // before the tiles are filled again
  }
#pragma unroll
  for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
    for (int j = 0; j < MGPU_TILE_X; ++j) {
      const int row = firstRow + i * MGPU_BLOCK_Y + (int)threadIdx.y;
      const int column = firstColumn + j * MGPU_BLOCK_X + (int)threadIdx.x;
      if (row < endRow && column < endColumn)
        scores[batch * 2304LL + row * 48LL + column] = sums[i][j];
    }
}
