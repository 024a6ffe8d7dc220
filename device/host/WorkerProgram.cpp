// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/WorkerProgram.h"

#include "support/Assert.h"

#include <algorithm>
#include <functional>

namespace mgpu::device {

namespace {

/// For a node: how many ops of each queue have finished once it has.
using Clocks = std::vector<uint32_t>;

/// A wait still expressed as a node of the other queue.
struct NodeWait {
  uint32_t waiter, awaited;
};

/// The cross-queue waits left after dropping all that are implied, in node
/// order. A wait is implied when a queue predecessor or a later-created
/// dependency already carries it.
std::vector<NodeWait> reduceWaits(std::span<const ProgramNode> nodes,
                                  std::span<const uint32_t> positions,
                                  uint32_t numQueues) {
  Clocks clocks(nodes.size() * numQueues, 0),
      queueClock(numQueues * numQueues, 0);
  std::vector<NodeWait> waits;
  std::vector<uint32_t> dependencies;
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    const ProgramNode &node = nodes[id];
    uint32_t *now = &queueClock[size_t(node.queue) * numQueues];
    dependencies = node.dependencies;
    std::sort(dependencies.begin(), dependencies.end(), std::greater<>());
    for (uint32_t dependency : dependencies) {
      uint32_t queue = nodes[dependency].queue;
      if (queue == node.queue || now[queue] > positions[dependency])
        continue;
      waits.push_back({id, dependency});
      const uint32_t *theirs = &clocks[size_t(dependency) * numQueues];
      for (uint32_t k = 0; k < numQueues; ++k)
        now[k] = std::max(now[k], theirs[k]);
    }
    now[node.queue] = positions[id] + 1;
    std::copy_n(now, numQueues, &clocks[size_t(id) * numQueues]);
  }
  return waits;
}

} // namespace

WorkerProgram buildProgram(std::span<const ProgramNode> nodes,
                           uint32_t numQueues) {
  WorkerProgram program;
  program.queues.resize(numQueues);
  std::vector<uint32_t> positions;
  positions.reserve(nodes.size());
  program.serial.reserve(nodes.size());
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    WorkerQueue &queue = program.queues[nodes[id].queue];
    positions.push_back(uint32_t(queue.ops.size()));
    queue.ops.push_back(nodes[id].op);
    queue.nodes.push_back(id);
    program.serial.push_back(nodes[id].op);
  }
  for (const WorkerQueue &queue : program.queues)
    program.numActive += !queue.ops.empty();

  std::vector<NodeWait> waits = reduceWaits(nodes, positions, numQueues);
  // Who publishes: awaited nodes, and the last of each queue the caller awaits.
  std::vector<uint32_t> ordinals(nodes.size(), 0);
  for (const NodeWait &wait : waits)
    ordinals[wait.awaited] = 1;
  for (uint32_t k = 1; k < numQueues; ++k)
    if (!program.queues[k].nodes.empty())
      ordinals[program.queues[k].nodes.back()] = 1;
  std::vector<uint32_t> published(numQueues, 0);
  for (uint32_t id = 0; id < nodes.size(); ++id)
    if (ordinals[id])
      ordinals[id] = ++published[nodes[id].queue];

  auto nextWait = waits.begin();
  for (uint32_t id = 0; id < nodes.size(); ++id) {
    WorkerQueue &queue = program.queues[nodes[id].queue];
    bool waitsHere = nextWait != waits.end() && nextWait->waiter == id;
    bool fresh = queue.segments.empty() || queue.segments.back().publishes;
    for (; nextWait != waits.end() && nextWait->waiter == id; ++nextWait)
      queue.waits.push_back(
          {nodes[nextWait->awaited].queue, ordinals[nextWait->awaited]});
    if (fresh || waitsHere)
      queue.segments.push_back({});
    Segment &segment = queue.segments.back();
    segment.waitEnd = uint32_t(queue.waits.size());
    segment.opEnd = positions[id] + 1;
    segment.publishes = ordinals[id] != 0;
  }
  MGPU_ASSERT(nextWait == waits.end(), "waits are in the nodes' order");
  WorkerQueue &first = program.queues[0];
  for (uint32_t k = 1; k < numQueues; ++k)
    if (published[k])
      first.waits.push_back({k, published[k]});
  first.segments.push_back(
      {uint32_t(first.waits.size()), uint32_t(first.ops.size()), false});
  return program;
}

} // namespace mgpu::device
