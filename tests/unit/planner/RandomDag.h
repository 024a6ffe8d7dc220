// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_PLANNER_RANDOMDAG_H
#define MGPU_TESTS_UNIT_PLANNER_RANDOMDAG_H

#include "planner/cost/TargetMachine.h"
#include "planner/plan/Plan.h"
#include "planner/schedule/MakePlan.h"

#include <random>
#include <set>
#include <string>

namespace mgpu::planner::testing {

struct RandomDagOptions {
  uint32_t maxDevices = 3, maxBuffers = 10, maxNodes = 30;
  bool mixedWidths = false; ///< boxes of 1- and 4-byte elements
};

/// Kernels, copies and collectives over random boxes, in three phases, with
/// the dependences DependencyTracker finds.
Dag randomDag(uint64_t seed, const RandomDagOptions &options = {});
Box randomBox(std::mt19937_64 &random, int64_t bufferBytes, bool mixedWidths);

/// Every byte a box touches, one by one.
std::set<int64_t> bytesOf(const Box &box);
bool meet(const std::set<int64_t> &a, const std::set<int64_t> &b);

/// What is wrong with a plan, by brute force over all pairs and all bytes;
/// empty when it is safe. Shares no code with verify().
std::string bruteForceFault(const Plan &plan, const Dag &dag);

/// reach[i][j]: step i is before step j by stream order and waits.
std::vector<std::vector<bool>> bruteForceOrder(const Plan &plan);

inline Machine hostModel() { return hostMachine(); }

/// The plan for the host.
inline Result<Plan> hostPlan(const Dag &dag, const PlanRequest &request = {}) {
  MGPU_TRY_ASSIGN(TargetPlan made, makePlan(dag, hostModel(), request));
  return std::move(made.plan);
}

} // namespace mgpu::planner::testing

#endif // MGPU_TESTS_UNIT_PLANNER_RANDOMDAG_H
