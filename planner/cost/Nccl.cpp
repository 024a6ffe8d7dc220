// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The constants are published, but for those marked: NVIDIA/nccl at 5067397
// (2026-06), src/graph/tuning.cc and topo.h, whose formula is
// time = latency + bytes / bandwidth.
#include "planner/cost/Nccl.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace mgpu::planner {

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
