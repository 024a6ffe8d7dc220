// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product of two matrices of f16 or bf16 on tensor cores by warpgroups
// (wgmma), for sm_90a alone, in the roles that CUTLASS calls warp-specialised:
// one warp is the producer, which brings boxes of A and B to stages in shared
// memory by tensor copies (TMA); the other warps are the consumers, warpgroups
// that multiply a stage as soon as it is loaded, and then free it. Each stage
// has two barriers.
#include "kernels/cuda/ProductForms.h"

#include "kernels/abi/LaunchForm.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/ProductText.h"
#include "kernels/cuda/WgmmaHelpers.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

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
//   MGPU_TILES         tiles of rows that a block computes one after the other
//   MGPU_RASTER        blocks one above the other that are numbered before those beside them,
//                      so that what runs at once reads less of A and B together
$MACROS$// $A$ and $B$ are tensor maps: boxes of 64 x 64 elements, of 1 along the batch, the 128 bytes
// of a row swizzled (CU_TENSOR_MAP_SWIZZLE_128B), zeros outside.
// Launch with a block for each 32 * MGPU_TILE_X columns along x, for each MGPU_TILES *
// (MGPU_BLOCK_Y - 1) * MGPU_TILE_Y rows along y, for each product along z, and with 1024 +
// 2 * MGPU_STAGES * MGPU_DEPTH * (rows + columns of a tile) bytes of dynamic shared memory.
$PARTS$)";

/// A thread's sums e and e + 1 of row tile i, and which elements of C they are.
constexpr const char *eachWgmmaPair = R"(#pragma unroll
    for (int i = 0; i < rowTiles; ++i)
#pragma unroll
      for (int e = 0; e < numSums; e += 2) {
        const int row = firstRow + (firstPanel + i) * 64 + warp % 4 * 16 + lane / 4 + e / 2 % 2 * 8;
        const int column = firstColumn + e / 4 * 8 + lane % 4 * 2;
)";

/// Where a panel of B lies in the matrix, and 16 steps of it in shared memory:
/// by steps of k or, where B is turned, by columns, as A lies.
struct PanelsOfB {
  const char *place, *step;
};
constexpr PanelsOfB panelsBySteps{"firstColumn + part * 64, k",
                                  "fromB + part * 16 * 128, panelBytes"};
constexpr PanelsOfB panelsByColumns{"k, firstColumn + part * 64",
                                    "fromB + part * 32, 16"};

constexpr const char *wgmmaBody = R"(
$LAUNCH$#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
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
static_assert(MGPU_BLOCK_X == 32 && MGPU_BLOCK_Y % 4 == 1 && MGPU_TILE_Y % 16 == 0 && MGPU_DEPTH % 64 == 0 &&
              (MGPU_TILE_X == 2 || MGPU_TILE_X == 4 || MGPU_TILE_X == 8), "");
static_assert(MGPU_STAGES >= 2 && MGPU_STAGES <= 8, "the barriers have 128 bytes");

$HELPERS$
$WGMMA$
$SUMS$
extern __shared__ __align__(128) unsigned char mgpu_dynamic_shared[];

$AWAITER$$FORM$extern "C" __global__ void
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
  const int endRow = $END_ROW$;
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
          loadBox(to, &$A$, k, topRow + tile * tileRows + part * 64, batch, loaded + stage);
        for (int part = 0; part < panelsB; ++part, to += panelBytes)
          loadBox(to, &$B$, $BPLACE$, batch, loaded + stage);
      }
    }
    return;
  }
  // Consumers: warpgroups of four warps, each with rows of a tile of its own.
  int endColumn = $END_COLUMN$;
  const int firstPanel = warp / 4 * rowTiles;
  for (int tile = 0; tile < numTiles; ++tile) {
    const int firstRow = topRow + tile * tileRows;
    float sums[rowTiles][numSums];
$EACH_PAIR$        MGPU_BEGIN_SUMS(row, column, sums[i][e], sums[i][e + 1]);
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
            $MULTIPLY$(sums[i], tileDescriptor(fromA + i * panelBytes + part * 32, 16, 1024),
                       tileDescriptor($BSTEP$, 1024));
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
$EACH_PAIR$        holdSum(sums[i][e]), holdSum(sums[i][e + 1]);
        MGPU_STORE_SUMS(row, column, sums[i][e], sums[i][e + 1]);
      }
  }
}
)";

/// Boxes of panels: rows of the 128 bytes that a swizzle spans, 64 of them.
TensorMap mapOf(ir::MatrixAttr matrix, ElementType type) {
  constexpr uint32_t panel = 64, bytesOfElement = 2;
  TensorMap map;
  map.argument = matrix.getArgument();
  map.offsetBytes = uint64_t(matrix.getOffset()) * bytesOfElement;
  map.type = type;
  map.sizes = {uint64_t(matrix.getColumns()), uint64_t(matrix.getRows()),
               uint64_t(matrix.getBatch())};
  // One matrix has no next one, but the map wants to know where it would be.
  int64_t apart = matrix.getBatch() > 1
                      ? matrix.getBatchStride()
                      : matrix.getRows() * matrix.getRowStride();
  map.strideBytes = {uint64_t(matrix.getRowStride()) * bytesOfElement,
                     uint64_t(apart) * bytesOfElement};
  map.box = {panel, panel, 1};
  return map;
}

} // namespace

Result<CudaKernel> emitWgmmaMatmul(ModuleOp module,
                                   const CudaEmitOptions &options) {
  KernelSpace space = wgmmaMatmulSpace(module, options.block, options.maxGrid);
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
  const ir::ProductAttr product = text.product;
  std::string type = cuda::cType(product.getA());
  text.helpers.use(type);
  if (failed(text.prepare()))
    return fail(ErrorKind::Unsupported, "");
  text.kernel.image.dynamicSharedBytes =
      uint32_t(space.sharedBytesOf(space.defaults));
  std::vector<ir::MatrixAttr> factors{product.matrixA(), product.storedB()};
  if (product.matrixB().getArgument() < product.matrixA().getArgument())
    std::swap(factors[0], factors[1]);
  for (ir::MatrixAttr factor : factors)
    text.kernel.image.tensorMaps.push_back(
        mapOf(factor, *libraryType(product.getA())));
  const PanelsOfB &panels =
      product.getTurned() ? panelsByColumns : panelsBySteps;
  text.add({{"EACH_PAIR", eachWgmmaPair},
            {"BPLACE", panels.place},
            {"BSTEP", panels.step},
            {"FORM", launchFormText(text.kernel.name,
                                    {"blockColumns", "MGPU_TILES * tileRows",
                                     "MGPU_BLOCK_Z", "1, 1, 1",
                                     "1024 + MGPU_STAGES * stageBytes"})},
            {"MULTIPLY", cuda::productName(type, product.getTurned())},
            {"WGMMA", cuda::wgmmaHelpers(type, product.getTurned())}});
  return text.write(wgmmaHead, wgmmaBody);
}

} // namespace mgpu::kernels
