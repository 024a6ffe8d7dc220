// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/Verify.h"
#include "planner/plan/Workspace.h"
#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/planner/RandomDag.h"
#include "tests/unit/planner/RandomProgramDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

static Plan planOf(const Dag &dag, uint64_t seed) {
  Machine model = hostModel();
  Result<Plan> plan = seed % 3 == 0   ? schedule(dag, model)
                      : seed % 3 == 1 ? schedule(dag, model, {"shuffled", seed})
                                      : schedule(dag, model, {"serial"});
  EXPECT_TRUE(plan) << plan.error().message;
  return *plan;
}

/// Changes one thing; returns what, or "" when the plan has no such thing.
static std::string mutate(Plan &plan, const Dag &dag, std::mt19937_64 &random) {
  auto any = [&](size_t n) { return size_t(random() % n); };
  PlanStep &step = plan.steps[any(plan.steps.size())];
  switch (any(7)) {
  case 0:
    if (step.waits.empty())
      return "";
    step.waits.erase(step.waits.begin() + long(any(step.waits.size())));
    return "drop a wait";
  case 1:
    std::swap(plan.steps[any(plan.steps.size())], step);
    return "swap two steps";
  case 2: {
    PlanStream &stream = step.streams[any(step.streams.size())];
    stream.stream.value = uint32_t(any(plan.streamsPerDevice));
    return "move to another stream";
  }
  case 3: {
    if (plan.placements.empty())
      return "";
    Placement &a = plan.placements[any(plan.placements.size())];
    const Placement &b = plan.placements[any(plan.placements.size())];
    uint64_t end = b.offset + dag.buffer(a.buffer).sizeBytes;
    size_t device = size_t(dag.buffer(a.buffer).device.value);
    a.offset = b.offset;
    plan.arenaBytes[device] = std::max(plan.arenaBytes[device], end);
    return "overlay two buffers";
  }
  case 4:
    plan.steps.erase(plan.steps.begin() + (&step - plan.steps.data()));
    return "drop a step";
  case 5: {
    // Each in the other's place, with its streams and waits.
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t a = 0; a < plan.steps.size(); ++a)
      for (size_t b = 0; b < a; ++b) {
        const DagNode &first = dag.node(plan.steps[b].node),
                      &second = dag.node(plan.steps[a].node);
        if (workClass(first) == WorkClass::Collective &&
            workClass(second) == WorkClass::Collective &&
            first.devices == second.devices)
          pairs.emplace_back(a, b);
      }
    if (pairs.empty())
      return "";
    auto [a, b] = pairs[any(pairs.size())];
    std::swap(plan.steps[a].node, plan.steps[b].node);
    return "swap two collectives";
  }
  default:
    step.waits.clear();
    return "drop all waits";
  }
}

// The verifier and a brute-force oracle must agree on every mutation, harmful
// or harmless.
TEST(Verify, AgreesWithBruteForceOnMutatedPlans) {
  std::map<std::string, std::pair<int, int>> counts; // harmless, harmful
  std::map<std::string, int> faults;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomDagOptions options;
    options.maxBuffers = 5;
    options.maxNodes = 20;
    Dag dag = randomDag(seed, options);
    Plan plan = planOf(dag, seed);
    std::mt19937_64 random(seed);
    for (int k = 0; k < 3; ++k) {
      Plan changed = plan;
      std::string what = mutate(changed, dag, random);
      if (what.empty() || changed.steps.empty())
        continue;
      std::string fault = bruteForceFault(changed, dag);
      Result<void> verdict = verify(changed, dag);
      ++(fault.empty() ? counts[what].first : counts[what].second);
      ++faults[fault];
      ASSERT_EQ(bool(verdict), fault.empty())
          << "seed " << seed << ", " << what << ", oracle: " << fault
          << ", verify: " << (verdict ? "ok" : verdict.error().message) << "\n"
          << toText(changed, dag);
    }
  }
  for (const auto &[what, count] : counts) {
    RecordProperty(what, count.second);
    EXPECT_GT(count.second, 20) << "too few harmful cases of: " << what;
  }
  EXPECT_EQ(counts.size(), 7u);
  // Every use ordered, and yet one buffer written over the other's data.
  EXPECT_GT(faults["two buffers live in the same bytes"], 20);
}

// What is within a limit passes, and one more of anything does not.
TEST(Verify, RefusesWhatExceedsLimits) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Dag dag = randomDag(seed);
    Plan plan = planOf(dag, seed);
    PlanLimits tight;
    tight.streamsPerDevice = plan.streamsPerDevice;
    EXPECT_TRUE(verify(plan, dag, tight)) << seed;
    tight.streamsPerDevice = plan.streamsPerDevice - 1;
    EXPECT_FALSE(verify(plan, dag, tight)) << seed;
    PlanLimits small;
    small.arenaBytes =
        *std::max_element(plan.arenaBytes.begin(), plan.arenaBytes.end());
    EXPECT_TRUE(verify(plan, dag, small)) << seed;
    dag.residentBytes = 1; // beside the arena
    EXPECT_FALSE(verify(plan, dag, small)) << seed;
    dag.residentBytes = 0;
    if (small.arenaBytes == 0)
      continue;
    small.arenaBytes -= 1;
    EXPECT_FALSE(verify(plan, dag, small)) << seed;
    // Nor does an arena that says it is smaller than what lies in it.
    Plan lying = plan;
    *std::max_element(lying.arenaBytes.begin(), lying.arenaBytes.end()) -=
        arenaAlignment;
    EXPECT_FALSE(verify(lying, dag)) << seed;
  }
}

TEST(Verify, RefusesMalformedPlans) {
  Dag dag = randomDag(12);
  const Plan good = planOf(dag, 0);
  ASSERT_TRUE(verify(good, dag));
  auto refused = [&](auto change) {
    Plan plan = good;
    change(plan);
    return !verify(plan, dag);
  };
  EXPECT_TRUE(refused([](Plan &p) { p.steps[0].node.value = 99999; }));
  EXPECT_TRUE(refused([](Plan &p) { p.steps[0].waits = {NodeId{99999}}; }));
  EXPECT_TRUE(refused([](Plan &p) { p.steps[0].streams.clear(); }));
  EXPECT_TRUE(refused([](Plan &p) { p.steps[0].streams[0].stream.value = 7; }));
  EXPECT_TRUE(
      refused([](Plan &p) { p.steps[0].streams[0].device.value += 1; }));
  EXPECT_TRUE(refused([](Plan &p) { p.placements.pop_back(); }));
  EXPECT_TRUE(refused([](Plan &p) { p.placements[0].offset += 8; }));
  EXPECT_TRUE(refused([](Plan &p) { p.placements[0].offset = ~255ull; }));
  EXPECT_TRUE(refused([](Plan &p) { p.arenaBytes.pop_back(); }));
  EXPECT_TRUE(refused([](Plan &p) { p.arenaBytes[0] = 0; }));
  EXPECT_TRUE(refused([](Plan &p) { p.numDevices += 1; }));
  EXPECT_TRUE(refused([](Plan &p) { p.streamsPerDevice = 0; }));
  EXPECT_TRUE(refused([](Plan &p) { p.steps[0].startUs = -1; }));
  EXPECT_TRUE(refused([](Plan &p) { p.makespanUs = 0.0 / 0.0; }));
}

// A collective whose rank 0 alone runs it on another stream, no longer behind
// its predecessor there.
TEST(Verify, RefusesCollectivesInNoCertainOrder) {
  Dag dag;
  dag.numDevices = 2;
  for (int d = 0; d < 4; ++d) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(d);
    buffer.device = {d / 2};
    buffer.sizeBytes = 32;
    dag.buffers.push_back(buffer);
  }
  for (uint32_t k = 0; k < 2; ++k) {
    CollectiveCall call;
    DagNode node;
    node.name = "all_reduce";
    for (uint32_t d = 0; d < 2; ++d) {
      BufferId id{d * 2 + k};
      Box box = Box::flat(0, 32);
      call.members.push_back({{int32_t(d)}, id, id, box, box});
      node.devices.push_back({int32_t(d)});
      node.uses.push_back({id, box, true, true});
    }
    node.work = call;
    dag.nodes.push_back(node);
  }
  EXPECT_FALSE(dag.check()) << "the collective edge is missing";
  dag.edges = {{NodeId{0}, NodeId{1}, DepKind::Collective}};
  ASSERT_TRUE(dag.check());
  Plan plan = planOf(dag, 0);
  ASSERT_TRUE(verify(plan, dag));
  // Without the DAG's edge the communicator alone must be enough to object.
  dag.edges.clear();
  ASSERT_TRUE(verify(plan, dag));
  plan.steps[1].waits.clear();
  for (PlanStream &stream : plan.steps[1].streams)
    stream.stream.value = 3;
  Result<void> verdict = verify(plan, dag);
  ASSERT_FALSE(verdict);
  EXPECT_NE(verdict.error().message.find("communicator 0"), std::string::npos);
}

// Communicators of their own, no byte in common, two ranks shared: each rank
// could take either collective first.
TEST(Verify, RefusesUnorderedCollectivesThatShareTwoRanks) {
  auto dagOf = [](std::vector<std::vector<int32_t>> groups) {
    Dag dag;
    dag.numDevices = 4;
    for (uint32_t k = 0; k < groups.size(); ++k) {
      CollectiveCall call;
      call.communicator = k;
      DagNode node;
      node.name = "all_reduce";
      for (int32_t d : groups[k]) {
        Buffer buffer;
        buffer.name = "b" + std::to_string(dag.buffers.size());
        buffer.device = {d};
        buffer.sizeBytes = 32;
        BufferId id{uint32_t(dag.buffers.size())};
        dag.buffers.push_back(buffer);
        Box box = Box::flat(0, 32);
        call.members.push_back({{d}, id, id, box, box});
        node.devices.push_back({d});
        node.uses.push_back({id, box, true, true});
      }
      node.work = call;
      dag.nodes.push_back(node);
    }
    EXPECT_TRUE(dag.check());
    return dag;
  };
  Dag sharing = dagOf({{0, 1, 2}, {1, 2, 3}, {2, 3}, {0, 1}});
  for (uint64_t seed = 0; seed < 30; ++seed)
    EXPECT_TRUE(verify(planOf(sharing, seed), sharing)) << seed;
  int refused = 0;
  for (uint64_t seed = 1; seed < 90; seed += 3) { // shuffled
    Plan plan = planOf(sharing, seed);
    bool hasWaits = false;
    for (PlanStep &step : plan.steps) {
      hasWaits = hasWaits || !step.waits.empty();
      step.waits.clear();
    }
    Result<void> verdict = verify(plan, sharing);
    EXPECT_EQ(verdict.has_value(), !hasWaits) << seed;
    refused += !verdict && verdict.error().message.find("share two ranks") !=
                               std::string::npos;
  }
  EXPECT_GT(refused, 10);
  // One shared rank is not a danger: its stream may take either first.
  Dag apart = dagOf({{0, 1}, {1, 2}, {2, 3}});
  Plan plan = planOf(apart, 0);
  for (const PlanStep &step : plan.steps)
    EXPECT_TRUE(step.waits.empty());
  EXPECT_TRUE(verify(plan, apart));
}

// Workspaces lie behind the arena, one for each stream that needs one, and the
// plan stays safe; where two streams share one it is not.
TEST(Workspace, OfEachStreamIsAPartOfThePlan) {
  size_t added = 0, shared = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Dag dag = randomProgram(seed).dag;
    Plan plan = planOf(dag, seed);
    const std::vector<uint64_t> before = plan.arenaBytes;
    const size_t numBuffers = dag.buffers.size();
    std::vector<uint64_t> bytes;
    for (size_t k = 0; k < dag.kernels.size(); ++k)
      bytes.push_back(k % 2 ? 0 : 1000 + 100 * k);
    addWorkspaces(dag, plan, bytes);
    Result<void> whole = dag.check();
    ASSERT_TRUE(whole) << whole.error().message;
    Result<void> safe = verify(plan, dag);
    ASSERT_TRUE(safe) << "seed " << seed << ": " << safe.error().message;
    ASSERT_EQ(bruteForceFault(plan, dag), "") << seed;
    for (size_t k = numBuffers; k < dag.buffers.size(); ++k) {
      const Placement &placed =
          plan.placements[plan.placements.size() - dag.buffers.size() + k];
      const size_t device = size_t(dag.buffers[k].device.value);
      EXPECT_GE(placed.offset, before[device]);
      EXPECT_LE(placed.offset + dag.buffers[k].sizeBytes,
                plan.arenaBytes[device]);
      ++added;
      for (size_t other = numBuffers; other < k; ++other)
        if (dag.buffers[other].device == dag.buffers[k].device) {
          Plan worse = plan;
          worse.placements[plan.placements.size() - dag.buffers.size() + k]
              .offset = plan.placements[plan.placements.size() -
                                        dag.buffers.size() + other]
                            .offset;
          EXPECT_EQ(bool(verify(worse, dag)),
                    bruteForceFault(worse, dag).empty());
          shared += !verify(worse, dag);
        }
    }
    for (const DagNode &node : dag.nodes)
      if (const auto *call = std::get_if<KernelCall>(&node.work);
          call && bytes[call->kernel.value] > 0) {
        auto id = std::get<BufferId>(call->arguments.back().value);
        EXPECT_GE(dag.buffer(id).sizeBytes, bytes[call->kernel.value]);
      }
  }
  EXPECT_GT(added, 50u);
  EXPECT_GT(shared, 5u);
}
