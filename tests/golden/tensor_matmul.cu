// matmul_kernel0_tensor_cores: the launch at products.mlir:31:3.
// dc += da * db: 200 x 96 and 96 x 160, on tensor cores.
// CUDA C++ that includes nothing, for NVRTC and sm_80 or later. Sums are of f32, in the
// order of k but for the 16 steps of an instruction, whose order is the GPU's. Macros (-D):
//   MGPU_BLOCK_X, _Y   32, and the warps of a block
//   MGPU_TILE_X, _Y    columns of a block by 32, and its rows by MGPU_BLOCK_Y
//   MGPU_WARPS_Y       warps that lie one above the other
//   MGPU_DEPTH         steps of k in one stage of shared memory: 16, 32 or 64
//   MGPU_STAGES        stages, of which all but one are on their way; at least 2
//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor
//   MGPU_PDL           1: may be launched to begin before the kernel it follows
//                      has ended, for which it waits; from sm_90 on
// Launch with a block for each 32 * MGPU_TILE_X columns along x, for each MGPU_BLOCK_Y *
// MGPU_TILE_Y rows along y, for each product along z.
// A part of them is a launch of fewer blocks from block first on, or of the source's
// blocks base to end.
#ifndef MGPU_BLOCK_X
#define MGPU_BLOCK_X 32
#endif
#ifndef MGPU_BLOCK_Y
#define MGPU_BLOCK_Y 8
#endif
#ifndef MGPU_TILE_X
#define MGPU_TILE_X 4
#endif
#ifndef MGPU_TILE_Y
#define MGPU_TILE_Y 16
#endif
#ifndef MGPU_DEPTH
#define MGPU_DEPTH 32
#endif
#ifndef MGPU_STAGES
#define MGPU_STAGES 3
#endif
#ifndef MGPU_WARPS_Y
#define MGPU_WARPS_Y 2
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
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "matmul_kernel0_tensor_cores: mma.sync of this shape and cp.async need sm_80 or later"
#endif
enum {
  blockRows = MGPU_BLOCK_Y * MGPU_TILE_Y,
  blockColumns = MGPU_BLOCK_X * MGPU_TILE_X,
  warpsX = MGPU_BLOCK_Y / MGPU_WARPS_Y,
  warpRows = blockRows / MGPU_WARPS_Y,
  warpColumns = blockColumns / warpsX,
  chunk = 8, // elements of 16 bytes
  stageA = blockRows * MGPU_DEPTH,
  stageB = MGPU_DEPTH * blockColumns
};
static_assert(MGPU_BLOCK_X == 32 && MGPU_STAGES >= 2 && MGPU_DEPTH % 16 == 0, "");
static_assert(warpsX * MGPU_WARPS_Y == MGPU_BLOCK_Y && warpRows % 16 == 0 && warpColumns % 16 == 0,
              "warps divide the block in tiles of 16 x 16");

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

// By a whole subgroup, on its tensor cores: d += a * b, m16n8k16. At least sm_80.
#ifndef MGPU_MMA
__device__ __forceinline__ void mmaF16(float *d, const unsigned *a, const unsigned *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// Copies to shared memory that do not wait: 16 bytes, both sides aligned, of which
// those from `bytes` on are zeros; in groups, of which the oldest are waited for.
#ifndef MGPU_MMA
__device__ __forceinline__ unsigned sharedAddress(const void *at) {
  unsigned address;
  asm("{ .reg .u64 whole; cvta.to.shared.u64 whole, %1; cvt.u32.u64 %0, whole; }" : "=r"(address) : "l"(at));
  return address;
}
__device__ __forceinline__ void copyAsync(void *to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(sharedAddress(to)), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void closeCopies() { asm volatile("cp.async.commit_group;" : : : "memory"); }
// Until this thread has at most `Open` groups that are not done.
template <int Open> __device__ __forceinline__ void awaitCopies() { asm volatile("cp.async.wait_group %0;" : : "n"(Open) : "memory"); }
#endif

// By a whole subgroup: four tiles of 8 x 8 from shared memory, as mma.sync wants them.
// Lane l gives the address of row l % 8 of tile l / 8.
#ifndef MGPU_MMA
__device__ __forceinline__ void loadTiles(unsigned *to, const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(sharedAddress(row)) : "memory");
}
__device__ __forceinline__ void loadTilesTurned(unsigned *to, const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(sharedAddress(row)) : "memory");
}
#endif

// A tile in shared memory: where chunk `at` of 16 bytes lies of a row of `Chunks`, so that
// eight rows of one chunk are in different banks.
template <int Chunks> __device__ __forceinline__ int placeChunk(int row, int at) {
  const int rows = Chunks < 8 ? 8 / Chunks : 1, most = Chunks < 8 ? Chunks : 8;
  return (row * Chunks + (at ^ row / rows % most)) * 8;
}
// Eight elements of a row to a chunk, those from `count` on zeros.
template <bool IsAligned, class T> __device__ __forceinline__ void stageChunk(T *to, const T *from, int count) {
  count = count < 0 ? 0 : count > 8 ? 8 : count;
  if (IsAligned) {
    copyAsync(to, from, count * 2);
  } else {
    struct __align__(16) wide { T part[8]; };
    wide all;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      all.part[k] = k < count ? from[k] : T(0.0f);
    *(wide *)to = all;
  }
}

#define MGPU_FIRST(row, column) (float)dc[row * 160LL + column]
#define MGPU_STORE(row, column, sum) dc[row * 160LL + column] = float(sum)
struct __align__(2 * sizeof(float)) MgpuPair {
  float of[2];
};
#define MGPU_FIRST_PAIR(row, column, left, right) \
  do { \
    const MgpuPair before = *(const MgpuPair *)&dc[row * 160LL + column]; \
    left = (float)before.of[0], right = (float)before.of[1]; \
  } while (0)
#define MGPU_STORE_PAIR(row, column, left, right) *(MgpuPair *)&dc[row * 160LL + column] = MgpuPair{{float(left), float(right)}}
#define MGPU_BEGIN_SUMS(row, column, left, right) \
  left = right = 0.0f; \
  if (row < endRow && column + 1 < endColumn) \
    MGPU_FIRST_PAIR(row, column, left, right); \
  else if (row < endRow && column < endColumn) \
    left = MGPU_FIRST(row, column)
#define MGPU_STORE_SUMS(row, column, left, right) \
  if (row < endRow && column + 1 < endColumn) \
    MGPU_STORE_PAIR(row, column, left, right); \
  else if (row < endRow && column < endColumn) \
    MGPU_STORE(row, column, left)
template <bool IsAligned> __device__ __forceinline__ void
matmul_kernel0_tensor_cores_block(f16 *tileA, f16 *tileB, const f16 *da, const f16 *db, float *dc, const MgpuLaunch launch) {
  const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
  const int thread = warp * MGPU_BLOCK_X + lane, threads = MGPU_BLOCK_X * MGPU_BLOCK_Y;
  const int firstRow = (int)launch.baseY * 8 + (int)(blockIdx.y + launch.firstY) * blockRows;
  const int firstColumn = (int)launch.baseX * 32 + (int)(blockIdx.x + launch.firstX) * blockColumns;
  const int endRow = launch.endY * 8u < 200u ? (int)launch.endY * 8 : 200;
  const int endColumn = launch.endX * 32u < 160u ? (int)launch.endX * 32 : 160;
  const int warpRow = warp / warpsX * warpRows, warpColumn = warp % warpsX * warpColumns;
  float sums[warpRows / 16][warpColumns / 8][4];
#pragma unroll
  for (int i = 0; i < warpRows / 16; ++i)
#pragma unroll
    for (int j = 0; j < warpColumns / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        const int row = firstRow + warpRow + i * 16 + lane / 4 + e / 2 * 8;
        const int column = firstColumn + warpColumn + j * 8 + lane % 4 * 2;
        MGPU_BEGIN_SUMS(row, column, sums[i][j][e], sums[i][j][e + 1]);
      }
  // Producer: all threads ask for a stage, without waiting for it.
  const auto bring = [&](int tile) {
    f16 *const toA = tileA + tile % MGPU_STAGES * stageA, *const toB = tileB + tile % MGPU_STAGES * stageB;
    const int k = tile * MGPU_DEPTH;
    for (int at = thread; at < stageA / chunk; at += threads) {
      const int row = at / (MGPU_DEPTH / chunk), step = at % (MGPU_DEPTH / chunk);
      const int inside = firstRow + row < endRow ? 96 - (k + step * chunk) : 0;
      stageChunk<IsAligned>(toA + placeChunk<MGPU_DEPTH / chunk>(row, step), inside > 0 ? &da[(firstRow + row) * 96LL + (k + step * chunk)] : da, inside);
    }
    for (int at = thread; at < stageB / chunk; at += threads) {
      const int step = at / (blockColumns / chunk), column = at % (blockColumns / chunk);
      const int inside = k + step < 96 ? endColumn - (firstColumn + column * chunk) : 0;
      stageChunk<IsAligned>(toB + placeChunk<blockColumns / chunk>(step, column), inside > 0 ? &db[(k + step) * 160LL + (firstColumn + column * chunk)] : db, inside);
    }
  };
  const int tiles = (96 + MGPU_DEPTH - 1) / MGPU_DEPTH;
  // Prologue: the first stages are on their way.
  for (int tile = 0; tile < MGPU_STAGES - 1; ++tile) {
    if (tile < tiles)
      bring(tile);
    closeCopies();
  }
  // Mainloop: a stage is multiplied while the next ones come.
  for (int tile = 0; tile < tiles; ++tile) {
    awaitCopies<MGPU_STAGES - 2>();
    __syncthreads(); // this stage is there, and nobody reads the one before it any more
    if (tile + MGPU_STAGES - 1 < tiles)
      bring(tile + MGPU_STAGES - 1);
    closeCopies();
    // Consumer: each warp multiplies its rows of A by its columns of B.
    const f16 *const fromA = tileA + tile % MGPU_STAGES * stageA, *const fromB = tileB + tile % MGPU_STAGES * stageB;
#pragma unroll
    for (int step = 0; step < MGPU_DEPTH; step += 16) {
      unsigned left[warpRows / 16][4], right[warpColumns / 8][2];
#pragma unroll
      for (int i = 0; i < warpRows / 16; ++i) // rows 0 to 7 and 8 to 15, then the same of the next 8 steps
        loadTiles(left[i], fromA + placeChunk<MGPU_DEPTH / chunk>(warpRow + i * 16 + lane % 16, step / chunk + lane / 16));
#pragma unroll
      for (int j = 0; j < warpColumns / 8; j += 2) { // steps 0 to 7 and 8 to 15, then the same of the next 8 columns
        unsigned both[4];
        loadTilesTurned(both, fromB + placeChunk<blockColumns / chunk>(step + lane % 16, (warpColumn + j * 8) / chunk + lane / 16));
        right[j][0] = both[0];
        right[j][1] = both[1];
        right[j + 1][0] = both[2];
        right[j + 1][1] = both[3];
      }
#pragma unroll
      for (int i = 0; i < warpRows / 16; ++i)
#pragma unroll
        for (int j = 0; j < warpColumns / 8; ++j)
          mmaF16(sums[i][j], left[i], right[j]);
    }
  }
  // Epilogue.
#pragma unroll
  for (int i = 0; i < warpRows / 16; ++i)
#pragma unroll
    for (int j = 0; j < warpColumns / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        const int row = firstRow + warpRow + i * 16 + lane / 4 + e / 2 * 8;
        const int column = firstColumn + warpColumn + j * 8 + lane % 4 * 2;
        MGPU_STORE_SUMS(row, column, sums[i][j][e], sums[i][j][e + 1]);
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
extern "C" __constant__ const unsigned mgpu_form_matmul_kernel0_tensor_cores[] = {
    1, MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    MGPU_BLOCK_X * MGPU_TILE_X, MGPU_BLOCK_Y * MGPU_TILE_Y, MGPU_BLOCK_Z,
    1, 1, 1, 0, MGPU_PDL};
extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
matmul_kernel0_tensor_cores(float *dc, const f16 *da, const f16 *db, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
  static __shared__ __align__(128) f16 tileA[MGPU_STAGES * stageA];
  static __shared__ __align__(128) f16 tileB[MGPU_STAGES * stageB];
  const bool isAligned = ((unsigned long long)da | (unsigned long long)db) % 16 == 0; // else threads copy one element at a time
  if (isAligned)
    matmul_kernel0_tensor_cores_block<true>(tileA, tileB, da, db, dc, launch);
  else
    matmul_kernel0_tensor_cores_block<false>(tileA, tileB, da, db, dc, launch);
}
