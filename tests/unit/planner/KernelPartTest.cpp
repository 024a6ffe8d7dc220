// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes of a part of a launch against all addresses of its blocks, and
// which launches are cut together with a collective.
#include "planner/schedule/transform/NodeParts.h"

#include "planner/dag/DagBuilder.h"
#include "planner/schedule/transform/ChunkCounts.h"

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

// Blocks of `step` rows each, the last of which hangs over the end: what a
// guard leaves of the parts is together what it leaves of all, and nothing
// twice.
TEST(KernelPart, TheLastBlockMayHangOverTheEnd) {
  std::mt19937_64 random(2);
  auto pick = [&](uint64_t bound) { return int64_t(random() % bound); };
  for (int round = 0; round < 2000; ++round) {
    int64_t blocks = 2 + pick(7), step = 2 + pick(6), inner = 1 + pick(3);
    int64_t rows = (blocks - 1) * step + 1 + pick(uint64_t(step) - 1);
    int64_t gap = pick(2) ? 0 : 1 + pick(3), outer = 1 + pick(3);
    // Rows of `inner` elements, `gap` apart; `outer` such arrays, apart too.
    std::vector<Counter> counters{{inner, 4}, {rows, 4 * (inner + gap)}};
    int64_t all = 4 * (inner + gap) * rows;
    if (outer > 1)
      counters.push_back({outer, all + 4 * (1 + pick(9))});
    BufferUse use{BufferId{0}, boxOf(counters), false, true};
    use.blockSteps[0] = 4 * (inner + gap) * step;
    DagNode node;
    KernelCall call;
    call.grid = {uint32_t(blocks), 1, 1};
    node.work = call;
    node.uses = {use};
    uint32_t count = uint32_t(2 + pick(uint64_t(blocks) - 1));
    ASSERT_TRUE(canPart(node, 0, count)) << "round " << round;
    for (uint32_t k = 0; k < count; ++k) {
      GridPart part = partAlong(call.grid, 0, k, count);
      int64_t first = part.first.x * step,
              last = std::min<int64_t>(rows, first + part.count.x * step);
      std::vector<Counter> mine = counters;
      mine[1].size = last - first;
      ASSERT_EQ(addresses(boxOfPart(use, call.grid, part)),
                addresses(first * mine[1].step, mine))
          << "round " << round;
    }
    ASSERT_FALSE(canPart(node, 0, uint32_t(blocks) + 1));
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

/// The two chains of `Chain` side by side, the second after the first where
/// they are `linked`, by a kernel that is cut with both.
Dag twoChains(bool linked) {
  Dag dag = Chain().dag, second = dag;
  uint32_t buffers = uint32_t(dag.buffers.size());
  auto nodes = dag.nodes;
  for (Buffer &buffer : second.buffers) {
    buffer.name += "'";
    dag.buffers.push_back(buffer);
  }
  for (DagNode &node : second.nodes) {
    node.name += "'";
    for (BufferUse &use : node.uses)
      use.buffer.value += buffers;
    if (auto *call = std::get_if<CollectiveCall>(&node.work))
      for (CollectiveMember &member : call->members) {
        member.send.value += buffers;
        member.recv.value += buffers;
      }
    if (auto *call = std::get_if<KernelCall>(&node.work))
      call->arguments = {{BufferId{buffers}}};
    // What the first chain's consumer wrote, part by part.
    if (linked && node.name == "produce'")
      node.uses.push_back({BufferId{node.devices[0].value == 0 ? 1u : 3u},
                           Box{0, {128}, {4}, 4},
                           true,
                           false,
                           {64, 0, 0}});
    nodes.push_back(std::move(node));
  }
  dag.nodes.clear();
  dag.edges.clear();
  DependencyTracker tracker(dag);
  for (DagNode &node : nodes)
    tracker.append(std::move(node));
  return dag;
}

uint32_t countParts(const Dag &dag, const std::string &prefix) {
  return uint32_t(std::count_if(
      dag.nodes.begin(), dag.nodes.end(),
      [&](const DagNode &node) { return node.name.starts_with(prefix); }));
}

TEST(KernelPart, GroupsThatShareNoKernelHaveTheirOwnNumber) {
  Dag dag = twoChains(false);
  ASSERT_TRUE(dag.check());
  ASSERT_EQ(chunkGroups(dag).size(), 2u);
  Dag trial = dag;
  EXPECT_EQ(*applyTransform(trial, {TransformKind::Chunk, {4, 2}}), 2u);
  EXPECT_EQ(countParts(trial, "sum.chunk"), 4u);
  EXPECT_EQ(countParts(trial, "sum'.chunk"), 2u);
  EXPECT_EQ(countParts(trial, "produce.chunk"), 8u);
  trial = dag;
  EXPECT_EQ(*applyTransform(trial, {TransformKind::Chunk, {1, 8}}), 1u);
  EXPECT_EQ(countParts(trial, "sum.chunk"), 0u);
  EXPECT_EQ(countParts(trial, "sum'.chunk"), 8u);
  auto wrong = applyTransform(dag, {TransformKind::Chunk, {4}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::Invalid);
}

TEST(KernelPart, CollectivesThatShareAKernelAreOneGroup) {
  Dag dag = twoChains(true);
  ASSERT_TRUE(dag.check());
  ASSERT_EQ(chunkGroups(dag).size(), 1u);
  EXPECT_EQ(chunkGroups(dag)[0].size(), 2u);
  EXPECT_EQ(*applyTransform(dag, {TransformKind::Chunk, {4}}), 2u);
  EXPECT_EQ(countParts(dag, "sum.chunk"), 4u);
  EXPECT_EQ(countParts(dag, "sum'.chunk"), 4u);
}

TEST(KernelPart, GreedyNumbersAreNoWorseThanOneForAll) {
  Dag dag = twoChains(false);
  // Parts of the first chain cost, those of the second pay.
  auto us = [](const Dag &of) -> Result<double> {
    return 10.0 + countParts(of, "sum.chunk") -
           double(countParts(of, "sum'.chunk"));
  };
  auto found = findChunkCounts(dag, {}, us);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->counts, (std::vector<uint32_t>{1, 8}));
  EXPECT_EQ(found->us, 2);
  EXPECT_EQ(found->wholeUs, 10);
  EXPECT_EQ(found->uniformUs, 10);
  EXPECT_EQ(explainChunks(*found, dag).size(), 3u);
}

TEST(KernelPart, TransformsReadBackFromTheirNames) {
  for (Transform transform :
       {Transform(TransformKind::Chunk, {4, 1, 64}),
        Transform(TransformKind::Chunk), Transform(TransformKind::Chunk4),
        Transform(TransformKind::Algorithm)})
    EXPECT_EQ(parseTransform(toString(transform)), transform);
  EXPECT_EQ(toString(Transform(TransformKind::Chunk, {4, 1})), "chunk:4/1");
  for (const char *text : {"chunk:", "chunk:0", "chunk:65", "chunk:4/",
                           "chunk:x", "chunk4:2", "chunk:4,2", "", ":"})
    EXPECT_FALSE(parseTransform(text)) << text;
}

// 120 elements of which the last block has 8: halves of 64 and 56.
TEST(KernelPart, ACollectiveIsCutWhereTheKernelsAre) {
  auto made = [](int64_t elements, Dim3 grid) {
    Dag dag = Chain(64, 64, grid).dag;
    Box all{0, {elements}, {4}, 4};
    auto nodes = std::move(dag.nodes);
    dag.nodes.clear();
    dag.edges.clear();
    DependencyTracker tracker(dag);
    for (DagNode &node : nodes) {
      for (BufferUse &use : node.uses)
        use.box = all;
      if (auto *call = std::get_if<CollectiveCall>(&node.work))
        for (CollectiveMember &member : call->members)
          member.sendBox = member.recvBox = all;
      tracker.append(std::move(node));
    }
    EXPECT_TRUE(dag.check());
    EXPECT_EQ(*applyTransform(dag, TransformKind::Chunk2), 1u);
    std::vector<int64_t> sizes;
    for (const DagNode &node : dag.nodes) {
      if (auto *call = std::get_if<CollectiveCall>(&node.work))
        sizes.push_back(call->members[0].sendBox.numElements());
      EXPECT_LE(std::count_if(dag.edges.begin(), dag.edges.end(),
                              [&](const DepEdge &edge) {
                                return &dag.node(edge.to) == &node;
                              }),
                node.devices.size() + 1);
    }
    return sizes;
  };
  EXPECT_EQ(made(120, {8, 1, 1}), (std::vector<int64_t>{64, 56}));
  EXPECT_EQ(made(112, {7, 1, 1}), (std::vector<int64_t>{48, 64}));
  EXPECT_EQ(made(128, {8, 1, 1}), (std::vector<int64_t>{64, 64}));
}

/// What goes where in an all_to_all: rank and byte it is read from, rank and
/// byte it is written to.
using Move = std::array<int64_t, 4>;
std::set<Move> movesOf(const CollectiveCall &call) {
  auto elements = [](const Box &box) {
    std::vector<int64_t> all{box.offset};
    for (size_t d = 0; d < box.sizes.size(); ++d) {
      std::vector<int64_t> next;
      for (int64_t at : all)
        for (int64_t k = 0; k < box.sizes[d]; ++k)
          next.push_back(at + k * box.strides[d]);
      all = std::move(next);
    }
    return all;
  };
  std::set<Move> moves;
  size_t n = call.members.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      std::vector<int64_t> from = elements(call.members[i].sendBox),
                           to = elements(call.members[j].recvBox);
      for (size_t k = 0; k < from.size() / n; ++k)
        moves.insert({int64_t(i), from[j * from.size() / n + k], int64_t(j),
                      to[i * to.size() / n + k]});
    }
  return moves;
}

// On each of two devices a kernel of 2 slices of 4 blocks of 64 bytes; all of
// them exchanged, and a kernel that reads them.
TEST(KernelPart, AnExchangeIsCutWithinEachSlice) {
  auto changes = [](std::array<int64_t, 3> steps) {
    Dag dag = Chain().dag;
    Box all{0, {128}, {4}, 4};
    CollectiveCall whole;
    for (DagNode &node : dag.nodes)
      if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
        call->kind = CollectiveKind::AllToAll;
        node.uses.clear();
        for (CollectiveMember &member : call->members) {
          member.recv.value = member.send.value + 1;
          node.uses.push_back({member.send, all, true, false});
          node.uses.push_back({member.recv, all, false, true});
        }
        whole = *call;
      } else {
        std::get<KernelCall>(node.work).grid = {4, 2, 1};
        node.uses.resize(1);
        node.uses[0].blockSteps = steps;
        if (node.name == "consume")
          node.uses[0].buffer.value += 1; // what was received
      }
    auto nodes = std::move(dag.nodes);
    dag.nodes.clear();
    dag.edges.clear();
    DependencyTracker tracker(dag);
    for (DagNode &node : nodes)
      tracker.append(std::move(node));
    EXPECT_TRUE(dag.check());
    auto count = applyTransform(dag, TransformKind::Chunk2);
    EXPECT_TRUE(count) << count.error().message;
    if (*count > 0) {
      std::set<Move> moves;
      for (const DagNode &node : dag.nodes)
        if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
          EXPECT_EQ(call->members[0].sendBox.sizes,
                    (std::vector<int64_t>{2, 32}));
          moves.merge(movesOf(*call));
        }
      EXPECT_EQ(moves, movesOf(whole));
      EXPECT_EQ(dag.nodes.size(), 10u) << "the consumers are cut as well";
    }
    return *count;
  };
  EXPECT_EQ(changes({64, 256, 0}), 1u);
  // Blocks that touch all slices are in all parts.
  EXPECT_EQ(changes({0, 0, 0}), 0u);
}

/// On each of two devices a kernel of 4 blocks, each of which writes a row of
/// 4; the columns of both side by side; and a kernel that reads these rows.
TEST(KernelPart, AGatherOfColumnsIsCutByRows) {
  Dag dag = Chain(64, 64, {4, 1, 1}).dag;
  Box part{0, {4, 4}, {16, 4}, 4}; // 4 x 4 of the buffer's first 64 bytes
  Box whole{0, {2, 4, 4}, {16, 32, 4}, 4}, rows{0, {4, 8}, {32, 4}, 4};
  for (DagNode &node : dag.nodes)
    if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
      call->kind = CollectiveKind::AllGather;
      node.uses.clear();
      for (CollectiveMember &member : call->members) {
        member.recv.value = member.send.value + 1;
        member.sendBox = part;
        member.recvBox = whole;
        node.uses.push_back({member.send, part, true, false});
        node.uses.push_back({member.recv, whole, false, true});
      }
    } else {
      bool consumes = node.name == "consume";
      node.uses.resize(1);
      node.uses[0].box = consumes ? rows : part;
      node.uses[0].blockSteps = {consumes ? 32 : 16, 0, 0};
      node.uses[0].buffer.value += consumes;
    }
  auto nodes = std::move(dag.nodes);
  dag.nodes.clear();
  dag.edges.clear();
  DependencyTracker tracker(dag);
  for (DagNode &node : nodes)
    tracker.append(std::move(node));
  ASSERT_TRUE(dag.check());
  auto count = applyTransform(dag, TransformKind::Chunk2);
  ASSERT_TRUE(count) << count.error().message;
  EXPECT_EQ(*count, 1u);
  ASSERT_EQ(dag.nodes.size(), 10u) << "kernels on both sides are cut as well";
  std::vector<Box> sent, received;
  for (const DagNode &node : dag.nodes)
    if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
      sent.push_back(call->members[1].sendBox);
      received.push_back(call->members[0].recvBox);
    }
  EXPECT_EQ(sent, (std::vector<Box>{{0, {8}, {4}, 4}, {32, {8}, {4}, 4}}));
  EXPECT_EQ(received, (std::vector<Box>{{0, {2, 2, 4}, {16, 32, 4}, 4},
                                        {64, {2, 2, 4}, {16, 32, 4}, 4}}));
}

} // namespace
