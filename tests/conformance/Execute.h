// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_EXECUTE_H
#define MGPU_TESTS_CONFORMANCE_EXECUTE_H

// Plans and replays a DAG on the host target, in process.

#include "device/api/GraphDriver.h"
#include "planner/dag/Program.h"
#include "planner/plan/Plan.h"

#include <map>
#include <string>
#include <vector>

namespace mgpu::conformance {

/// The bytes of host buffers, by name.
using HostData = std::map<std::string, std::vector<std::byte>>;

/// "serial", "list", or the seed of a shuffled plan. Verified.
Result<planner::Plan> makePlan(const planner::Dag &dag,
                               const std::string &scheduler);

/// Load, `numReplays` replays and fetch on `numThreads` threads. Arguments not
/// in `inputs` are zero. Returns every argument and result as it is after.
Result<HostData> execute(const planner::Dag &dag, const planner::Plan &plan,
                         const std::vector<std::vector<std::byte>> &objects,
                         const HostData &inputs, uint32_t numThreads,
                         uint32_t numReplays = 1);

/// The same on `driver`, with objects it loads.
Result<HostData> execute(const planner::Dag &dag, const planner::Plan &plan,
                         const std::vector<std::vector<std::byte>> &objects,
                         const HostData &inputs, device::Driver &driver,
                         uint32_t numReplays = 1);

/// random:SEED for each host argument, another seed for each.
Result<HostData> randomInputs(const planner::Dag &dag, uint64_t seed);

/// What is wrong with the text form of a program: empty where it reads back
/// equal.
std::string textFault(const planner::Program &program);

/// The DAG after each transform alone, after chunks of several numbers, after
/// all transforms in order, and after all twice over; each with what it is
/// called and how many places changed.
struct Transformed {
  std::string name;
  planner::Dag dag;
  uint32_t changes = 0;
};
Result<std::vector<Transformed>> transformed(const planner::Dag &dag);

/// Where two runs differ first, for a failure message; empty if nowhere.
std::string difference(const HostData &expected, const HostData &got);

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_EXECUTE_H
