// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_COLLECTIVETABLE_H
#define MGPU_PLANNER_COST_COLLECTIVETABLE_H

// Measured times of collectives, interpolated.

#include "planner/cost/Tables.h"

#include <optional>

namespace mgpu::planner {

/// A Gaussian process over the logarithm of the time: its mean is latency plus
/// traffic over the links' data-sheet rate; what is left over is correlated
/// between near sizes, most of all within a curve (architecture, operation,
/// ranks), less between curves of one operation, least between operations.
/// Times below about a MiB are noisy and weigh little.
class CollectiveTable {
public:
  /// Up to a few thousand rows: building takes rows^3 / 6 multiplications.
  static Result<CollectiveTable> create(std::vector<CollectiveRow> rows);

  /// Microseconds; nothing for a curve the table has no row of. Sizes below the
  /// smallest measured are taken as that, beyond the largest the last
  /// correction holds.
  std::optional<double> us(uint32_t architecture, CollectiveOp op,
                           uint32_t ranks, double bytes) const;

private:
  std::vector<CollectiveRow> rows;
  std::vector<double> weights;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_COLLECTIVETABLE_H
