// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product of two matrices of f32 or f64 by threads. Tiles of A and B lie in
// shared memory, in one or two stages, and each thread keeps MGPU_TILE_Y x
// MGPU_TILE_X sums in registers, to which it adds in order of k. No thread has
// a role of its own: in the main loop all of them are producers, then
// consumers.
#include "facts/KernelProduct.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/cuda/ProductText.h"
#include "planner/dag/KernelWork.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mgpu::kernels {

// The products that Matmul's text is for, and its configurations.

using P = KernelParameter;

/// The product, if it is of a type that the text is for.
static ir::ProductAttr tiledProduct(ModuleOp kernel) {
  const ir::ProductAttr product = productOf(kernel);
  if (!product)
    return {};
  Type element = product.getC();
  if ((!element.isF32() && !element.isF64()) || product.getA() != element ||
      product.getB() != element)
    return {};
  return product;
}

bool isMatmul(ModuleOp kernel) { return bool(tiledProduct(kernel)); }

KernelSpace matmulSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  const ir::ProductAttr product = tiledProduct(kernel);
  const planner::TileForm form = planner::tilesByDefault(facts::sizesOf(
      product, *libraryType(product.getA()), *libraryType(product.getC()),
      product.hasC() && !product.getOverwrites()));
  KernelConfig defaults;
  defaults[P::BlockX] = form.blockX;
  defaults[P::BlockY] = form.blockY;
  defaults[P::TileX] = form.tileX;
  defaults[P::TileY] = form.tileY;
  KernelSpace space = cuda::tileSpace(
      defaults, block, maxGrid,
      "is a matrix product, in tiles of shared memory",
      {{"MGPU_DEPTH", {form.depth, 8, 32}}, {"MGPU_STAGES", {form.stages, 1}}});
  space.offer(P::BlockX, {8, 16, 32});
  space.offer(P::BlockY, {4, 8, 16});
  space.offer(P::TileX, {1, 2, 4, 8});
  space.offer(P::TileY, {1, 2, 4, 8});
  space.offer(P::MinBlocks, {1, 2, 3, 4});
  // 16 bytes more put a column of A's tile, or of a turned B's, in more banks.
  const uint32_t width = cuda::widthOf(product.getA()) / 8,
                 more = (product.getTurned() ? 32 : 16) / width;
  space.sharedBytes = Formula(width) *
                      (space.covers[0] + space.covers[1] + more) *
                      Formula::tunable(0) * Formula::tunable(1);
  space.requireLaunch();
  space.requireStaticShared();
  return space;
}

// The products that TensorMatmul's text is for, and its configurations.

using P = KernelParameter;

std::string tensorMatmulRefusal(ModuleOp kernel) {
  const ir::ProductAttr product = productOf(kernel);
  if (!product)
    return "-";
  Type element = product.getA(), sum = product.getC();
  if ((!element.isF16() && !element.isBF16()) || product.getB() != element)
    return "-";
  if (!sum.isF32() && sum != element)
    return "sums are of f32 or of the factors' type";
  if (product.matrixA().getColumnStride() != 1 ||
      (product.matrixB().getColumnStride() != 1 && !product.getTurned()))
    return "a row of A or B is not contiguous";
  return "";
}

KernelSpace tensorMatmulSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  constexpr uint32_t lanes = 32, instructionRows = 16;
  const ir::ProductAttr product = productOf(kernel);
  // 128 x 128 by 8 warps, less where the product is smaller.
  auto fit = [](int64_t extent, uint32_t unit, uint32_t least, uint32_t most) {
    return uint32_t(std::clamp<int64_t>(
        int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(extent, unit))), least,
        most));
  };
  KernelConfig defaults;
  defaults[P::BlockX] = lanes;
  defaults[P::BlockY] = product.getN() > 32 ? 8 : 4;
  defaults[P::TileX] =
      fit(product.getN(), lanes, defaults[P::BlockY] == 8 ? 2 : 1, 4);
  defaults[P::TileY] = fit(product.getM(), defaults[P::BlockY],
                           2 * instructionRows / defaults[P::BlockY], 16);
  KernelSpace space = cuda::tileSpace(
      defaults, block, maxGrid,
      "is a matrix product, on tensor cores, in tiles of shared memory",
      {{"MGPU_DEPTH", {32, 16, 64}},
       {"MGPU_STAGES", {3, 2, 4}},
       {"MGPU_WARPS_Y", {2, 1, 4}}});
  space.offer(P::BlockY, {4, 8, 16});
  space.offer(P::TileX, {1, 2, 4, 8});
  space.offer(P::TileY, {2, 4, 8, 16, 32});
  space.offer(P::MinBlocks, {1, 2, 3, 4});
  const Formula depth = Formula::tunable(0), stages = Formula::tunable(1),
                warpsY = Formula::tunable(2), tile = instructionRows;
  space.sharedBytes = Formula(cuda::widthOf(product.getA()) / 8) *
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
  // A thread has its sums, the fragments of A's rows and B's columns that its
  // warp multiplies, and 88 other registers, as ptxas has been seen to need
  // (TensorMatmulCorners). Both sides are times 4 * warpsY * blockY, by which
  // fragments, blockY * tileY / warpsY / 4 + 8 * tileX * warpsY / blockY, are
  // whole.
  constexpr int64_t others = 88, ofThread = 255, ofWarpLane = 65536 / lanes;
  const Formula times = Formula(4) * warpsY * P::BlockY,
                registers = times * (Formula(P::TileX) * P::TileY + others) +
                            Formula(P::BlockY) * P::BlockY * P::TileY +
                            Formula(lanes) * P::TileX * warpsY * warpsY;
  space.require("registers of a thread", registers, Relation::AtMost,
                times * ofThread,
                "the sums and fragments of a thread leave fewer than 88 of its "
                "255 registers");
  space.require("registers of a multiprocessor",
                registers * P::BlockY * P::MinBlocks, Relation::AtMost,
                times * ofWarpLane,
                "the sums, the fragments and 88 other registers of each thread "
                "are more than the 65536 of a multiprocessor");
  return space;
}

// The products that WgmmaMatmul's text is for, and its configurations.

using P = KernelParameter;

namespace {

/// Elements along both sides of a panel, what one tensor copy brings.
constexpr uint32_t panel = 64, bytesOfElement = 2;

/// Bytes of dynamic shared memory before the stages: the barriers, and to the
/// first multiple of it, where a swizzle's pattern begins.
constexpr uint32_t patternBytes = 1024;

/// Says what keeps matrix `name` from being a tensor map, or "".
std::string mapRefusal(const std::string &name, ir::MatrixAttr matrix) {
  for (auto [elements, head, tail] :
       {std::tuple(matrix.getRowStride(), "rows of " + name + " are ",
                   " apart"),
        {matrix.getOffset(), name + " begins ", " into its buffer"},
        {matrix.getBatch() > 1 ? matrix.getBatchStride() : 0,
         "matrices of " + name + " are ", " apart"}})
    if (elements * bytesOfElement % tensorMapAlignment != 0)
      return head + std::to_string(elements * bytesOfElement) + " bytes" +
             tail + ", no multiple of the " +
             std::to_string(tensorMapAlignment) + " that tensor copies take";
  return cuda::overlapRefusal(matrix, name);
}

} // namespace

std::string wgmmaMatmulRefusal(ModuleOp kernel) {
  std::string refusal = tensorMatmulRefusal(kernel);
  if (!refusal.empty())
    return refusal;
  const ir::ProductAttr product = productOf(kernel);
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (scf::ForOp loop = facts::productLoop(entry.getBody())) {
    OwningOpRef<ModuleOp> around = splitProduct(loop);
    for (auto part : around->getOps<func::FuncOp>())
      for (unsigned factor :
           {product.matrixA().getArgument(), product.matrixB().getArgument()})
        if (!part.getArgument(factor).use_empty())
          return "A or B is read outside of the product, too, and tensor maps "
                 "cannot be";
  }
  refusal = mapRefusal("A", product.matrixA());
  return refusal.empty() ? mapRefusal("B", product.storedB()) : refusal;
}

KernelSpace wgmmaMatmulSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  const ir::ProductAttr product = productOf(kernel);
  KernelConfig defaults;
  // 128 x 128 by two warpgroups, less where the product is smaller. 128 x 256
  // may spill a few registers around the loop.
  defaults[P::BlockX] = 32;
  defaults[P::BlockY] = product.getM() > panel ? 9 : 5;
  defaults[P::TileX] = product.getN() > panel ? 4 : 2;
  defaults[P::TileY] = 16;
  KernelSpace space = cuda::tileSpace(
      defaults, block, maxGrid,
      "is a matrix product, on tensor cores by warpgroups, from tiles that "
      "tensor copies bring",
      {{"MGPU_DEPTH", {64, 128}},
       {"MGPU_STAGES", {4, 2, 3, 6}},
       {"MGPU_TILES", {1, 2, 4}},
       {"MGPU_RASTER", {8, 1}}});
  space.offer(P::BlockY, {5, 9, 13});
  space.offer(P::TileX, {2, 4, 8});
  space.offer(P::TileY, {16, 32});
  space.offer(P::MinBlocks, {1, 2});
  // One warp loads for the others and computes nothing.
  const Formula tileRows = (Formula(P::BlockY) + -1) * P::TileY;
  space.covers[1] = tileRows * Formula::tunable(2);
  space.sharedBytes = Formula(bytesOfElement) * (space.covers[0] + tileRows) *
                          Formula::tunable(0) * Formula::tunable(1) +
                      patternBytes;
  space.sharedIsDynamic = true;
  space.requireLaunch();
  // Sums stay in registers, beside which a thread needs 40. So many has a
  // multiprocessor of every GPU with these instructions
  // (device/api/DeviceProfile.cpp).
  constexpr uint32_t besideSums = 40, registers = 65536, ofThread = 255;
  const Formula each = Formula(P::TileX) * P::TileY + besideSums;
  space.require("registers of a thread", each, Relation::AtMost, ofThread,
                "the sums and 40 other registers of a thread are $left; it has "
                "no more than $right");
  // A quarter of them is for every fourth warp.
  space.require(
      "registers of a multiprocessor",
      each * P::BlockX *
          (Formula(P::BlockY) * P::BlockZ * P::MinBlocks).roundedUp(4),
      Relation::AtMost, registers,
      "the sums and 40 other registers of each thread, of warps by "
      "fours, are $left; at most $right");
  return space;
}

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
