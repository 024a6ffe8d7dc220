// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rates of the host are found again in rows that were made of them.
#include "planner/cost/HostRates.h"

#include "planner/cost/TargetMachine.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/list/Schedulers.h"

#include <cmath>
#include <gtest/gtest.h>

namespace mgpu::planner {
namespace {

using Calibration = device::Topology::Calibration;
using Step = KernelFacts::Step;

/// A host on which a launch takes 20 ns, an operation 0.05, an access 0.1, an
/// exp 0.4, and a byte of a large buffer 0.2, beside what else it takes.
Calibration host() {
  Calibration out;
  out.launchUs = 0.02;
  out.copyLatencyUs = 0.03;
  out.source = "a test";
  auto add = [&](HostCounts counts, double bytes, double memoryNs = 0) {
    const double compute = counts["launch"] * 20 + counts["operation"] * 0.05 +
                           counts["access"] * 0.1 + counts["exp"] * 0.4;
    std::erase_if(counts, [](const auto &each) { return each.second == 0; });
    out.host.push_back({counts, bytes, std::hypot(compute, memoryNs) / 1e3});
  };
  add({{"launch", 1}, {"access", 30}, {"operation", 20}}, 120);
  add({{"launch", 1}, {"access", 12288}, {"operation", 8192}}, 49152);
  add({{"launch", 1}, {"access", 12288}, {"operation", 98304}}, 49152);
  add({{"launch", 1}, {"access", 8192}, {"exp", 4096}}, 32768);
  for (double count : {3e6, 3e7})
    add({{"launch", 1}, {"access", count}, {"operation", count}}, 4 * count,
        4 * count * 0.2);
  for (double bytes : {64., 32768., 1e8})
    out.host.push_back(
        {{{"copy", bytes}}, 2 * bytes, 0.03 + (bytes - 64) * 5e-5});
  out.matmuls = {{"f32", 64, 64, 64, 64. * 64 * 64 / 20e3},
                 {"f32", 1024, 1024, 1024, 0x1p30 / 10e3},
                 {"f32", 64, 64, 64, 64. * 64 * 64 / 5e3, true}};
  out.collectives = {{"all_reduce", 2, 4096, 1}, {"all_reduce", 4, 4096, 3}};
  return out;
}

/// A program of one launch that reads and writes `count` elements each.
Dag launch(uint32_t count, const std::string &function) {
  KernelFacts facts;
  facts.grid = {count / 256, 1, 1};
  facts.block = {256, 1, 1};
  facts.places = {{1, 1}};
  facts.buffers.resize(2);
  AffineForm lane;
  lane.terms = {{0, 1}, {3, 256}};
  Step load;
  load.kind = Step::Kind::Load;
  load.width = load.bytes = 4;
  load.address = lane;
  Step store = load;
  store.kind = Step::Kind::Store;
  store.buffer = 1;
  Step compute;
  compute.instructions = 15;
  compute.function = function;
  facts.steps = {load, compute, store};
  Dag dag;
  dag.numDevices = 1;
  KernelSpec kernel;
  kernel.block = facts.block;
  kernel.facts = SharedFacts(facts);
  dag.kernels.push_back(kernel);
  for (int k = 0; k < 2; ++k) {
    Buffer buffer;
    buffer.device = {0};
    buffer.sizeBytes = uint64_t(count) * 4;
    dag.buffers.push_back(buffer);
  }
  DagNode node;
  node.devices = {{0}};
  node.work = KernelCall{KernelId{0}, facts.grid, {}};
  node.bytesRead = node.bytesWritten = uint64_t(count) * 4;
  dag.nodes.push_back(node);
  return dag;
}

TEST(HostRates, AreFoundAgain) {
  const HostRates rates(host());
  EXPECT_LT(rates.fitError(), 1e-3);
  const Dag small = launch(4096, "exp");
  EXPECT_NEAR(rates.kernel(small, small.node({0}), 32768).us,
              (20 + 8192 * 0.1 + 4096 * 0.4) / 1e3, 0.01);
  // Larger than the caches, memory is beside.
  const Dag large = launch(1 << 24, "exp");
  const double compute = double(1 << 24) * (0.2 + 0.4) / 1e3,
               memory = double(1 << 24) * 8 * 0.2 / 1e3;
  EXPECT_NEAR(rates.kernel(large, large.node({0}), 1 << 27).us,
              std::hypot(compute, memory), memory * 0.01);
  // A copy takes its bytes at the rate of the footprint.
  EXPECT_NEAR(rates.copy(1e6, 2e8).us, 50.03, 0.1);
}

TEST(HostRates, FunctionsThatWereNotMeasuredTakeWhatOthersDo) {
  const HostRates rates(host());
  const Dag known = launch(4096, "exp"), other = launch(4096, "atan2"),
            wide = launch(4096, "exp.f64");
  auto us = [&](const Dag &dag) {
    return rates.kernel(dag, dag.node({0}), 32768).us;
  };
  EXPECT_NEAR(us(other), us(known), 1e-6);
  EXPECT_NEAR(us(wide) - us(known), 4096 * 0.4 / 1e3, 0.01);
}

TEST(HostRates, WorkWithoutRowsOfItsOwnTakesWhatIsMostLikeIt) {
  const HostRates rates(host());
  const Dag known = launch(4096, "exp");
  Dag apart = known;
  KernelFacts facts = *known.kernels[0].facts;
  facts.steps[0].address.reset(); // nobody knows where it loads
  apart.kernels[0].facts = SharedFacts(facts);
  EXPECT_NEAR(rates.kernel(apart, apart.node({0}), 32768).us,
              rates.kernel(known, known.node({0}), 32768).us, 1e-6);
  Calibration without = host();
  std::erase_if(without.host,
                [](const auto &row) { return row.counts.contains("copy"); });
  EXPECT_NEAR(HostRates(without).copy(1e6, 2e8).us, std::hypot(50, 400), 5);
}

TEST(HostRates, ProductsTakeTheRateOfThoseNearby) {
  const HostRates rates(host());
  Dag dag = launch(4096, "");
  KernelFacts facts = *dag.kernels[0].facts;
  auto us = [&](double edge, bool isTurned) {
    facts.product = Product{edge, edge, edge};
    facts.product->isTurned = isTurned;
    dag.kernels[0].facts = SharedFacts(facts);
    return rates.kernel(dag, dag.node({0}), 1024).us;
  };
  EXPECT_NEAR(us(64, false), 64. * 64 * 64 / 20e3, 0.5);
  EXPECT_NEAR(us(64, true), 64. * 64 * 64 / 5e3, 1);
  EXPECT_NEAR(us(2048, false) / (8 * 0x1p30 / 10e3), 1, 0.05);
  const double between = us(256, false) / (256. * 256 * 256);
  EXPECT_GT(between, 1 / 20e3);
  EXPECT_LT(between, 1 / 10e3);
}

TEST(HostRates, AMachineOfThemPredictsAReplayWithItsError) {
  device::Topology topology = hostMachine(4).topology();
  topology.calibration = host();
  const Machine machine(topology);
  const Dag dag = launch(4096, "exp");
  const Estimate estimate = machine.estimate(dag, {0});
  EXPECT_EQ(estimate.origin, Origin::Measured);
  EXPECT_GE(estimate.error, 0.1);
  EXPECT_LE(estimate.error, 0.4);
  Plan plan;
  PlanStep step;
  step.node = {0};
  plan.steps.push_back(step);
  retime(plan, dag, machine);
  const auto predicted = predictReplay(plan, dag, 1);
  ASSERT_TRUE(predicted);
  EXPECT_NEAR(predicted->us, estimate.us + hostNodeUs, 1e-9);
  EXPECT_NEAR(predicted->error, estimate.error, 1e-9);
  EXPECT_FALSE(predictReplay(plan, dag, 0));
  // Digits finer than the error are not told; rates that are assumed know one.
  plan.error = 0.9;
  plan.makespanUs = plan.lowerBoundUs = 44.436;
  EXPECT_EQ(plan.usText(plan.makespanUs), "44");
  EXPECT_NE(
      plan.verdictLine().find("makespan 44 us +-90 %, bound 44 us: optimal"),
      std::string::npos);
  retime(plan, dag, hostMachine(4));
  EXPECT_EQ(plan.error, 0.9);
  plan.error = 0;
  EXPECT_EQ(plan.usText(44.436), "44.436");
}

} // namespace
} // namespace mgpu::planner
