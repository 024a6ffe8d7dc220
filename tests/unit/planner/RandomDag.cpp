// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/unit/planner/RandomDag.h"

#include "planner/dag/DagBuilder.h"

#include <algorithm>
#include <map>

namespace mgpu::planner::testing {

static uint64_t pick(std::mt19937_64 &random, uint64_t bound) {
  return random() % bound;
}

Box randomBox(std::mt19937_64 &random, int64_t bufferBytes, bool mixedWidths) {
  int64_t width = mixedWidths && pick(random, 3) == 0 ? 1 : 4;
  int64_t elements = bufferBytes / width;
  Box box;
  box.elementBytes = uint32_t(width);
  switch (pick(random, 3)) {
  case 0: // a dense piece
  {
    int64_t begin = int64_t(pick(random, uint64_t(elements)));
    int64_t count = 1 + int64_t(pick(random, uint64_t(elements - begin)));
    box.offset = begin * width;
    box.sizes = {count};
    box.strides = {width};
    return box;
  }
  case 1: // all of it
    box.sizes = {elements};
    box.strides = {width};
    return box;
  default: // a tile of a matrix of 8 columns
  {
    int64_t rows = elements / 8, row = int64_t(pick(random, uint64_t(rows)));
    int64_t column = int64_t(pick(random, 8));
    box.offset = (row * 8 + column) * width;
    box.sizes = {1 + int64_t(pick(random, uint64_t(rows - row))),
                 1 + int64_t(pick(random, uint64_t(8 - column)))};
    box.strides = {8 * width, width};
    return box;
  }
  }
}

Dag randomDag(uint64_t seed, const RandomDagOptions &options) {
  std::mt19937_64 random(seed);
  Dag dag;
  dag.name = "random";
  dag.numDevices = 1 + uint32_t(pick(random, options.maxDevices));
  auto addBuffer = [&](DeviceId device, BufferRole role) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(dag.buffers.size());
    buffer.device = device;
    buffer.role = role;
    buffer.sizeBytes = 64 * (1 + pick(random, 9));
    dag.buffers.push_back(buffer);
  };
  std::vector<std::vector<uint32_t>> on(dag.numDevices + 1); // host last
  for (uint32_t d = 0; d <= dag.numDevices; ++d) {
    uint64_t count = 1 + pick(random, options.maxBuffers);
    for (uint64_t k = 0; k < count; ++k) {
      on[d].push_back(uint32_t(dag.buffers.size()));
      if (d == dag.numDevices)
        addBuffer(DeviceId::host(), BufferRole::HostLocal);
      else
        addBuffer({int32_t(d)}, pick(random, 6) == 0 ? BufferRole::Resident
                                                     : BufferRole::Temporary);
    }
  }
  auto bufferOn = [&](uint32_t device) {
    return BufferId{on[device][pick(random, on[device].size())]};
  };
  auto boxOf = [&](BufferId id) {
    return randomBox(random, int64_t(dag.buffer(id).sizeBytes),
                     options.mixedWidths);
  };

  DependencyTracker tracker(dag);
  uint64_t count = 1 + pick(random, options.maxNodes);
  for (uint64_t i = 0; i < count; ++i) {
    DagNode node;
    node.name = "n" + std::to_string(i);
    if (i < count / 8)
      node.phase = Phase::Load;
    else if (i > count - count / 8)
      node.phase = Phase::Fetch;
    if (pick(random, 4))
      node.durationUs = double(pick(random, 100)) / 8;
    uint64_t kind = pick(random, 10);
    if (kind < 5) { // kernel
      uint32_t device = uint32_t(pick(random, dag.numDevices));
      node.devices = {{int32_t(device)}};
      node.work = OpaqueCall{};
      node.flops = double(pick(random, 100000));
      for (uint64_t k = 1 + pick(random, 3); k > 0; --k) {
        BufferId id = bufferOn(device);
        uint64_t mode = 1 + pick(random, 3);
        node.uses.push_back({id, boxOf(id), (mode & 1) != 0, (mode & 2) != 0});
      }
    } else if (kind < 8 || dag.numDevices < 2) { // copy
      uint32_t from = uint32_t(pick(random, dag.numDevices + 1));
      uint32_t to = uint32_t(pick(random, dag.numDevices + 1));
      std::set<DeviceId> ends;
      for (uint32_t end : {from, to})
        if (end < dag.numDevices)
          ends.insert({int32_t(end)});
      node.devices.assign(ends.begin(), ends.end());
      CopyCall copy;
      copy.source = bufferOn(from);
      copy.destination = bufferOn(to);
      int64_t least = int64_t(std::min(dag.buffer(copy.source).sizeBytes,
                                       dag.buffer(copy.destination).sizeBytes));
      copy.sourceBox = {0, {least / 8}, {4}, 4};
      copy.destinationBox = {0, {least / 8}, {8}, 4};
      node.uses = {{copy.source, copy.sourceBox, true, false},
                   {copy.destination, copy.destinationBox, false, true}};
      node.work = std::move(copy);
    } else {
      CollectiveCall call;
      call.communicator = uint32_t(pick(random, 2));
      // Communicator 0 has all devices, 1 the first two.
      uint32_t ranks = call.communicator == 0 ? dag.numDevices : 2;
      for (uint32_t d = 0; d < ranks; ++d) {
        node.devices.push_back({int32_t(d)});
        BufferId send = bufferOn(d), recv = bufferOn(d);
        Box part{0, {8}, {4}, 4};
        call.members.push_back({{int32_t(d)}, send, recv, part, part});
        node.uses.push_back({send, part, true, false});
        node.uses.push_back({recv, part, false, true});
      }
      node.work = std::move(call);
    }
    tracker.append(std::move(node));
  }
  return dag;
}

std::set<int64_t> bytesOf(const Box &box) {
  std::set<int64_t> bytes;
  std::vector<int64_t> index(box.sizes.size(), 0);
  int64_t total = 1;
  for (int64_t size : box.sizes)
    total *= size;
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n, at = box.offset;
    for (size_t k = box.sizes.size(); k-- > 0;) {
      at += rest % box.sizes[k] * box.strides[k];
      rest /= box.sizes[k];
    }
    for (uint32_t b = 0; b < box.elementBytes; ++b)
      bytes.insert(at + b);
  }
  return bytes;
}

bool meet(const std::set<int64_t> &a, const std::set<int64_t> &b) {
  return std::any_of(a.begin(), a.end(),
                     [&](int64_t byte) { return b.count(byte) > 0; });
}

std::vector<std::vector<bool>> bruteForceOrder(const Plan &plan) {
  size_t n = plan.steps.size();
  std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
  for (size_t j = 0; j < n; ++j)
    for (size_t i = 0; i < j; ++i) {
      bool direct = false;
      for (PlanStream a : plan.steps[i].streams)
        for (PlanStream b : plan.steps[j].streams)
          direct |= a == b;
      for (NodeId wait : plan.steps[j].waits)
        direct |= wait == plan.steps[i].node;
      reach[i][j] = direct;
    }
  for (size_t k = 0; k < n; ++k)
    for (size_t i = 0; i < k; ++i)
      if (reach[i][k])
        for (size_t j = k + 1; j < n; ++j)
          if (reach[k][j])
            reach[i][j] = true;
  return reach;
}

std::string bruteForceFault(const Plan &plan, const Dag &dag) {
  size_t n = plan.steps.size();
  std::vector<int> stepOf(dag.nodes.size(), -1);
  for (size_t s = 0; s < n; ++s) {
    if (stepOf[plan.steps[s].node.value] >= 0)
      return "a node twice";
    for (NodeId wait : plan.steps[s].waits)
      if (stepOf[wait.value] < 0)
        return "a wait forwards";
    stepOf[plan.steps[s].node.value] = int(s);
    if (s > 0 && dag.node(plan.steps[s].node).phase <
                     dag.node(plan.steps[s - 1].node).phase)
      return "phases mixed";
  }
  if (std::count(stepOf.begin(), stepOf.end(), -1))
    return "a node missing";
  auto reach = bruteForceOrder(plan);
  for (const DepEdge &edge : dag.edges) {
    int from = stepOf[edge.from.value], to = stepOf[edge.to.value];
    if (from >= to || !reach[size_t(from)][size_t(to)])
      return "an edge not implied";
  }
  std::map<uint32_t, int64_t> base;
  for (const Placement &placement : plan.placements)
    base[placement.buffer.value] = int64_t(placement.offset);
  struct Touch {
    size_t step;
    int64_t space;
    std::set<int64_t> bytes;
    bool writes;
  };
  std::vector<Touch> touches;
  std::vector<bool> outlives(dag.buffers.size());
  std::vector<std::set<size_t>> lives(dag.buffers.size()); // steps
  for (size_t s = 0; s < n; ++s) {
    const DagNode &node = dag.node(plan.steps[s].node);
    for (const BufferUse &use : node.uses) {
      const Buffer &buffer = dag.buffer(use.buffer);
      lives[use.buffer.value].insert(s);
      bool host = buffer.device.isHost();
      Box box = use.box;
      if (!host)
        box.offset += base[use.buffer.value];
      touches.push_back(
          {s, host ? 1000 + int64_t(use.buffer.value) : buffer.device.value,
           bytesOf(box), use.writes});
      if (node.phase != Phase::Replay)
        outlives[use.buffer.value] = true;
    }
  }
  for (size_t a = 0; a < touches.size(); ++a)
    for (size_t b = a + 1; b < touches.size(); ++b) {
      const Touch &x = touches[a], &y = touches[b];
      if (x.step != y.step && x.space == y.space && (x.writes || y.writes) &&
          !reach[x.step][y.step] && meet(x.bytes, y.bytes))
        return "a race";
    }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j) {
      auto *a = std::get_if<CollectiveCall>(&dag.node(plan.steps[i].node).work);
      auto *b = std::get_if<CollectiveCall>(&dag.node(plan.steps[j].node).work);
      if (!a || !b || reach[i][j])
        continue;
      std::set<int32_t> ranks;
      for (const CollectiveMember &member : a->members)
        ranks.insert(member.device.value);
      size_t shared = 0;
      for (const CollectiveMember &member : b->members)
        shared += ranks.count(member.device.value);
      if (shared >= 2 || a->communicator == b->communicator)
        return "collectives unordered";
    }
  for (const Placement &a : plan.placements)
    for (const Placement &b : plan.placements) {
      const Buffer &x = dag.buffer(a.buffer), &y = dag.buffer(b.buffer);
      if (a.buffer == b.buffer || x.device != y.device)
        continue;
      bool share = a.offset < b.offset + y.sizeBytes &&
                   b.offset < a.offset + x.sizeBytes;
      if (share && (x.role == BufferRole::Resident || outlives[a.buffer.value]))
        return "a lasting buffer shares bytes";
      if (share && !lives[a.buffer.value].empty() &&
          !lives[b.buffer.value].empty() &&
          *lives[a.buffer.value].rbegin() >= *lives[b.buffer.value].begin() &&
          *lives[b.buffer.value].rbegin() >= *lives[a.buffer.value].begin())
        return "two buffers live in the same bytes";
    }
  return "";
}

} // namespace mgpu::planner::testing
