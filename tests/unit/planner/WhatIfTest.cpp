// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/WhatIf.h"
#include "planner/schedule/Timeline.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

static DagNode node(const std::string &name, double us, bool collective) {
  DagNode made;
  made.name = name;
  made.devices = {{0}};
  made.durationUs = us;
  made.work = OpaqueCall{collective, CollectiveKind::AllReduce, 1 << 20, 1};
  return made;
}

TEST(WhatIf, ChangesWhatItNames) {
  auto topology = device::openTopology("sim:dgx-h100");
  ASSERT_TRUE(topology);
  Dag dag;
  dag.numDevices = 1;
  dag.nodes = {node("matmul_1", 10, false), node("matmul_2", 10, false),
               node("other", 10, false)};
  double link = topology->link.bytesPerSecond;
  EXPECT_TRUE(applyWhatIf("link.nvlink=2x", *topology, dag));
  EXPECT_EQ(topology->link.bytesPerSecond, 2 * link);
  EXPECT_TRUE(applyWhatIf("op:matmul*=0.5x", *topology, dag));
  EXPECT_EQ(*dag.nodes[1].durationUs, 5);
  EXPECT_EQ(*dag.nodes[2].durationUs, 10);
  EXPECT_TRUE(applyWhatIf("op:other=3x", *topology, dag));
  EXPECT_EQ(*dag.nodes[2].durationUs, 30);
  for (const char *bad : {"link", "link=2", "link=0x", "link=-1x", "link=nanx",
                          "link.pcie=2x", "lnik=2x", "op:nothing=2x", "=2x"}) {
    auto refused = applyWhatIf(bad, *topology, dag);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().kind, ErrorKind::Usage) << bad;
  }
}

/// The one collective of a plan, with its reason.
static ExposedCollective theOne(const Dag &dag, uint32_t streams) {
  RooflineEstimator model = hostModel();
  ScheduleOptions options;
  options.streamsPerDevice = streams;
  Plan plan = *scheduleList(dag, model, options);
  auto all = exposedCollectives(plan, dag);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? ExposedCollective{} : all[0];
}

TEST(Exposed, NamesTheReasonAndTheTime) {
  Dag chain;
  chain.numDevices = 1;
  chain.nodes = {node("first", 10, false), node("reduce", 6, true),
                 node("last", 10, false)};
  chain.edges = {{NodeId{0}, NodeId{1}}, {NodeId{1}, NodeId{2}}};
  ExposedCollective one = theOne(chain, 4);
  EXPECT_EQ(one.reason, ExposedReason::Dependency);
  EXPECT_DOUBLE_EQ(one.exposedUs, 6);
  EXPECT_DOUBLE_EQ(one.independentUs, 0);
  EXPECT_NE(one.why.find("it needs 0 \"first\"; kernel 2 \"last\""),
            std::string::npos)
      << one.why;

  // 4 us of free kernel hide that much of it; the rest stays.
  Dag partly = chain;
  partly.nodes.push_back(node("free", 4, false));
  one = theOne(partly, 4);
  EXPECT_DOUBLE_EQ(one.exposedUs, 2);
  EXPECT_DOUBLE_EQ(one.independentUs, 4);

  // On one stream it waits for its turn.
  Dag alone;
  alone.numDevices = 1;
  alone.nodes = {node("kernel", 10, false), node("reduce", 6, true)};
  one = theOne(alone, 1);
  EXPECT_EQ(one.reason, ExposedReason::ChainLimit);
  EXPECT_DOUBLE_EQ(one.exposedUs, 6);

  // Two at once share the links.
  Dag two;
  two.numDevices = 1;
  two.nodes = {node("kernel", 6, false), node("one", 6, true),
               node("two", 5, true)};
  one = theOne(two, 4);
  EXPECT_EQ(one.reason, ExposedReason::Contention);
  EXPECT_DOUBLE_EQ(one.exposedUs, 5);
}

TEST(Svg, ShowsEveryStepOnItsLanes) {
  RooflineEstimator model = hostModel();
  Dag dag = randomDag(7);
  dag.nodes[0].name = "<&\"\xff";
  Plan plan = *scheduleList(dag, model);
  std::string svg = toSvg(plan, dag);
  size_t lanes = 0, rectangles = 0;
  for (const PlanStep &step : plan.steps)
    lanes += step.lanes.size();
  for (size_t at = svg.find("<rect"); at != std::string::npos;
       at = svg.find("<rect", at + 1))
    ++rectangles;
  EXPECT_EQ(rectangles, lanes + 3); // and the legend
  EXPECT_NE(svg.find("&lt;&amp;&quot;?"), std::string::npos);
  EXPECT_TRUE(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  Dag empty;
  empty.numDevices = 1;
  EXPECT_EQ(toSvg(*scheduleList(empty, model), empty).find("nan"),
            std::string::npos);
}
