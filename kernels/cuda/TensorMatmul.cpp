// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/TensorMatmul.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductText.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mgpu::kernels {

using P = planner::KernelParameter;

namespace {

constexpr const char *reasonText =
    "is a matrix product, on tensor cores, in tiles of shared memory";

constexpr uint32_t lanes = 32, instructionRows = 16;

constexpr const char *headText = R"(// $NAME$$AT$.
// $WHAT$: $BATCHES$$M$ x $K$ and $K$ x $N$, on tensor cores.
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
// MGPU_TILE_Y rows along y, for each product along z. A part of them is a launch of fewer
// blocks from block first on, or of the source's blocks base to end.
)";

constexpr const char *bodyText = R"(
struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "$NAME$: mma.sync of this shape and cp.async need sm_80 or later"
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

$HELPERS$
$SUMS$// Where chunk `at` of a row of `Chunks` lies, so that eight rows of one chunk are in different banks.
template <int Chunks> __device__ __forceinline__ int place(int row, int at) {
  const int rows = Chunks < 8 ? 8 / Chunks : 1, most = Chunks < 8 ? Chunks : 8;
  return (row * Chunks + (at ^ row / rows % most)) * chunk;
}
// Eight elements of a row to shared memory, those from `count` on zeros.
template <bool IsAligned> __device__ __forceinline__ void stage($TYPE$ *to, const $TYPE$ *from, int count) {
  count = count < 0 ? 0 : count > chunk ? chunk : count;
  if (IsAligned) {
    copyAsync(to, from, count * 2);
  } else {
    struct __align__(16) wide { $TYPE$ part[chunk]; };
    wide all;
#pragma unroll
    for (int k = 0; k < chunk; ++k)
      all.part[k] = k < count ? from[k] : $TYPE$(0.0f);
    *(wide *)to = all;
  }
}

template <bool IsAligned> __device__ __forceinline__ void
$NAME$_block($TYPE$ *tileA, $TYPE$ *tileB, const $TYPE$ *$A$, const $TYPE$ *$B$, $OTHERS$const MgpuLaunch launch) {
  const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
  const int thread = warp * MGPU_BLOCK_X + lane, threads = MGPU_BLOCK_X * MGPU_BLOCK_Y;
  const int firstRow = (int)launch.baseY * $Y$ + (int)(blockIdx.y + launch.firstY) * blockRows;
  const int firstColumn = (int)launch.baseX * $X$ + (int)(blockIdx.x + launch.firstX) * blockColumns;
  const int endRow = launch.endY * $Y$u < $M$u ? (int)launch.endY * $Y$ : $M$;
  const int endColumn = launch.endX * $X$u < $N$u ? (int)launch.endX * $X$ : $N$;
$BATCH$  const int warpRow = warp / warpsX * warpRows, warpColumn = warp % warpsX * warpColumns;
  // Sum e of this warp's tile (i, j) belongs to this row and column, and e + 1 beside it.
#define MGPU_SUM_ROW (firstRow + warpRow + i * 16 + lane / 4 + e / 2 * 8)
#define MGPU_SUM_COLUMN (firstColumn + warpColumn + j * 8 + lane % 4 * 2)
  float sums[warpRows / 16][warpColumns / 8][4];
#pragma unroll
  for (int i = 0; i < warpRows / 16; ++i)
#pragma unroll
    for (int j = 0; j < warpColumns / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        const int row = MGPU_SUM_ROW, column = MGPU_SUM_COLUMN;
        sums[i][j][e] = sums[i][j][e + 1] = 0.0f;
        if (row < endRow && column + 1 < endColumn)
          MGPU_FIRST_PAIR(row, column, sums[i][j][e], sums[i][j][e + 1]);
        else if (row < endRow && column < endColumn)
          sums[i][j][e] = MGPU_FIRST(row, column);
      }
  const auto bring = [&](int tile) {
    $TYPE$ *const toA = tileA + tile % MGPU_STAGES * stageA, *const toB = tileB + tile % MGPU_STAGES * stageB;
    const int k = tile * MGPU_DEPTH;
    for (int at = thread; at < stageA / chunk; at += threads) {
      const int row = at / (MGPU_DEPTH / chunk), step = at % (MGPU_DEPTH / chunk);
      const int inside = firstRow + row < endRow ? $K$ - (k + step * chunk) : 0;
      stage<IsAligned>(toA + place<MGPU_DEPTH / chunk>(row, step), inside > 0 ? &$AAT$ : $A$, inside);
    }
    for (int at = thread; at < stageB / chunk; at += threads) {
$BRING$    }
  };
  const int tiles = ($K$ + MGPU_DEPTH - 1) / MGPU_DEPTH;
  for (int tile = 0; tile < MGPU_STAGES - 1; ++tile) {
    if (tile < tiles)
      bring(tile);
    closeCopies();
  }
  for (int tile = 0; tile < tiles; ++tile) {
    awaitCopies<MGPU_STAGES - 2>();
    __syncthreads(); // this stage is there, and nobody reads the one before it any more
    if (tile + MGPU_STAGES - 1 < tiles)
      bring(tile + MGPU_STAGES - 1);
    closeCopies();
    const $TYPE$ *const fromA = tileA + tile % MGPU_STAGES * stageA, *const fromB = tileB + tile % MGPU_STAGES * stageB;
#pragma unroll
    for (int step = 0; step < MGPU_DEPTH; step += 16) {
      unsigned left[warpRows / 16][4], right[warpColumns / 8][2];
#pragma unroll
      for (int i = 0; i < warpRows / 16; ++i) // rows 0 to 7 and 8 to 15, then the same of the next 8 steps
        loadTiles(left[i], fromA + place<MGPU_DEPTH / chunk>(warpRow + i * 16 + lane % 16, step / chunk + lane / 16));
#pragma unroll
      for (int j = 0; j < warpColumns / 8; j += 2) { // steps 0 to 7 and 8 to 15, then the same of the next 8 columns
        unsigned both[4];
        $LOAD$;
        right[j][0] = both[0];
        right[j][1] = both[1];
        right[j + 1][0] = both[2];
        right[j + 1][1] = both[3];
      }
#pragma unroll
      for (int i = 0; i < warpRows / 16; ++i)
#pragma unroll
        for (int j = 0; j < warpColumns / 8; ++j)
          $MMA$(sums[i][j], left[i], right[j]);
    }
  }
#pragma unroll
  for (int i = 0; i < warpRows / 16; ++i)
#pragma unroll
    for (int j = 0; j < warpColumns / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        const int row = MGPU_SUM_ROW, column = MGPU_SUM_COLUMN;
        if (row < endRow && column + 1 < endColumn)
          MGPU_STORE_PAIR(row, column, sums[i][j][e], sums[i][j][e + 1]);
        else if (row < endRow && column < endColumn)
          MGPU_STORE(row, column, sums[i][j][e]);
      }
}

$AWAITER$extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
$NAME$($PARAMETERS$const MgpuLaunch launch) {
$AWAIT$  static __shared__ __align__(128) $TYPE$ tileA[MGPU_STAGES * stageA];
  static __shared__ __align__(128) $TYPE$ tileB[MGPU_STAGES * stageB];
$CALL$}
)";

/// How a chunk of B comes to shared memory, and the address of a lane's row of
/// it: B lies there as in memory, by steps of k, or by columns where it is
/// turned.
constexpr const char *bringRows =
    R"(      const int step = at / (blockColumns / chunk), column = at % (blockColumns / chunk);
      const int inside = k + step < $K$ ? endColumn - (firstColumn + column * chunk) : 0;
      stage<IsAligned>(toB + place<blockColumns / chunk>(step, column), inside > 0 ? &$BAT$ : $B$, inside);
)";
constexpr const char *loadRows =
    "loadTilesTurned(both, fromB + place<blockColumns / chunk>(step + lane % "
    "16, (warpColumn + j * 8) / chunk + lane / 16))";
constexpr const char *bringColumns =
    R"(      const int column = at / (MGPU_DEPTH / chunk), step = at % (MGPU_DEPTH / chunk);
      const int inside = firstColumn + column < endColumn ? $K$ - (k + step * chunk) : 0;
      stage<IsAligned>(toB + place<MGPU_DEPTH / chunk>(column, step), inside > 0 ? &$BAT$ : $B$, inside);
)";
constexpr const char *loadColumns =
    "loadTiles(both, fromB + place<MGPU_DEPTH / chunk>(warpColumn + j * 8 + "
    "lane / 16 * 8 + lane % 8, step / chunk + lane / 8 % 2))";

/// Whether rows begin at multiples of 16 bytes, if the matrix does.
bool hasAlignedRows(const cuda::MatmulOperand &matrix) {
  return matrix.rowStride % 8 == 0 && matrix.offset % 8 == 0 &&
         (matrix.batch == 1 || matrix.batchStride % 8 == 0);
}

} // namespace

std::string tensorMatmulRefusal(ModuleOp kernel) {
  auto product = cuda::matmulShapeOf(kernel);
  if (!product)
    return "-";
  Type element = product->a.element, sum = product->c.element;
  if ((!element.isF16() && !element.isBF16()) || product->b.element != element)
    return "-";
  if (!sum.isF32() && sum != element)
    return "sums are of f32 or of the factors' type";
  if (product->a.columnStride != 1 ||
      (product->b.columnStride != 1 && !product->isTurned()))
    return "a row of A or B is not contiguous";
  return "";
}

planner::KernelSpace tensorMatmulSpace(ModuleOp kernel, Dim3 block,
                                       Dim3 maxGrid) {
  cuda::MatmulShape product = *cuda::matmulShapeOf(kernel);
  // 128 x 128 by 8 warps, less where the product is smaller.
  auto fit = [](int64_t extent, uint32_t unit, uint32_t least, uint32_t most) {
    return uint32_t(std::clamp<int64_t>(
        int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(extent, unit))), least,
        most));
  };
  planner::KernelConfig defaults;
  defaults[P::BlockX] = lanes;
  defaults[P::BlockY] = product.n() > 32 ? 8 : 4;
  defaults[P::TileX] =
      fit(product.n(), lanes, defaults[P::BlockY] == 8 ? 2 : 1, 4);
  defaults[P::TileY] = fit(product.m(), defaults[P::BlockY],
                           2 * instructionRows / defaults[P::BlockY], 16);
  planner::KernelSpace space =
      cuda::tileSpace(defaults, block, maxGrid, reasonText,
                      {{"MGPU_DEPTH", {32, 16, 64}},
                       {"MGPU_STAGES", {3, 2, 4}},
                       {"MGPU_WARPS_Y", {2, 1, 4}}});
  space.offer(P::BlockY, {4, 8, 16});
  space.offer(P::TileX, {1, 2, 4, 8});
  space.offer(P::TileY, {2, 4, 8, 16, 32});
  space.offer(P::MinBlocks, {1, 2, 3, 4});
  using planner::Formula, planner::Relation;
  const Formula depth = Formula::tunable(0), stages = Formula::tunable(1),
                warpsY = Formula::tunable(2), tile = instructionRows;
  space.sharedBytes = Formula(cuda::widthOf(product.a.element) / 8) *
                      (space.covers[0] + space.covers[1]) * depth * stages;
  space.requireLaunch();
  // Warps lie in warpsY rows of blockY / warpsY.
  const char *whole = "whole tiles of a warp";
  space.require(whole, P::BlockY, Relation::MultipleOf, warpsY,
                "$left warps do not lie in $right rows");
  space.require(whole, space.covers[0] * warpsY, Relation::MultipleOf,
                P::BlockY * tile,
                "the warps of a row do not divide the columns of a block in "
                "tiles of 16 x 16");
  space.require(whole, space.covers[1], Relation::MultipleOf, warpsY * tile,
                "the rows of warps do not divide $left rows of a block in "
                "tiles of 16 x 16");
  space.requireStaticShared();
  return space;
}

Result<CudaKernel> emitTensorMatmul(ModuleOp module,
                                    const CudaEmitOptions &options) {
  planner::KernelSpace space =
      tensorMatmulSpace(module, options.block, options.maxGrid);
  cuda::ProductText text(
      module, options, space,
      "sum left right before firstRow firstColumn sums tileA tileB launch "
      "thread threads "
      "endRow k step i j e at endColumn warp lane tile tiles bring "
      "fromA fromB toA toB left right both inside warpRow "
      "warpColumn place stage copyAsync closeCopies awaitCopies "
      "loadTiles loadTilesTurned sharedAddress isAligned blockRows "
      "blockColumns warpsX warpRows warpColumns chunk stageA stageB");
  const cuda::MatmulShape &product = text.product;
  const bool isHalf = product.a.element.isF16();
  for (const char *each :
       {isHalf ? "f16" : "bf16", "loadTiles", isHalf ? "mmaF16" : "mmaBf16"})
    text.helpers.use(each);
  if (failed(text.prepare()))
    return fail(ErrorKind::Unsupported, "");
  const std::string &a = text.a, &b = text.b, &name = text.kernel.name;
  std::string arguments =
      "tileA, tileB, " + a + ", " + b + ", " + text.words["PASSED"] + "launch";
  std::string call = "  " + name + "_block<false>(" + arguments + ");\n";
  if (hasAlignedRows(product.a) && hasAlignedRows(product.storedB()))
    call =
        "  const bool isAligned = ((unsigned long long)" + a +
        " | (unsigned long long)" + b + ") % 16 == 0" +
        (options.block.x % 8 ? " && launch.baseX * " +
                                   std::to_string(options.block.x) + " % 8 == 0"
                             : "") +
        ";\n"
        "  if (isAligned)\n    " +
        name + "_block<true>(" + arguments + ");\n  else\n  " + call;
  text.words["BATCH"] = product.c.batch > 1
                            ? "  const int batch = (int)(launch.baseZ + "
                              "blockIdx.z + launch.firstZ);\n"
                            : "";
  text.words["MMA"] = isHalf ? "mmaF16" : "mmaBf16";
  text.words["CALL"] = call;
  text.words["AAT"] = product.a.at(a, "firstRow + row", "k + step * chunk");
  const bool byRows = product.isTurned();
  const std::string column = "firstColumn + column", step = "k + step";
  text.words["BAT"] = byRows
                          ? product.storedB().at(b, column, step + " * chunk")
                          : product.b.at(b, step, column + " * chunk");
  text.words["BRING"] =
      cuda::fill(byRows ? bringColumns : bringRows, text.words);
  text.words["LOAD"] = byRows ? loadColumns : loadRows;
  return text.write(headText, bodyText);
}

} // namespace mgpu::kernels
