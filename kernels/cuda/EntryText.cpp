// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel's entry: its signature, which threads of the source a thread is, and
// the statements of one of them in that many turns.
#include "kernels/cuda/EntryText.h"

#include "kernels/abi/LaunchForm.h"
#include "kernels/cuda/SourceText.h"
#include "kernels/cuda/TextTemplate.h"

#include "llvm/ADT/STLExtras.h"

namespace mgpu::kernels::cuda {

using llvm::StringRef;

namespace {

constexpr const char *threadType =
    R"(struct MgpuThread { // ids and sizes as the source sees them
  int blockX, blockY, blockZ, threadX, threadY, threadZ, gridX, gridY, gridZ;
};
)";

constexpr const char *entryText = R"($AWAITER$$FORM$extern "C" __global__ void
$CLUSTERS$#endif
__launch_bounds__(MGPU_BLOCK_X * MGPU_BLOCK_Y * MGPU_BLOCK_Z, MGPU_MIN_BLOCKS)
$NAME$($PARAMETERS$const MgpuLaunch launch) {
$AHEAD$$AWAIT$$BLOCKS$}
)";
constexpr const char *ownClusters =
    R"(#if __CUDA_ARCH__ >= 900 // ids do not depend on it
__cluster_dims__($SIZES$)
)";
constexpr const char *anyClusters = R"(#if MGPU_CLUSTER_X > 1
__cluster_dims__(MGPU_CLUSTER_X, 1, 1)
)";

/// Blocks of the source's size, each of which is several of them.
constexpr const char *fixedBlocksText =
    R"($IDS$  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
    const unsigned sourceX = launch.baseX + $SOURCE$;
    if (sourceX >= launch.endX) // for all threads of it alike
      break;
$ITEM_IDS$$MEET$$BODY$$OWN$  }
)";
constexpr const char *meetText = R"(    if (item > 0)
      $MEET$(); // shared memory is used again
)";

/// Blocks of any size, whose threads know their global index.
constexpr const char *anyBlocksText =
    R"($TILES$$LEAVE$$GLOBALS$$IDS$#if MGPU_ITEMS == 1
  const unsigned item = 0;
  {
#else
  for (unsigned item = 0; item < MGPU_ITEMS; ++item) {
#endif
    const $COUNT$ globalX = ($COUNT$)launch.baseX * $X$ + $OPEN$(($COUNT$)(blockIdx.x + launch.firstX) * MGPU_ITEMS + item) * MGPU_BLOCK_X + threadIdx.x$CLOSE$;
$ITEM_IDS$$COPIES$    if ($INSIDE$) {
$BODY$$OWN$    }
  }
)";
constexpr const char *globalText =
    R"(  const $COUNT$ global$U$ = ($COUNT$)launch.base$U$ * $SIZE$ + ($COUNT$)(blockIdx.$L$ + launch.first$U$) * MGPU_BLOCK_$U$ + threadIdx.$L$;
)";

} // namespace

/// "2, 1, 1"
static std::string sizes(Dim3 d) {
  return std::to_string(d.x) + ", " + std::to_string(d.y) + ", " +
         std::to_string(d.z);
}

std::string dims(Dim3 d) {
  return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " +
         std::to_string(d.z);
}

LaunchShape launchShapeOf(mlir::ModuleOp module, Dim3 block) {
  LaunchShape shape = kernels::launchShapeOf(module, block);
  if (shape.cluster && shape.reshapable) {
    shape.reshapable = false;
    shape.reason = "keeps its block: its launch has clusters of blocks";
  }
  return shape;
}

EntryText::EntryText(const CudaKernel &kernel, const CudaEmitOptions &options)
    : kernel(kernel), options(options) {
  auto add = [&](char letter, uint64_t block, uint64_t grid) {
    if (letter == 'x' || block * grid > 1)
      axes.push_back({letter, char(letter - 'a' + 'A'), block, block * grid});
  };
  add('x', options.block.x, options.maxGrid.x);
  add('y', options.block.y, options.maxGrid.y);
  add('z', options.block.z, options.maxGrid.z);
  // With room for a last block of any size and items that is not full.
  count = llvm::all_of(axes, [](const Axis &a) { return a.extent < 1u << 30; })
              ? "unsigned"
              : "unsigned long long";
}

std::string EntryText::header() const {
  return comment() + macros() + "\n" + launchType +
         (hasThread ? threadType : "") + "\n";
}

std::string EntryText::entry(const std::string &body) const {
  std::string parameters;
  for (const CudaParameter &each : kernel.parameters)
    parameters += each.type + (each.isUnwritten ? "MGPU_UNWRITTEN " : "") +
                  each.name + ", ";
  const std::string ahead = fetchCalls();
  std::string clusters = anyClusters;
  if (const std::optional<Dim3> &own = kernel.cluster)
    clusters = fill(ownClusters, {{"SIZES", sizes(*own)}});
  return fill(entryText, {{"AWAITER", std::string(awaitFunction) +
                                          (ahead.empty() ? "" : fetchFunction)},
                          {"FORM", launchForm()},
                          {"CLUSTERS", clusters},
                          {"NAME", kernel.name},
                          {"PARAMETERS", parameters},
                          {"AHEAD", ahead},
                          {"AWAIT", awaitCall},
                          {"BLOCKS", kernel.reshapable ? anyBlocks(body)
                                                       : fixedBlocks(body)}});
}

std::string EntryText::launchForm() const {
  LaunchFormWords words{"MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR",
                        "MGPU_BLOCK_Y", "MGPU_BLOCK_Z", "MGPU_CLUSTER_X, 1, 1"};
  if (!kernel.reshapable) {
    words.coversX = std::to_string(options.block.x) + " * MGPU_ITEMS";
    words.coversY = std::to_string(options.block.y);
    words.coversZ = std::to_string(options.block.z);
    if (mayLieBeside)
      words.coversX += " * MGPU_BLOCK_Y";
  }
  if (const std::optional<Dim3> &own = kernel.cluster)
    words.cluster = sizes(*own);
  words.sharedBytes = std::to_string(kernel.image.dynamicSharedBytes);
  return launchFormText(kernel.name, words);
}

/// The text that fetches before the wait, or "".
std::string EntryText::fetchCalls() const {
  std::string calls;
  for (size_t k = 0; k < kernel.parameters.size(); ++k)
    if (k < options.steadyBytes.size() && options.steadyBytes[k] > 0 &&
        StringRef(kernel.parameters[k].type).contains('*'))
      calls += "  mgpuFetchAhead(" + kernel.parameters[k].name + ", " +
               std::to_string(options.steadyBytes[k]) + ");\n";
  return calls.empty() ? ""
                       : "#if MGPU_PDL && !defined MGPU_AWAIT_GRIDS\n" + calls +
                             "#endif\n";
}

std::string EntryText::fixedBlocks(const std::string &body) const {
  const std::string block = "(blockIdx.x + launch.firstX) * MGPU_ITEMS + item";
  return fill(
      fixedBlocksText,
      {{"IDS", ids("  ", body, /*inLoop=*/false)},
       {"SOURCE",
        mayLieBeside ? "(" + block + ") * MGPU_BLOCK_Y + threadIdx.y" : block},
       {"ITEM_IDS", ids("    ", body, /*inLoop=*/true)},
       {"MEET", usesShared
                    ? fill(meetText, {{"MEET", vectorForm ? "MGPU_MEET"
                                                          : "__syncthreads"}})
                    : ""},
       {"BODY", body},
       {"OWN", ownLine.str()}});
}

std::string EntryText::anyBlocks(const std::string &body) const {
  std::string globals;
  for (const Axis &axis : llvm::drop_begin(axes))
    globals += fill(globalText, {{"COUNT", count},
                                 {"U", std::string(1, axis.upper)},
                                 {"L", std::string(1, axis.letter)},
                                 {"SIZE", std::to_string(axis.block)}});
  return fill(anyBlocksText, {{"TILES", stages ? stageArrays() : ""},
                              {"LEAVE", leaveWithoutAxis()},
                              {"GLOBALS", globals},
                              {"IDS", ids("  ", body, /*inLoop=*/false)},
                              {"COUNT", count},
                              {"X", std::to_string(options.block.x)},
                              {"OPEN", vectorForm ? "(" : ""},
                              {"CLOSE", vectorForm ? ") * MGPU_VECTOR" : ""},
                              {"ITEM_IDS", ids("    ", body, /*inLoop=*/true)},
                              {"COPIES", stages ? stageCopies() : ""},
                              {"INSIDE", insideLaunch()},
                              {"BODY", body},
                              {"OWN", ownLine.str()}});
}

} // namespace mgpu::kernels::cuda
