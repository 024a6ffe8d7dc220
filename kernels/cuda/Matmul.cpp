// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product of two matrices of f32 or f64 by threads. Tiles of A and B lie in
// shared memory, in one or two stages, and each thread keeps MGPU_TILE_Y x
// MGPU_TILE_X sums in registers, to which it adds in order of k. No thread has
// a role of its own: in the main loop all of them are producers, then
// consumers.
#include "kernels/cuda/ProductForms.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductText.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

constexpr const char *tileHead = R"(// $NAME$$AT$.
// $WHAT$: $BATCHES$$M$ x $K$ and $K$ x $N$, tiled through shared memory.
// CUDA C++ that includes nothing, for NVRTC. Each element adds in order of k, so
// that with --fmad=false the bits are those of the source under all macros (-D):
//   MGPU_BLOCK_X, _Y   threads of a block along columns and rows
//   MGPU_TILE_X, _Y    elements of one thread along them
//   MGPU_DEPTH         steps of k in one stage of shared memory
//   MGPU_STAGES        stages: 2, or 1, for which threads wait once more
$MACROS$// Launch with a block for each MGPU_BLOCK_X * MGPU_TILE_X columns along x, for each
// MGPU_BLOCK_Y * MGPU_TILE_Y rows along y, for each product along z.
$PARTS$)";

/// The element of C that belongs to sum (i, j) of a thread, inside or not.
constexpr const char *eachTileSum = R"(#pragma unroll
  for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
    for (int j = 0; j < MGPU_TILE_X; ++j) {
      const int row = firstRow + MGPU_ROW(i), column = firstColumn + MGPU_COLUMN(j);
)";

/// How a block's copies of B lie: along its rows, or along its columns where
/// those are contiguous, which puts a column of the tile in more banks.
struct CopiesOfB {
  const char *places, *isInside, *next, *pad;
};
constexpr CopiesOfB byRows{
    R"(#define MGPU_STEP_B(p) (thread / across + (p) / (columns / across) * (threads / across))
#define MGPU_COLUMN_B(p) (thread % across + (p) % (columns / across) * across)
  const int across = columns < threads ? columns : threads;
)",
    "MGPU_STEP_B(p) < MGPU_DEPTH",
    "p / (columns / across) * (threads / across) * $BROWS$LL + p % (columns / "
    "across) * across * $BCOLUMNS$LL",
    ""};
constexpr CopiesOfB byColumns{
    R"(#define MGPU_STEP_B(p) (thread % MGPU_DEPTH)
#define MGPU_COLUMN_B(p) (thread / MGPU_DEPTH + (p) * (threads / MGPU_DEPTH))
)",
    "MGPU_COLUMN_B(p) < columns", "p * (threads / MGPU_DEPTH) * $BCOLUMNS$LL",
    " + 16 / sizeof($TYPE$)"};

constexpr const char *tileBody = R"(
$LAUNCH$
static_assert(MGPU_BLOCK_X * MGPU_BLOCK_Y % MGPU_DEPTH == 0, "a copy of each thread is of one step of k");
// The place of element (i, j) of a thread within the block.
#define MGPU_ROW(i) ((i) / packA * MGPU_BLOCK_Y * packA + (int)threadIdx.y * packA + (i) % packA)
#define MGPU_COLUMN(j) ((j) / packB * MGPU_BLOCK_X * packB + (int)threadIdx.x * packB + (j) % packB)

$HELPERS$$AWAITER$$FORM$extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
$NAME$($PARAMETERS$const MgpuLaunch launch) {
$AWAIT$  const int rows = MGPU_BLOCK_Y * MGPU_TILE_Y, columns = MGPU_BLOCK_X * MGPU_TILE_X;
  const int threads = MGPU_BLOCK_X * MGPU_BLOCK_Y;
  // Elements of a thread that lie together, 16 bytes at most: one access of a tile loads them.
  const int most = 16 / (int)sizeof($TYPE$);
  const int packA = MGPU_TILE_Y < most ? MGPU_TILE_Y : most, packB = MGPU_TILE_X < most ? MGPU_TILE_X : most;
  static __shared__ __align__(16) $TYPE$ tileA[MGPU_STAGES][MGPU_DEPTH][MGPU_BLOCK_Y * MGPU_TILE_Y + 16 / sizeof($TYPE$)]; // so a column is in more banks
  static __shared__ __align__(16) $TYPE$ tileB[MGPU_STAGES][MGPU_DEPTH][MGPU_BLOCK_X * MGPU_TILE_X$BPAD$];
  const int thread = (int)(threadIdx.y * MGPU_BLOCK_X + threadIdx.x);
  const int firstRow = (int)launch.baseY * $Y$ + (int)(blockIdx.y + launch.firstY) * rows;
  const int firstColumn = (int)launch.baseX * $X$ + (int)(blockIdx.x + launch.firstX) * columns;
  const int endRow = $END_ROW$;
  const int endColumn = $END_COLUMN$;
$BATCH_LINE$  // Copy p of a thread is of this row and step of A, and of this step and column of B.
#define MGPU_ROW_A(p) (thread / MGPU_DEPTH + (p) * (threads / MGPU_DEPTH))
$BCOPIES$  const int stepA = thread % MGPU_DEPTH;
  const int copiesA = (rows * MGPU_DEPTH + threads - 1) / threads, copiesB = (columns * MGPU_DEPTH + threads - 1) / threads;
  // The sums begin.
  $TYPE$ sums[MGPU_TILE_Y][MGPU_TILE_X], nextA[copiesA], nextB[copiesB];
$EACH_SUM$      sums[i][j] = row < endRow && column < endColumn ? $FIRST$ : 0;
    }
  const $TYPE$ *fromA = &$AAT$, *fromB = &$BAT$;
  // Mainloop: while a tile is multiplied, the next one comes to registers, and then to shared memory.
  for (int k = -MGPU_DEPTH, stage = MGPU_STAGES - 1; k < $K$; k += MGPU_DEPTH) {
    // Producer: each thread asks for its elements of the next tiles.
    const int left = $K$ - MGPU_DEPTH - k; // steps of those tiles
#pragma unroll
    for (int p = 0; p < copiesA; ++p)
      nextA[p] = MGPU_ROW_A(p) < rows && firstRow + MGPU_ROW_A(p) < endRow && stepA < left ? fromA[p * (threads / MGPU_DEPTH) * $AROWS$LL] : 0;
#pragma unroll
    for (int p = 0; p < copiesB; ++p)
      nextB[p] = $BINSIDE$ && firstColumn + MGPU_COLUMN_B(p) < endColumn && MGPU_STEP_B(p) < left
                     ? fromB[$BNEXT$] : 0;
    fromA += MGPU_DEPTH * $ACOLUMNS$LL;
    fromB += MGPU_DEPTH * $BROWS$LL;
    // Consumer: each thread adds this tile's steps to its sums.
    if (k >= 0) {
#pragma unroll
      for (int step = 0; step < MGPU_DEPTH; ++step) {
        if ($K$ % MGPU_DEPTH != 0 && k + step >= $K$) // no zeros are added: they would change -0
          break;
        $TYPE$ partA[MGPU_TILE_Y], partB[MGPU_TILE_X];
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
            $ADD$;
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
      if ($BINSIDE$)
        tileB[stage][MGPU_STEP_B(p)][MGPU_COLUMN_B(p)] = nextB[p];
    __syncthreads();
  }
  // Epilogue.
$EACH_SUM$      if (row < endRow && column < endColumn)
        $STORE$sums[i][j]$END$;
    }
}
)";

} // namespace

Result<CudaKernel> emitMatmul(ModuleOp module, const CudaEmitOptions &options) {
  KernelSpace space = matmulSpace(module, options.block, options.maxGrid);
  cuda::ProductText text(
      module, options, space,
      "firstRow firstColumn sums tileA tileB launch thread threads rows "
      "columns endRow endColumn k step i j p most packA packB across stepA "
      "copiesA copiesB nextA nextB fromA fromB partA partB stage left");
  if (failed(text.prepare()))
    return fail(ErrorKind::Unsupported, "");
  const ir::ProductAttr product = text.product;
  const CopiesOfB &copies = product.getTurned() ? byColumns : byRows;
  const std::string fma = product.getC().isF64() ? "fma" : "fmaf";
  text.add(
      {{"EACH_SUM", eachTileSum},
       {"ADD", cuda::addsByFma(text.entry, text.loop)
                   ? "sums[i][j] = " + fma + "(partA[i], partB[j], sums[i][j])"
                   : "sums[i][j] += partA[i] * partB[j]"},
       {"AAT", cuda::elementAt(product.matrixA(), text.a,
                               "firstRow + MGPU_ROW_A(0)", "stepA")},
       {"BAT", cuda::elementAt(product.matrixB(), text.b, "MGPU_STEP_B(0)",
                               "firstColumn + MGPU_COLUMN_B(0)")},
       {"AROWS", std::to_string(product.matrixA().getRowStride())},
       {"ACOLUMNS", std::to_string(product.matrixA().getColumnStride())},
       {"BROWS", std::to_string(product.matrixB().getRowStride())},
       {"BCOLUMNS", std::to_string(product.matrixB().getColumnStride())}});
  text.add({{"BCOPIES", copies.places},
            {"BINSIDE", copies.isInside},
            {"BNEXT", copies.next},
            {"BPAD", copies.pad}});
  return text.write(tileHead, tileBody);
}

} // namespace mgpu::kernels
