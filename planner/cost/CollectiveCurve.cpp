// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/CollectiveCurve.h"

#include "planner/cost/LeastSquares.h"

#include <algorithm>
#include <cmath>

namespace mgpu::planner {

static constexpr double leastBytes = 256 * 1024;

double CollectiveCurve::us(double bytes) const { return usOnLinks(bytes, 1); }

double CollectiveCurve::usOnLinks(double bytes, double factor) const {
  // The pieces' cost is the geometric mean of latency and bandwidth.
  return fixedUs + usPerByte * bytes / factor +
         usPerRoot * std::sqrt(bytes / factor);
}

CollectiveCurve CollectiveCurve::fit(std::span<const CollectiveRow> rows,
                                     bool withRoot) {
  // Takes the best set of terms that fits with no coefficient below 0.
  CollectiveCurve best;
  double bestError = INFINITY;
  for (int set = 1; set < (withRoot ? 8 : 4); ++set) {
    std::vector<double> matrix, ones;
    size_t width = 0;
    for (const CollectiveRow &row : rows) {
      if (row.bytes < leastBytes)
        continue;
      double terms[3] = {1, row.bytes, std::sqrt(row.bytes)};
      width = 0;
      for (int t = 0; t < 3; ++t)
        if (set >> t & 1) {
          matrix.push_back(terms[t] / row.us);
          ++width;
        }
      ones.push_back(1);
    }
    std::vector<double> weights = ridgeFit(matrix, width, ones, 0);
    if (weights.empty() ||
        *std::min_element(weights.begin(), weights.end()) < 0)
      continue;
    double error = 0;
    for (size_t r = 0; r < ones.size(); ++r) {
      double sum = 0;
      for (size_t i = 0; i < width; ++i)
        sum += weights[i] * matrix[r * width + i];
      error += (sum - 1) * (sum - 1);
    }
    if (error >= bestError)
      continue;
    bestError = error;
    size_t next = 0;
    auto take = [&](int t) { return set >> t & 1 ? weights[next++] : 0; };
    best.fixedUs = take(0);
    best.usPerByte = take(1);
    best.usPerRoot = take(2);
  }
  return best;
}

std::optional<CollectiveCurve> shippedCurve(uint32_t architecture,
                                            CollectiveOp op, uint32_t ranks) {
  struct Entry {
    uint32_t architecture;
    CollectiveOp op;
    uint32_t ranks;
    CollectiveCurve curve;
  };
  static constexpr Entry entries[] = {
#define MGPU_MATMUL(...)
#define MGPU_COLLECTIVE(ARCHITECTURE, OP, RANKS, FIXED, PER_BYTE, PER_ROOT)    \
  {ARCHITECTURE, CollectiveOp::OP, RANKS, {FIXED, PER_BYTE, PER_ROOT}},
#include "planner/cost/Fitted.inc"
#undef MGPU_MATMUL
#undef MGPU_COLLECTIVE
  };
  for (const Entry &entry : entries)
    if (entry.architecture == architecture && entry.op == op &&
        entry.ranks == ranks)
      return entry.curve;
  return std::nullopt;
}

} // namespace mgpu::planner
