// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/LaneProgram.h"

#include "support/Assert.h"

#include <algorithm>
#include <functional>

namespace mgpu::device {

namespace {

/// For a node: how many ops of each lane have finished once it has.
using Clocks = std::vector<uint32_t>;

/// A wait still expressed as a node of the other lane.
struct NodeWait {
  uint32_t waiter, awaited;
};

/// The cross-lane waits left after dropping all that are implied, in node
/// order. A wait is implied when a lane predecessor or a later-created
/// dependency already carries it.
std::vector<NodeWait> reduceWaits(std::span<const ProgramNode> nodes,
                                  std::span<const uint32_t> positions,
                                  uint32_t numLanes) {
  Clocks clocks(nodes.size() * numLanes, 0), laneClock(numLanes * numLanes, 0);
  std::vector<NodeWait> waits;
  std::vector<uint32_t> dependencies;
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    const ProgramNode &node = nodes[id];
    uint32_t *now = &laneClock[size_t(node.lane) * numLanes];
    dependencies = node.dependencies;
    std::sort(dependencies.begin(), dependencies.end(), std::greater<>());
    for (uint32_t dependency : dependencies) {
      uint32_t lane = nodes[dependency].lane;
      if (lane == node.lane || now[lane] > positions[dependency])
        continue;
      waits.push_back({id, dependency});
      const uint32_t *theirs = &clocks[size_t(dependency) * numLanes];
      for (uint32_t k = 0; k < numLanes; ++k)
        now[k] = std::max(now[k], theirs[k]);
    }
    now[node.lane] = positions[id] + 1;
    std::copy_n(now, numLanes, &clocks[size_t(id) * numLanes]);
  }
  return waits;
}

} // namespace

Program buildProgram(std::span<const ProgramNode> nodes, uint32_t numLanes) {
  Program program;
  program.lanes.resize(numLanes);
  std::vector<uint32_t> positions;
  positions.reserve(nodes.size());
  program.serial.reserve(nodes.size());
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    LaneProgram &lane = program.lanes[nodes[id].lane];
    positions.push_back(uint32_t(lane.ops.size()));
    lane.ops.push_back(nodes[id].op);
    lane.nodes.push_back(id);
    program.serial.push_back(nodes[id].op);
  }
  for (const LaneProgram &lane : program.lanes)
    program.numActive += !lane.ops.empty();

  std::vector<NodeWait> waits = reduceWaits(nodes, positions, numLanes);
  // Who publishes: awaited nodes, and the last of each lane the caller awaits.
  std::vector<uint32_t> ordinals(nodes.size(), 0);
  for (const NodeWait &wait : waits)
    ordinals[wait.awaited] = 1;
  for (uint32_t k = 1; k < numLanes; ++k)
    if (!program.lanes[k].nodes.empty())
      ordinals[program.lanes[k].nodes.back()] = 1;
  std::vector<uint32_t> published(numLanes, 0);
  for (uint32_t id = 0; id < nodes.size(); ++id)
    if (ordinals[id])
      ordinals[id] = ++published[nodes[id].lane];

  auto nextWait = waits.begin();
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    LaneProgram &lane = program.lanes[nodes[id].lane];
    bool waitsHere = nextWait != waits.end() && nextWait->waiter == id;
    bool fresh = lane.segments.empty() || lane.segments.back().publishes;
    for (; nextWait != waits.end() && nextWait->waiter == id; ++nextWait)
      lane.waits.push_back(
          {nodes[nextWait->awaited].lane, ordinals[nextWait->awaited]});
    if (fresh || waitsHere)
      lane.segments.push_back({});
    Segment &segment = lane.segments.back();
    segment.waitEnd = uint32_t(lane.waits.size());
    segment.opEnd = positions[id] + 1;
    segment.publishes = ordinals[id] != 0;
  }
  MGPU_ASSERT(nextWait == waits.end(), "waits are in the nodes' order");
  LaneProgram &first = program.lanes[0];
  for (uint32_t k = 1; k < numLanes; ++k)
    if (published[k])
      first.waits.push_back({k, published[k]});
  first.segments.push_back(
      {uint32_t(first.waits.size()), uint32_t(first.ops.size()), false});
  return program;
}

} // namespace mgpu::device
