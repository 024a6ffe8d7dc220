// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel's entry: its signature, which threads of the source a thread is, and
// the statements of one of them in that many turns.
#include "kernels/cuda/EntryText.h"

#include "kernels/abi/LaunchForm.h"
#include "kernels/cuda/SourceText.h"

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

// The ids that a thread has in the source, and whether it is one of the launch.

bool handsOnThread(StringRef body) {
  return body.contains("(at,") || body.contains("(at)");
}

/// The fields of `at` that `body` asks for: either the ones that are the same
/// for all items, or the others.
std::string EntryText::ids(const std::string &indent, const std::string &body,
                           bool inLoop) const {
  bool all = handsOnThread(body);
  std::string text;
  auto set = [&](const std::string &field, const std::string &value) {
    if (all || StringRef(body).contains("at." + field))
      text += indent + "at." + field + " = (int)" + value + ";\n";
  };
  for (char upper : {'X', 'Y', 'Z'}) {
    std::string u(1, upper), l(1, char(upper - 'A' + 'a'));
    bool isX = upper == 'X';
    if (!inLoop)
      set("grid" + u, "launch.grid" + u);
    if (kernel.reshapable) {
      if (inLoop != isX)
        continue;
      const Axis *axis = llvm::find_if(
          axes, [&](const Axis &each) { return each.upper == upper; });
      if (axis == axes.end()) {
        set("block" + u, "0");
        set("thread" + u, "0");
        continue;
      }
      std::string size = std::to_string(axis->block);
      set("block" + u, "(global" + u + " / " + size + ")");
      set("thread" + u, "(global" + u + " % " + size + ")");
    } else if (!inLoop) {
      set("thread" + u, isX && vectorForm ? "threadIdx.x * MGPU_VECTOR"
                        : upper == 'Y' && mayLieBeside ? "0"
                                                       : "threadIdx." + l);
      if (!isX)
        set("block" + u, "(launch.base" + u + " + blockIdx." + l +
                             " + launch.first" + u + ")");
    } else if (isX) {
      set("blockX", "sourceX");
    }
  }
  if (!inLoop && hasThread)
    text = indent + "MgpuThread at;\n" + text;
  return text;
}

/// Threads along an axis that the launch does not have leave.
std::string EntryText::leaveWithoutAxis() const {
  std::string noAxis, blocks;
  for (char upper : {'Y', 'Z'})
    if (llvm::none_of(axes, [&](const Axis &a) { return a.upper == upper; })) {
      std::string u(1, upper), l(1, char(upper - 'A' + 'a'));
      noAxis += (noAxis.empty() ? "" : " || ") + ("threadIdx." + l + " != 0");
      blocks += (blocks.empty() ? "" : " * ") + ("MGPU_BLOCK_" + u);
    }
  if (noAxis.empty())
    return "";
  return "#if " + blocks + " > 1\n  if (" + noAxis + ")\n    return;\n#endif\n";
}

/// Whether a thread is in the launch, where blocks hang over.
std::string EntryText::insideLaunch() const {
  std::string inside;
  for (const Axis &axis : axes) {
    std::string u(1, axis.upper), size = std::to_string(axis.block);
    // A launch has no more clusters than it takes to cover its grid: where they
    // divide a block of the source, none hangs over.
    std::string unit = "MGPU_BLOCK_" + u;
    if (axis.upper == 'X')
      unit = "(" + unit + " * MGPU_ITEMS * MGPU_VECTOR * MGPU_CLUSTER_X)";
    if (!inside.empty())
      inside += " && ";
    inside += "(" + size + " % " + unit + " == 0 || global" + u + " < (" +
              count + ")launch.end" + u + " * " + size + ")";
  }
  return inside;
}

// The macros of a kernel's text: their defaults, and errors for values that
// they cannot have.

namespace {

constexpr const char *blockCheck =
    R"(#if MGPU_BLOCK_X$VECTOR$ != $X$ || $WRONG_Y$ || MGPU_BLOCK_Z != $Z$
#error "$NAME$ $REASON$"
#endif
)";

constexpr const char *clusterCheck =
    R"(#if MGPU_ITEMS != 1 || MGPU_CLUSTER_X != 1
#error "$NAME$ has clusters of its own"
#endif
)";

/// A launch that lives beside the kernel it follows reads what that kernel
/// still writes: CUDA's memory model allows neither __restrict__ nor
/// ld.global.nc then (CUDA C++ Programming Guide, "Programmatic Dependent
/// Launch").
constexpr const char *unwrittenMacro = R"(#if MGPU_PDL
#define MGPU_UNWRITTEN // the kernel before may still write it
#else
#define MGPU_UNWRITTEN __restrict__
#endif
)";

/// How the threads of a block of the source meet.
constexpr const char *meetOfBlock = "#define MGPU_MEET() __syncthreads()\n";
constexpr const char *meetOfWarp =
    R"(#if MGPU_BLOCK_Y > 1 // a block of the source is a warp
#define MGPU_MEET() __syncwarp(0xffffffffu)
#else
#define MGPU_MEET() __syncthreads()
#endif
)";

constexpr const char *vectorCheck =
    R"(#if MGPU_VECTOR < 1 || $X$ % MGPU_VECTOR != 0
#error "MGPU_VECTOR must divide $X$"
#endif
#define MGPU_PARTS _Pragma("unroll") for (int part = 0; part < MGPU_VECTOR; ++part)
)";
constexpr const char *noVectorCheck = R"(#if MGPU_VECTOR != 1
#error "$NAME$ $WHY$"
#endif
)";

} // namespace

std::string EntryText::macros() const {
  const Dim3 block = options.block;
  std::string text = macroDefault("MGPU_BLOCK_X", block.x) +
                     macroDefault("MGPU_BLOCK_Y", block.y) +
                     macroDefault("MGPU_BLOCK_Z", block.z) +
                     macroDefault("MGPU_ITEMS", 1) +
                     macroDefault("MGPU_VECTOR", 1);
  if (vectorForm)
    text += macroDefault("MGPU_ALIGN", options.alignment);
  if (kernel.hasUnroll)
    text += macroDefault("MGPU_UNROLL", 0);
  if (stages)
    text += macroDefault("MGPU_STAGE", 0);
  text += macroDefault("MGPU_MIN_BLOCKS", 1) +
          macroDefault("MGPU_CLUSTER_X", 1) +
          macroDefault("MGPU_FAST_MATH", 0) + macroDefault("MGPU_PDL", 0);
  const Substitutions words{
      {"NAME", kernel.name},
      {"REASON", kernel.reason},
      {"WHY", kernel.vectorReason},
      {"VECTOR", vectorForm ? " * MGPU_VECTOR" : ""},
      {"X", std::to_string(block.x)},
      {"WRONG_Y", mayLieBeside ? "(MGPU_BLOCK_X != 32 && MGPU_BLOCK_Y != 1)"
                               : "MGPU_BLOCK_Y != " + std::to_string(block.y)},
      {"Z", std::to_string(block.z)}};
  if (llvm::any_of(kernel.parameters,
                   [](const auto &each) { return each.isUnwritten; }))
    text += unwrittenMacro;
  if (!kernel.reshapable)
    text += fill(blockCheck, words);
  if (vectorForm && !kernel.reshapable)
    text += mayLieBeside ? meetOfWarp : meetOfBlock;
  if (kernel.cluster)
    text += fill(clusterCheck, words);
  text += fill(vectorForm ? vectorCheck : noVectorCheck, words);
  if (kernel.hasUnroll) // a preprocessor may leave macros in pragmas alone
    text += "enum { mgpuUnroll = MGPU_UNROLL };\n";
  return text + (stages ? stageMacros() : "");
}

// The comment at the top of a kernel's text: what it is, and its macros.

namespace {

constexpr const char *entryComment = R"(// $NAME$$AT$.
// CUDA C++ that includes nothing, for NVRTC; a block of the source has $BLOCK$ threads.
//
// Compile with --fmad=false for the results of the source, bit for bit;
// --fmad=true lets a * b + c be one operation. Macros (-D):
$BLOCKS$$VECTOR$$UNROLL$$STAGE$//   MGPU_MIN_BLOCKS       blocks that must fit one multiprocessor (__launch_bounds__)
//   MGPU_CLUSTER_X        blocks of a cluster, along x, of which a launch has whole
//                         ones alone; more than 1 from sm_90 on
//   MGPU_FAST_MATH        1: the fast forms of exp, log, sin, division, ...
//   MGPU_PDL              1: may be launched to begin before the kernel it follows has
//                         ended, for which it waits; from sm_90 on
// Launch with the grid, in blocks of the source, in `launch`, and with
//   $GRID$ blocks along x. A part of the grid is a launch of
// fewer blocks from block first on, or of the source's blocks base to end.
)";

constexpr const char *anyBlockComment =
    R"(//   MGPU_BLOCK_X, _Y, _Z  threads of a block; any: the kernel
//                         $REASON$
//   MGPU_ITEMS            threads of the source, a block apart along x, that one
//                         thread is
)";

constexpr const char *fixedBlockComment =
    R"(//   MGPU_BLOCK_X, _Y, _Z  threads of a block; $FIXED$: the kernel
//                         $REASON$$BESIDE$
//   MGPU_ITEMS            blocks of the source, along x, that one block is
)";

constexpr const char *besideComment = R"(.
//                         MGPU_BLOCK_Y blocks of the source, along x, lie beside each
//                         other where MGPU_BLOCK_X is 32)";

constexpr const char *vectorComment =
    R"(//   MGPU_VECTOR           neighbours along x that one thread is, computed together
//                         and loaded and stored at once where their place is known
//                         to allow it; a divisor of $X$
//   MGPU_ALIGN            bytes that the addresses of all buffers are multiples of: no
//                         access is wider
)";

constexpr const char *noVectorComment =
    "//   MGPU_VECTOR           1: the kernel $WHY$\n";

constexpr const char *unrollComment =
    R"(//   MGPU_UNROLL           how often the innermost loops are unrolled; 0: as the
//                         compiler likes
)";

constexpr const char *stageComment =
    R"(//   MGPU_STAGE            1: a block copies what its threads read of some buffers, and
//                         what lies around it, to shared memory first
)";

} // namespace

std::string EntryText::comment() const {
  const std::string x = std::to_string(options.block.x);
  const std::string blocks =
      kernel.reshapable
          ? fill(anyBlockComment, {{"REASON", kernel.reason}})
          : fill(fixedBlockComment,
                 {{"FIXED", vectorForm ? "MGPU_BLOCK_X * MGPU_VECTOR is fixed"
                                       : "fixed"},
                  {"REASON", kernel.reason},
                  {"BESIDE", mayLieBeside ? besideComment : ""}});
  return fill(
      entryComment,
      {{"NAME", kernel.name},
       {"AT",
        options.location.empty() ? "" : ": the launch at " + options.location},
       {"BLOCK", dims(options.block)},
       {"BLOCKS", blocks},
       {"VECTOR", vectorForm
                      ? fill(vectorComment, {{"X", x}})
                      : fill(noVectorComment, {{"WHY", kernel.vectorReason}})},
       {"UNROLL", kernel.hasUnroll ? unrollComment : ""},
       {"STAGE", stages ? stageComment : ""},
       {"GRID", kernel.reshapable
                    ? "ceil(gridX * " + x +
                          " / (MGPU_BLOCK_X * MGPU_ITEMS * MGPU_VECTOR))"
                    : "ceil(gridX / MGPU_ITEMS)"}});
}

} // namespace mgpu::kernels::cuda
