// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELACCESS_H
#define MGPU_PLANNER_IMPORT_KERNELACCESS_H

// Which bytes a kernel touches: index expressions that are affine in thread
// ids, block ids and counted loops become strided boxes; anything else is the
// whole view. Where a box says too much, a set of integers may say it all.

#include "planner/import/HostValue.h"
#include "planner/import/LaunchRaces.h"
#include "planner/record/TouchedSet.h"

#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <array>
#include <limits>
#include <optional>

namespace mgpu::planner {

/// One access of a kernel body to a memref captured from host code.
struct KernelAccess {
  mlir::Value root; ///< the captured memref
  Box box;          ///< in bytes, within the root buffer
  bool reads = false, writes = false;
  bool exact = false; ///< every byte of the box is surely touched
  /// BufferUse::blockSteps.
  std::array<int64_t, 3> blockSteps{0, 0, 0};
  /// Where the box is not exact, what is touched of it, if it is known.
  std::shared_ptr<TouchedSets> sets = nullptr;
  /// No more bytes than these are touched, whatever the box is.
  uint64_t mostBytes = std::numeric_limits<uint64_t>::max();
};

/// An index that surely leaves its memref: the guards around it, if any, let
/// it.
struct OutOfBounds {
  mlir::Operation *op;
  size_t dimension;
  int64_t first, last, size;
};

struct KernelSummary {
  std::vector<KernelAccess> accesses; ///< few: like ones merged per root
  double flops = 0; ///< the whole launch's, as far as timesRun() knows
  std::optional<LaunchWork> asks; ///< none of what a library computes
  bool onTensorCores = false;     ///< GPUs compute it there by default
  KernelFacts facts;
  std::optional<OutOfBounds> outOfBounds; ///< the first
  std::vector<LaunchRace> races;
};

/// Parts of a summary that other launches of the kernel may share.
struct SummaryParts {
  bool facts = true; ///< and what it asks for
  bool races = true;
};

/// `valueOf` gives what a value defined outside `body` is (a View for
/// the captured memrefs, an attribute for scalars). `known` is of the program.
KernelSummary summariseKernel(mlir::Region &body, Dim3 grid, Dim3 block,
                              HostValueOf valueOf, KnownMeetings &known,
                              SummaryParts parts);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELACCESS_H
