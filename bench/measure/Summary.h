// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_SUMMARY_H
#define MGPU_BENCH_MEASURE_SUMMARY_H

// Samples in few numbers. Medians and order statistics, because the noise of a
// machine is one-sided and heavy-tailed: a mean follows the worst neighbour.

#include <cstddef>
#include <span>
#include <vector>

namespace mgpu::bench {

/// An estimate and the interval it lies in at some confidence.
struct Interval {
  double middle = 0, low = 0, high = 0;
  double halfWidth() const { return (high - low) / 2; }
};

/// Value at `share` (0 to 1) of ascending samples, of which there is one at
/// least, interpolated between neighbours (Hyndman and Fan 1996, type 7).
double quantile(std::span<const double> ascending, double share);

/// Median of samples in any order.
double median(std::vector<double> samples);

/// The median of ascending samples with its confidence interval between order
/// statistics, which assumes nothing of the distribution but independence
/// (Hettmansperger and Sheather 1986, so that coverage is near `confidence`
/// where whole order statistics would overshoot it). Infinite where the samples
/// are too few: under 6 at 95 %.
Interval medianInterval(std::span<const double> ascending,
                        double confidence = 0.95);

struct Summary {
  size_t count = 0;
  Interval median;                ///< at 95 %
  double mean = 0, deviation = 0; ///< standard, of the samples
  double min = 0, p25 = 0, p75 = 0, p95 = 0;
};
Summary summarize(std::vector<double> samples);

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_SUMMARY_H
