// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/CollectiveTable.h"

#include "planner/cost/Tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

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

// The constants are published, but for those marked: NVIDIA/nccl at 5067397
// (2026-06), src/graph/tuning.cc and topo.h, whose formula is
// time = latency + bytes / bandwidth.

namespace {

using enum CollectiveAlgorithm::Shape;
using enum CollectiveAlgorithm::Protocol;

/// Microseconds by protocol.
struct Latencies {
  double of[3];
};
constexpr Latencies treeBase{{6.8, 14.0, 8.4}}, ringBase{{6.6, 14.0, 8.4}};
constexpr Latencies treeNvlink{{0.6, 1.25, 4.0}}, ringNvlink{{0.6, 1.9, 3.4}};
constexpr Latencies treePci{{1.0, 1.9, 4.0}}, ringPci{{1.0, 2.5, 5.7}};
constexpr Latencies treeNet{{5.0, 8.5, 14}}, ringNet{{2.7, 4.0, 14.0}};
constexpr double nvlsLatency = 25;
constexpr double ringSeveralNodes = 1.4; // Simple: its latency over nodes
constexpr double treeShare = 0.92, ll128Share = 0.92, llShare = 0.5;
constexpr double treeLlShare = 1 / 3.8, treeLl128Share = 7.0 / 9;
constexpr double netShare = 12.0 / 12.5; // 100 Gb counts as 12 GB/s
constexpr double pciShare = 12.0 / 16;   // x16 Gen3 counts as 12 GB/s
constexpr double llSeveralNodesBytesPerUs = 39e3;

struct Generation {
  double
      nvlinkShare; // lane rate NCCL counts with, over the data sheet's 25, 50
  double llBytesPerUs;
  double nvlsShare; // 0: no NVLink SHARP
};
Generation generationOf(uint32_t architecture) {
  if (architecture >= 100)
    return {40.1 / 50, 282e3, 0.74};
  if (architecture >= 90)
    return {20.6 / 25, 141e3, 0.85};
  return {20.0 / 25, 87.7e3, 0};
}
// One channel of NVLS is kept for synchronisation, of 16 (the count: assumed).
constexpr double nvlsChannels = 15.0 / 16;

} // namespace

bool hasAlgorithms(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce ||
         kind == CollectiveKind::AllGather ||
         kind == CollectiveKind::ReduceScatter ||
         kind == CollectiveKind::Broadcast;
}

/// The work of a ring for a collective.
struct RingWork {
  double steps, crossing; ///< and those between nodes
  double traffic;         ///< bytes over a link per byte of payload
};

static RingWork ringWork(CollectiveKind kind, double ranks, uint32_t nodes) {
  const RingWork once{ranks - 1, nodes - 1.0, (ranks - 1) / ranks};
  switch (kind) {
  case CollectiveKind::AllReduce:
    return {2 * once.steps, 2 * once.crossing, 2 * once.traffic};
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return once;
  case CollectiveKind::Broadcast:
    return {ranks, once.crossing, 1};
  case CollectiveKind::Permute:
  case CollectiveKind::SendRecv:
    return {1, nodes > 1 ? 1.0 : 0.0, 1};
  }
  return once;
}

std::vector<NcclTime> ncclEstimates(const device::Topology &topology,
                                    CollectiveKind kind, double bytes,
                                    uint32_t ranks, uint32_t nodes) {
  bool nvlink = topology.link.kind == device::LinkKind::NvLink;
  bool several = nodes > 1;
  Generation generation = generationOf(topology.device.architecture);
  double n = ranks, perNode = std::max(1.0, n / nodes);
  double bus = topology.link.bytesPerSecond / 1e6 *
               (nvlink ? generation.nvlinkShare : pciShare);
  double nvlsBus = bus;
  if (several && topology.nic) // all rings of a node share its NICs
    bus = std::min(bus, topology.nic->count * topology.nic->bytesPerSecond /
                            1e6 * netShare);
  double llMost = several ? llSeveralNodesBytesPerUs : generation.llBytesPerUs;
  const auto [steps, crossing, traffic] = ringWork(kind, n, nodes);

  std::vector<NcclTime> times;
  auto offer = [&](double us, CollectiveAlgorithm::Shape shape,
                   CollectiveAlgorithm::Protocol protocol) {
    times.push_back({us, {shape, protocol}});
  };
  for (CollectiveAlgorithm::Protocol protocol : {LL, LL128, Simple}) {
    if (protocol == LL128 && !nvlink)
      continue;
    double rate = protocol == LL      ? std::min(bus * llShare, llMost)
                  : protocol == LL128 ? bus * ll128Share
                                      : bus;
    double inside = (nvlink ? ringNvlink : ringPci).of[protocol];
    double latency = ringBase.of[protocol] + (steps - crossing) * inside +
                     crossing * ringNet.of[protocol];
    if (several && protocol == Simple)
      latency *= ringSeveralNodes;
    offer(latency + traffic * bytes / rate, Ring, protocol);

    if (kind != CollectiveKind::AllReduce)
      continue;
    inside = (nvlink ? treeNvlink : treePci).of[protocol];
    latency = treeBase.of[protocol] +
              2 * ((perNode - 1) * inside +
                   std::log2(double(nodes)) * treeNet.of[protocol]);
    rate = bus * treeShare;
    if (protocol == LL)
      rate = std::min(rate * treeLlShare, llMost);
    else if (protocol == LL128 && !several)
      rate *= treeLl128Share;
    offer(latency + 2 * bytes / rate, Tree, protocol);
  }
  bool nvls = nvlink && generation.nvlsShare > 0 && !several && ranks > 2;
  double nvlsRate = nvlsBus * generation.nvlsShare * nvlsChannels;
  if (nvls && kind == CollectiveKind::AllReduce)
    offer(nvlsLatency + bytes * (n - 1) / n / nvlsRate, Nvls, Simple);
  else if (nvls && (kind == CollectiveKind::AllGather ||
                    kind == CollectiveKind::ReduceScatter))
    offer(nvlsLatency + bytes / nvlsRate, Nvls, Simple);
  std::sort(times.begin(), times.end(),
            [](const NcclTime &a, const NcclTime &b) {
              return std::tuple(a.us, a.algorithm.shape, a.algorithm.protocol) <
                     std::tuple(b.us, b.algorithm.shape, b.algorithm.protocol);
            });
  return times;
}

} // namespace mgpu::planner
