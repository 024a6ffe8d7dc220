// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ACCESSBOXES_H
#define MGPU_PLANNER_IMPORT_ACCESSBOXES_H

// The bytes that an access touches over all ids of a launch, as a box.

#include "facts/AffineEvaluator.h"
#include "planner/import/Conditions.h"
#include "planner/import/KernelView.h"

namespace mgpu::planner {

class AccessBoxes {
public:
  explicit AccessBoxes(AffineEvaluator &affine) : affine(affine) {}

  /// A dimension that a guard cut short: its counter, and the block ids that
  /// move what a block touches of it by so many indices.
  struct Overhang {
    uint32_t counter;
    unsigned axis;
    int64_t step;
  };
  /// The part of an access's forms that affine guards leave.
  struct Guarded {
    AffineForm offset;
    std::vector<AffineForm> indices;
    std::vector<Overhang> overhangs;
  };
  /// The forms of an access of which every condition around it is a range of
  /// one line of ids (`if i < n`): they run over what the guards let through,
  /// and some thread is there for each value. None where a guard is anything
  /// else.
  std::optional<Guarded> withinGuards(const Conditions &conditions,
                                      const KernelView &view,
                                      mlir::ValueRange indices);
  /// The axis whose blocks touch indices apart from each other, and how far
  /// apart their first ones are: as i = block * step + (0 .. step - 1).
  std::optional<std::pair<unsigned, int64_t>>
  blocksApart(const AffineForm &index) const;
  /// The bytes of an address over all its counters; sets the steps of the block
  /// ids that move them.
  Box boxOfAddress(const AffineForm &address,
                   const std::vector<Overhang> &overhangs, uint32_t bytes,
                   std::array<int64_t, 3> &blockSteps) const;

private:
  AffineEvaluator &affine;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_ACCESSBOXES_H
