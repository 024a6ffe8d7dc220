// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of devices that do alike, planned with one device for each class of
// them, beside the plans of all nodes.
#include "planner/schedule/alike/Quotient.h"
#include "planner/dag/DagBuilder.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/PlanProof.h"
#include "support/Random.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/planner/Machines.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

namespace {

/// What each device of a random program does in its turn: uploads, kernels and
/// collectives among all devices, or those of its row or column. Devices below
/// `others` take other times.
class Planting {
public:
  Planting(uint64_t seed) : random(seed) {
    rows = 1 + uint32_t(random.below(4));
    columns = 2 + uint32_t(random.below(3));
    others = random.below(2) ? 1 + uint32_t(random.below(2)) : 0;
    dag.name = "planted";
    dag.numDevices = rows * columns;
    numBuffers = 3 + uint32_t(random.below(6));
    addBuffer(DeviceId::host(), BufferRole::Argument, 64);
    for (uint32_t k = 0; k < numBuffers; ++k)
      sizes.push_back(256 * (1 + random.below(4)));
    for (uint32_t d = 0; d < dag.numDevices; ++d)
      for (uint64_t size : sizes)
        addBuffer({int32_t(d)}, BufferRole::Temporary, size);
  }

  Dag run() {
    DependencyTracker made(dag);
    tracker = &made;
    // Enough that no exact search takes them all.
    while (dag.nodes.size() <= 150 || random.below(20) > 0)
      step();
    return std::move(dag);
  }

private:
  void addBuffer(DeviceId device, BufferRole role, uint64_t size) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(dag.buffers.size());
    buffer.device = device;
    buffer.role = role;
    buffer.sizeBytes = size;
    dag.buffers.push_back(std::move(buffer));
  }
  BufferId on(uint32_t device, uint32_t number) const {
    return BufferId{1 + device * numBuffers + number};
  }
  uint32_t draw() { return uint32_t(random.below(numBuffers)); }
  DagNode begin(uint32_t device, double us) {
    DagNode node;
    node.name = "n" + std::to_string(dag.nodes.size());
    node.phase = isFilled ? Phase::Replay : Phase::Load;
    node.durationUs = us * (device < others ? 2 : 1);
    return node;
  }

  void step() {
    isFilled |= random.below(4) == 0;
    const double us = double(1 + random.below(64)) / 8;
    const uint32_t a = draw(), b = draw(), c = draw();
    const uint64_t kind = random.below(8);
    if (isFilled && kind >= 6)
      return collect(us, a, b, uint32_t(random.below(3)));
    for (uint32_t d = 0; d < dag.numDevices; ++d) {
      DagNode node = begin(d, us);
      node.devices = {{int32_t(d)}};
      if (!isFilled || kind == 0) {
        const Box box = Box::flat(0, 64);
        node.work = CopyCall{{0}, on(d, a), box, box};
        node.uses = {{{0}, box, true, false}, {on(d, a), box, false, true}};
      } else {
        node.work = OpaqueCall{};
        for (uint32_t number : {a, b})
          node.uses.push_back({on(d, number), Box::flat(0, 256), true, false});
        node.uses.push_back({on(d, c), Box::flat(0, 256), false, true});
      }
      tracker->append(std::move(node));
    }
  }

  /// 0: among all; 1: in rows; 2: in columns.
  void collect(double us, uint32_t send, uint32_t recv, uint32_t among) {
    std::vector<std::vector<uint32_t>> groups(among == 0   ? 1
                                              : among == 1 ? rows
                                                           : columns);
    for (uint32_t d = 0; d < dag.numDevices; ++d)
      groups[among == 0   ? 0
             : among == 1 ? d / columns
                          : d % columns]
          .push_back(d);
    for (size_t g = 0; g < groups.size(); ++g) {
      DagNode node = begin(UINT32_MAX, us);
      CollectiveCall call;
      call.communicator = among * 8 + uint32_t(g);
      for (uint32_t d : groups[g]) {
        node.devices.push_back({int32_t(d)});
        const Box box = Box::flat(0, 64);
        call.members.push_back(
            {{int32_t(d)}, on(d, send), on(d, recv), box, box});
        node.uses.push_back({on(d, send), box, true, false});
        node.uses.push_back({on(d, recv), box, false, true});
      }
      node.work = std::move(call);
      tracker->append(std::move(node));
    }
  }

  Random random;
  Dag dag;
  DependencyTracker *tracker = nullptr;
  uint32_t rows, columns, others, numBuffers;
  std::vector<uint64_t> sizes;
  bool isFilled = false; ///< the load is over
};

Result<TargetPlan> planOf(const Dag &dag, const Machine &machine, bool byClass,
                          uint64_t moves, uint64_t memoryBytes = UINT64_MAX) {
  exact::Budget budget(1e9, moves);
  PlanRequest request;
  request.byClass = byClass;
  request.memoryBytes = memoryBytes;
  return makePlan(dag, machine, request, &budget);
}

std::vector<double> durationsOf(const Dag &dag) {
  std::vector<double> durations;
  for (const DagNode &node : dag.nodes)
    durations.push_back(*node.durationUs);
  return durations;
}

} // namespace

// The plan by classes is safe, proven, and no longer than that of all nodes.
TEST(Quotient, PlansAreNoLongerThanThoseOfAllNodes) {
  const Machine machine = estimatorOf("dgx-h200-x64");
  uint32_t found = 0, shorter = 0;
  const uint64_t seeds = sweep(60, 1000);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Dag dag = Planting(seed).run();
    ASSERT_TRUE(dag.check()) << seed;
    const auto quotient = quotientOf(dag, durationsOf(dag));
    found += quotient.has_value();
    if (quotient) {
      EXPECT_LT(quotient->dag.nodes.size(), dag.nodes.size()) << seed;
    }
    auto whole = planOf(dag, machine, false, 0),
         byClass = planOf(dag, machine, true, 0);
    ASSERT_TRUE(whole && byClass) << seed;
    EXPECT_LE(byClass->contendedUs, whole->contendedUs * (1 + 1e-9)) << seed;
    EXPECT_GE(byClass->plan.makespanUs, whole->plan.lowerBoundUs * (1 - 1e-9))
        << seed;
    EXPECT_NEAR(byClass->serialUs, whole->serialUs, 1e-9 * whole->serialUs);
    shorter += byClass->contendedUs < whole->contendedUs * (1 - 1e-9);
    EXPECT_TRUE(verify(byClass->plan, dag)) << seed;
    EXPECT_EQ(bruteForceFault(byClass->plan, dag), "") << seed;
    const auto proof = proofOf(byClass->plan, dag);
    ASSERT_TRUE(proof) << seed;
    const auto proven = checkProof(byClass->plan, dag, proof->certificates);
    ASSERT_TRUE(proven) << seed << ": " << proven.error().message;
    EXPECT_GE(*proven, byClass->plan.lowerBoundUs * (1 - 1e-9)) << seed;
  }
  EXPECT_GE(found, seeds * 9 / 10);
  std::printf("%u of %u quotients, %u plans are shorter\n", found,
              uint32_t(seeds), shorter);
}

// A certificate that holds of classes alone is replaced by one of all nodes.
TEST(Quotient, PlansWithTransformsAreMade) {
  const Machine machine = estimatorOf("dgx-h200-x64");
  for (uint64_t seed = 1; seed <= sweep(30, 400); ++seed) {
    const Dag dag = Planting(seed).run();
    exact::Budget budget(1e9, 20);
    PlanRequest request;
    request.transforms = parseTransforms("auto")->transforms;
    auto made = makePlan(dag, machine, request, &budget);
    ASSERT_TRUE(made) << seed << ": " << made.error().message;
    const Dag &planned = made->dag ? *made->dag : dag;
    EXPECT_TRUE(verify(made->plan, planned)) << seed;
    const auto proof = proofOf(made->plan, planned);
    ASSERT_TRUE(proof) << seed;
    EXPECT_TRUE(checkProof(made->plan, planned, proof->certificates)) << seed;
  }
}

// What does not hold of all devices of a class is no quotient.
TEST(Quotient, RefusesWhatIsNotAlike) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Dag dag = Planting(seed).run();
    const auto quotient = quotientOf(dag, durationsOf(dag));
    if (!quotient)
      continue;
    const auto &nodes = quotient->nodes;
    // One node of several takes longer: its device is of another class, or
    // nothing is alike any more.
    for (uint32_t k = 0; k < quotient->dag.nodes.size(); ++k)
      if (nodes[k].size() > 1) {
        std::vector<double> durations = durationsOf(dag);
        durations[nodes[k].back()] += 1;
        if (auto other = quotientOf(dag, durations)) {
          EXPECT_NE(other->nodeOf[nodes[k].front()],
                    other->nodeOf[nodes[k].back()])
              << seed;
        }
        // One node more to follow, which no device's work says.
        Dag more = dag;
        const uint32_t to = nodes[k].back();
        if (to > 0 && more.nodes[to - 1].phase == more.nodes[to].phase) {
          more.edges.push_back({{to - 1}, {to}, DepKind::Data});
          more.normalize();
          if (more.edges.size() > dag.edges.size()) {
            auto plan = planOf(more, estimatorOf("dgx-h200-x64"), true, 0);
            ASSERT_TRUE(plan) << seed;
            EXPECT_TRUE(verify(plan->plan, more)) << seed;
          }
        }
        break;
      }
  }
}

// The memory of each device is that of its class, and its limit holds.
TEST(Quotient, KeepsToTheMemory) {
  const Machine machine = estimatorOf("dgx-h200-x64");
  for (uint64_t seed = 1; seed <= sweep(2, 100); ++seed) {
    const Dag dag = Planting(seed).run();
    auto free = planOf(dag, machine, true, 0);
    ASSERT_TRUE(free) << seed;
    const uint64_t limit = largestArena(free->plan) - 1;
    auto whole = planOf(dag, machine, false, 20, limit),
         byClass = planOf(dag, machine, true, 20, limit);
    EXPECT_TRUE(byClass || !whole) << seed;
    if (byClass) {
      EXPECT_LE(largestArena(byClass->plan), limit) << seed;
    }
  }
}
