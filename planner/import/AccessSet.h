// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ACCESSSET_H
#define MGPU_PLANNER_IMPORT_ACCESSSET_H

// The elements that an access of a kernel touches, as integers that solve
// linear conditions, and the question whether two accesses touch one element.
// MLIR's Presburger library answers it.

#include "facts/AffineEvaluator.h"
#include "planner/import/Conditions.h"
#include "planner/import/KernelView.h"
#include "planner/record/TouchedSet.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/IR/Operation.h"

namespace mgpu::planner {

/// An operation that reads or writes elements of a memref: of memref, or of
/// vector.
struct MemoryAccess {
  mlir::Operation *op = nullptr;
  mlir::Value memref;
  mlir::ValueRange indices;
  llvm::ArrayRef<int64_t> lanes; ///< of the last dimensions; a vector's shape
  mlir::Value stored;            ///< none where it reads, or is atomic
  bool isAtomic = false;
};
/// None for what is not one, or touches elements that depend on more than the
/// indices (masks, padding, permutations).
std::optional<MemoryAccess> memoryAccessOf(mlir::Operation *op);

struct AccessSet {
  AffineForm address; ///< elements, within the buffer
  uint32_t bytes = 1; ///< of an element
  std::map<Terms, LineRange> conditions;
  /// Whether all are touched; else some condition is not affine.
  bool isSure = true;
};
/// None where an address is not affine, or no thread comes there. With
/// `bounded`, an index that is not affine is any of its dimension, and the set
/// is not sure.
std::optional<AccessSet> accessSetOf(const MemoryAccess &access,
                                     const KernelView &view, mlir::Region &body,
                                     AffineEvaluator &affine,
                                     bool bounded = false);

/// Makes the set for whoever has no evaluator. The first unknowns are the
/// counters `first`, whether or not the address has them.
TouchedSet touchedSet(const AccessSet &access, bool writes,
                      const AffineEvaluator &affine,
                      llvm::ArrayRef<uint32_t> first = {});

/// The unknowns of two accesses, first a's and then b's, where both touch the
/// same bytes. Not to be solved where it is not small.
class Meeting {
public:
  Meeting(const TouchedSet &a, const TouchedSet &b);

  bool isSmall() const;
  const mlir::presburger::IntegerRelation &relation() const { return meeting; }

private:
  mlir::presburger::IntegerRelation meeting;
};

/// A MeetSets.
Overlap meetSets(const TouchedSets &a, const TouchedSets &b);

// The bytes that an access touches over all ids of a launch, as a box.

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

#endif // MGPU_PLANNER_IMPORT_ACCESSSET_H
