// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/LatencyEstimator.h"

#include <algorithm>
#include <cmath>

namespace mgpu::planner {

LatencyEstimator::~LatencyEstimator() = default;

Origin LatencyEstimator::origin(const Dag &dag, NodeId node) const {
  return dag.node(node).durationUs ? Origin::Given : Origin::Assumed;
}

// One virtual device of the `host` target. All five are assumed: round figures
// for one core of a current server, and memory copies between devices. They
// order plans sensibly; they are not a claim about a machine.
RooflineRates hostRates() {
  return {
      .flopsPerUs = 8e3,     // assumed: 8 GFLOP/s on one core
      .bytesPerUs = 8e3,     // assumed: 8 GB/s of memory traffic per core
      .linkBytesPerUs = 4e3, // assumed: a copy reads and writes, so half
      .launchUs = 0.1,       // assumed: handing one node to a worker
      .linkLatencyUs = 0.5,  // assumed: meeting of two workers
  };
}

RooflineEstimator::RooflineEstimator(RooflineRates rates, std::string label)
    : rates(rates), label(std::move(label)) {}

// Bytes over a rank's link per byte of payload, and steps of the algorithm, for
// n ranks. Payload is the larger side of the operation, as nccl-tests counts
// it: the traffic factors are its busbw/algbw factors (nccl-tests
// doc/PERFORMANCE.md: all_reduce 2(n-1)/n; all_gather, reduce_scatter and
// all_to_all (n-1)/n; broadcast and send/recv 1). Steps are those of the ring.
static std::pair<double, double> ringCost(CollectiveKind kind, double n) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return {2 * (n - 1) / n, 2 * (n - 1)};
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return {(n - 1) / n, n - 1};
  case CollectiveKind::Broadcast:
    return {1, n - 1};
  case CollectiveKind::Permute:
  case CollectiveKind::SendRecv:
    return {1, 1};
  }
  return {1, 1};
}

static double boxBytes(const Box &box) {
  return double(box.numElements()) * box.elementBytes;
}

// t = launch + steps * latency + bytes * factor / bandwidth (Hockney's
// alpha-beta model along the ring; Thakur, Rabenseifner, Gropp 2005).
static double collectiveUs(const RooflineRates &rates, CollectiveKind kind,
                           double ranks, double bytes) {
  if (ranks < 2) // a copy inside one memory
    return rates.launchUs + bytes / rates.bytesPerUs;
  auto [factor, steps] = ringCost(kind, ranks);
  return rates.launchUs + steps * rates.linkLatencyUs +
         bytes * factor / rates.linkBytesPerUs;
}

double RooflineEstimator::durationUs(const Dag &dag, NodeId id) const {
  const DagNode &node = dag.node(id);
  if (node.durationUs)
    return *node.durationUs;
  if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    double bytes = boxBytes(copy->sourceBox);
    bool local =
        dag.buffer(copy->source).device == dag.buffer(copy->destination).device;
    // Inside one memory a copy reads and writes each byte.
    return local ? rates.launchUs + 2 * bytes / rates.bytesPerUs
                 : rates.launchUs + rates.linkLatencyUs +
                       bytes / rates.linkBytesPerUs;
  }
  if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    double bytes = 0;
    for (const CollectiveMember &member : call->members)
      bytes =
          std::max({bytes, boxBytes(member.sendBox), boxBytes(member.recvBox)});
    return collectiveUs(rates, call->kind, double(call->members.size()), bytes);
  }
  if (auto *call = std::get_if<OpaqueCall>(&node.work);
      call && call->isCollective) {
    size_t ranks = dag.spmd ? dag.numDevices : node.devices.size();
    return collectiveUs(rates, call->kind, double(ranks), double(call->bytes));
  }
  // Roofline (Williams, Waterman, Patterson 2009): the slower of arithmetic
  // and memory traffic.
  double bytes = double(node.bytesRead) + double(node.bytesWritten);
  return rates.launchUs +
         std::max(node.flops / rates.flopsPerUs, bytes / rates.bytesPerUs);
}

} // namespace mgpu::planner
