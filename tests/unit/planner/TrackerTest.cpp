// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/DagBuilder.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

namespace {

Dag oneBuffer(uint64_t bytes) {
  Dag dag;
  dag.numDevices = 1;
  Buffer buffer;
  buffer.name = "x";
  buffer.device = {0};
  buffer.sizeBytes = bytes;
  dag.buffers.push_back(buffer);
  return dag;
}

DagNode touching(Box box, bool reads, bool writes) {
  DagNode node;
  node.name = "n";
  node.devices = {{0}};
  node.work = OpaqueCall{};
  node.uses = {{BufferId{0}, std::move(box), reads, writes}};
  return node;
}

std::vector<std::vector<bool>> closure(const Dag &dag) {
  size_t n = dag.nodes.size();
  std::vector<std::vector<bool>> reach(n, std::vector<bool>(n, false));
  for (const DepEdge &edge : dag.edges) { // ascending targets
    reach[edge.from.value][edge.to.value] = true;
    for (size_t i = 0; i < edge.from.value; ++i)
      if (reach[i][edge.from.value])
        reach[i][edge.to.value] = true;
  }
  return reach;
}

} // namespace

// By definition: nodes that conflict in bytes are ordered; an edge exists only
// where overlap() does not rule a conflict out.
TEST(Tracker, MatchesTheDefinitionOnRandomBoxes) {
  size_t conflicts = 0, edges = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    RandomDagOptions options;
    options.mixedWidths = seed % 2 == 0;
    options.maxBuffers = 3;
    Dag dag = randomDag(seed, options);
    ASSERT_TRUE(dag.check()) << seed << dag.check().error().message;
    auto reach = closure(dag);
    std::vector<std::vector<std::set<int64_t>>> bytes;
    for (const DagNode &node : dag.nodes) {
      bytes.emplace_back();
      for (const BufferUse &use : node.uses)
        bytes.back().push_back(bytesOf(use.box));
    }
    std::set<std::pair<uint32_t, uint32_t>> possible;
    for (uint32_t j = 0; j < dag.nodes.size(); ++j)
      for (uint32_t i = 0; i < j; ++i) {
        const DagNode &a = dag.nodes[i], &b = dag.nodes[j];
        auto *x = std::get_if<CollectiveCall>(&a.work);
        auto *y = std::get_if<CollectiveCall>(&b.work);
        if (x && y && x->communicator == y->communicator) {
          possible.emplace(i, j);
          ASSERT_TRUE(reach[i][j]) << seed;
        }
        for (size_t u = 0; u < a.uses.size(); ++u)
          for (size_t v = 0; v < b.uses.size(); ++v) {
            if (a.uses[u].buffer != b.uses[v].buffer ||
                !(a.uses[u].writes || b.uses[v].writes))
              continue;
            if (mgpu::overlap(a.uses[u].box, b.uses[v].box) != Overlap::None)
              possible.emplace(i, j);
            if (meet(bytes[i][u], bytes[j][v])) {
              ++conflicts;
              ASSERT_TRUE(reach[i][j])
                  << "seed " << seed << ": " << i << " -> " << j;
            }
          }
      }
    for (const DepEdge &edge : dag.edges) {
      ++edges;
      ASSERT_TRUE(possible.count({edge.from.value, edge.to.value})) << seed;
    }
    Dag again = dag;
    again.normalize();
    ASSERT_EQ(again.edges.size(), dag.edges.size());
  }
  EXPECT_GT(conflicts, 10000u);
  EXPECT_GT(edges, 3000u);
}

TEST(Tracker, NamesTheKindOfEachEdge) {
  Dag dag = oneBuffer(64);
  DependencyTracker tracker(dag);
  Box all = Box::flat(0, 64);
  tracker.append(touching(all, false, true)); // 0 writes
  tracker.append(touching(all, true, false)); // 1 reads
  tracker.append(touching(all, false, true)); // 2 writes
  tracker.append(touching(all, false, true)); // 3 writes
  tracker.append(touching(all, true, true));  // 4 both
  std::vector<std::tuple<uint32_t, uint32_t, DepKind>> got;
  for (const DepEdge &edge : dag.edges)
    got.emplace_back(edge.from.value, edge.to.value, edge.kind);
  std::vector<std::tuple<uint32_t, uint32_t, DepKind>> expected = {
      {0, 1, DepKind::Data},
      {1, 2, DepKind::Anti},
      {2, 3, DepKind::Output},
      {3, 4, DepKind::Data}};
  // 2 follows 0 through 1; the direct edge is there only while 0 is in view.
  got.erase(
      std::remove(got.begin(), got.end(), std::tuple(0u, 2u, DepKind::Output)),
      got.end());
  EXPECT_EQ(got, expected);
}

TEST(Tracker, EmptyAndReadOnlyUsesMakeNoEdge) {
  Dag dag = oneBuffer(64);
  DependencyTracker tracker(dag);
  tracker.append(touching(Box::flat(0, 64), true, false));
  tracker.append(touching(Box::flat(0, 64), true, false));
  tracker.append(touching(Box{8, {0, 4}, {4, 4}, 4}, false, true));
  EXPECT_TRUE(dag.edges.empty());
}

// Quadratic behaviour would take minutes at this size.
TEST(Tracker, EdgesStayFewOnDisjointChainedAndSharedBoxes) {
  constexpr int64_t tiles = 1000, rounds = 100;
  Dag dag = oneBuffer(tiles * 64);
  DependencyTracker tracker(dag);
  tracker.append(touching(Box::flat(0, tiles * 64), false, true));
  for (int64_t round = 0; round < rounds; ++round)
    for (int64_t tile = 0; tile < tiles; ++tile)
      tracker.append(touching(Box::flat(tile * 64, 64), true, true));
  EXPECT_EQ(dag.edges.size(), size_t(tiles * rounds));

  Dag sliding = oneBuffer(200000);
  DependencyTracker slider(sliding);
  for (int64_t i = 0; i < 100000; ++i)
    slider.append(touching(Box::flat(i, 1000), false, true));
  EXPECT_EQ(sliding.edges.size(), 99999u);

  Dag shared = oneBuffer(4096);
  DependencyTracker readers(shared);
  readers.append(touching(Box::flat(0, 4096), false, true));
  for (int64_t i = 0; i < 100000; ++i)
    readers.append(touching(Box::flat(0, 4096), true, false));
  readers.append(touching(Box::flat(0, 4096), false, true));
  EXPECT_GE(shared.edges.size(), 200000u);
  EXPECT_LE(shared.edges.size(), 200001u);
}
