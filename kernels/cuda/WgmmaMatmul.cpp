// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/WgmmaMatmul.h"

#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductBody.h"
#include "kernels/cuda/ProductText.h"
#include "kernels/cuda/TensorMatmul.h"
#include "kernels/cuda/WgmmaHelpers.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace mgpu::kernels {

using P = planner::KernelParameter;

namespace {

/// Elements along both sides of a panel, what one tensor copy brings: rows of
/// the 128 bytes that a swizzle spans, as many as a wgmma has.
constexpr uint32_t panel = 64, bytesOfElement = 2;

/// Bytes of dynamic shared memory before the stages: the barriers, and to the
/// first multiple of it, where a swizzle's pattern begins.
constexpr uint32_t patternBytes = 1024;

constexpr const char *wgmmaHead = R"(// $NAME$$AT$.
// $WHAT$: $BATCHES$$M$ x $K$ and $K$ x $N$, on tensor cores by warpgroups (wgmma),
// from tiles that tensor copies bring (TMA). CUDA C++ that includes nothing, for NVRTC and
// sm_90a alone. Sums are of f32, in the order of k but for the 16 steps of an instruction,
// whose order is the GPU's. Macros (-D):
//   MGPU_BLOCK_X, _Y   32, and the warps of a block: 4, 8 or 12 that multiply and one that loads
//   MGPU_TILE_X        columns of a block by 32: 2, 4 or 8
//   MGPU_TILE_Y        rows of a block by the warps that multiply: 16 or 32
//   MGPU_DEPTH         steps of k in one stage of shared memory: 64 or 128
//   MGPU_STAGES        stages, 2 to 8, which are loaded ahead
//   MGPU_TILES         tiles of rows that a block computes one after the other; the loads of
//                      the next run ahead while one is stored
//   MGPU_RASTER        blocks that lie one above the other and are numbered before those beside
//                      them, so that what runs at once reads less of A and B together
//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor
//   MGPU_PDL           1: may be launched to begin before the kernel it follows
//                      has ended, for which it waits; from sm_90 on
// $A$ and $B$ are tensor maps: boxes of 64 x 64 elements, of 1 along the batch, the 128 bytes
// of a row swizzled (CU_TENSOR_MAP_SWIZZLE_128B), zeros outside.
// Launch with a block for each 32 * MGPU_TILE_X columns along x, for each MGPU_TILES *
// (MGPU_BLOCK_Y - 1) * MGPU_TILE_Y rows along y, for each product along z, and with 1024 + 2 * MGPU_STAGES *
// MGPU_DEPTH * (rows + columns of a tile) bytes of dynamic shared memory. A part of them is
// a launch of fewer blocks from block first on, or of the source's blocks base to end.
)";

constexpr const char *wgmmaBody = R"(
struct MgpuLaunch { // the grid of the source, and where this launch begins
  unsigned gridX, gridY, gridZ, firstX, firstY, firstZ;
  unsigned baseX, baseY, baseZ, endX, endY, endZ; // of the part that runs
};
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "$NAME$: wgmma is of sm_90a alone"
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
static_assert(MGPU_BLOCK_X == 32 && MGPU_BLOCK_Y % 4 == 1 && MGPU_TILE_Y % 16 == 0 && MGPU_DEPTH % 64 == 0, "");
static_assert(MGPU_TILE_X == 2 || MGPU_TILE_X == 4 || MGPU_TILE_X == 8, "");
static_assert(MGPU_STAGES >= 2 && MGPU_STAGES <= 8, "the barriers have 128 bytes");

$HELPERS$
$WGMMA$
$SUMS$
extern __shared__ __align__(128) unsigned char mgpu_dynamic_shared[];

$AWAITER$extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
$NAME$($PARAMETERS$const MgpuLaunch launch) {
$AWAIT$  // A stage is loaded, and then free again, in turn.
  unsigned long long *const loaded = (unsigned long long *)mgpu_dynamic_shared, *const freed = loaded + MGPU_STAGES;
  unsigned char *const stages = mgpu_dynamic_shared + (1024 - sharedAddress(mgpu_dynamic_shared) % 1024);
  const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
  // Which block of the launch this is: columns of MGPU_RASTER blocks, one after the other.
  const unsigned number = blockIdx.y * gridDim.x + blockIdx.x, group = number / (MGPU_RASTER * gridDim.x) * MGPU_RASTER;
  const unsigned left = gridDim.y - group, height = left < MGPU_RASTER ? left : MGPU_RASTER;
  const unsigned inGroup = number - group * gridDim.x, blockY = group + inGroup % height, blockX = inGroup / height;
  const int topRow = (int)launch.baseY * $Y$ + (int)(blockY + launch.firstY) * (MGPU_TILES * tileRows);
  const int firstColumn = (int)launch.baseX * $X$ + (int)(blockX + launch.firstX) * blockColumns;
  const int batch = $BATCH$;
  const int endRow = launch.endY * $Y$u < $M$u ? (int)launch.endY * $Y$ : $M$;
  const int below = (endRow - topRow + tileRows - 1) / tileRows, numTiles = below < MGPU_TILES ? below : MGPU_TILES;
  int steps = ($K$ + MGPU_DEPTH - 1) / MGPU_DEPTH; // of a stage each
  forgetIndex(steps); // unrolled, a short loop would need more registers
  if (warp == 0 && lane == 0) {
    for (int stage = 0; stage < MGPU_STAGES; ++stage) {
      makeBarrier(loaded + stage, 1);
      makeBarrier(freed + stage, 4 * warpgroups);
    }
    publishBarriers();
  }
  __syncthreads();
  if (warp == 4 * warpgroups) { // the producer: a thread loads for all others
    for (int at = 0; lane == 0 && at < numTiles * steps; ++at) {
      const int stage = at % MGPU_STAGES, tile = at / steps;
      awaitPhase(freed + stage, at / MGPU_STAGES % 2 ^ 1); // at first, the phase before is over
      arriveExpecting(loaded + stage, stageBytes);
      unsigned char *to = stages + stage * stageBytes;
      for (int slice = 0; slice < slices; ++slice) {
        const int k = (at - tile * steps) * MGPU_DEPTH + slice * 64;
        for (int part = 0; part < panelsA; ++part, to += panelBytes)
          loadBox(to, &$A$, k, topRow + tile * tileRows + part * 64, batch, loaded + stage);
        for (int part = 0; part < panelsB; ++part, to += panelBytes)
          loadBox(to, &$B$, $BPLACE$, batch, loaded + stage);
      }
    }
    return;
  }
  // The consumers: warps of four, each with rows of a tile of its own.
  int endColumn = launch.endX * $X$u < $N$u ? (int)launch.endX * $X$ : $N$;
  const int firstPanel = warp / 4 * rowTiles;
  // Sum e of this warpgroup's row tile i belongs to this row and column, and e + 1 beside it.
#define MGPU_SUM_ROW (firstRow + (firstPanel + i) * 64 + warp % 4 * 16 + lane / 4 + e / 2 % 2 * 8)
#define MGPU_SUM_COLUMN (firstColumn + e / 4 * 8 + lane % 4 * 2)
  for (int tile = 0; tile < numTiles; ++tile) {
    const int firstRow = topRow + tile * tileRows;
    float sums[rowTiles][numSums];
#pragma unroll
    for (int i = 0; i < rowTiles; ++i)
#pragma unroll
      for (int e = 0; e < numSums; e += 2) {
        const int row = MGPU_SUM_ROW, column = MGPU_SUM_COLUMN;
        sums[i][e] = sums[i][e + 1] = 0.0f;
        if (row < endRow && column + 1 < endColumn)
          MGPU_FIRST_PAIR(row, column, sums[i][e], sums[i][e + 1]);
        else if (row < endRow && column < endColumn)
          sums[i][e] = MGPU_FIRST(row, column);
        holdSum(sums[i][e]);
        holdSum(sums[i][e + 1]);
      }
    for (int step = 0; step < steps; ++step) {
      const int at = tile * steps + step, stage = at % MGPU_STAGES;
      awaitPhase(loaded + stage, at / MGPU_STAGES % 2);
      beginProducts();
#pragma unroll
      for (int slice = 0; slice < slices; ++slice) {
        const unsigned fromA = sharedAddress(stages) + (unsigned)(stage * stageBytes + slice * sliceBytes + firstPanel * panelBytes);
        const unsigned fromB = sharedAddress(stages) + (unsigned)(stage * stageBytes + slice * sliceBytes + panelsA * panelBytes);
#pragma unroll
        for (int part = 0; part < 4; ++part) // of 16 elements: 32 bytes of A's rows, $BPART$
#pragma unroll
          for (int i = 0; i < rowTiles; ++i)
            $MULTIPLY$(sums[i], tileDescriptor(fromA + i * panelBytes + part * 32, 16, 1024),
                       tileDescriptor($BSTEP$, 1024));
      }
      closeProducts();
      awaitProducts<1>(); // of the stage before: it may be loaded again
      if (step > 0 && lane == 0)
        arriveAt(freed + (at - 1) % MGPU_STAGES);
    }
    awaitProducts<0>();
    // The epilogue, beside which the producer loads the next tile's first stages.
    if (MGPU_TILES > 1 && lane == 0)
      arriveAt(freed + ((tile + 1) * steps - 1) % MGPU_STAGES);
    forgetIndex(endColumn); // else which columns are inside would stay in registers all the while
#pragma unroll
    for (int i = 0; i < rowTiles; ++i)
#pragma unroll
      for (int e = 0; e < numSums; e += 2) {
        const int row = MGPU_SUM_ROW, column = MGPU_SUM_COLUMN;
        holdSum(sums[i][e]);
        holdSum(sums[i][e + 1]);
        if (row < endRow && column + 1 < endColumn)
          MGPU_STORE_PAIR(row, column, sums[i][e], sums[i][e + 1]);
        else if (row < endRow && column < endColumn)
          MGPU_STORE(row, column, sums[i][e]);
      }
  }
}
)";

/// What keeps matrix `name` from being a tensor map, or "".
std::string mapRefusal(const std::string &name,
                       const cuda::MatmulOperand &matrix) {
  for (auto [elements, head, tail] :
       {std::tuple(matrix.rowStride, "rows of " + name + " are ", " apart"),
        {matrix.offset, name + " begins ", " into its buffer"},
        {matrix.batch > 1 ? matrix.batchStride : 0,
         "matrices of " + name + " are ", " apart"}})
    if (elements * bytesOfElement % tensorMapAlignment != 0)
      return head + std::to_string(elements * bytesOfElement) + " bytes" +
             tail + ", no multiple of the " +
             std::to_string(tensorMapAlignment) + " that tensor copies take";
  return matrix.overlapRefusal(name);
}

TensorMap mapOf(const cuda::MatmulOperand &matrix) {
  TensorMap map;
  map.argument = matrix.position;
  map.offsetBytes = uint64_t(matrix.offset) * bytesOfElement;
  map.type = matrix.element.isF16() ? ElementType::F16 : ElementType::BF16;
  map.sizes = {uint64_t(matrix.columns), uint64_t(matrix.rows),
               uint64_t(matrix.batch)};
  // One matrix has no next one, but the map wants to know where it would be.
  int64_t apart =
      matrix.batch > 1 ? matrix.batchStride : matrix.rows * matrix.rowStride;
  map.strideBytes = {uint64_t(matrix.rowStride) * bytesOfElement,
                     uint64_t(apart) * bytesOfElement};
  map.box = {panel, panel, 1};
  return map;
}

} // namespace

std::string wgmmaMatmulRefusal(ModuleOp kernel) {
  std::string refusal = tensorMatmulRefusal(kernel);
  if (!refusal.empty())
    return refusal;
  cuda::MatmulShape product = *cuda::matmulShapeOf(kernel);
  if (product.loop) {
    OwningOpRef<ModuleOp> around = cuda::splitProduct(product.loop);
    for (auto part : around->getOps<func::FuncOp>())
      for (unsigned factor : {product.a.position, product.b.position})
        if (!part.getArgument(factor).use_empty())
          return "A or B is read outside of the product, too, and tensor maps "
                 "cannot be";
  }
  refusal = mapRefusal("A", product.a);
  return refusal.empty() ? mapRefusal("B", product.storedB()) : refusal;
}

planner::KernelSpace wgmmaMatmulSpace(ModuleOp kernel, Dim3 block,
                                      Dim3 maxGrid) {
  cuda::MatmulShape product = *cuda::matmulShapeOf(kernel);
  planner::KernelConfig defaults;
  // 128 x 128 by two warpgroups, less where the product is smaller. 128 x 256
  // may spill a few registers around the loop.
  defaults[P::BlockX] = 32;
  defaults[P::BlockY] = product.m() > panel ? 9 : 5;
  defaults[P::TileX] = product.n() > panel ? 4 : 2;
  defaults[P::TileY] = 16;
  planner::KernelSpace space = cuda::tileSpace(
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
  using planner::Formula, planner::Relation;
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

Result<CudaKernel> emitWgmmaMatmul(ModuleOp module,
                                   const CudaEmitOptions &options) {
  planner::KernelSpace space =
      wgmmaMatmulSpace(module, options.block, options.maxGrid);
  cuda::ProductText text(
      module, options, space,
      "firstRow firstColumn sums launch endRow endColumn k step i e "
      "sum right before stage stages warp lane tile numTiles topRow below at "
      "steps slice "
      "slices part to number group left height inGroup blockX blockY "
      "loaded freed fromA fromB firstPanel warpgroups rowTiles "
      "tileRows blockColumns panelBytes panelsA panelsB sliceBytes "
      "stageBytes numSums sharedAddress makeBarrier publishBarriers "
      "arriveAt arriveExpecting awaitPhase loadBox beginProducts "
      "closeProducts awaitProducts holdSum forgetIndex multiplyF16 "
      "multiplyBf16 multiplyF16ByRows multiplyBf16ByRows tileDescriptor",
      /*takesMaps=*/true);
  const cuda::MatmulShape &product = text.product;
  std::string type = cuda::cType(product.a.element);
  text.helpers.use(type);
  if (failed(text.prepare()))
    return fail(ErrorKind::Unsupported, "");
  text.kernel.image.dynamicSharedBytes =
      uint32_t(space.sharedBytesOf(space.defaults));
  std::vector<cuda::MatmulOperand> factors{product.a, product.storedB()};
  if (product.b.position < product.a.position)
    std::swap(factors[0], factors[1]);
  for (const cuda::MatmulOperand &factor : factors)
    text.kernel.image.tensorMaps.push_back(mapOf(factor));
  text.words["BATCH"] = product.c.batch > 1
                            ? "(int)(launch.baseZ + blockIdx.z + launch.firstZ)"
                            : "0";
  // A tile of a turned B lies as one of A does.
  const bool byRows = product.isTurned();
  const std::string column = "firstColumn + part * 64";
  text.words["BPLACE"] = byRows ? "k, " + column : column + ", k";
  text.words["BPART"] = byRows ? "and of B's" : "16 rows of B";
  text.words["BSTEP"] =
      byRows ? "fromB + part * 32, 16" : "fromB + part * 16 * 128, panelBytes";
  text.words["MULTIPLY"] = cuda::productName(type, byRows);
  text.words["WGMMA"] = cuda::wgmmaHelpers(type, byRows);
  return text.write(wgmmaHead, wgmmaBody);
}

} // namespace mgpu::kernels
