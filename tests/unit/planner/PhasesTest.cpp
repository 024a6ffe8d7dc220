// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Load, replay and fetch are planned apart: what a plan says of a replay is of
// a replay alone, and a resident argument never makes one longer.
#include "planner/record/Phases.h"
#include "planner/dag/DagBuilder.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/PlanProof.h"
#include "planner/schedule/ResidentPlan.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/Timeline.h"
#include "tests/unit/planner/Machines.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

namespace {

/// A random program of arguments that are uploaded, kernels on them and on what
/// they make, collectives, and results. Durations are given.
class RandomUploads {
public:
  explicit RandomUploads(uint64_t seed) : random(seed) {
    program.dag.name = "main";
    program.dag.numDevices = uint32_t(1 + pick(3));
  }

  Program run() {
    DependencyTracker tracker(program.dag);
    std::vector<std::vector<BufferId>> on(program.dag.numDevices);
    for (uint32_t k = 0, count = uint32_t(2 + pick(8)); k < count; ++k) {
      const uint32_t d = uint32_t(pick(program.dag.numDevices));
      const BufferId from = add(DeviceId::host(), BufferRole::Argument, k),
                     to = add({int32_t(d)}, BufferRole::Temporary, 0);
      ProgramArgument argument;
      argument.name = program.dag.buffer(from).name;
      argument.shape = {64};
      argument.buffer = from;
      program.arguments.push_back(argument);
      copy(tracker, from, to, d);
      on[d].push_back(to);
    }
    for (uint32_t d = 0; d < program.dag.numDevices; ++d)
      on[d].push_back(add({int32_t(d)}, BufferRole::Temporary, 0));
    for (uint64_t k = 0, count = 4 + pick(20); k < count; ++k)
      compute(tracker, on);
    for (uint32_t d = 0; d < program.dag.numDevices; ++d)
      copy(tracker, on[d].back(), add(DeviceId::host(), BufferRole::Result, d),
           d);
    return std::move(program);
  }

private:
  uint64_t pick(uint64_t bound) { return random() % bound; }

  BufferId add(DeviceId device, BufferRole role, uint32_t index) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(program.dag.buffers.size());
    buffer.device = device;
    buffer.role = role;
    buffer.index = index;
    buffer.elementType = ElementType::F32;
    buffer.shape = {64};
    buffer.sizeBytes = 256;
    program.dag.buffers.push_back(std::move(buffer));
    return {uint32_t(program.dag.buffers.size() - 1)};
  }

  static Box all() { return Box::flat(0, 256); }

  DagNode node(std::vector<DeviceId> devices) {
    DagNode node;
    node.name = "n" + std::to_string(program.dag.nodes.size());
    node.devices = std::move(devices);
    node.durationUs = double(1 + pick(60)) / 4;
    return node;
  }

  void copy(DependencyTracker &tracker, BufferId from, BufferId to,
            uint32_t device) {
    DagNode made = node({{int32_t(device)}});
    made.work = CopyCall{from, to, all(), all()};
    made.uses = {{from, all(), true, false}, {to, all(), false, true}};
    tracker.append(std::move(made));
  }

  void compute(DependencyTracker &tracker,
               std::vector<std::vector<BufferId>> &on) {
    const bool isShared = program.dag.numDevices > 1 && pick(4) == 0;
    std::vector<DeviceId> devices;
    const uint32_t only = uint32_t(pick(program.dag.numDevices));
    for (uint32_t d = 0; d < program.dag.numDevices; ++d)
      if (isShared || d == only)
        devices.push_back({int32_t(d)});
    DagNode made = node(devices);
    OpaqueCall call;
    call.isCollective = isShared;
    call.bytes = 256;
    call.group = isShared ? program.dag.numDevices : 0;
    made.work = call;
    for (DeviceId device : devices) {
      std::vector<BufferId> &mine = on[size_t(device.value)];
      const BufferId read = mine[pick(mine.size())];
      made.uses.push_back({read, all(), true, false});
      const BufferId written = add(device, BufferRole::Temporary, 0);
      made.uses.push_back({written, all(), false, true});
      mine.push_back(written);
    }
    tracker.append(std::move(made));
  }

  std::mt19937_64 random;
  Program program;
};

/// Each argument is resident by the draw.
Program withResidents(Program program, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (ProgramArgument &argument : program.arguments)
    if (random() % 2)
      argument.role = ArgumentRole::Resident;
  assignPhases(program);
  return program;
}

double sumOf(const Plan &plan) {
  return plan.loadUs + plan.makespanUs + plan.fetchUs;
}

/// Ends of the steps of a part.
double endOf(const Plan &plan, const Dag &dag, PlanPart part) {
  double end = 0;
  for (const PlanStep &step : plan.steps)
    if (partOf(dag.node(step.node).phase) == part)
      end = std::max(end, step.startUs + step.durationUs);
  return end;
}

} // namespace

TEST(Phases, ResidentArgumentsNeverMakeAReplayLonger) {
  const Machine machine = estimatorOf("dgx-h200");
  uint32_t shorter = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Program inputs = RandomUploads(seed).run();
    ASSERT_TRUE(inputs.dag.check()) << seed;
    const Program program = withResidents(inputs, seed);
    PlanRequest request;
    auto before = hostPlan(inputs.dag, request),
         after = hostPlan(program.dag, request);
    ASSERT_TRUE(before && after) << seed;
    EXPECT_LE(after->makespanUs, before->makespanUs * (1 + 1e-9)) << seed;
    EXPECT_EQ(after->makespanUs, endOf(*after, program.dag, PlanPart::Replay));
    EXPECT_EQ(after->loadUs, endOf(*after, program.dag, PlanPart::Load));
    shorter += after->makespanUs < before->makespanUs;
    PlanRequest options;
    options.transforms = parseTransforms("auto")->transforms;
    exact::Budget first(1e9, 20), second(1e9, 20);
    auto was = makePlan(inputs.dag, machine, options, &first);
    auto is = makePlan(program.dag, machine, options, &second);
    ASSERT_TRUE(was && is) << seed;
    EXPECT_LE(is->plan.makespanUs, was->plan.makespanUs * (1 + 1e-9)) << seed;
    // Work that starts earlier may meet other work: no order forbids that.
    EXPECT_LE(is->contendedUs, was->contendedUs * 1.002) << seed;
    EXPECT_LE(is->plan.lowerBoundUs, is->plan.makespanUs * (1 + 1e-9)) << seed;
  }
  EXPECT_GT(shorter, 80u);
}

TEST(Phases, AnOtherPlanWithoutItsCopiesIsAPlan) {
  uint32_t made = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Program inputs = RandomUploads(seed).run();
    const Program program = withResidents(inputs, seed);
    std::optional<Dag> other = withoutResidents(program.dag);
    if (!other)
      continue;
    for (uint32_t n = 0; n < other->nodes.size(); ++n)
      EXPECT_EQ(other->nodes[n].phase, inputs.dag.nodes[n].phase) << seed;
    PlanRequest request;
    request.seed = seed;
    auto before = hostPlan(*other, request);
    ASSERT_TRUE(before) << seed;
    TargetPlan after; // worse than any, so that the other one is taken
    after.contendedUs = after.plan.makespanUs = 1e9;
    ASSERT_TRUE(takeApart(after, program.dag, hostModel(), request,
                          [&](const Dag &) -> Result<TargetPlan> {
                            TargetPlan of;
                            of.plan = *before;
                            of.contendedUs = before->makespanUs;
                            return of;
                          }));
    EXPECT_TRUE(verify(after.plan, program.dag)) << seed;
    EXPECT_EQ(bruteForceFault(after.plan, program.dag), "") << seed;
    EXPECT_LE(after.plan.makespanUs, before->makespanUs * (1 + 1e-9)) << seed;
    ++made;
  }
  EXPECT_GT(made, 50u);
}

TEST(Phases, PartsCountFromTheirOwnBeginning) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Program program = withResidents(RandomUploads(seed).run(), seed);
    const Dag &dag = program.dag;
    auto plan = hostPlan(dag);
    ASSERT_TRUE(plan) << seed;
    // Chained they are what one timeline over all of them would be.
    const Simulation played = simulate(*plan, dag, {});
    EXPECT_NEAR(played.makespanUs, plan->makespanUs, 1e-9) << seed;
    for (size_t s = 0; s < plan->steps.size(); ++s)
      EXPECT_NEAR(played.startUs[s], plan->steps[s].startUs, 1e-9) << seed;
    EXPECT_LE(plan->makespanUs, summarize(*plan, dag).serialMakespanUs + 1e-9);
    // The proof names phases, and holds for the parts as the plan says them.
    auto proof = proofOf(*plan, dag);
    ASSERT_TRUE(proof) << seed;
    EXPECT_TRUE(checkProof(*plan, dag, proof->certificates)) << seed;
    Plan wrong = *plan;
    wrong.loadUs += 1;
    EXPECT_FALSE(checkProof(wrong, dag, proof->certificates)) << seed;
    wrong = *plan;
    wrong.makespanUs = sumOf(*plan) + 1;
    EXPECT_FALSE(checkProof(wrong, dag, proof->certificates)) << seed;
    auto certificates = proof->certificates;
    certificates.back().phase = Phase::Epilogue;
    EXPECT_FALSE(checkProof(*plan, dag, certificates)) << seed;
  }
}

TEST(Phases, ARolledLoopCountsAllItsTrips) {
  Program program = RandomUploads(7).run();
  auto once = hostPlan(program.dag);
  ASSERT_TRUE(once);
  program.dag.loop.trips = 20;
  auto plan = hostPlan(program.dag);
  ASSERT_TRUE(plan);
  EXPECT_NEAR(plan->makespanUs, 20 * once->makespanUs, 1e-9);
  EXPECT_NEAR(plan->lowerBoundUs, 20 * once->lowerBoundUs, 1e-9);
  EXPECT_NEAR(simulate(*plan, program.dag, {}).makespanUs, plan->makespanUs,
              1e-9);
  Dag one = program.dag;
  one.loop.trips = 1;
  EXPECT_NEAR(summarize(*plan, program.dag).devices[0].kernelUs,
              20 * summarize(*once, one).devices[0].kernelUs, 1e-9);
}
