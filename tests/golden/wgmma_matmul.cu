// matmul_kernel0_wgmma: the launch at products.mlir:31:3.
// dc += da * db: 200 x 96 and 96 x 160, on tensor cores by warpgroups (wgmma),
// from tiles that tensor copies bring (TMA). CUDA C++ that includes nothing, for NVRTC and
// sm_90a alone. Sums are of f32, in the order of k but for the 16 steps of an instruction,
// whose order is the GPU's. Macros (-D):
//   MGPU_BLOCK_X, _Y   32, and the warps of a block: 4, 8 or 12 that multiply and one that loads
//   MGPU_TILE_X        columns of a block by 32: 2, 4 or 8
//   MGPU_TILE_Y        rows of a block by the warps that multiply: 16 or 32
//   MGPU_DEPTH         steps of k in one stage of shared memory: 64 or 128
//   MGPU_STAGES        stages, 2 to 8, which are loaded ahead
//   MGPU_TILES         tiles of rows that a block computes one after the other
//   MGPU_RASTER        blocks one above the other that are numbered before those beside them,
//                      so that what runs at once reads less of A and B together
//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor
//   MGPU_PDL           1: may be launched to begin before the kernel it follows
//                      has ended, for which it waits; from sm_90 on
// da and db are tensor maps: boxes of 64 x 64 elements, of 1 along the batch, the 128 bytes
// of a row swizzled (CU_TENSOR_MAP_SWIZZLE_128B), zeros outside.
// Launch with a block for each 32 * MGPU_TILE_X columns along x, for each MGPU_TILES *
// (MGPU_BLOCK_Y - 1) * MGPU_TILE_Y rows along y, for each product along z, and with 1024 +
// 2 * MGPU_STAGES * MGPU_DEPTH * (rows + columns of a tile) bytes of dynamic shared memory.
// A part of them is a launch of fewer blocks from block first on, or of the source's
// blocks base to end.
#ifndef MGPU_BLOCK_X
#define MGPU_BLOCK_X 32
#endif
#ifndef MGPU_BLOCK_Y
#define MGPU_BLOCK_Y 9
#endif
#ifndef MGPU_TILE_X
#define MGPU_TILE_X 4
#endif
#ifndef MGPU_TILE_Y
#define MGPU_TILE_Y 16
#endif
#ifndef MGPU_DEPTH
#define MGPU_DEPTH 64
#endif
#ifndef MGPU_STAGES
#define MGPU_STAGES 4
#endif
#ifndef MGPU_TILES
#define MGPU_TILES 1
#endif
#ifndef MGPU_RASTER
#define MGPU_RASTER 8
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
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "matmul_kernel0_wgmma: wgmma is of sm_90a alone"
#endif
enum {
  warpgroups = MGPU_BLOCK_Y / 4, // that multiply
  rowTiles = MGPU_TILE_Y / 16,   // of each, of 64 rows
  tileRows = warpgroups * rowTiles * 64,
  blockColumns = MGPU_BLOCK_X * MGPU_TILE_X,
  panelBytes = 64 * 128, // of 64 x 64 elements
  slices = MGPU_DEPTH / 64,
  panelsA = tileRows / 64,
  panelsB = blockColumns / 64,
  sliceBytes = (panelsA + panelsB) * panelBytes,
  stageBytes = slices * sliceBytes,
  numSums = blockColumns / 2 // of a thread, of 64 rows
};
static_assert(MGPU_BLOCK_X == 32 && MGPU_BLOCK_Y % 4 == 1 && MGPU_TILE_Y % 16 == 0 && MGPU_DEPTH % 64 == 0 &&
              (MGPU_TILE_X == 2 || MGPU_TILE_X == 4 || MGPU_TILE_X == 8), "");
static_assert(MGPU_STAGES >= 2 && MGPU_STAGES <= 8, "the barriers have 128 bytes");

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

struct __align__(64) MgpuTensorMap { // a CUtensorMap, which the driver makes
  unsigned long long words[16];
};

__device__ __forceinline__ unsigned sharedAddress(const void *at) {
  unsigned address;
  asm("{ .reg .u64 whole; cvta.to.shared.u64 whole, %1; cvt.u32.u64 %0, whole; }" : "=r"(address) : "l"(at));
  return address;
}
// Barriers in shared memory. A phase is over after so many arrivals, and when all bytes that
// were announced have come; phases are counted modulo 2, from 0 on.
__device__ __forceinline__ void makeBarrier(unsigned long long *barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(sharedAddress(barrier)), "r"(arrivals) : "memory");
}
// So that the copies see them; other threads do after __syncthreads().
__device__ __forceinline__ void publishBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}
__device__ __forceinline__ void arriveAt(unsigned long long *barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(sharedAddress(barrier)) : "memory");
}
__device__ __forceinline__ void arriveExpecting(unsigned long long *barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(sharedAddress(barrier)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void awaitPhase(unsigned long long *barrier, unsigned phase) {
  unsigned isOver;
  do
    asm volatile("{ .reg .pred over; mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2; selp.b32 %0, 1, 0, over; }"
        : "=r"(isOver) : "r"(sharedAddress(barrier)), "r"(phase) : "memory");
  while (isOver == 0);
}
// By one thread: a box of an array to shared memory; its bytes are told to the barrier.
__device__ __forceinline__ void loadBox(void *to, const MgpuTensorMap *from, int x, int y, int z, unsigned long long *barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
      : : "r"(sharedAddress(to)), "l"(from), "r"(x), "r"(y), "r"(z), "r"(sharedAddress(barrier)) : "memory");
}
// Products of a warpgroup run behind its back, in groups; their sums are its registers, which
// it leaves alone until they are done, and begins with a fence.
__device__ __forceinline__ void beginProducts() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void closeProducts() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
// Until at most `Open` groups are not done.
template <int Open> __device__ __forceinline__ void awaitProducts() { asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(Open) : "memory"); }
// Keep the compiler from moving a sum across, and from remembering what it knows of an index.
__device__ __forceinline__ void holdSum(float &sum) { asm volatile("" : "+f"(sum) : : "memory"); }
__device__ __forceinline__ void forgetIndex(int &index) { asm volatile("" : "+r"(index)); }
// d += a * b, of 64 rows of a by columns of b whose rows are steps of k; f16, 16 steps. The
// registers of a thread are those of the PTX ISA's fragment D.
#define MGPU_SUMS(k) "+f"(d[k]), "+f"(d[k + 1]), "+f"(d[k + 2]), "+f"(d[k + 3]), \
                     "+f"(d[k + 4]), "+f"(d[k + 5]), "+f"(d[k + 6]), "+f"(d[k + 7])
#if MGPU_TILE_X == 2
__device__ __forceinline__ void multiplyF16(float (&d)[32], unsigned long long a, unsigned long long b) {
  asm volatile("{ .reg .pred add; setp.ne.b32 add, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, add, 1, 1, 0, 1; }"
      : MGPU_SUMS(0), MGPU_SUMS(8), MGPU_SUMS(16), MGPU_SUMS(24)
      : "l"(a), "l"(b), "r"(1) : "memory");
}
#elif MGPU_TILE_X == 4
__device__ __forceinline__ void multiplyF16(float (&d)[64], unsigned long long a, unsigned long long b) {
  asm volatile("{ .reg .pred add; setp.ne.b32 add, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, add, 1, 1, 0, 1; }"
      : MGPU_SUMS(0), MGPU_SUMS(8), MGPU_SUMS(16), MGPU_SUMS(24),
        MGPU_SUMS(32), MGPU_SUMS(40), MGPU_SUMS(48), MGPU_SUMS(56)
      : "l"(a), "l"(b), "r"(1) : "memory");
}
#else
__device__ __forceinline__ void multiplyF16(float (&d)[128], unsigned long long a, unsigned long long b) {
  asm volatile("{ .reg .pred add; setp.ne.b32 add, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, add, 1, 1, 0, 1; }"
      : MGPU_SUMS(0), MGPU_SUMS(8), MGPU_SUMS(16), MGPU_SUMS(24),
        MGPU_SUMS(32), MGPU_SUMS(40), MGPU_SUMS(48), MGPU_SUMS(56),
        MGPU_SUMS(64), MGPU_SUMS(72), MGPU_SUMS(80), MGPU_SUMS(88),
        MGPU_SUMS(96), MGPU_SUMS(104), MGPU_SUMS(112), MGPU_SUMS(120)
      : "l"(a), "l"(b), "r"(1) : "memory");
}
#endif

// A tile in shared memory, in rows of 128 bytes whose 16-byte parts are swizzled: the PTX ISA's
// matrix descriptor. `stride` bytes lie between 8 rows and the next 8; of a tile whose rows are
// steps of k, `leading` bytes between 64 columns and the next 64.
__device__ __forceinline__ unsigned long long tileDescriptor(unsigned address, unsigned leading, unsigned stride) {
  return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
         (unsigned long long)(stride >> 4) << 32 | 1ull << 62;
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

extern __shared__ __align__(128) unsigned char mgpu_dynamic_shared[];

#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS
// Until the kernel before has ended and what it wrote can be read; then the next one may begin.
__device__ __forceinline__ void mgpuAwaitGrids() {
  asm volatile("griddepcontrol.wait;" : : : "memory");
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}
#endif
// How the entry is to be launched, for whoever loads it.
extern "C" __constant__ const unsigned mgpu_form_matmul_kernel0_wgmma[] = {
    1, MGPU_BLOCK_X, MGPU_BLOCK_Y, MGPU_BLOCK_Z,
    blockColumns, MGPU_TILES * tileRows, MGPU_BLOCK_Z,
    1, 1, 1, 1024 + MGPU_STAGES * stageBytes, MGPU_PDL};
extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
matmul_kernel0_wgmma(float *dc, const __grid_constant__ MgpuTensorMap da, const __grid_constant__ MgpuTensorMap db, const MgpuLaunch launch) {
#if MGPU_PDL
  mgpuAwaitGrids();
#endif
  // A stage is loaded, and then free again, in turn.
  unsigned long long *const loaded = (unsigned long long *)mgpu_dynamic_shared, *const freed = loaded + MGPU_STAGES;
  unsigned char *const stages = mgpu_dynamic_shared + (1024 - sharedAddress(mgpu_dynamic_shared) % 1024);
  const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
  // Which block of the launch this is: columns of MGPU_RASTER blocks, one after the other.
  const unsigned number = blockIdx.y * gridDim.x + blockIdx.x, group = number / (MGPU_RASTER * gridDim.x) * MGPU_RASTER;
  const unsigned left = gridDim.y - group, height = left < MGPU_RASTER ? left : MGPU_RASTER;
  const unsigned inGroup = number - group * gridDim.x, blockY = group + inGroup % height, blockX = inGroup / height;
  const int topRow = (int)launch.baseY * 8 + (int)(blockY + launch.firstY) * (MGPU_TILES * tileRows);
  const int firstColumn = (int)launch.baseX * 32 + (int)(blockX + launch.firstX) * blockColumns;
  const int batch = 0;
  const int endRow = launch.endY * 8u < 200u ? (int)launch.endY * 8 : 200;
  const int below = (endRow - topRow + tileRows - 1) / tileRows, numTiles = below < MGPU_TILES ? below : MGPU_TILES;
  int steps = (96 + MGPU_DEPTH - 1) / MGPU_DEPTH; // of a stage each
  forgetIndex(steps); // unrolled, a short loop would need more registers
  if (warp == 0 && lane == 0) {
    for (int stage = 0; stage < MGPU_STAGES; ++stage) {
      makeBarrier(loaded + stage, 1);
      makeBarrier(freed + stage, 4 * warpgroups);
    }
    publishBarriers();
  }
  __syncthreads();
  // Producer: a thread of the last warp loads for all others.
  if (warp == 4 * warpgroups) {
    for (int at = 0; lane == 0 && at < numTiles * steps; ++at) {
      const int stage = at % MGPU_STAGES, tile = at / steps;
      awaitPhase(freed + stage, at / MGPU_STAGES % 2 ^ 1); // at first, the phase before is over
      arriveExpecting(loaded + stage, stageBytes);
      unsigned char *to = stages + stage * stageBytes;
      for (int slice = 0; slice < slices; ++slice) {
        const int k = (at - tile * steps) * MGPU_DEPTH + slice * 64;
        for (int part = 0; part < panelsA; ++part, to += panelBytes)
          loadBox(to, &da, k, topRow + tile * tileRows + part * 64, batch, loaded + stage);
        for (int part = 0; part < panelsB; ++part, to += panelBytes)
          loadBox(to, &db, firstColumn + part * 64, k, batch, loaded + stage);
      }
    }
    return;
  }
  // Consumers: warpgroups of four warps, each with rows of a tile of its own.
  int endColumn = launch.endX * 32u < 160u ? (int)launch.endX * 32 : 160;
  const int firstPanel = warp / 4 * rowTiles;
  for (int tile = 0; tile < numTiles; ++tile) {
    const int firstRow = topRow + tile * tileRows;
    float sums[rowTiles][numSums];
#pragma unroll
    for (int i = 0; i < rowTiles; ++i)
#pragma unroll
      for (int e = 0; e < numSums; e += 2) {
        const int row = firstRow + (firstPanel + i) * 64 + warp % 4 * 16 + lane / 4 + e / 2 % 2 * 8;
        const int column = firstColumn + e / 4 * 8 + lane % 4 * 2;
        MGPU_BEGIN_SUMS(row, column, sums[i][e], sums[i][e + 1]);
        holdSum(sums[i][e]), holdSum(sums[i][e + 1]);
      }
    // Mainloop: a stage is multiplied, and the one before it given back.
    for (int step = 0; step < steps; ++step) {
      const int at = tile * steps + step, stage = at % MGPU_STAGES;
      awaitPhase(loaded + stage, at / MGPU_STAGES % 2);
      beginProducts();
#pragma unroll
      for (int slice = 0; slice < slices; ++slice) {
        const unsigned fromA = sharedAddress(stages) + (unsigned)(stage * stageBytes + slice * sliceBytes + firstPanel * panelBytes);
        const unsigned fromB = sharedAddress(stages) + (unsigned)(stage * stageBytes + slice * sliceBytes + panelsA * panelBytes);
#pragma unroll
        for (int part = 0; part < 4; ++part) // of 16 steps: 32 bytes of A's rows
#pragma unroll
          for (int i = 0; i < rowTiles; ++i)
            multiplyF16(sums[i], tileDescriptor(fromA + i * panelBytes + part * 32, 16, 1024),
                       tileDescriptor(fromB + part * 16 * 128, panelBytes, 1024));
      }
      closeProducts();
      awaitProducts<1>(); // of the stage before: it may be loaded again
      if (step > 0 && lane == 0)
        arriveAt(freed + (at - 1) % MGPU_STAGES);
    }
    awaitProducts<0>();
    // Epilogue, beside which the producer loads the next tile's first stages.
    if (MGPU_TILES > 1 && lane == 0)
      arriveAt(freed + ((tile + 1) * steps - 1) % MGPU_STAGES);
    forgetIndex(endColumn); // else which columns are inside would stay in registers all the while
#pragma unroll
    for (int i = 0; i < rowTiles; ++i)
#pragma unroll
      for (int e = 0; e < numSums; e += 2) {
        const int row = firstRow + (firstPanel + i) * 64 + warp % 4 * 16 + lane / 4 + e / 2 % 2 * 8;
        const int column = firstColumn + e / 4 * 8 + lane % 4 * 2;
        holdSum(sums[i][e]), holdSum(sums[i][e + 1]);
        MGPU_STORE_SUMS(row, column, sums[i][e], sums[i][e + 1]);
      }
  }
}
