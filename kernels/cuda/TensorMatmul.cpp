// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product of two matrices of f16 or bf16 on tensor cores by warps
// (mma.sync), for sm_80 and later. A block's tiles of A and B lie in shared
// memory, MGPU_STAGES of them, and come by copies that run ahead (cp.async).
// All threads are producers, a chunk of 16 bytes each; all warps are consumers,
// each of some tiles of 16 x 16 sums, which its registers hold to the epilogue.
#include "kernels/cuda/ProductForms.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductText.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

constexpr const char *mmaHead = R"(// $NAME$$AT$.
// $WHAT$: $BATCHES$$M$ x $K$ and $K$ x $N$, on tensor cores.
// CUDA C++ that includes nothing, for NVRTC and sm_80 or later. Sums are of f32, in the
// order of k but for the 16 steps of an instruction, whose order is the GPU's. Macros (-D):
//   MGPU_BLOCK_X, _Y   32, and the warps of a block
//   MGPU_TILE_X, _Y    columns of a block by 32, and its rows by MGPU_BLOCK_Y
//   MGPU_WARPS_Y       warps that lie one above the other
//   MGPU_DEPTH         steps of k in one stage of shared memory: 16, 32 or 64
//   MGPU_STAGES        stages, of which all but one are on their way; at least 2
$MACROS$// Launch with a block for each 32 * MGPU_TILE_X columns along x, for each MGPU_BLOCK_Y *
// MGPU_TILE_Y rows along y, for each product along z.
$PARTS$)";

/// A warp's sums e and e + 1 of tile (i, j), and which elements of C they are.
constexpr const char *eachMmaPair = R"(#pragma unroll
  for (int i = 0; i < warpRows / 16; ++i)
#pragma unroll
    for (int j = 0; j < warpColumns / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        const int row = firstRow + warpRow + i * 16 + lane / 4 + e / 2 * 8;
        const int column = firstColumn + warpColumn + j * 8 + lane % 4 * 2;
)";

/// How a chunk of B comes to shared memory, and four tiles of it to registers:
/// it lies there by steps of k or, where B is turned, by columns.
struct ChunksOfB {
  const char *bring, *load;
};
constexpr ChunksOfB bySteps{
    R"(      const int step = at / (blockColumns / chunk), column = at % (blockColumns / chunk);
      const int inside = k + step < $K$ ? endColumn - (firstColumn + column * chunk) : 0;
      stageChunk<IsAligned>(toB + placeChunk<blockColumns / chunk>(step, column), inside > 0 ? &$BAT$ : $B$, inside);
)",
    R"(loadTilesTurned(both, fromB + placeChunk<blockColumns / chunk>(step + lane % 16, (warpColumn + j * 8) / chunk + lane / 16)))"};
constexpr ChunksOfB byColumn{
    R"(      const int column = at / (MGPU_DEPTH / chunk), step = at % (MGPU_DEPTH / chunk);
      const int inside = firstColumn + column < endColumn ? $K$ - (k + step * chunk) : 0;
      stageChunk<IsAligned>(toB + placeChunk<MGPU_DEPTH / chunk>(column, step), inside > 0 ? &$BAT$ : $B$, inside);
)",
    R"(loadTiles(both, fromB + placeChunk<MGPU_DEPTH / chunk>(warpColumn + j * 8 + lane / 16 * 8 + lane % 8, step / chunk + lane / 8 % 2)))"};

constexpr const char *mmaBody = R"(
$LAUNCH$#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
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
$SUMS$template <bool IsAligned> __device__ __forceinline__ void
$NAME$_block($TYPE$ *tileA, $TYPE$ *tileB, const $TYPE$ *$A$, const $TYPE$ *$B$, $OTHERS$const MgpuLaunch launch) {
  const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
  const int thread = warp * MGPU_BLOCK_X + lane, threads = MGPU_BLOCK_X * MGPU_BLOCK_Y;
  const int firstRow = (int)launch.baseY * $Y$ + (int)(blockIdx.y + launch.firstY) * blockRows;
  const int firstColumn = (int)launch.baseX * $X$ + (int)(blockIdx.x + launch.firstX) * blockColumns;
  const int endRow = $END_ROW$;
  const int endColumn = $END_COLUMN$;
$BATCH_LINE$  const int warpRow = warp / warpsX * warpRows, warpColumn = warp % warpsX * warpColumns;
  float sums[warpRows / 16][warpColumns / 8][4];
$EACH_PAIR$        MGPU_BEGIN_SUMS(row, column, sums[i][j][e], sums[i][j][e + 1]);
      }
  // Producer: all threads ask for a stage, without waiting for it.
  const auto bring = [&](int tile) {
    $TYPE$ *const toA = tileA + tile % MGPU_STAGES * stageA, *const toB = tileB + tile % MGPU_STAGES * stageB;
    const int k = tile * MGPU_DEPTH;
    for (int at = thread; at < stageA / chunk; at += threads) {
      const int row = at / (MGPU_DEPTH / chunk), step = at % (MGPU_DEPTH / chunk);
      const int inside = firstRow + row < endRow ? $K$ - (k + step * chunk) : 0;
      stageChunk<IsAligned>(toA + placeChunk<MGPU_DEPTH / chunk>(row, step), inside > 0 ? &$AAT$ : $A$, inside);
    }
    for (int at = thread; at < stageB / chunk; at += threads) {
$BRING$    }
  };
  const int tiles = ($K$ + MGPU_DEPTH - 1) / MGPU_DEPTH;
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
    const $TYPE$ *const fromA = tileA + tile % MGPU_STAGES * stageA, *const fromB = tileB + tile % MGPU_STAGES * stageB;
#pragma unroll
    for (int step = 0; step < MGPU_DEPTH; step += 16) {
      unsigned left[warpRows / 16][4], right[warpColumns / 8][2];
#pragma unroll
      for (int i = 0; i < warpRows / 16; ++i) // rows 0 to 7 and 8 to 15, then the same of the next 8 steps
        loadTiles(left[i], fromA + placeChunk<MGPU_DEPTH / chunk>(warpRow + i * 16 + lane % 16, step / chunk + lane / 16));
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
  // Epilogue.
$EACH_PAIR$        MGPU_STORE_SUMS(row, column, sums[i][j][e], sums[i][j][e + 1]);
      }
}

$AWAITER$$FORM$extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
$NAME$($PARAMETERS$const MgpuLaunch launch) {
$AWAIT$  static __shared__ __align__(128) $TYPE$ tileA[MGPU_STAGES * stageA];
  static __shared__ __align__(128) $TYPE$ tileB[MGPU_STAGES * stageB];
  const bool isAligned = $ALIGNED$; // else threads copy one element at a time
  if (isAligned)
    $NAME$_block<true>(tileA, tileB, $A$, $B$, $PASSED$launch);
  else
    $NAME$_block<false>(tileA, tileB, $A$, $B$, $PASSED$launch);
}
)";

/// Whether rows begin at multiples of 16 bytes, if the matrix does.
bool hasAlignedRows(ir::MatrixAttr matrix) {
  return matrix.getRowStride() % 8 == 0 && matrix.getOffset() % 8 == 0 &&
         (matrix.getBatch() == 1 || matrix.getBatchStride() % 8 == 0);
}

} // namespace

Result<CudaKernel> emitTensorMatmul(ModuleOp module,
                                    const CudaEmitOptions &options) {
  KernelSpace space = tensorMatmulSpace(module, options.block, options.maxGrid);
  cuda::ProductText text(
      module, options, space,
      "sum left right before firstRow firstColumn sums tileA tileB launch "
      "thread threads "
      "endRow k step i j e at endColumn warp lane tile tiles bring "
      "fromA fromB toA toB left right both inside warpRow "
      "warpColumn placeChunk stageChunk copyAsync closeCopies awaitCopies "
      "loadTiles loadTilesTurned sharedAddress isAligned blockRows "
      "blockColumns warpsX warpRows warpColumns chunk stageA stageB");
  const ir::ProductAttr product = text.product;
  const bool isHalf = product.getA().isF16();
  const char *multiply = isHalf ? "mmaF16" : "mmaBf16";
  for (const char *each :
       {isHalf ? "f16" : "bf16", "loadTiles", "stageChunk", multiply})
    text.helpers.use(each);
  if (failed(text.prepare()))
    return fail(ErrorKind::Unsupported, "");
  const bool byRows = product.getTurned();
  const ChunksOfB &chunks = byRows ? byColumn : bySteps;
  const std::string column = "firstColumn + column", step = "k + step";
  text.add({{"EACH_PAIR", eachMmaPair},
            {"MMA", multiply},
            {"AAT", cuda::elementAt(product.matrixA(), text.a, "firstRow + row",
                                    "k + step * chunk")},
            {"BAT", byRows ? cuda::elementAt(product.storedB(), text.b, column,
                                             step + " * chunk")
                           : cuda::elementAt(product.matrixB(), text.b, step,
                                             column + " * chunk")}});
  std::string aligned = "((unsigned long long)$A$ | (unsigned long long)$B$) "
                        "% 16 == 0";
  if (options.block.x % 8 != 0)
    aligned += " && launch.baseX * $X$ % 8 == 0";
  if (!hasAlignedRows(product.matrixA()) || !hasAlignedRows(product.storedB()))
    aligned = "false";
  text.add(
      {{"BRING", chunks.bring}, {"LOAD", chunks.load}, {"ALIGNED", aligned}});
  return text.write(mmaHead, mmaBody);
}

} // namespace mgpu::kernels
