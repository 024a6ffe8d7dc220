// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/Matmul.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductText.h"

#include <optional>

using namespace mlir;

namespace mgpu::kernels {

using P = planner::KernelParameter;

namespace {

/// The product, if it is of a type that the text is for.
std::optional<cuda::MatmulShape> productOf(ModuleOp kernel) {
  auto product = cuda::matmulShapeOf(kernel);
  if (!product)
    return std::nullopt;
  Type element = product->c.element;
  if ((!element.isF32() && !element.isF64()) || product->a.element != element ||
      product->b.element != element)
    return std::nullopt;
  return product;
}

constexpr const char *depthName = "MGPU_DEPTH";

constexpr const char *tileHead = R"(// $NAME$$AT$.
// $WHAT$: $BATCHES$$M$ x $K$ and $K$ x $N$, tiled through shared memory.
// CUDA C++ that includes nothing, for NVRTC. Each element adds in order of k, so
// that with --fmad=false the bits are those of the source under all macros (-D):
//   MGPU_BLOCK_X, _Y   threads of a block along columns and rows
//   MGPU_TILE_X, _Y    elements of one thread along them
//   MGPU_DEPTH         steps of k in one stage of shared memory
//   MGPU_STAGES        stages: 2, or 1, for which threads wait once more
//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor
//   MGPU_PDL           1: may be launched to begin before the kernel it follows
//                      has ended, for which it waits; from sm_90 on
// Launch with a block for each MGPU_BLOCK_X * MGPU_TILE_X columns along x, for
// each MGPU_BLOCK_Y * MGPU_TILE_Y rows along y, for each product along z. A part
// of them is a launch of fewer blocks from block first on, or of the source's
// blocks base to end.
)";

constexpr const char *tileBody = R"(
struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};

static_assert(MGPU_BLOCK_X * MGPU_BLOCK_Y % MGPU_DEPTH == 0, "a copy of each thread is of one step of k");
// The place of element (i, j) of a thread within the block.
#define MGPU_ROW(i) ((i) / packA * MGPU_BLOCK_Y * packA + (int)threadIdx.y * packA + (i) % packA)
#define MGPU_COLUMN(j) ((j) / packB * MGPU_BLOCK_X * packB + (int)threadIdx.x * packB + (j) % packB)

$HELPERS$$AWAITER$extern "C" __global__ void
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
  const int endRow = launch.endY * $Y$u < $M$u ? (int)launch.endY * $Y$ : $M$;
  const int endColumn = launch.endX * $X$u < $N$u ? (int)launch.endX * $X$ : $N$;
$BATCH$  // Copy p of a thread is of this row and step of A, and of this step and column of B.
#define MGPU_ROW_A(p) (thread / MGPU_DEPTH + (p) * (threads / MGPU_DEPTH))
$BCOPIES$  const int stepA = thread % MGPU_DEPTH;
  const int copiesA = (rows * MGPU_DEPTH + threads - 1) / threads, copiesB = (columns * MGPU_DEPTH + threads - 1) / threads;
  $TYPE$ sums[MGPU_TILE_Y][MGPU_TILE_X], nextA[copiesA], nextB[copiesB];
$EACH$      sums[i][j] = row < endRow && column < endColumn ? $FIRST$ : 0;
    }
  const $TYPE$ *fromA = &$AAT$, *fromB = &$BAT$;
  // While a tile is multiplied the next one comes to registers, and then to shared memory.
  for (int k = -MGPU_DEPTH, stage = MGPU_STAGES - 1; k < $K$; k += MGPU_DEPTH) {
    const int left = $K$ - MGPU_DEPTH - k; // steps of the next tiles
#pragma unroll
    for (int p = 0; p < copiesA; ++p)
      nextA[p] = MGPU_ROW_A(p) < rows && firstRow + MGPU_ROW_A(p) < endRow && stepA < left ? fromA[p * (threads / MGPU_DEPTH) * $AROWS$LL] : 0;
#pragma unroll
    for (int p = 0; p < copiesB; ++p)
      nextB[p] = $BINSIDE$ && firstColumn + MGPU_COLUMN_B(p) < endColumn && MGPU_STEP_B(p) < left
                     ? fromB[$BNEXT$] : 0;
    fromA += MGPU_DEPTH * $ACOLUMNS$LL;
    fromB += MGPU_DEPTH * $BROWS$LL;
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
$EACH$      if (row < endRow && column < endColumn)
        $STORE$sums[i][j]$END$;
    }
}
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

/// The element of C that belongs to (i, j) of this thread, inside or not.
constexpr const char *eachSum = R"(#pragma unroll
  for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
    for (int j = 0; j < MGPU_TILE_X; ++j) {
      const int row = firstRow + MGPU_ROW(i), column = firstColumn + MGPU_COLUMN(j);
)";

} // namespace

bool isMatmul(ModuleOp kernel) { return productOf(kernel).has_value(); }

planner::KernelSpace matmulSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  cuda::MatmulShape product = *productOf(kernel);
  const planner::TileForm form = planner::tilesByDefault(product.sizes());
  planner::KernelConfig defaults;
  defaults[P::BlockX] = form.blockX;
  defaults[P::BlockY] = form.blockY;
  defaults[P::TileX] = form.tileX;
  defaults[P::TileY] = form.tileY;
  planner::KernelSpace space = cuda::tileSpace(
      defaults, block, maxGrid,
      "is a matrix product, in tiles of shared memory",
      {{depthName, {form.depth, 8, 32}}, {"MGPU_STAGES", {form.stages, 1}}});
  space.offer(P::BlockX, {8, 16, 32});
  space.offer(P::BlockY, {4, 8, 16});
  space.offer(P::TileX, {1, 2, 4, 8});
  space.offer(P::TileY, {1, 2, 4, 8});
  space.offer(P::MinBlocks, {1, 2, 3, 4});
  // 16 bytes more put a column of A's tile, or of a turned B's, in more banks.
  const uint32_t width = cuda::widthOf(product.a.element) / 8,
                 more = (product.isTurned() ? 32 : 16) / width;
  space.sharedBytes =
      planner::Formula(width) * (space.covers[0] + space.covers[1] + more) *
      planner::Formula::tunable(0) * planner::Formula::tunable(1);
  space.requireLaunch();
  space.requireStaticShared();
  return space;
}

Result<CudaKernel> emitMatmul(ModuleOp module, const CudaEmitOptions &options) {
  planner::KernelSpace space =
      matmulSpace(module, options.block, options.maxGrid);
  cuda::ProductText text(
      module, options, space,
      "firstRow firstColumn sums tileA tileB launch thread threads rows "
      "columns endRow endColumn k step i j p most packA packB across stepA "
      "copiesA copiesB nextA nextB fromA fromB partA partB stage left");
  if (failed(text.prepare()))
    return fail(ErrorKind::Unsupported, "");
  const cuda::MatmulShape &product = text.product;
  text.words["EACH"] = eachSum;
  text.words["BATCH"] = product.c.batch > 1
                            ? "  const int batch = (int)(launch.baseZ + "
                              "blockIdx.z + launch.firstZ);\n"
                            : "";
  text.words["ADD"] = product.addsByFma()
                          ? "sums[i][j] = fmaf(partA[i], partB[j], sums[i][j])"
                          : "sums[i][j] += partA[i] * partB[j]";
  text.words["AAT"] = product.a.at(text.a, "firstRow + MGPU_ROW_A(0)", "stepA");
  text.words["BAT"] =
      product.b.at(text.b, "MGPU_STEP_B(0)", "firstColumn + MGPU_COLUMN_B(0)");
  text.words["AROWS"] = std::to_string(product.a.rowStride);
  text.words["ACOLUMNS"] = std::to_string(product.a.columnStride);
  text.words["BROWS"] = std::to_string(product.b.rowStride);
  text.words["BCOLUMNS"] = std::to_string(product.b.columnStride);
  const CopiesOfB &copies = product.isTurned() ? byColumns : byRows;
  text.words["BCOPIES"] = copies.places;
  text.words["BINSIDE"] = copies.isInside;
  text.words["BNEXT"] = cuda::fill(copies.next, text.words);
  text.words["BPAD"] = cuda::fill(copies.pad, text.words);
  return text.write(tileHead, tileBody);
}

} // namespace mgpu::kernels
