// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of f16 and bf16 on tensor cores (mma.sync), for sm_80 and later. A
// warp has 16 queries, whose elements it keeps in registers. Tiles of K and V
// come to shared memory by copies that run ahead (cp.async). A lane holds of
// its warp's scores what it has to hold of the second product's factor.
#include "kernels/cuda/ProductForms.h"

#include "kernels/cuda/AttentionText.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

constexpr const char *tensorHead = R"(// $NAME$$AT$.
// $R$ = softmax(score($Q$ $K$^T)) $V$: $BATCHES$ times $QUERIES$ queries and $KEYS$ keys, of
// $HEAD$ elements, and values of $VALUE$, on tensor cores. CUDA C++ that includes nothing, for
// NVRTC and sm_80 or later. Keys come in tiles of $TILE_KEYS$; powers are rounded to $VTYPE$. Macros
// (-D), which change no bits:
//   MGPU_BLOCK_X, _Y   32, and the warps of a block
//   MGPU_TILE_Y        16, the queries of a warp
//   MGPU_STAGES        tiles of keys in shared memory, of which all but one are on their way
//   MGPU_MIN_BLOCKS    blocks that must fit one multiprocessor
//   MGPU_PDL           1: may be launched to begin before the kernel it follows
//                      has ended, for which it waits; from sm_90 on
// Launch with a block for each MGPU_BLOCK_Y * 16 queries along x, for each of the batch along y.
// A part of them is a launch of fewer blocks from block first on, or of the source's blocks base
// to end.
)";

constexpr const char *tensorBody = R"(
$LAUNCH$#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "$NAME$: mma.sync of this shape and cp.async need sm_80 or later"
#endif
enum {
  tileKeys = $TILE_KEYS$,
  rowK = $HEAD$ + 8, // elements of a row in shared memory: eight rows are in different banks
  rowV = $VALUE$ + 8,
  chunk = 8 // elements of 16 bytes
};
static_assert(MGPU_BLOCK_X == 32 && MGPU_TILE_Y == 16 && MGPU_STAGES >= 1, "");

$HELPERS$
__device__ __forceinline__ unsigned pairOf($VTYPE$ left, $VTYPE$ right) {
  const $VTYPE$ both[2] = {left, right};
  unsigned word;
  memcpy(&word, both, sizeof word);
  return word;
}

template <bool IsAligned> __device__ __forceinline__ void
$NAME$_block($VTYPE$ *tileK, $VTYPE$ *tileV, $PARAMETERS$const MgpuLaunch launch) {
  const int lane = (int)threadIdx.x, warp = (int)threadIdx.y;
  const int thread = warp * 32 + lane, threads = 32 * MGPU_BLOCK_Y;
  const int batch = (int)(launch.baseY * $Y$ + blockIdx.y + launch.firstY);
  const int firstQuery = (int)launch.baseX * $X$ + ((int)(blockIdx.x + launch.firstX) * MGPU_BLOCK_Y + warp) * 16;
  const int endQuery = launch.endX * $X$u < $QUERIES$u ? (int)launch.endX * $X$ : $QUERIES$;
  if (batch >= $BATCHES$)
    return;
  const $QTYPE$ *const firstQ = $Q$ + ($QFIRST$);
  const $KTYPE$ *const firstK = $K$ + ($KFIRST$);
  const $VTYPE$ *const firstV = $V$ + ($VFIRST$);
  $RTYPE$ *const firstR = $R$ + ($RFIRST$);
  // Producer: all threads ask for a tile, without waiting for it; zeros stand behind the last key.
  const auto bring = [&](int tile) {
    $VTYPE$ *const toK = tileK + tile % MGPU_STAGES * (tileKeys * rowK), *const toV = tileV + tile % MGPU_STAGES * (tileKeys * rowV);
    const int first = tile * tileKeys;
    for (int at = thread; at < tileKeys * ($HEAD$ / chunk); at += threads) {
      const int key = at / ($HEAD$ / chunk), part = at % ($HEAD$ / chunk) * chunk;
      const int inside = first + key < $KEYS$ ? chunk : 0;
      if (IsAligned) {
        copyAsync(toK + key * rowK + part, inside > 0 ? &$KCHUNK$ : firstK, inside * 2);
      } else {
        for (int k = 0; k < chunk; ++k)
          toK[key * rowK + part + k] = inside > 0 ? $KPART$ : $VTYPE$(0.0f);
      }
    }
    for (int at = thread; at < tileKeys * ($VALUE$ / chunk); at += threads) {
      const int key = at / ($VALUE$ / chunk), part = at % ($VALUE$ / chunk) * chunk;
      const int inside = first + key < $KEYS$ ? chunk : 0;
      if (IsAligned) {
        copyAsync(toV + key * rowV + part, inside > 0 ? &$VCHUNK$ : firstV, inside * 2);
      } else {
        for (int k = 0; k < chunk; ++k)
          toV[key * rowV + part + k] = inside > 0 ? $VPART$ : $VTYPE$(0.0f);
      }
    }
  };
  const int tiles = ($KEYS$ + tileKeys - 1) / tileKeys;
  for (int tile = 0; tile < MGPU_STAGES - 1; ++tile) {
    if (tile < tiles)
      bring(tile);
    closeCopies();
  }
  // The warp's queries: of a step of 16 elements rows 0 to 7 and 8 to 15, then the same of its other half.
  unsigned queries[$HEAD$ / 16][4];
#pragma unroll
  for (int step = 0; step < $HEAD$ / 16; ++step)
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int query = firstQuery + lane / 4 + part % 2 * 8, at = step * 16 + part / 2 * 8 + lane % 4 * 2;
      queries[step][part] = query < endQuery ? pairOf($QLEFT$, $QRIGHT$) : 0u;
    }
  const float lowest = __int_as_float(0xff800000);
  float sums[$VALUE$ / 8][4], most[2] = {lowest, lowest}, total[2] = {0.0f, 0.0f};
#pragma unroll
  for (int j = 0; j < $VALUE$ / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      sums[j][e] = 0.0f;
  for (int tile = 0; tile < tiles; ++tile) {
    if (MGPU_STAGES == 1) {
      __syncthreads(); // nobody reads the tile before any more
      bring(tile);
      closeCopies();
    }
    awaitCopies<(MGPU_STAGES > 1 ? MGPU_STAGES - 2 : 0)>();
    __syncthreads(); // this tile is there, and nobody reads the one before it any more
    if (MGPU_STAGES > 1) {
      if (tile + MGPU_STAGES - 1 < tiles)
        bring(tile + MGPU_STAGES - 1);
      closeCopies();
    }
    const $VTYPE$ *const fromK = tileK + tile % MGPU_STAGES * (tileKeys * rowK), *const fromV = tileV + tile % MGPU_STAGES * (tileKeys * rowV);
    // A lane has two of each eight keys, for the query lane / 4 and for the one eight below.
    float scores[tileKeys / 8][4];
#pragma unroll
    for (int j = 0; j < tileKeys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        scores[j][e] = 0.0f;
#pragma unroll
    for (int step = 0; step < $HEAD$ / 16; ++step)
#pragma unroll
      for (int j = 0; j < tileKeys / 8; j += 2) {
        unsigned both[4];
        loadTiles(both, fromK + (j * 8 + lane / 16 * 8 + lane % 8) * rowK + step * 16 + lane / 8 % 2 * 8);
        $MMA$(scores[j], queries[step], both);
        $MMA$(scores[j + 1], queries[step], both + 2);
      }
#pragma unroll
    for (int j = 0; j < tileKeys / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int query = firstQuery + lane / 4 + e / 2 * 8, key = tile * tileKeys + j * 8 + lane % 4 * 2 + e % 2;
        scores[j][e] = query < endQuery && key < $KEYS$ ? $SCORE$scores[j][e], query, batch, key) : lowest;
      }
    // The largest scores and the sums so far become those with this tile.
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float now = most[half];
#pragma unroll
      for (int j = 0; j < tileKeys / 8; ++j)
        now = fmaxf(now, fmaxf(scores[j][half * 2], scores[j][half * 2 + 1]));
      now = fmaxf(now, __shfl_sync(0xffffffffu, now, lane ^ 1));
      now = fmaxf(now, __shfl_sync(0xffffffffu, now, lane ^ 2));
      const float shift = now == lowest ? 0.0f : now; // without a score there is nothing to subtract
      const float factor = expf(most[half] - shift);
      most[half] = now;
      total[half] *= factor;
#pragma unroll
      for (int j = 0; j < tileKeys / 8; ++j)
#pragma unroll
        for (int e = half * 2; e < half * 2 + 2; ++e) {
          scores[j][e] = expf(scores[j][e] - shift);
          total[half] += scores[j][e];
        }
#pragma unroll
      for (int j = 0; j < $VALUE$ / 8; ++j)
#pragma unroll
        for (int e = half * 2; e < half * 2 + 2; ++e) // sums that count no more may be infinite
          sums[j][e] = factor == 0.0f ? 0.0f : sums[j][e] * factor;
    }
#pragma unroll
    for (int step = 0; step < tileKeys / 16; ++step) {
      unsigned powers[4];
#pragma unroll
      for (int part = 0; part < 4; ++part)
        powers[part] = pairOf($VTYPE$(scores[step * 2 + part / 2][part % 2 * 2]), $VTYPE$(scores[step * 2 + part / 2][part % 2 * 2 + 1]));
#pragma unroll
      for (int j = 0; j < $VALUE$ / 8; j += 2) {
        unsigned both[4];
        loadTilesTurned(both, fromV + (step * 16 + lane % 16) * rowV + (j + lane / 16) * 8);
        $MMA$(sums[j], powers, both);
        $MMA$(sums[j + 1], powers, both + 2);
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += __shfl_sync(0xffffffffu, total[half], lane ^ 1);
    total[half] += __shfl_sync(0xffffffffu, total[half], lane ^ 2);
  }
#pragma unroll
  for (int j = 0; j < $VALUE$ / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int query = firstQuery + lane / 4 + e / 2 * 8, at = j * 8 + lane % 4 * 2 + e % 2;
      if (query < endQuery)
        $RAT$ = $RTYPE$(total[e / 2] == 0.0f ? 0.0f : sums[j][e] / total[e / 2]);
    }
}

$AWAITER$$FORM$extern "C" __global__ void
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y, MGPU_MIN_BLOCKS)
$NAME$($PARAMETERS$const MgpuLaunch launch) {
$AWAIT$  static __shared__ __align__(128) $VTYPE$ tileK[MGPU_STAGES * tileKeys * rowK];
  static __shared__ __align__(128) $VTYPE$ tileV[MGPU_STAGES * tileKeys * rowV];
  const bool isAligned = $ALIGNED$; // else threads copy one element at a time
  if (isAligned)
    $NAME$_block<true>(tileK, tileV, $PASSED$launch);
  else
    $NAME$_block<false>(tileK, tileV, $PASSED$launch);
}
)";

/// Whether chunks of 16 bytes of operand `k` begin at multiples of 16 bytes, if
/// its memory does.
bool hasAlignedChunks(const AttentionBody &body, unsigned k) {
  const SmallVector<int64_t> strides = attentionStrides(body, k);
  const size_t batch = body.of.getBatch().size(),
               along = batch + (k < 2 ? 2 : 3);
  for (size_t dim = 0; dim < strides.size(); ++dim)
    if (dim == along ? strides[dim] != 1 : strides[dim] % 8 != 0)
      return false;
  return true;
}

} // namespace

Result<CudaKernel> emitTensorAttention(ModuleOp module,
                                       const CudaEmitOptions &options) {
  const KernelSpace space =
      tensorAttentionSpace(module, options.block, options.maxGrid);
  cuda::AttentionText text(
      module, options, space,
      "launch lane warp thread threads batch firstQuery endQuery firstQ firstK "
      "firstV firstR bring tile tiles toK toV first at key part inside k query "
      "queries step lowest sums most total fromK fromV scores both now shift "
      "factor powers half j e tileK tileV isAligned tileKeys rowK rowV chunk "
      "pairOf copyAsync closeCopies awaitCopies loadTiles loadTilesTurned "
      "sharedAddress");
  auto entry = module.lookupSymbol<func::FuncOp>("entry");
  const bool isHalf =
      getElementTypeOrSelf(
          entry.getArgumentTypes()[unsigned(text.body.of.getOperands()[0])])
          .isF16();
  const char *multiply = isHalf ? "mmaF16" : "mmaBf16";
  for (const char *each : {"loadTiles", "copyAsync", multiply})
    text.helpers.use(each);
  if (failed(text.prepare()))
    return fail(ErrorKind::Unsupported, "");
  cuda::Substitutions &words = text.words;
  words["TILE_KEYS"] =
      std::to_string(int64_t(sizesOf(text.body.of, true).keysOfTile()));
  words["MMA"] = multiply;
  words["QLEFT"] = text.elementAt(0, "query", "at");
  words["QRIGHT"] = text.elementAt(0, "query", "at + 1");
  words["KCHUNK"] = text.elementAt(1, "first + key", "part");
  words["KPART"] = text.elementAt(1, "first + key", "part + k");
  words["VCHUNK"] = text.elementAt(2, "first + key", "part");
  words["VPART"] = text.elementAt(2, "first + key", "part + k");
  words["RAT"] = text.elementAt(3, "query", "at");
  words["ALIGNED"] =
      hasAlignedChunks(text.body, 1) && hasAlignedChunks(text.body, 2)
          ? "((unsigned long long)" + words["K"] + " | (unsigned long long)" +
                words["V"] + ") % 16 == 0"
          : "false";
  return text.write(tensorHead, tensorBody);
}

} // namespace mgpu::kernels
