// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/MeasuredTimes.h"

#include "planner/schedule/HostReplay.h"
#include "tests/unit/tuner/ReductionProgram.h"

namespace mgpu::tuner {
namespace {

using planner::Dag;
using planner::NodeId;
using K = planner::TransformKind;

/// 10 us a kernel, 4 a copy, 6 a collective.
class Model final : public planner::LatencyEstimator {
public:
  double durationUs(const Dag &dag, NodeId node) const override {
    switch (workClass(dag.node(node))) {
    case planner::WorkClass::Kernel:
      return 10;
    case planner::WorkClass::Copy:
      return 4;
    case planner::WorkClass::Collective:
      return 6;
    }
    return 0;
  }
  std::string name() const override { return "test"; }
};

uint32_t find(const Dag &dag, const std::string &name) {
  for (uint32_t i = 0; i < dag.nodes.size(); ++i)
    if (dag.nodes[i].name == name)
      return i;
  ADD_FAILURE() << name;
  return 0;
}

TEST(Priors, WhatWasTimedIsKnownAndTheRestScaled) {
  const Dag dag = makeReductions(true);
  NodeTimes timed(dag.nodes.size());
  timed[find(dag, "axpy0_0")] = 20; // twice the model
  timed[find(dag, "reduce0")] = 18; // three times
  Model model;
  PriorTimes prior(dag, timed, model);
  auto of = [&](const Dag &in, const char *name) {
    return prior.durationUs(in, {find(in, name)});
  };
  EXPECT_EQ(of(dag, "axpy0_0"), 20);
  EXPECT_EQ(of(dag, "axpy0_1"), 20); // another scalar: the kernel's ratio
  EXPECT_EQ(of(dag, "reduce1"), 18); // the same work
  EXPECT_EQ(of(dag, "up_x0_0"), 4);  // no copy was timed

  auto bucketed = tuner::transformed(dag, {K::Bucket});
  ASSERT_TRUE(bucketed);
  EXPECT_EQ(of(*bucketed, "axpy0_0"), 20);
  EXPECT_EQ(of(*bucketed, "reduce0.bucket2"), 18); // 18 is a collective's
  auto chunked = tuner::transformed(dag, {K::Chunk2});
  ASSERT_TRUE(chunked);
  EXPECT_EQ(of(*chunked, "axpy0_0.chunk0"), 20); // no part was timed
}

TEST(Priors, APredictionIsTheHostsReplay) {
  const Dag dag = makeReductions(false);
  Model model;
  ProgramConfig config;
  config.scheduler = "serial";
  config.streams = 1;
  auto us = predictedUs(dag, config, planner::hostMachine(), model);
  ASSERT_TRUE(us) << us.error().message;
  // 4 kernels, 10 copies and 2 collectives, one after the other.
  const double work = 4 * 10 + 10 * 4 + 2 * 6;
  EXPECT_NEAR(*us, work + 16 * planner::hostNodeUs, 1e-9);
  auto bucketed = tuner::transformed(dag, {K::Bucket});
  ASSERT_TRUE(bucketed);
  auto fewer = predictedUs(*bucketed, config, planner::hostMachine(), model);
  ASSERT_TRUE(fewer);
  EXPECT_NEAR(*fewer, work - 6 + 15 * planner::hostNodeUs, 1e-9);
}

} // namespace
} // namespace mgpu::tuner
