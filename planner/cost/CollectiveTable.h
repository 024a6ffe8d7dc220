// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_COLLECTIVETABLE_H
#define MGPU_PLANNER_COST_COLLECTIVETABLE_H

// Measured times of collectives, interpolated.

#include "planner/cost/Tables.h"

#include <optional>
#include <span>

namespace mgpu::planner {

// Time of one collective over bytes, as a curve of few coefficients.

/// t = fixed + perByte * bytes + perRoot * sqrt(bytes), microseconds. The last
/// term is what a pipeline of best-sized pieces costs beside latency and
/// bandwidth: pieces of s bytes cost latency * bytes / s + s / bandwidth, least
/// at s = sqrt(latency * bandwidth * bytes).
struct CollectiveCurve {
  double fixedUs = 0, usPerByte = 0, usPerRoot = 0;

  double us(double bytes) const;
  /// The curve on links `factor` times as fast.
  double usOnLinks(double bytes, double factor) const;

  /// Least relative squares, coefficients not negative, over the rows of
  /// 256 KiB and more: smaller ones are mostly noise. `withRoot` false is the
  /// plain alpha-beta line. Rows of one curve; two distinct sizes at least.
  static CollectiveCurve fit(std::span<const CollectiveRow> rows,
                             bool withRoot = true);
};

/// The curve shipped (Fitted.inc) for one NVLink node with data-sheet links.
std::optional<CollectiveCurve> shippedCurve(uint32_t architecture,
                                            CollectiveOp op, uint32_t ranks);

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
