// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/compiler/ExchangeTimes.h"

#include <algorithm>
#include <map>

namespace mgpu::pipeline {

using namespace planner;
using conversion::Exchange;

static DeviceId deviceOf(int64_t number) { return DeviceId{int32_t(number)}; }

static CollectiveKind kindOf(Exchange::Kind kind) {
  switch (kind) {
  case Exchange::Kind::AllToAll:
    return CollectiveKind::AllToAll;
  case Exchange::Kind::AllGather:
    return CollectiveKind::AllGather;
  case Exchange::Kind::ReduceScatter:
    return CollectiveKind::ReduceScatter;
  case Exchange::Kind::Broadcast:
    return CollectiveKind::Broadcast;
  case Exchange::Kind::Permute:
    return CollectiveKind::Permute;
  case Exchange::Kind::AllReduce:
  case Exchange::Kind::Copies:
    return CollectiveKind::AllReduce;
  }
  return CollectiveKind::AllReduce;
}

/// A DAG of one node, which is what the model is asked about.
static Dag dagOf(DagNode node) {
  Dag dag;
  dag.nodes.push_back(std::move(node));
  for (DeviceId device : dag.nodes[0].devices)
    dag.numDevices = std::max(dag.numDevices, uint32_t(device.value) + 1);
  return dag;
}

static double copyUs(const LatencyEstimator &times,
                     const Exchange::Copy &copy) {
  const Box box = Box::flat(0, copy.bytes);
  DagNode node;
  node.devices = {deviceOf(std::min(copy.from, copy.to))};
  if (copy.from != copy.to)
    node.devices.push_back(deviceOf(std::max(copy.from, copy.to)));
  node.work = CopyCall{BufferId{0}, BufferId{1}, box, box};
  Dag dag = dagOf(std::move(node));
  dag.buffers.resize(2);
  dag.buffers[0].device = deviceOf(copy.from);
  dag.buffers[1].device = deviceOf(copy.to);
  return times.durationUs(dag, NodeId{0});
}

static double collectiveUs(const LatencyEstimator &times,
                           const Exchange &exchange,
                           const std::vector<int64_t> &group) {
  DagNode node;
  for (int64_t device : group)
    node.devices.push_back(deviceOf(device));
  std::ranges::sort(node.devices);
  OpaqueCall call;
  call.isCollective = true;
  call.kind = kindOf(exchange.kind);
  call.bytes = uint64_t(exchange.bytes);
  call.group = uint32_t(group.size());
  node.work = call;
  return times.durationUs(dagOf(std::move(node)), NodeId{0});
}

/// More than any exchange takes.
static constexpr double lastResortUs = 1e12;

conversion::ExchangeCost
exchangeCost(std::shared_ptr<const LatencyEstimator> times, bool oneDevice) {
  if (!times)
    return nullptr;
  return [times = std::move(times), oneDevice](const Exchange &exchange) {
    if (oneDevice && !exchange.copies.empty())
      return lastResortUs;
    double most = 0;
    for (const std::vector<int64_t> &group : exchange.groups)
      most = std::max(most, collectiveUs(*times, exchange, group));
    std::map<int64_t, double> busyUs; // by device
    for (const Exchange::Copy &copy : exchange.copies) {
      const double us = copyUs(*times, copy);
      busyUs[copy.from] += us;
      if (copy.to != copy.from)
        busyUs[copy.to] += us;
      most = std::max({most, busyUs[copy.from], busyUs[copy.to]});
    }
    return most;
  };
}

} // namespace mgpu::pipeline
