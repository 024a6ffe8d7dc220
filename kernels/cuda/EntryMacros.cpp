// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The macros of a kernel's text: their defaults, and errors for values that
// they cannot have.
#include "kernels/cuda/EntryText.h"
#include "kernels/cuda/TextTemplate.h"

#include "llvm/ADT/STLExtras.h"

namespace mgpu::kernels::cuda {

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

} // namespace mgpu::kernels::cuda
