// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_CONDITIONS_H
#define MGPU_PLANNER_IMPORT_CONDITIONS_H

// Narrows the values of a launch's ids and counters by the affine conditions
// around an operation.

#include "facts/AffineEvaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace mgpu::planner {

using facts::AffineEvaluator;

using Terms = std::vector<std::pair<uint32_t, int64_t>>;

/// The line that forms of the same ids have in common: constant + factor *
/// line.
struct Line {
  Terms terms; ///< by counter, without a common factor, the first positive
  int64_t factor = 1;
};
Line lineOf(const AffineForm &form);

/// From first to last; both may be far out.
struct LineRange {
  int64_t first = INT64_MIN / 4, last = INT64_MAX / 4;
};

/// The values of a line, each as often as any other: first, first + step, ...
struct LineValues {
  int64_t first = 0, step = 1, count = 1;
  int64_t last() const { return first + step * (count - 1); }
  /// The values within a range.
  LineValues within(LineRange range) const;
};
/// None where the counters do not tile: some values are then more frequent.
std::optional<LineValues> valuesOf(const Terms &terms,
                                   const AffineEvaluator &affine);

class Conditions {
public:
  explicit Conditions(AffineEvaluator &affine) : affine(affine) {}

  /// Takes the conditions of the branches from `region` up to `body`.
  void requireAround(mlir::Region &region, mlir::Region &body);
  /// The condition holds, or does not hold.
  void require(mlir::Value condition, bool holds);
  /// Trips of a loop, the mean of all that come to it; and of those let
  /// through, where its bounds depend on what a condition does, which then
  /// needs not be counted again.
  double trips(mlir::scf::ForOp loop);
  /// The share of the threads that is let through.
  double share() const;

  /// The range that is left of each line, by its terms.
  const std::map<Terms, LineRange> &lines() const { return ranges; }
  /// Whether `lines` says all there is to know of the conditions.
  bool isWhole() const { return whole; }

private:
  void hold(mlir::arith::CmpIPredicate predicate, mlir::Value left,
            mlir::Value right);

  AffineEvaluator &affine;
  std::map<Terms, LineRange> ranges;
  bool isNever = false, whole = true;
};

/// Trips of the counted loops and the share of the threads that the conditions
/// around `region` let through, within `body`; times the threads of the launch
/// it is how often the launch runs it. Exact where bounds and conditions are
/// affine and take neighbouring values equally often (ids of threads and blocks
/// that make a global index), and no two of different ids, nor two loops of the
/// same, depend on each other. A condition that anything else decides is taken
/// to run, once, as is what stands behind "is not equal".
double timesRun(mlir::Region &region, mlir::Region &body,
                AffineEvaluator &affine);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_CONDITIONS_H
