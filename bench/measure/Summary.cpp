// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mgpu::bench {

double quantile(std::span<const double> ascending, double share) {
  double position = share * double(ascending.size() - 1);
  size_t below = size_t(position);
  size_t above = std::min(below + 1, ascending.size() - 1);
  double part = position - double(below);
  // An infinite neighbour of no weight must not make a NaN.
  return part == 0 ? ascending[below]
                   : ascending[below] * (1 - part) + ascending[above] * part;
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return quantile(samples, 0.5);
}

Interval medianInterval(std::span<const double> ascending, double confidence) {
  const size_t n = ascending.size();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  Interval interval{n ? quantile(ascending, 0.5) : 0, -infinite, infinite};
  // [x(d), x(n+1-d)], counted from 1, covers the median unless fewer than d of
  // n fair coins fall to one side. d is the largest that covers enough.
  double logTerm = -double(n) * std::log(2.0); // for d - 1 coins
  double tail = 0;
  double coverage = 1, nextCoverage = 1; // for d, and for d + 1
  size_t d = 0;
  for (; d < n / 2; ++d) {
    tail += std::exp(logTerm);
    logTerm += std::log(double(n - d) / double(d + 1));
    nextCoverage = 1 - 2 * tail;
    if (nextCoverage < confidence)
      break;
    coverage = nextCoverage;
  }
  if (d == 0)
    return interval;
  double excess = coverage > nextCoverage
                      ? (coverage - confidence) / (coverage - nextCoverage)
                      : 0;
  if (d == n / 2) // there is no narrower one to lean on
    excess = 0;
  double inward = double(n - d) * excess /
                  (double(d) + (double(n) - 2 * double(d)) * excess);
  auto between = [&](size_t outer, size_t inner) {
    return ascending[outer] + inward * (ascending[inner] - ascending[outer]);
  };
  if (excess > 0) {
    interval.low = between(d - 1, d);
    interval.high = between(n - d, n - d - 1);
  } else {
    interval.low = ascending[d - 1];
    interval.high = ascending[n - d];
  }
  return interval;
}

Summary summarize(std::vector<double> samples) {
  Summary summary;
  summary.count = samples.size();
  if (samples.empty())
    return summary;
  std::sort(samples.begin(), samples.end());
  summary.median = medianInterval(samples);
  for (double sample : samples)
    summary.mean += sample / double(samples.size());
  for (double sample : samples)
    summary.deviation += (sample - summary.mean) * (sample - summary.mean);
  summary.deviation =
      samples.size() > 1
          ? std::sqrt(summary.deviation / double(samples.size() - 1))
          : 0;
  summary.min = samples.front();
  summary.p25 = quantile(samples, 0.25);
  summary.p75 = quantile(samples, 0.75);
  summary.p95 = quantile(samples, 0.95);
  return summary;
}

} // namespace mgpu::bench
