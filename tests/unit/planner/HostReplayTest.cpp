// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makespans of small plans on one, two and three threads, computed by hand from
// the contract in HostReplay.h.
#include "planner/schedule/HostReplay.h"

#include <gtest/gtest.h>

namespace mgpu::planner {
namespace {

constexpr double node = hostNodeUs;
/// From one thread to another, as bench-replay measured it
/// (docs/benchmarks.md).
constexpr double handOver = 0.13;

/// Nodes and steps at once; what they compute is not asked.
struct Plans {
  Dag dag;
  Plan plan;

  NodeId add(std::vector<int32_t> devices, double us,
             std::vector<NodeId> after = {}, Phase phase = Phase::Replay) {
    DagNode made;
    made.name = std::to_string(dag.nodes.size());
    made.phase = phase;
    for (int32_t device : devices)
      made.devices.push_back({device});
    NodeId id{uint32_t(dag.nodes.size())};
    dag.nodes.push_back(std::move(made));
    for (NodeId from : after)
      dag.edges.push_back({from, id, DepKind::Data});
    PlanStep step;
    step.node = id;
    step.durationUs = us;
    plan.steps.push_back(step);
    dag.numDevices = 3;
    return id;
  }
  double on(uint32_t threads) const { return hostReplayUs(plan, dag, threads); }
};

TEST(HostReplay, OneThreadRunsEverythingInPlanOrder) {
  Plans plans;
  plans.add({0}, 3);
  plans.add({1}, 5);
  plans.add({}, 7); // the host's own
  plans.add({2}, 11);
  EXPECT_NEAR(plans.on(1), 26 + 4 * node, 1e-12);
  EXPECT_EQ(plans.on(0), plans.on(1)); // there is one at least
}

TEST(HostReplay, DevicesShareThreads) {
  Plans plans;
  plans.add({0}, 3);
  plans.add({1}, 5);
  plans.add({2}, 11);
  plans.add({}, 1);
  // Thread 0 has devices 0 and 2 and the host's own.
  EXPECT_NEAR(plans.on(2), 15 + 3 * node, 1e-12);
  // The caller tells thread 2 to begin, and waits for its report.
  EXPECT_NEAR(plans.on(3), 11 + node + 2 * handOver, 1e-12);
  // More threads than devices have nothing to do.
  EXPECT_EQ(plans.on(8), plans.on(3));
}

TEST(HostReplay, AResultOfAnotherThreadIsHandedOver) {
  Plans plans;
  NodeId a = plans.add({0}, 4), b = plans.add({1}, 6, {a});
  plans.add({0}, 2, {b});
  EXPECT_NEAR(plans.on(1), 12 + 3 * node, 1e-12);
  EXPECT_NEAR(plans.on(2), 12 + 3 * node + 2 * handOver, 1e-12);
}

TEST(HostReplay, ThreadsAreTakenThatAreWorthWaking) {
  // Three kernels beside each other are worth two more threads, if long enough.
  auto threadsFor = [](double us, uint32_t most) {
    Plans plans;
    for (int32_t device : {0, 1, 2})
      plans.add({device}, us);
    return usefulThreads(plans.plan, plans.dag, most);
  };
  EXPECT_EQ(threadsFor(3, 3), 1u);
  EXPECT_EQ(threadsFor(1000, 3), 3u);
  EXPECT_EQ(threadsFor(1000, 2), 2u);
  EXPECT_EQ(threadsFor(1000, 1), 1u);
  EXPECT_EQ(threadsFor(1000, 64), 3u); // no more than devices
  // A chain from device to device gains nothing.
  Plans chain;
  NodeId last = chain.add({0}, 1000);
  for (int32_t k = 1; k < 9; ++k)
    last = chain.add({k % 3}, 1000, {last});
  EXPECT_EQ(usefulThreads(chain.plan, chain.dag, 3), 1u);
}

TEST(HostReplay, AWaitOfThePlanCountsAsADependence) {
  Plans plans;
  NodeId a = plans.add({0}, 4);
  plans.add({1}, 6);
  plans.plan.steps[1].waits = {a};
  EXPECT_NEAR(plans.on(2), 10 + 2 * node + 2 * handOver, 1e-12);
  plans.plan.steps[1].waits.clear();
  EXPECT_NEAR(plans.on(2), 6 + node + 2 * handOver, 1e-12);
}

TEST(HostReplay, ACollectiveRunsOnItsFirstDevicesThread) {
  Plans plans;
  NodeId a = plans.add({0}, 4), b = plans.add({1}, 9);
  NodeId all = plans.add({0, 1}, 3, {a, b});
  plans.add({1}, 1, {all});
  // The word to begin, b, over to thread 0, the collective, over to thread 1,
  // the last, back.
  EXPECT_NEAR(plans.on(2), 13 + 3 * node + 4 * handOver, 1e-12);
  EXPECT_NEAR(plans.on(1), 17 + 4 * node, 1e-12);
}

TEST(HostReplay, PhasesMeetAndTripsRepeat) {
  Plans plans;
  NodeId before = plans.add({1}, 5, {}, Phase::Prologue);
  plans.add({0}, 3, {before});
  plans.add({0}, 7, {}, Phase::Epilogue);
  plans.dag.loop.trips = 10;
  EXPECT_NEAR(plans.on(1), 5 + 10 * 3 + 7 + 12 * node, 1e-9);
  // The prologue is begun and awaited once; nothing of the trips is handed
  // over.
  EXPECT_NEAR(plans.on(2), 5 + 2 * handOver + 10 * 3 + 7 + 12 * node, 1e-9);
}

} // namespace
} // namespace mgpu::planner
