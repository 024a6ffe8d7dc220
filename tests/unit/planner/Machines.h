// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_PLANNER_MACHINES_H
#define MGPU_TESTS_UNIT_PLANNER_MACHINES_H

// The machines that tests plan for.

#include "planner/cost/TargetMachine.h"

#include <gtest/gtest.h>

namespace mgpu::planner::testing {

/// The estimator of the topology with that name, as "dgx-h200".
inline Machine estimatorOf(const std::string &name) {
  auto topology = device::openTopology("sim:" + name);
  EXPECT_TRUE(topology) << topology.error().message;
  return Machine(*topology);
}

} // namespace mgpu::planner::testing

#endif // MGPU_TESTS_UNIT_PLANNER_MACHINES_H
