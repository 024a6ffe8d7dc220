// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/PlanPart.h"
#include "planner/plan/ArenaLayout.h"
#include "planner/schedule/ProgramSearch.h"
#include "planner/schedule/Timeline.h"
#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

static double boundOf(const Dag &dag, const LatencyEstimator &model) {
  Result<ProgramModel> made = modelOf(dag, model);
  EXPECT_TRUE(made) << made.error().message;
  return made ? made->bound.us : 0;
}

/// In each part, one resource of one device never runs two nodes at once; nor
/// does a stream.
static void expectModelHolds(const Plan &plan, const Dag &dag) {
  std::map<std::tuple<PlanPart, int, int, int>,
           std::vector<std::pair<double, double>>>
      spans;
  std::map<PlanPart, double> ends;
  for (const PlanStep &step : plan.steps) {
    std::pair span(step.startUs, step.startUs + step.durationUs);
    const PlanPart part = partOf(dag.node(step.node).phase);
    ends[part] = std::max(ends[part], span.second);
    for (PlanStream stream : step.streams) {
      int device = stream.device.value;
      spans[{part, 0, device, int(workClass(dag.node(step.node)))}].push_back(
          span);
      spans[{part, 1, device, int(stream.stream.value)}].push_back(span);
    }
  }
  for (auto &[key, list] : spans) {
    std::sort(list.begin(), list.end());
    for (size_t k = 1; k < list.size(); ++k)
      ASSERT_LE(list[k - 1].second, list[k].first);
  }
  EXPECT_DOUBLE_EQ(ends[PlanPart::Replay], plan.makespanUs);
  EXPECT_DOUBLE_EQ(ends[PlanPart::Load], plan.loadUs);
  EXPECT_DOUBLE_EQ(ends[PlanPart::Fetch], plan.fetchUs);
}

TEST(Schedule, EverySchedulerMakesSafePlansOnRandomDags) {
  Machine model = hostModel();
  double listSum = 0, serialSum = 0, boundSum = 0;
  for (uint64_t seed = 0; seed < 2500; ++seed) {
    Dag dag = randomDag(seed);
    ScheduleOptions options;
    options.streamsPerDevice = 1 + uint32_t(seed % 5);
    ScheduleOptions serial = options, shuffled = options;
    serial.scheduler = "serial";
    shuffled.scheduler = "shuffled";
    shuffled.seed = seed;
    Result<Plan> plans[] = {schedule(dag, model, serial),
                            schedule(dag, model, options),
                            schedule(dag, model, shuffled)};
    for (Result<Plan> &plan : plans) {
      ASSERT_TRUE(plan) << plan.error().message;
      Result<void> verdict = verify(*plan, dag, options.limits);
      ASSERT_TRUE(verdict) << "seed " << seed << ", " << plan->scheduler << ": "
                           << verdict.error().message;
      expectModelHolds(*plan, dag);
      if (seed % 25 == 0) {
        ASSERT_EQ(bruteForceFault(*plan, dag), "") << seed;
      }
    }
    serialSum += plans[0]->makespanUs;
    listSum += plans[1]->makespanUs;
    const double bound = boundOf(dag, model);
    for (Result<Plan> &plan : plans) {
      ASSERT_GE(plan->makespanUs, bound * (1 - 1e-12)) << seed;
    }
    boundSum += bound;
  }
  EXPECT_LT(listSum, serialSum);
  EXPECT_LT(listSum, boundSum * 1.5);
}

// Dropping any wait of the finished plan must lose an ordering.
TEST(Schedule, WaitsAreMinimal) {
  Machine model = hostModel();
  size_t waits = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Dag dag = randomDag(seed);
    Result<Plan> plan = schedule(dag, model, {"shuffled", seed});
    ASSERT_TRUE(plan);
    for (size_t s = 0; s < plan->steps.size(); ++s)
      for (size_t k = 0; k < plan->steps[s].waits.size(); ++k) {
        Plan less = *plan;
        less.steps[s].waits.erase(less.steps[s].waits.begin() + long(k));
        ASSERT_FALSE(verify(less, dag)) << seed;
        ++waits;
      }
  }
  EXPECT_GT(waits, 200u);
}

TEST(Schedule, SamePlanEveryTime) {
  Machine model = hostModel();
  Dag dag = randomDag(5);
  EXPECT_EQ(toText(*schedule(dag, model), dag),
            toText(*schedule(dag, model), dag));
  EXPECT_EQ(toText(*schedule(dag, model, {"shuffled", 1}), dag),
            toText(*schedule(dag, model, {"shuffled", 1}), dag));
  EXPECT_NE(toText(*schedule(dag, model, {"shuffled", 1}), dag),
            toText(*schedule(dag, model, {"shuffled", 2}), dag));
}

TEST(Schedule, EmptyDagAndZeroStreams) {
  Machine model = hostModel();
  Dag dag;
  dag.numDevices = 2;
  for (const Result<Plan> &plan :
       {schedule(dag, model, {"serial"}), schedule(dag, model),
        schedule(dag, model, {"shuffled", 1})}) {
    ASSERT_TRUE(plan);
    EXPECT_TRUE(verify(*plan, dag));
    EXPECT_EQ(plan->makespanUs, 0);
  }
  ScheduleOptions none;
  none.limits.streamsPerDevice = 0;
  EXPECT_FALSE(schedule(dag, model, none));
}

TEST(Schedule, RefusesTooSmallAnArena) {
  Machine model = hostModel();
  Dag dag = randomDag(5);
  ScheduleOptions options;
  options.limits.arenaBytes = 1;
  Result<Plan> plan = schedule(dag, model, options);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("are allowed"), std::string::npos);
}

/// A kernel of `us` on device 0 that follows `after`.
static DagNode timed(const char *name, double us, bool collective) {
  DagNode node;
  node.name = name;
  node.devices = {{0}};
  node.work = OpaqueCall{collective, CollectiveKind::AllReduce, 0};
  node.durationUs = us;
  return node;
}

// a(3) -> c(4, collective) -> d(1);  b(5) alone: the collective hides behind b.
TEST(Schedule, ListOverlapsAndExplainsWhy) {
  Dag dag;
  dag.numDevices = 1;
  dag.nodes = {timed("b", 5, false), timed("a", 3, false), timed("c", 4, true),
               timed("d", 1, false)};
  dag.edges = {{NodeId{1}, NodeId{2}}, {NodeId{2}, NodeId{3}}};
  Machine model = hostModel();
  Result<Plan> plan = schedule(dag, model);
  ASSERT_TRUE(plan);
  EXPECT_DOUBLE_EQ(plan->makespanUs, 9);
  EXPECT_NEAR(boundOf(dag, model), 9, 1e-9);
  EXPECT_DOUBLE_EQ(schedule(dag, model, {"serial"})->makespanUs, 13);
  PlanSummary summary = summarize(*plan, dag);
  EXPECT_DOUBLE_EQ(summary.devices[0].kernelUs, 9);
  EXPECT_DOUBLE_EQ(summary.devices[0].collectiveUs, 4);
  EXPECT_DOUBLE_EQ(summary.devices[0].exposedUs, 0);
  EXPECT_DOUBLE_EQ(summary.serialMakespanUs, 13);
  EXPECT_DOUBLE_EQ(
      summarize(*schedule(dag, model, {"serial"}), dag).devices[0].exposedUs,
      4);
  std::string text = explain(*plan, dag);
  EXPECT_NE(text.find("2 \"c\": depends on 1 \"a\""), std::string::npos)
      << text;
  EXPECT_NE(text.find("exposed communication 0.000 us"), std::string::npos);
}

// One machine with heads and tails: a(1) -> x(2) -> z(10), y(2) -> w(10), with
// x and y collectives and z, w copies, kernels not in the way. The critical
// path is 13, the collectives sum to 4; the bound sees that one of x, y waits.
TEST(Schedule, BoundSeesOneMachineBetweenHeadsAndTails) {
  Dag dag;
  dag.numDevices = 2;
  auto on = [](DagNode node, int device) {
    node.devices = {{device}};
    return node;
  };
  dag.nodes = {timed("x", 2, true), timed("y", 2, true),
               on(timed("z", 10, false), 0), on(timed("w", 10, false), 1)};
  dag.edges = {{NodeId{0}, NodeId{2}}, {NodeId{1}, NodeId{3}}};
  Machine model = hostModel();
  EXPECT_NEAR(boundOf(dag, model), 14, 1e-9);
  EXPECT_DOUBLE_EQ(schedule(dag, model)->makespanUs, 14);
}

TEST(Timeline, TraceIsJsonWithOneSpanPerStream) {
  Machine model = hostModel();
  Dag dag = randomDag(21);
  dag.nodes[0].name = "quote \" backslash \\ bad utf8 \xff";
  Plan plan = *schedule(dag, model);
  auto trace = nlohmann::json::parse(toChromeTrace(plan, dag));
  size_t spans = 0, streams = 0, parts = 0;
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      ++(event["name"] == "load" || event["name"] == "replay" ||
                 event["name"] == "fetch"
             ? parts
             : spans);
      EXPECT_TRUE(event["ts"].is_number() && event["dur"].is_number());
    }
  for (const PlanStep &step : plan.steps)
    streams += step.streams.size();
  EXPECT_EQ(spans, streams);
  EXPECT_EQ(parts, 3u);
  std::string dot = toDot(plan, dag);
  EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'),
            std::count(dot.begin(), dot.end(), '}'));
}

// A million nodes would take too long here; a tenth shows the growth.
TEST(Schedule, ListHandlesAHundredThousandNodes) {
  Dag dag;
  dag.numDevices = 4;
  for (uint32_t i = 0; i < 100000; ++i) {
    DagNode node = timed("k", 1 + i % 7, i % 11 == 0);
    node.devices = {{int32_t(i % 4)}};
    dag.nodes.push_back(node);
    for (uint32_t back : {32u, 57u, 1000u})
      if (i >= back)
        dag.edges.push_back({NodeId{i - back}, NodeId{i}});
  }
  dag.normalize();
  Machine model = hostModel();
  Result<Plan> plan = schedule(dag, model);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(verify(*plan, dag));
  EXPECT_LE(plan->makespanUs, boundOf(dag, model) * 1.1);
}
