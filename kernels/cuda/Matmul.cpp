// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/Matmul.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductText.h"

#include "llvm/Support/MathExtras.h"

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

/// Elements of a thread along an axis, where a block has 16 threads along it.
uint32_t tileOf(int64_t extent) {
  constexpr int64_t threads = 16, most = 4;
  return uint32_t(std::clamp<int64_t>(
      int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(extent, threads))), 1, most));
}

constexpr uint32_t defaultThreads = 16, defaultDepth = 16;
constexpr const char *depthName = "MGPU_DEPTH";

constexpr const char *tileHead = R"(// $NAME$$AT$.
// $WHAT$: $BATCHES$$M$ x $K$ and $K$ x $N$, tiled through shared memory.
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
)";

constexpr const char *tileBody = R"(
struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};

$HELPERS$$AWAITER$extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
$NAME$($PARAMETERS$const MgpuLaunch launch) {
$AWAIT$  const int rows = MGPU_BLOCK_Y * MGPU_TILE_Y, columns = MGPU_BLOCK_X * MGPU_TILE_X;
  const int threads = MGPU_BLOCK_X * MGPU_BLOCK_Y;
  static __shared__ $TYPE$ tileA[MGPU_DEPTH][MGPU_BLOCK_Y * MGPU_TILE_Y + 1]; // + 1: a column is in all banks
  static __shared__ $TYPE$ tileB[MGPU_DEPTH][MGPU_BLOCK_X * MGPU_TILE_X];
  const int thread = (int)(threadIdx.y * MGPU_BLOCK_X + threadIdx.x);
  const int firstRow = (int)launch.baseY * $Y$ + (int)(blockIdx.y + launch.firstY) * rows;
  const int firstColumn = (int)launch.baseX * $X$ + (int)(blockIdx.x + launch.firstX) * columns;
  const int endRow = launch.endY * $Y$u < $M$u ? (int)launch.endY * $Y$ : $M$;
  const int endColumn = launch.endX * $X$u < $N$u ? (int)launch.endX * $X$ : $N$;
$BATCH$  $TYPE$ sums[MGPU_TILE_Y][MGPU_TILE_X];
$EACH$      sums[i][j] = row < endRow && column < endColumn ? $FIRST$ : 0;
    }
  for (int k = 0; k < $K$; k += MGPU_DEPTH) {
    for (int at = thread; at < rows * MGPU_DEPTH; at += threads) {
      const int row = at / MGPU_DEPTH, step = at % MGPU_DEPTH;
      tileA[step][row] = firstRow + row < endRow && k + step < $K$ ? $AAT$ : 0;
    }
    for (int at = thread; at < columns * MGPU_DEPTH; at += threads) {
      const int step = at / columns, column = at % columns;
      tileB[step][column] = firstColumn + column < endColumn && k + step < $K$ ? $BAT$ : 0;
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < MGPU_DEPTH; ++step) {
      if ($K$ % MGPU_DEPTH != 0 && k + step >= $K$) // no zeros are added: they would change -0
        break;
#pragma unroll
      for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
        for (int j = 0; j < MGPU_TILE_X; ++j)
          sums[i][j] += tileA[step][i * MGPU_BLOCK_Y + threadIdx.y] * tileB[step][j * MGPU_BLOCK_X + threadIdx.x];
    }
    __syncthreads(); // before the tiles are filled again
  }
$EACH$      if (row < endRow && column < endColumn)
        $STORE$sums[i][j]$END$;
    }
}
)";

/// The element of C that belongs to (i, j) of this thread, inside or not.
constexpr const char *eachSum = R"(#pragma unroll
  for (int i = 0; i < MGPU_TILE_Y; ++i)
#pragma unroll
    for (int j = 0; j < MGPU_TILE_X; ++j) {
      const int row = firstRow + i * MGPU_BLOCK_Y + (int)threadIdx.y;
      const int column = firstColumn + j * MGPU_BLOCK_X + (int)threadIdx.x;
)";

} // namespace

bool isMatmul(ModuleOp kernel) { return productOf(kernel).has_value(); }

planner::KernelSpace matmulSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  cuda::MatmulShape product = *productOf(kernel);
  planner::KernelConfig defaults;
  defaults[P::BlockX] = defaults[P::BlockY] = defaultThreads;
  defaults[P::TileX] = tileOf(product.n());
  defaults[P::TileY] = tileOf(product.m());
  planner::KernelSpace space =
      cuda::tileSpace(defaults, block, maxGrid,
                      "is a matrix product, in tiles of shared memory",
                      {{depthName, {defaultDepth, 8, 32}}});
  space.offer(P::BlockX, {8, 16, 32});
  space.offer(P::BlockY, {4, 8, 16});
  space.offer(P::TileX, {1, 2, 4, 8});
  space.offer(P::TileY, {1, 2, 4, 8});
  space.offer(P::MinBlocks, {1, 2, 3, 4});
  // One element more puts a column of A's tile in all banks.
  space.sharedBytes = planner::Formula(cuda::widthOf(product.a.element) / 8) *
                      (space.covers[0] + space.covers[1] + 1) *
                      planner::Formula::tunable(0);
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
      "columns endRow endColumn k step i j at");
  if (failed(text.prepare()))
    return fail(ErrorKind::Unsupported, "");
  const cuda::MatmulShape &product = text.product;
  text.words["EACH"] = eachSum;
  text.words["BATCH"] = product.c.batch > 1
                            ? "  const int batch = (int)(launch.baseZ + "
                              "blockIdx.z + launch.firstZ);\n"
                            : "";
  text.words["AAT"] = product.a.at(text.a, "firstRow + row", "k + step");
  text.words["BAT"] = product.b.at(text.b, "k + step", "firstColumn + column");
  return text.write(tileHead, tileBody);
}

} // namespace mgpu::kernels
