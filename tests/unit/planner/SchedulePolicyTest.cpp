// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a schedule may do that the program does not say: each schedule policy
// has a switch, is obeyed when it is off, and tells what it gained.
#include "planner/dagfile/DagJson.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/TargetSearch.h"
#include "planner/schedule/list/Schedulers.h"
#include "planner/schedule/problem/FrozenProblem.h"
#include "tests/unit/planner/Machines.h"
#include "tests/unit/planner/RandomDag.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

struct Work {
  const char *name;
  WorkClass work;
  double us;
  std::vector<uint32_t> needs;
};
/// On two devices; kernels on the first.
static Dag dagOf(const std::vector<Work> &list) {
  Dag dag;
  dag.numDevices = 2;
  Box box = Box::flat(0, 256);
  for (const Work &each : list) {
    DagNode node;
    node.name = each.name;
    node.devices = {{0}, {1}};
    node.durationUs = each.us;
    if (each.work == WorkClass::Copy) {
      BufferId from{uint32_t(dag.buffers.size())}, to{from.value + 1};
      for (int32_t d : {0, 1}) {
        Buffer buffer;
        buffer.name = fmt::format("{}{}", each.name, d);
        buffer.device = {d};
        buffer.sizeBytes = 256;
        dag.buffers.push_back(buffer);
      }
      node.work = CopyCall{from, to, box, box};
      node.uses = {{from, box, true, false}, {to, box, false, true}};
    } else {
      bool isCollective = each.work == WorkClass::Collective;
      node.work = OpaqueCall{isCollective, CollectiveKind::AllReduce, 1024, 2};
      if (!isCollective)
        node.devices = {{0}};
    }
    for (uint32_t from : each.needs)
      dag.edges.push_back({NodeId{from}, NodeId{uint32_t(dag.nodes.size())}});
    dag.nodes.push_back(node);
  }
  EXPECT_TRUE(dag.check());
  return dag;
}

static constexpr auto kernel = WorkClass::Kernel, copyWork = WorkClass::Copy,
                      collective = WorkClass::Collective;

/// The gain of one schedule policy of those named.
static TransformGain gainOf(const Dag &dag, const std::string &machineName,
                            TransformKind kind, const std::string &named) {
  PlanRequest options;
  TransformChoice choice = *parseTransforms(named);
  options.transforms = choice.transforms;
  options.schedulePolicy = choice.schedulePolicy;
  exact::Budget budget(1e6, 60);
  auto plan = makePlan(dag, estimatorOf(machineName), options, &budget);
  EXPECT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(verify(plan->plan, dag));
  for (const TransformGain &gain : plan->gains)
    if (gain.transform.kind == kind) {
      EXPECT_EQ(std::count(plan->plan.transforms.begin(),
                           plan->plan.transforms.end(), toString(kind)),
                int(gain.isKept));
      EXPECT_FALSE(gain.left.empty());
      return gain;
    }
  ADD_FAILURE() << "no gain is told";
  return {};
}

TEST(SchedulePolicy, CollectivesStartAsEarlyAsTheirInputsAllow) {
  Dag dag = dagOf({{"a", kernel, 10, {}},
                   {"b", kernel, 30, {}},
                   {"reduce", collective, 20, {0}},
                   {"use", kernel, 10, {2}}});
  TransformGain gain = gainOf(dag, "dgx-h200", TransformKind::Early, "early");
  EXPECT_TRUE(gain.isKept);
  EXPECT_EQ(gain.changes, 1u);
  EXPECT_DOUBLE_EQ(gain.beforeUs, 70); // 10 + 30, then 20, then 10
  EXPECT_DOUBLE_EQ(gain.afterUs, 50);  // beside b
  EXPECT_LT(gain.contendedAfterUs, gain.contendedBeforeUs);
  // Nothing stands between it and its input.
  dag = dagOf({{"a", kernel, 10, {}}, {"reduce", collective, 20, {0}}});
  gain = gainOf(dag, "dgx-h200", TransformKind::Early, "early");
  EXPECT_FALSE(gain.isKept);
  EXPECT_EQ(gain.changes, 0u);
}

TEST(SchedulePolicy, NodesAreCreatedInAnOrderThatGains) {
  Dag dag = dagOf({{"long", kernel, 50, {}},
                   {"a", kernel, 10, {}},
                   {"reduce", collective, 40, {1}},
                   {"use", kernel, 10, {2}}});
  TransformGain gain = gainOf(dag, "dgx-h200", TransformKind::Order, "order");
  // Without `early` the collective waits for `long` in any case.
  EXPECT_FALSE(gain.isKept);
  EXPECT_DOUBLE_EQ(gain.beforeUs, 110);
  EXPECT_DOUBLE_EQ(gain.afterUs, 110);
  gain = gainOf(dag, "dgx-h200", TransformKind::Order, "order,early");
  EXPECT_TRUE(gain.isKept);
  EXPECT_GE(gain.changes, 2u); // `a` and `long` change places
  EXPECT_DOUBLE_EQ(gain.beforeUs, 110);
  EXPECT_DOUBLE_EQ(gain.afterUs, 70);
}

// The copy would hide behind the kernel, or behind the collective it shares the
// one link with, which the kernel waits for.
TEST(SchedulePolicy, DoesNotForkWhereContentionLoses) {
  Dag dag = dagOf({{"reduce", collective, 100, {}},
                   {"send", copyWork, 100, {}},
                   {"use", kernel, 100, {0}}});
  std::vector<TransformGain> both;
  for (const char *named : {"nofork", "order,early,nofork"}) {
    TransformGain gain =
        gainOf(dag, "pcie-l40s-4", TransformKind::NoFork, named);
    EXPECT_TRUE(gain.isKept) << named;
    EXPECT_GT(gain.changes, 0u) << named;
    EXPECT_NEAR(gain.contendedBeforeUs, 300, 1e-6) << named;
    EXPECT_LT(gain.contendedAfterUs, 210) << named;
  }
  // Where the two take links of their own, forking gains.
  TransformGain gain =
      gainOf(dag, "dgx-h200", TransformKind::NoFork, "order,early,nofork");
  EXPECT_LT(gain.contendedAfterUs, 230);
}

TEST(SchedulePolicy, TheListSaysWhichThereAre) {
  auto parse = [](const char *text) { return *parseTransforms(text); };
  EXPECT_EQ(parse("auto").schedulePolicy, SchedulePolicy());
  EXPECT_EQ(parse("none").schedulePolicy, SchedulePolicy());
  EXPECT_TRUE(parse("none").transforms.empty());
  EXPECT_EQ(parse("none,-order,-early,-nofork").schedulePolicy, strictPolicy);
  EXPECT_TRUE(parse("none,-order").transforms.empty());
  EXPECT_EQ(parse("bucket,split").schedulePolicy, SchedulePolicy());
  EXPECT_FALSE(parse("bucket,split").namesPolicy);
  EXPECT_EQ(parse("early").schedulePolicy,
            (SchedulePolicy{false, true, false}));
  TransformChoice less = parse("auto,-early,-bucket");
  EXPECT_EQ(less.schedulePolicy, (SchedulePolicy{true, false, true}));
  EXPECT_EQ(less.transforms.size(), parse("auto").transforms.size() - 2);
  EXPECT_EQ(parse("-early,-bucket").transforms, less.transforms);
  EXPECT_EQ(parse("auto,-order,-early,-nofork").schedulePolicy, strictPolicy);
  EXPECT_EQ(parse("-split,chunk4").transforms.back(),
            Transform(TransformKind::Chunk4));
  for (const char *bad :
       {"", "-", "-magic", "early,", "early,none", "early,auto", "--early"})
    EXPECT_FALSE(parseTransforms(bad)) << bad;
}

static SchedulePolicy subset(unsigned bits) {
  return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
}

/// Each collective that may not be early follows what stands before it.
static void expectPlaces(const Plan &plan, const Dag &dag) {
  std::vector<uint32_t> stepOf(dag.nodes.size());
  for (uint32_t s = 0; s < plan.steps.size(); ++s)
    stepOf[plan.steps[s].node.value] = s;
  auto follows = bruteForceOrder(plan);
  std::vector<uint32_t> last(dag.numDevices + 1);
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    const DagNode &node = dag.nodes[i];
    if (workClass(node) != WorkClass::Collective)
      continue;
    for (uint32_t k = 0; k < i; ++k) {
      bool shares = false;
      for (DeviceId device : streamDevices(dag.nodes[k]))
        shares = shares || std::count(node.devices.begin(), node.devices.end(),
                                      device) > 0;
      if (shares && dag.nodes[k].phase == node.phase)
        ASSERT_TRUE(follows[stepOf[k]][stepOf[i]])
            << "node " << i << " may overtake " << k;
    }
  }
}

TEST(SchedulePolicy, AreObeyedAndEveryPlanPassesVerify) {
  uint32_t kept[3] = {0, 0, 0};
  Machine model = estimatorOf("pcie-l40s-4");
  Contention contention = contentionOf(model.topology());
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Dag dag = randomDag(seed);
    for (unsigned bits = 0; bits < 8; ++bits) {
      PlanRequest options;
      options.seed = seed;
      options.schedulePolicy = subset(bits);
      for (TransformKind kind : allTransforms)
        if (auto policyFlag = policyFlagOf(kind);
            policyFlag && options.schedulePolicy.*policyFlag)
          options.transforms.emplace_back(kind);
      exact::Budget budget(1e6, 20);
      auto made = makePlan(dag, model, options, &budget);
      ASSERT_TRUE(made) << made.error().message;
      const Plan &plan = made->plan;
      ASSERT_EQ(bruteForceFault(plan, dag), "") << seed << ", " << bits;
      auto verdict = verify(plan, dag);
      ASSERT_TRUE(verdict) << verdict.error().message;
      EXPECT_NEAR(made->contendedUs, simulate(plan, dag, contention).makespanUs,
                  1e-6);
      if (!options.schedulePolicy.early)
        expectPlaces(plan, dag);
      if (!options.schedulePolicy.order && !options.schedulePolicy.early) {
        std::vector<std::pair<Phase, uint32_t>> order;
        for (const PlanStep &step : plan.steps)
          order.emplace_back(dag.node(step.node).phase, step.node.value);
        EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
      }
      for (const TransformGain &gain : made->gains) {
        EXPECT_LE(made->contendedUs, gain.contendedBeforeUs + 1e-9);
        if (gain.isKept)
          ++kept[size_t(gain.transform.kind) - size_t(TransformKind::Order)];
      }
      // The text of the plan reads back.
      auto back = parsePlan(toText(plan, dag), dag);
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_EQ(back->transforms, plan.transforms);
    }
  }
  for (uint32_t count : kept)
    EXPECT_GT(count, 5u);
}

/// A file that is spmd: layers of kernels and collectives of random bytes.
static Dag randomFile(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text;
  for (uint32_t i = 0; i < 40; ++i) {
    std::string deps;
    for (uint32_t k = i > 6 ? i - 6 : 0; k < i; ++k)
      if (random() % 5 == 0)
        deps += fmt::format("{}{}", deps.empty() ? "" : ",", k);
    bool reduces = random() % 3 == 0;
    text += fmt::format(
        R"({}{{"id":{},"kind":"{}","name":"n{}","out_bytes":{},"deps":[{}],)"
        R"("duration_us":{}{}}})",
        i ? "," : "", i, reduces ? "all_reduce" : "kernel", i,
        1024 << (random() % 8), deps, 1 + random() % 50,
        reduces ? R"(,"bytes":4096,"group":8)" : "");
  }
  auto dag = parseDagJson(
      R"({"format":"mgpu-dag/2","name":"t","devices":8,"spmd":true,"nodes":[)" +
          text + "]}",
      "t.json");
  EXPECT_TRUE(dag) << dag.error().message;
  return std::move(*dag);
}

TEST(SchedulePolicy, OfFilesThatAreSpmdAreObeyed) {
  Machine model = estimatorOf("dgx-h200");
  uint32_t kept[2] = {0, 0}, refused = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Dag dag = randomFile(seed);
    Problem flat = *frozenProblem(dag);
    for (bool early : {false, true})
      EXPECT_TRUE(check(flat, inOrderSchedule(flat, early)));
    double last = 0;
    // From nothing to everything, and less memory each second time.
    for (unsigned bits : {0, 2, 1, 3}) {
      PlanRequest options;
      options.schedulePolicy = subset(bits | 4);
      options.transforms = {TransformKind::Order, TransformKind::Early,
                            TransformKind::NoFork};
      exact::Budget budget(1e6, 120);
      auto made = makePlan(dag, model, options, &budget);
      ASSERT_TRUE(made) << made.error().message;
      auto verdict = verify(made->plan, dag);
      ASSERT_TRUE(verdict) << verdict.error().message;
      const std::vector<double> &starts = made->overlap->schedule.starts;
      EXPECT_EQ(made->gains.size(), size_t(std::popcount(bits | 4)));
      for (const TransformGain &gain : made->gains) {
        EXPECT_LE(made->plan.makespanUs, gain.beforeUs + 1e-9);
        if (gain.isKept)
          ++kept[gain.transform.kind == TransformKind::Early];
      }
      double kernelsEnd = 0, kernelStart = 0;
      for (uint32_t i = 0; i < flat.size(); ++i) {
        if (isCollective(flat, i)) {
          if (!options.schedulePolicy.early)
            EXPECT_GE(starts[i], kernelsEnd - 1e-6) << seed << ", " << i;
          continue;
        }
        if (!options.schedulePolicy.order)
          EXPECT_GE(starts[i], kernelStart) << seed << ", " << i;
        kernelStart = starts[i];
        kernelsEnd = std::max(kernelsEnd, starts[i] + flat.durations[i]);
      }
      last = made->plan.makespanUs;
      options.memoryBytes = made->overlap->peakBytes - 1;
      exact::Budget again(1e6, 120);
      auto tight = makePlan(dag, model, options, &again);
      if (!tight) {
        EXPECT_EQ(tight.error().kind, ErrorKind::Invalid);
        ++refused;
        continue;
      }
      EXPECT_LE(tight->overlap->peakBytes, options.memoryBytes);
      EXPECT_TRUE(verify(tight->plan, dag));
    }
    EXPECT_GT(last, 0);
  }
  EXPECT_GT(kept[0], 10u);
  EXPECT_GT(kept[1], 10u);
  EXPECT_GT(refused, 10u);
}
