// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/LaunchFacts.h"

#include <gtest/gtest.h>

namespace mgpu::planner {
namespace {

/// Calls of one kernel, whose arguments are the buffers of its uses and a
/// number.
struct Calls {
  struct Use {
    uint32_t buffer;
    int64_t offset; ///< of the argument; the use begins there
    bool reads, writes;
    int64_t bytes = 64;
  };

  Calls() {
    dag.kernels.resize(1);
    for (DeviceId device : {DeviceId{0}, DeviceId{0}, DeviceId::host()}) {
      Buffer buffer;
      buffer.device = device;
      buffer.sizeBytes = 4096;
      dag.buffers.push_back(buffer);
    }
  }
  Calls &add(std::vector<Use> uses, Dim3 grid = {1, 1, 1}) {
    KernelCall call{{0}, grid, {}};
    DagNode node;
    for (const Use &use : uses) {
      call.arguments.push_back({BufferId{use.buffer}, use.offset});
      node.uses.push_back({{use.buffer},
                           Box::flat(use.offset, use.bytes),
                           use.reads,
                           use.writes});
    }
    call.arguments.push_back({uint64_t(3)});
    node.work = call;
    dag.nodes.push_back(node);
    return *this;
  }
  LaunchFacts facts() const { return launchFacts(dag)[0]; }

  Dag dag;
};

TEST(LaunchFacts, TheLeastAlignmentOfAllCallsHolds) {
  EXPECT_EQ(Calls().facts().alignment, 1u);
  EXPECT_EQ(Calls().add({{0, 0, true, false}}).facts().alignment, 16u);
  EXPECT_EQ(Calls().add({{0, 256 + 16, true, false}}).facts().alignment, 16u);
  EXPECT_EQ(Calls()
                .add({{0, 0, true, false}, {1, 24, false, true}})
                .facts()
                .alignment,
            8u);
  EXPECT_EQ(Calls()
                .add({{0, 0, true, false}})
                .add({{0, 36, true, false}}, {5, 1, 1})
                .facts(),
            (LaunchFacts{{5, 1, 1}, 4, {true, false}, {0, 0}}));
  // Memory of the caller's begins at a multiple of its elements, and of no
  // more.
  Calls external;
  external.dag.buffers[1].role = BufferRole::Argument;
  external.dag.buffers[1].elementType = ElementType::F32;
  external.add({{0, 0, true, false}, {1, 64, false, true}});
  EXPECT_EQ(external.facts().alignment, 4u);
  // Nothing is known of the host's memory.
  EXPECT_EQ(Calls().add({{2, 0, true, false}}).facts().alignment, 1u);
}

TEST(LaunchFacts, WhatALaunchReadsIsWrittenByNone) {
  auto unwritten = [](const Calls &calls) { return calls.facts().unwritten; };
  using Flags = std::vector<bool>;
  EXPECT_EQ(unwritten(Calls().add({{0, 0, true, false}, {1, 0, false, true}})),
            (Flags{true, true, false}));
  // In place.
  EXPECT_EQ(unwritten(Calls().add({{0, 0, true, true}, {1, 0, true, false}})),
            (Flags{false, true, false}));
  // Two parts of one buffer, and two that overlap.
  EXPECT_EQ(unwritten(Calls().add({{0, 0, true, false}, {0, 64, false, true}})),
            (Flags{true, true, false}));
  EXPECT_EQ(unwritten(Calls().add({{0, 0, true, false}, {0, 60, false, true}})),
            (Flags{false, false, false}));
  // In one of two calls.
  EXPECT_EQ(unwritten(Calls()
                          .add({{0, 0, true, false}, {1, 0, false, true}})
                          .add({{0, 0, true, false}, {0, 32, false, true}})),
            (Flags{false, false, false}));
}

TEST(LaunchFacts, ImplyThoseThatSayLess) {
  const LaunchFacts all{{1, 1, 1}, 16, {true, true}};
  EXPECT_TRUE(all.implies(all));
  EXPECT_TRUE(all.implies({{9, 1, 1}, 8, {true, false}}));
  EXPECT_TRUE(all.implies({}));
  EXPECT_FALSE((LaunchFacts{{1, 1, 1}, 8, {true, true}}).implies(all));
  EXPECT_FALSE((LaunchFacts{{1, 1, 1}, 16, {true, false}}).implies(all));
  EXPECT_FALSE((LaunchFacts{{1, 1, 1}, 16, {true}}).implies(all));
}

TEST(LaunchFacts, SteadyIsWhatNothingWritesInAReplay) {
  constexpr int64_t many = 1 << 17;
  auto steady = [](Calls calls) { return calls.facts().steadyBytes; };
  using Sizes = std::vector<uint64_t>;
  EXPECT_EQ(steady(Calls().add({{0, 0, true, false, many}})), (Sizes{many, 0}));
  // Few bytes; memory of the host; another place than the argument's.
  EXPECT_EQ(steady(Calls().add({{0, 0, true, false, 64}})), (Sizes{0, 0}));
  EXPECT_EQ(steady(Calls().add({{2, 0, true, false, many}})), (Sizes{0, 0}));
  // The least of all calls.
  EXPECT_EQ(steady(Calls()
                       .add({{0, 0, true, false, many}})
                       .add({{1, 16, true, false, many / 2}})),
            (Sizes{many / 2, 0}));
  // Another launch writes it, or a copy before the replays.
  Calls written;
  written.add({{0, 0, true, false, many}}).add({{0, 0, false, true}});
  EXPECT_EQ(steady(written), (Sizes{0, 0}));
  Calls loaded;
  loaded.add({{0, 0, true, false, many}});
  DagNode copy;
  copy.phase = Phase::Load;
  copy.work = CopyCall{};
  copy.uses = {{BufferId{0}, Box::flat(0, many), false, true}};
  loaded.dag.nodes.push_back(copy);
  EXPECT_EQ(steady(loaded), (Sizes{many, 0}));
  // Texts that fetch need memory that is there.
  LaunchFacts facts = loaded.facts(), none;
  none.alignment = facts.alignment;
  none.unwritten = facts.unwritten;
  EXPECT_TRUE(facts.implies(none));
  EXPECT_FALSE(none.implies(facts));
}

} // namespace
} // namespace mgpu::planner
