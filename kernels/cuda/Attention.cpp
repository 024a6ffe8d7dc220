// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention by threads, for any f32, f16 or bf16 and any size of a head. A lane
// has one key of a tile for all queries of its warp, and then one column of V
// in each 32. Heads and values come to shared memory 32 elements at a time.
#include "kernels/cuda/ProductForms.h"

#include "kernels/cuda/AttentionText.h"

using namespace mlir;

namespace mgpu::kernels {

using P = KernelParameter;

namespace {

constexpr int64_t lanes = 32, mostValue = 256;

constexpr const char *threadHead = R"(// $NAME$$AT$.
// $R$ = softmax(score($Q$ $K$^T)) $V$: $BATCHES$ times $QUERIES$ queries and $KEYS$ keys, of
// $HEAD$ elements, and values of $VALUE$. CUDA C++ that includes nothing, for NVRTC. Keys come
// in tiles of 32; the bits are the same under all macros (-D):
//   MGPU_BLOCK_X, _Y   32, and the warps of a block
//   MGPU_TILE_Y        queries of a warp
//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor
//   MGPU_PDL           1: may be launched to begin before the kernel it follows
//                      has ended, for which it waits; from sm_90 on
// Launch with a block for each MGPU_BLOCK_Y * MGPU_TILE_Y queries along x, for each of the batch
// along y. A part of them is a launch of fewer blocks from block first on, or of the source's
// blocks base to end.
)";

constexpr const char *threadBody = R"(
$LAUNCH$static_assert(MGPU_BLOCK_X == 32, "a warp along x");

$HELPERS$struct __align__(16) Quad {
  float of[4];
};

$AWAITER$$FORM$extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
$NAME$($PARAMETERS$const MgpuLaunch launch) {
$AWAIT$  const int queries = MGPU_BLOCK_Y * MGPU_TILE_Y, columns = ($VALUE$ + 31) / 32;
  static __shared__ __align__(16) float tileQ[MGPU_BLOCK_Y * MGPU_TILE_Y][32];
  static __shared__ __align__(16) float tile[32][36]; // of K, then of V: eight rows are in different banks
  static __shared__ __align__(16) float powers[MGPU_BLOCK_Y][MGPU_TILE_Y][32];
  const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
  const int thread = warp * 32 + lane, threads = 32 * MGPU_BLOCK_Y;
  const int batch = (int)(launch.baseY * $Y$ + blockIdx.y + launch.firstY);
  const int blockQuery = (int)launch.baseX * $X$ + (int)(blockIdx.x + launch.firstX) * queries;
  const int firstQuery = blockQuery + warp * MGPU_TILE_Y;
  const int endQuery = launch.endX * $X$u < $QUERIES$u ? (int)launch.endX * $X$ : $QUERIES$;
  if (batch >= $BATCHES$)
    return;
  const $QTYPE$ *const firstQ = $Q$ + ($QFIRST$);
  const $KTYPE$ *const firstK = $K$ + ($KFIRST$);
  const $VTYPE$ *const firstV = $V$ + ($VFIRST$);
  $RTYPE$ *const firstR = $R$ + ($RFIRST$);
  const float lowest = __int_as_float(0xff800000);
  float sums[MGPU_TILE_Y][columns], most[MGPU_TILE_Y], total[MGPU_TILE_Y];
#pragma unroll
  for (int i = 0; i < MGPU_TILE_Y; ++i) {
    most[i] = lowest;
    total[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < columns; ++j)
      sums[i][j] = 0.0f;
  }
  for (int first = 0; first < $KEYS$; first += 32) {
    // Products of the warp's queries with the lane's key.
    float scores[MGPU_TILE_Y];
#pragma unroll
    for (int i = 0; i < MGPU_TILE_Y; ++i)
      scores[i] = 0.0f;
    for (int head = 0; head < $HEAD$; head += 32) {
      __syncthreads(); // nobody reads the tiles before any more
      for (int at = thread; at < 32 * 32; at += threads)
        tile[at / 32][at % 32] = first + at / 32 < $KEYS$ && head + at % 32 < $HEAD$ ? (float)$KAT$ : 0.0f;
      for (int at = thread; at < queries * 32; at += threads)
        tileQ[at / 32][at % 32] = blockQuery + at / 32 < endQuery && head + at % 32 < $HEAD$ ? (float)$QAT$ : 0.0f;
      __syncthreads();
#pragma unroll
      for (int step = 0; step < 32; step += 4) {
        const Quad keys = *(const Quad *)&tile[lane][step];
#pragma unroll
        for (int i = 0; i < MGPU_TILE_Y; ++i) {
          const Quad query = *(const Quad *)&tileQ[warp * MGPU_TILE_Y + i][step];
#pragma unroll
          for (int part = 0; part < 4; ++part)
            scores[i] = fmaf(query.of[part], keys.of[part], scores[i]);
        }
      }
    }
    // The largest scores and the sums so far become those with this tile.
#pragma unroll
    for (int i = 0; i < MGPU_TILE_Y; ++i) {
      const bool isInside = firstQuery + i < endQuery && first + lane < $KEYS$;
      const float score = isInside ? $SCORE$scores[i], firstQuery + i, batch, first + lane) : lowest;
      float now = fmaxf(most[i], score);
#pragma unroll
      for (int far = 16; far > 0; far /= 2)
        now = fmaxf(now, __shfl_sync(0xffffffffu, now, lane ^ far));
      const float shift = now == lowest ? 0.0f : now; // without a score there is nothing to subtract
      const float factor = expf(most[i] - shift), power = expf(score - shift);
      most[i] = now;
      total[i] = total[i] * factor + power;
      powers[warp][i][lane] = power;
#pragma unroll
      for (int j = 0; j < columns; ++j) // sums that count no more may be infinite
        sums[i][j] = factor == 0.0f ? 0.0f : sums[i][j] * factor;
    }
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      __syncthreads();
      for (int at = thread; at < 32 * 32; at += threads)
        tile[at / 32][at % 32] = first + at / 32 < $KEYS$ && j * 32 + at % 32 < $VALUE$ ? (float)$VAT$ : 0.0f;
      __syncthreads();
#pragma unroll
      for (int key = 0; key < 32; key += 4) {
        const float values[4] = {tile[key][lane], tile[key + 1][lane], tile[key + 2][lane], tile[key + 3][lane]};
#pragma unroll
        for (int i = 0; i < MGPU_TILE_Y; ++i) {
          const Quad power = *(const Quad *)&powers[warp][i][key];
#pragma unroll
          for (int part = 0; part < 4; ++part)
            sums[i][j] = fmaf(power.of[part], values[part], sums[i][j]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < MGPU_TILE_Y; ++i) {
    float all = total[i];
#pragma unroll
    for (int far = 16; far > 0; far /= 2)
      all += __shfl_sync(0xffffffffu, all, lane ^ far);
#pragma unroll
    for (int j = 0; j < columns; ++j)
      if (firstQuery + i < endQuery && j * 32 + lane < $VALUE$)
        $RAT$ = $RTYPE$(all == 0.0f ? 0.0f : sums[i][j] / all);
  }
}
)";

/// Warps that cover the queries, at most `most`: a power of two.
uint32_t warpsFor(int64_t queries, int64_t ofWarp, uint32_t most) {
  uint32_t warps = 1;
  while (warps < most && warps * ofWarp < queries)
    warps *= 2;
  return warps;
}

/// A space of warps with `rows` queries each.
KernelSpace spaceOfWarps(int64_t queries, uint32_t rows, Dim3 block,
                         Dim3 maxGrid, std::string reason) {
  KernelSpace space;
  space.target = KernelTarget::Cuda;
  space.block = block;
  space.maxGrid = maxGrid;
  space.reshapable = true;
  space.reason = std::move(reason);
  space.covers = {Formula(P::BlockY) * P::TileY, 1, P::BlockZ};
  space.defaults[P::BlockX] = lanes;
  space.defaults[P::BlockY] = warpsFor(queries, rows, 4);
  space.defaults[P::TileY] = rows;
  space.defaults[P::Vector] = 1;
  space.offerDefaults(space.reason);
  space.offer(P::BlockY, {1, 2, 4, 8});
  space.offer(P::MinBlocks, {1, 2, 3, 4});
  return space;
}

} // namespace

planner::AttentionSizes sizesOf(ir::AttentionAttr of, bool onTensorCores) {
  planner::AttentionSizes sizes;
  sizes.queries = double(of.getQueries());
  sizes.head = double(of.getHead());
  sizes.value = double(of.getValue());
  sizes.onTensorCores = onTensorCores;
  return sizes;
}

bool isAttention(ModuleOp kernel) {
  const std::optional<AttentionBody> body = attentionForm(kernel);
  return body && body->of.getValue() <= mostValue;
}

KernelSpace attentionSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  const ir::AttentionAttr of = attentionForm(kernel)->of;
  const auto rows = uint32_t(sizesOf(of, false).rowsOfWarp());
  KernelSpace space =
      spaceOfWarps(of.getQueries(), rows, block, maxGrid,
                   "is an attention, in tiles of shared memory");
  space.offer(P::TileY, {1, 2, 4, 8, 16});
  constexpr int64_t ofTile = lanes * (lanes + 4) * 4, ofRow = 2 * lanes * 4;
  space.sharedBytes = space.covers[0] * ofRow + ofTile;
  space.requireLaunch();
  space.requireStaticShared();
  // Beside its sums a thread has been seen to need so many registers.
  constexpr int64_t others = 128, ofThread = 255;
  space.require(
      "registers of a thread",
      Formula(P::TileY) * ((of.getValue() + lanes - 1) / lanes + 3) + others,
      Relation::AtMost, ofThread,
      "the sums and 128 other registers of a thread are $left; it has "
      "no more than $right");
  return space;
}

Result<CudaKernel> emitAttention(ModuleOp module,
                                 const CudaEmitOptions &options) {
  const KernelSpace space =
      attentionSpace(module, options.block, options.maxGrid);
  cuda::AttentionText text(
      module, options, space,
      "launch queries columns tileQ tile powers lane warp thread threads batch "
      "blockQuery firstQuery endQuery firstQ firstK firstV firstR lowest sums "
      "most total first scores head step key keys query part score isInside "
      "now "
      "shift factor power values all far i j at Quad");
  if (failed(text.prepare()))
    return fail(ErrorKind::Unsupported, "");
  text.words["QAT"] =
      text.elementAt(0, "blockQuery + at / 32", "head + at % 32");
  text.words["KAT"] = text.elementAt(1, "first + at / 32", "head + at % 32");
  text.words["VAT"] = text.elementAt(2, "first + at / 32", "j * 32 + at % 32");
  text.words["RAT"] = text.elementAt(3, "firstQuery + i", "j * 32 + lane");
  return text.write(threadHead, threadBody);
}

// The attentions that TensorAttention's text is for, and its configurations.

std::string tensorAttentionRefusal(ModuleOp kernel) {
  const std::optional<AttentionBody> body = attentionForm(kernel);
  if (!body)
    return "-";
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  auto elementOf = [&](unsigned k) {
    return getElementTypeOrSelf(
        entry.getArgumentTypes()[unsigned(body->of.getOperands()[k])]);
  };
  const Type element = elementOf(0);
  if (!element.isF16() && !element.isBF16())
    return "-";
  if (elementOf(1) != element || elementOf(2) != element)
    return "Q, K and V are of several types";
  for (int64_t size : {body->of.getHead(), body->of.getValue()})
    if (!planner::AttentionSizes::fitsTensorCores(size))
      return "a head or a value has " + std::to_string(size) +
             " elements, no multiple of 16 up to 128";
  return "";
}

KernelSpace tensorAttentionSpace(ModuleOp kernel, Dim3 block, Dim3 maxGrid) {
  const ir::AttentionAttr of = attentionForm(kernel)->of;
  const planner::AttentionSizes sizes = sizesOf(of, true);
  KernelSpace space = spaceOfWarps(
      of.getQueries(), uint32_t(sizes.rowsOfWarp()), block, maxGrid,
      "is an attention, on tensor cores, in tiles of shared memory");
  space.addTunable({"MGPU_STAGES", {2, 1, 3}});
  // 16 bytes more put eight rows in different banks.
  const int64_t bytesOfKey = 2 * (of.getHead() + of.getValue() + 16);
  space.sharedBytes =
      Formula::tunable(0) * (bytesOfKey * int64_t(sizes.keysOfTile()));
  space.requireLaunch();
  space.requireStaticShared();
  return space;
}

} // namespace mgpu::kernels
