// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes of a part of a launch against all addresses of its blocks, and
// which launches are cut together with a collective.
#include "planner/schedule/transform/KernelPart.h"

#include "planner/dag/DagBuilder.h"
#include "planner/schedule/transform/Transform.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace mgpu;
using namespace mgpu::planner;

namespace {

/// A counter of an address: so many values, so many bytes apart.
struct Counter {
  int64_t size, step;
  int axis = -1; ///< of block ids
};

std::set<int64_t> addresses(int64_t offset,
                            const std::vector<Counter> &counters) {
  std::set<int64_t> all{offset};
  for (const Counter &counter : counters) {
    std::set<int64_t> next;
    for (int64_t at : all)
      for (int64_t k = 0; k < counter.size; ++k)
        next.insert(at + k * counter.step);
    all = std::move(next);
  }
  return all;
}
std::set<int64_t> addresses(const Box &box) {
  std::vector<Counter> counters;
  for (size_t d = 0; d < box.sizes.size(); ++d)
    counters.push_back({box.sizes[d], box.strides[d]});
  return addresses(box.offset, counters);
}

/// As the importer makes them: largest stride first, what tiles is merged.
Box boxOf(std::vector<Counter> counters) {
  std::sort(counters.begin(), counters.end(),
            [](const Counter &a, const Counter &b) {
              return std::pair(a.step, a.size) > std::pair(b.step, b.size);
            });
  Box box;
  box.elementBytes = 4;
  for (const Counter &counter : counters) {
    if (counter.size == 1 || counter.step == 0)
      continue;
    if (!box.strides.empty() &&
        box.strides.back() == counter.step * counter.size) {
      box.strides.back() = counter.step;
      box.sizes.back() *= counter.size;
    } else {
      box.sizes.push_back(counter.size);
      box.strides.push_back(counter.step);
    }
  }
  return box;
}

TEST(KernelPart, BoxesAreTheAddressesOfTheBlocks) {
  std::mt19937_64 random(1);
  auto pick = [&](uint64_t bound) { return int64_t(random() % bound); };
  for (int round = 0; round < 4000; ++round) {
    Dim3 grid{uint32_t(1 + pick(6)), uint32_t(1 + pick(4)),
              uint32_t(1 + pick(3))};
    std::vector<Counter> counters{
        {1 + pick(4), 4}, {grid.x, 0, 0}, {grid.y, 0, 1}, {grid.z, 0, 2}};
    // Steps that tile, or not, in any order of the axes; some axes stand still.
    int64_t step = 4 * counters[0].size;
    std::shuffle(counters.begin() + 1, counters.end(), random);
    for (size_t k = 1; k < counters.size(); ++k) {
      if (pick(4) == 0)
        continue;
      step += pick(3) == 0 ? 4 * pick(3) : 0;
      counters[k].step = step;
      step *= counters[k].size;
    }
    if (pick(2)) // a loop, perhaps over what a block id runs over as well
      counters.push_back({1 + pick(5), 4 * (1 + pick(8))});
    BufferUse use{BufferId{0}, boxOf(counters), true, false};
    for (const Counter &counter : counters)
      if (counter.axis >= 0 && counter.size > 1)
        use.blockSteps[counter.axis] = counter.step;
    ASSERT_EQ(addresses(use.box), addresses(0, counters));
    GridPart part;
    uint32_t sizes[3] = {grid.x, grid.y, grid.z}, first[3], count[3];
    for (int axis = 0; axis < 3; ++axis) {
      first[axis] = uint32_t(pick(sizes[axis]));
      count[axis] = uint32_t(1 + pick(sizes[axis] - first[axis]));
    }
    part = {{first[0], first[1], first[2]}, {count[0], count[1], count[2]}};
    int64_t offset = 0;
    for (Counter &counter : counters)
      if (counter.axis >= 0) {
        offset += first[counter.axis] * counter.step;
        counter.size = count[counter.axis];
      }
    ASSERT_EQ(addresses(boxOfPart(use, grid, part)),
              addresses(offset, counters))
        << "round " << round;
  }
}

/// On each of two devices a kernel of 8 blocks that writes 64 bytes each, an
/// all_reduce of all of them, and a kernel that reads them.
struct Chain {
  Dag dag;
  std::vector<BufferUse> writes, reads;

  explicit Chain(int64_t writeStep = 64, int64_t readStep = 64,
                 Dim3 grid = {8, 1, 1}) {
    dag.numDevices = 2;
    KernelSpec kernel;
    kernel.name = "k";
    kernel.numArguments = 1;
    dag.kernels.push_back(kernel);
    CollectiveCall call;
    std::vector<DagNode> producers, consumers;
    Box all = Box::flat(0, 512);
    all = {0, {128}, {4}, 4};
    for (int32_t d = 0; d < 2; ++d) {
      for (const char *name : {"part", "out"}) {
        Buffer buffer;
        buffer.name = name + std::to_string(d);
        buffer.device = {d};
        buffer.sizeBytes = 512;
        buffer.shape = {512};
        dag.buffers.push_back(buffer);
      }
      BufferId part{uint32_t(2 * d)}, out{uint32_t(2 * d + 1)};
      DagNode node;
      node.devices = {{d}};
      node.flops = 80;
      node.bytesWritten = 512;
      KernelCall launch;
      launch.grid = grid;
      launch.arguments = {{part}};
      node.work = launch;
      node.name = "produce";
      node.uses = {{part, all, false, true, {writeStep, 0, 0}}};
      producers.push_back(node);
      node.name = "consume";
      node.uses = {{part, all, true, false, {readStep, 0, 0}},
                   {out, all, false, true, {64, 0, 0}}};
      consumers.push_back(node);
      call.members.push_back({{d}, part, part, all, all});
    }
    DependencyTracker tracker(dag);
    for (DagNode &node : producers)
      tracker.append(node);
    DagNode node;
    node.name = "sum";
    node.devices = {{0}, {1}};
    for (const CollectiveMember &member : call.members)
      node.uses.push_back({member.send, all, true, true});
    node.work = call;
    tracker.append(node);
    for (DagNode &each : consumers)
      tracker.append(each);
  }
};

TEST(KernelPart, PartFollowsPart) {
  Chain chain;
  ASSERT_TRUE(chain.dag.check());
  auto changes = applyTransform(chain.dag, TransformKind::Chunk2);
  ASSERT_TRUE(changes) << changes.error().message;
  EXPECT_EQ(*changes, 1u);
  // produce 0, 0', 1, 1'; sum, sum'; consume 0, 0', 1, 1'.
  ASSERT_EQ(chain.dag.nodes.size(), 10u);
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const DepEdge &edge : chain.dag.edges)
    edges.push_back({edge.from.value, edge.to.value});
  EXPECT_EQ(edges, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 4},
                                                               {2, 4},
                                                               {1, 5},
                                                               {3, 5},
                                                               {4, 5},
                                                               {4, 6},
                                                               {5, 7},
                                                               {4, 8},
                                                               {5, 9}}));
  const DagNode &second = chain.dag.nodes[1];
  EXPECT_EQ(second.name, "produce.chunk1");
  EXPECT_EQ(std::get<KernelCall>(second.work).part,
            (GridPart{{4, 0, 0}, {4, 1, 1}}));
  EXPECT_EQ(second.uses[0].box.byteRange(),
            (std::pair<int64_t, int64_t>{256, 512}));
  EXPECT_EQ(second.flops, 40);
  EXPECT_EQ(second.bytesWritten, 256u);
  // What is in chunks is not cut again.
  EXPECT_EQ(*applyTransform(chain.dag, TransformKind::Chunk2), 0u);
}

TEST(KernelPart, OnlyWhatCanBeCutIsCut) {
  auto changes = [](Chain chain, TransformKind kind = TransformKind::Chunk2) {
    auto count = applyTransform(chain.dag, kind);
    EXPECT_TRUE(count) << count.error().message;
    return count ? *count : 99;
  };
  EXPECT_EQ(changes(Chain()), 1u);
  EXPECT_EQ(changes(Chain(64, 0)), 1u); // the producers are enough
  EXPECT_EQ(changes(Chain(0, 64)), 1u); // and so are the consumers
  EXPECT_EQ(changes(Chain(0, 0)), 0u);
  EXPECT_EQ(changes(Chain(64, 64, {8, 2, 1})), 1u);
  EXPECT_EQ(changes(Chain(64, 64, {7, 1, 1})), 0u);
  Chain frozen;
  frozen.dag.nodes[2].durationUs = 1;
  EXPECT_EQ(changes(frozen), 0u);
  Chain twice; // a part writes what another does as well
  twice.dag.nodes[0].uses.push_back(
      {BufferId{0}, Box{0, {128}, {4}, 4}, false, true, {0, 0, 0}});
  twice.dag.nodes[3].uses[0].blockSteps = {};
  EXPECT_EQ(changes(twice), 0u);
}

} // namespace
