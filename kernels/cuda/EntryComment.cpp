// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The comment at the top of a kernel's text: what it is, and its macros.
#include "kernels/cuda/EntryText.h"
#include "kernels/cuda/TextTemplate.h"

namespace mgpu::kernels::cuda {

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
