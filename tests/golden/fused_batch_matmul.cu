// fill_batch_matmul_parallel_kernel0: the launch at attention.mlir:52:3 + attention.mlir:53:3 + attention.mlir:55:3.
// q * kT, from fill_batch_matmul_parallel_kernel0_first on to fill_batch_matmul_parallel_kernel0_last: 2 times 48 x 32 and 32 x 48, tiled through shared memory.
// CUDA C++ that includes nothing, for NVRTC. Each element adds in order of k, so
// that with --fmad=false the bits are those of the source under all macros (-D):
//   MGPU_BLOCK_X, _Y   threads of a block along columns and rows
//   MGPU_TILE_X, _Y    elements of one thread along them
//   MGPU_DEPTH         steps of k in one stage of shared memory
//   MGPU_STAGES        stages: 2, or 1, for which threads wait once more
//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor
//   MGPU_PDL           1: may be launched to begin before the kernel it follows
//                      has ended, for which it waits; from sm_90 on
// Launch with a block for each MGPU_BLOCK_X * MGPU_TILE_X columns along x, for each
// MGPU_BLOCK_Y * MGPU_TILE_Y rows along y, for each product along z.
// A part of them is a launch of fewer blocks from block first on, or of the source's
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
#ifndef MGPU_STAGES
#define MGPU_STAGES 2
#endif
#ifndef MGPU_BLOCK_Z
#define MGPU_BLOCK_Z 1
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

static_assert(MGPU_BLOCK_X * MGPU_BLOCK_Y % MGPU_DEPTH == 0, "a copy of each thread is of one step of k");
// The place of element (i, j) of a thread within the block.
#define MGPU_ROW(i) ((i) / packA * MGPU_BLOCK_Y * packA + (int)threadIdx.y * packA + (i) % packA)
#define MGPU_COLUMN(j) ((j) / packB * MGPU_BLOCK_X * packB + (int)threadIdx.x * packB + (j) % packB)

static __device__ __forceinline__ float fill_batch_matmul_parallel_kernel0_first(const int globalY, const int globalX, const int globalZ) {
#line 53 "examples/attention/attention.mlir"
  return 0.0f;
}

static __device__ __forceinline__ void fill_batch_matmul_parallel_kernel0_last(float *scores, const float sum, const int globalY, const int globalX, const int globalZ) {
  const float scaled = sum * 0.176776692f;
#line 55 "examples/attention/attention.mlir"
  const int v = (int)globalZ;
#line 55 "examples/attention/attention.mlir"
  const int v_1 = (int)globalY;
#line 55 "examples/attention/attention.mlir"
  const int v_2 = (int)globalX;
#line 58 "examples/attention/attention.mlir"
  scores[v * 2304 + v_1 * 48 + v_2] = scaled;
}

#line 72 "fill_batch_matmul_parallel_kernel0.cu"
#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
// How the entry is to be launched, for whoever loads it.
extern "C" __constant__ const unsigned mgpu_form_fill_batch_matmul_parallel_kernel0[] = {
    1, MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    MGPU_BLOCK_X * MGPU_TILE_X, MGPU_BLOCK_Y * MGPU_TILE_Y, MGPU_BLOCK_Z,
    1, 1, 1, 0, MGPU_PDL};
extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
fill_batch_matmul_parallel_kernel0(const float *q, const float *kT, float *scores, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
  const int rows = MGPU_BLOCK_Y * MGPU_TILE_Y, columns = MGPU_BLOCK_X * MGPU_TILE_X;
  const int threads = MGPU_BLOCK_X * MGPU_BLOCK_Y;
  // Elements of a thread that lie together, 16 bytes at most: one access of a tile loads them.
  const int most = 16 / (int)sizeof(float);
  const int packA = MGPU_TILE_Y < most ? MGPU_TILE_Y : most, packB = MGPU_TILE_X < most ? MGPU_TILE_X : most;
  static __shared__ __align__(16) float tileA[MGPU_STAGES][MGPU_DEPTH][MGPU_BLOCK_Y * MGPU_TILE_Y + 16 / sizeof(float)]; // so a column is in more banks
  static __shared__ __align__(16) float tileB[MGPU_STAGES][MGPU_DEPTH][MGPU_BLOCK_X * MGPU_TILE_X];
  const int thread = (int)(threadIdx.y * MGPU_BLOCK_X + threadIdx.x);
  const int firstRow = (int)launch.baseY * 8 + (int)(blockIdx.y + launch.firstY) * rows;
  const int firstColumn = (int)launch.baseX * 24 + (int)(blockIdx.x + launch.firstX) * columns;
  const int endRow = launch.endY * 8u < 48u ? (int)launch.endY * 8 : 48;
  const int endColumn = launch.endX * 24u < 48u ? (int)launch.endX * 24 : 48;
  const int batch = (int)(launch.baseZ + blockIdx.z + launch.firstZ);
  // Copy p of a thread is of this row and step of A, and of this step and column of B.
#define MGPU_ROW_A(p) (thread / MGPU_DEPTH + (p) * (threads / MGPU_DEPTH))
#define MGPU_STEP_B(p) (thread / across + (p) / (columns / across) * (threads / across))
#define MGPU_COLUMN_B(p) (thread % across + (p) % (columns / across) * across)
  const int across = columns < threads ? columns : threads;
  const int stepA = thread % MGPU_DEPTH;
  const int copiesA = (rows * MGPU_DEPTH + threads - 1) / threads, copiesB = (columns * MGPU_DEPTH + threads - 1) / threads;
  // The sums begin.
  float sums[MGPU_TILE_Y][MGPU_TILE_X], nextA[copiesA], nextB[copiesB];
#pragma unroll
  for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
    for (int j = 0; j < MGPU_TILE_X; ++j) {
      const int row = firstRow + MGPU_ROW(i), column = firstColumn + MGPU_COLUMN(j);
      sums[i][j] = row < endRow && column < endColumn ? fill_batch_matmul_parallel_kernel0_first(row, column, batch) : 0;
    }
  const float *fromA = &q[batch * 1536LL + (firstRow + MGPU_ROW_A(0)) * 32LL + stepA], *fromB = &kT[batch * 1536LL + MGPU_STEP_B(0) * 48LL + (firstColumn + MGPU_COLUMN_B(0))];
  // Mainloop: while a tile is multiplied, the next one comes to registers, and then to shared memory.
  for (int k = -MGPU_DEPTH, stage = MGPU_STAGES - 1; k < 32; k += MGPU_DEPTH) {
    // Producer: each thread asks for its elements of the next tiles.
    const int left = 32 - MGPU_DEPTH - k; // steps of those tiles
#pragma unroll
    for (int p = 0; p < copiesA; ++p)
      nextA[p] = MGPU_ROW_A(p) < rows && firstRow + MGPU_ROW_A(p) < endRow && stepA < left ? fromA[p * (threads / MGPU_DEPTH) * 32LL] : 0;
#pragma unroll
    for (int p = 0; p < copiesB; ++p)
      nextB[p] = MGPU_STEP_B(p) < MGPU_DEPTH && firstColumn + MGPU_COLUMN_B(p) < endColumn && MGPU_STEP_B(p) < left
                     ? fromB[p / (columns / across) * (threads / across) * 48LL + p % (columns / across) * across * 1LL] : 0;
    fromA += MGPU_DEPTH * 1LL;
    fromB += MGPU_DEPTH * 48LL;
    // Consumer: each thread adds this tile's steps to its sums.
    if (k >= 0) {
#pragma unroll
      for (int step = 0; step < MGPU_DEPTH; ++step) {
        if (32 % MGPU_DEPTH != 0 && k + step >= 32) // no zeros are added: they would change -0
          break;
        float partA[MGPU_TILE_Y], partB[MGPU_TILE_X];
#pragma unroll
        for (int i = 0; i < MGPU_TILE_Y; ++i)
          partA[i] = tileA[stage][step][MGPU_ROW(i)];
#pragma unroll
        for (int j = 0; j < MGPU_TILE_X; ++j)
          partB[j] = tileB[stage][step][MGPU_COLUMN(j)];
#pragma unroll
        for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
          for (int j = 0; j < MGPU_TILE_X; ++j)
            sums[i][j] = fmaf(partA[i], partB[j], sums[i][j]);
      }
    }
    // Producer: what was asked for goes to the next stage.
    if (MGPU_STAGES == 1)
      __syncthreads(); // before the tiles are filled again
    stage = (stage + 1) % MGPU_STAGES;
#pragma unroll
    for (int p = 0; p < copiesA; ++p)
      if (MGPU_ROW_A(p) < rows)
        tileA[stage][stepA][MGPU_ROW_A(p)] = nextA[p];
#pragma unroll
    for (int p = 0; p < copiesB; ++p)
      if (MGPU_STEP_B(p) < MGPU_DEPTH)
        tileB[stage][MGPU_STEP_B(p)][MGPU_COLUMN_B(p)] = nextB[p];
    __syncthreads();
  }
  // Epilogue.
#pragma unroll
  for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
    for (int j = 0; j < MGPU_TILE_X; ++j) {
      const int row = firstRow + MGPU_ROW(i), column = firstColumn + MGPU_COLUMN(j);
      if (row < endRow && column < endColumn)
        fill_batch_matmul_parallel_kernel0_last(scores, sums[i][j], row, column, batch);
    }
}
