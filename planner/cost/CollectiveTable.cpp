// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/CollectiveTable.h"

#include "planner/cost/Tables.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

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

// Set by random search on leave-one-out errors over the tables bench-cost
// reads: variances are of log time, lengths in powers of two of the size.
static constexpr double allVariance = 0.40, allLength = 42;
static constexpr double likeRanks = 0.81; // correlation per doubling of ranks
static constexpr double kindVariance = 0.033, kindLength = 3.3;
static constexpr double ranksVariance = 0.0045, ranksLength = 8.4;
static constexpr double curveVariance = 0.070, curveLength = 6.8;
static constexpr double levelVariance = 0.023;
static constexpr double noiseVariance = 0.0011, smallNoiseVariance = 0.14;
static constexpr double noisyBelowBytes = 4.6e5, noiseDecay = 0.62;
static constexpr double latencyUs = 6.8;
/// Between curves of different ranks, sizes are alike that differ by this power
/// of the ranks.
static constexpr double ranksShift = 0.72;
static constexpr size_t mostRows = 4000;

static bool isPermute(CollectiveOp op) {
  return op == CollectiveOp::PermuteRing || op == CollectiveOp::PermutePairs;
}

static double meanOfLog(const CollectiveRow &row) {
  // Data-sheet NVLink rates, bytes per microsecond and direction; a row's
  // architecture does not say which GPU it was, so the largest of each.
  double link = row.architecture >= 100  ? 900e3
                : row.architecture >= 90 ? 450e3
                                         : 300e3;
  double n = row.ranks;
  double traffic = row.op == CollectiveOp::AllReduce ? 2 * (n - 1) / n
                   : isPermute(row.op)               ? 1
                                                     : (n - 1) / n;
  return std::log(latencyUs + traffic * row.bytes / link);
}

static double matern(double distance) {
  return (1 + std::sqrt(3) * distance) * std::exp(-std::sqrt(3) * distance);
}

static bool sameCurve(const CollectiveRow &a, const CollectiveRow &b) {
  return a.architecture == b.architecture && a.op == b.op && a.ranks == b.ranks;
}

static double covariance(const CollectiveRow &a, const CollectiveRow &b) {
  double ranks = std::log2(double(a.ranks) / double(b.ranks));
  double sizes = std::log2(a.bytes / b.bytes);
  double distance = std::abs(sizes + ranksShift * ranks);
  double sum = allVariance * matern(distance / allLength) *
               std::pow(likeRanks, std::abs(ranks));
  if (a.op == b.op || (isPermute(a.op) && isPermute(b.op)))
    sum += kindVariance * matern(distance / kindLength);
  if (a.op == b.op && a.ranks == b.ranks)
    sum += ranksVariance * std::exp(-std::abs(sizes) / ranksLength);
  if (sameCurve(a, b))
    sum +=
        levelVariance + curveVariance * matern(std::abs(sizes) / curveLength);
  return sum;
}

Result<CollectiveTable>
CollectiveTable::create(std::vector<CollectiveRow> rows) {
  size_t n = rows.size();
  if (n == 0 || n > mostRows)
    return fail(ErrorKind::Invalid,
                fmt::format("a table of collectives has {} rows; from 1 to {} "
                            "can be interpolated",
                            n, mostRows));
  std::vector<double> matrix(n * n), rest(n);
  for (size_t i = 0; i < n; ++i) {
    rest[i] = std::log(rows[i].us) - meanOfLog(rows[i]);
    for (size_t j = 0; j <= i; ++j)
      matrix[i * n + j] = matrix[j * n + i] = covariance(rows[i], rows[j]);
    matrix[i * n + i] +=
        noiseVariance +
        smallNoiseVariance *
            std::min(1.0,
                     std::pow(noisyBelowBytes / rows[i].bytes, noiseDecay));
  }
  CollectiveTable table;
  table.weights = solvePositive(std::move(matrix), std::move(rest));
  table.rows = std::move(rows);
  if (table.weights.empty())
    return fail(ErrorKind::Internal, "the covariance of the table of "
                                     "collectives is singular");
  return table;
}

std::optional<double> CollectiveTable::us(uint32_t architecture,
                                          CollectiveOp op, uint32_t ranks,
                                          double bytes) const {
  CollectiveRow asked{architecture, op, ranks, bytes, 0};
  double low = INFINITY, high = 0;
  for (const CollectiveRow &row : rows)
    if (sameCurve(row, asked)) {
      low = std::min(low, row.bytes);
      high = std::max(high, row.bytes);
    }
  if (high == 0)
    return std::nullopt;
  asked.bytes = std::max(bytes, low);
  double mean = meanOfLog(asked);
  asked.bytes = std::min(asked.bytes, 4 * high);
  for (size_t i = 0; i < rows.size(); ++i)
    mean += weights[i] * covariance(asked, rows[i]);
  return std::exp(mean);
}

} // namespace mgpu::planner
