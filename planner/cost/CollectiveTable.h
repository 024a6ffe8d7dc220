// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_COLLECTIVETABLE_H
#define MGPU_PLANNER_COST_COLLECTIVETABLE_H

// Measured times of collectives, interpolated.

#include "device/api/Topology.h"
#include "planner/cost/Tables.h"
#include "planner/dag/CollectiveAlgorithm.h"
#include "support/Types.h"

#include <optional>
#include <span>
#include <vector>

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

// NCCL's own estimate of a collective: alpha-beta for each algorithm and
// protocol, on a topology.

struct NcclTime {
  double us = 0;
  CollectiveAlgorithm algorithm;
};

/// The time of each algorithm and protocol that can do it, the fastest first:
/// for `bytes` (the larger side) over `ranks` >= 2 devices, `ranks / nodes` on
/// each of `nodes` nodes. Never empty.
std::vector<NcclTime> ncclEstimates(const device::Topology &topology,
                                    CollectiveKind kind, double bytes,
                                    uint32_t ranks, uint32_t nodes);

/// Whether NCCL has more than one way to do it; all_to_all, permutations and
/// pairs are sends and receives.
bool hasAlgorithms(CollectiveKind kind);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_COLLECTIVETABLE_H
