// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/WhatIf.h"
#include "planner/dag/PlanPart.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/Timeline.h"
#include "support/Spelling.h"
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
  auto changed = [&](std::vector<std::string> changes) {
    return applyWhatIf(changes, Machine(*topology), dag, dag);
  };
  auto all = changed({"op:matmul*=0.5x", "link.nvlink=2x", "op:other=3x"});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->topology.link.bytesPerSecond,
            2 * topology->link.bytesPerSecond);
  EXPECT_EQ(*all->dag.nodes[1].durationUs, 5);
  EXPECT_EQ(*all->dag.nodes[2].durationUs, 30);
  EXPECT_TRUE(all->made.empty());
  EXPECT_EQ(all->scaled, 0u); // these kernels say nothing of what they do
  dag.spmd = true;
  dag.numDevices = 8;
  dag.nodes.push_back(node("reduce", 100, true));
  std::get<OpaqueCall>(dag.nodes[3].work).group = 8;
  all = changed({"link=2x", "op:reduce=3x"});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->scaled, 1u);
  EXPECT_LT(*all->dag.nodes[3].durationUs, 300); // by the estimates' ratio
  EXPECT_GT(*all->dag.nodes[3].durationUs, 100);
  for (const char *bad : {"link", "link=2", "link=0x", "link=-1x", "link=nanx",
                          "link.pcie=2x", "lnik=2x", "op:nothing=2x", "=2x"}) {
    auto refused = changed({bad});
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().kind, ErrorKind::Usage) << bad;
  }
}

TEST(WhatIf, ScalesWhatWasMeasured) {
  device::Topology topology = *device::openTopology("sim:dgx-h100");
  auto &measured = topology.calibration.emplace();
  measured.collectives = {{"all_reduce", 8, 1 << 20, 110},
                          {"all_reduce", 8, 4096, 10}};
  measured.matmuls = {{"bf16", 256, 256, 256, 40}};
  measured.host = {{{{"copy", 64}}, 128, 0.5},
                   {{{"access", 3e7}}, 12e7, 9},
                   {{{"operation", 4096}}, 4096, 3}};
  measured.copyLatencyUs = 0.5;
  const Machine machine(topology);
  Dag dag;
  dag.numDevices = 8;
  auto after = [&](std::string change) {
    const std::vector<std::string> changes{std::move(change)};
    return *applyWhatIf(changes, machine, dag, dag)->topology.calibration;
  };
  EXPECT_EQ(after("link=2x").collectives[0].us, 60);
  EXPECT_EQ(after("link=2x").collectives[1].us, 10);
  EXPECT_EQ(after("memory=2x").collectives[0].us, 110);
  EXPECT_EQ(after("flops=4x").matmuls[0].us, 10);
  EXPECT_EQ(after("memory=3x").host[1].us, 3);
  EXPECT_EQ(after("flops=3x").host[1].us, 9);
  EXPECT_EQ(after("flops=3x").host[2].us, 1);
}

/// Two all_reduces on two devices, in place, of 32 and 96 bytes, which do not
/// depend on each other.
static Dag twoReductions() {
  Dag dag;
  dag.numDevices = 2;
  for (uint32_t k = 0; k < 2; ++k) {
    CollectiveCall call;
    DagNode made;
    made.name = k ? "second" : "first";
    int64_t bytes = k ? 96 : 32;
    for (int32_t d = 0; d < 2; ++d) {
      Buffer buffer;
      buffer.name = made.name + std::to_string(d);
      buffer.device = {d};
      buffer.sizeBytes = uint64_t(bytes);
      buffer.elementType = ElementType::F32;
      buffer.shape = {bytes / 4};
      BufferId id{uint32_t(dag.buffers.size())};
      dag.buffers.push_back(buffer);
      Box box{0, {bytes / 4}, {4}, 4};
      call.members.push_back({{d}, id, id, box, box});
      made.devices.push_back({d});
      made.uses.push_back({id, box, true, true});
    }
    made.work = call;
    dag.nodes.push_back(made);
  }
  dag.edges = {{NodeId{0}, NodeId{1}, DepKind::Collective}};
  EXPECT_TRUE(dag.check());
  return dag;
}

TEST(WhatIf, AStarIsAnyLetters) {
  for (const char *pattern :
       {"all_reduce_20.chunk3", "all*", "*", "*chunk3", "all_*.chunk*", "*_*_*",
        "all_reduce_20.chunk3*", "**3", "*20*k*"})
    EXPECT_TRUE(matchesPattern(pattern, "all_reduce_20.chunk3")) << pattern;
  for (const char *pattern : {"", "all", "*chunk", "all_reduce_20.chunk33",
                              "*4*", "chunk3", "all*chunk3*3", "a*b"})
    EXPECT_FALSE(matchesPattern(pattern, "all_reduce_20.chunk3")) << pattern;
  EXPECT_TRUE(matchesPattern("*", "") && matchesPattern("", ""));
}

// A name of the program acts on all that transforms make of its node, and a
// name of what they make is one too.
TEST(WhatIf, FollowsNodesThroughTransforms) {
  Machine machine(*device::openTopology("sim:dgx-h200"));
  Dag source = twoReductions();
  auto change = [&](const std::string &text, const Dag &planned) {
    std::vector<std::string> changes{text};
    auto made = applyWhatIf(changes, machine, source, planned);
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  };
  auto after = [&](const WhatIf &what, std::vector<TransformKind> kinds) {
    Dag dag = what.dag;
    EXPECT_TRUE(applyTransforms(dag, kinds, {&machine, nullptr, what.made}));
    return dag;
  };
  using enum TransformKind;
  WhatIf what = change("op:second=3x", source);
  EXPECT_TRUE(what.made.empty());
  Dag halves = after(what, {Split});
  ASSERT_EQ(halves.nodes.size(), 4u);
  EXPECT_EQ(halves.nodes[1].timeFactor, 1);
  EXPECT_EQ(halves.nodes[2].timeFactor, 3);
  EXPECT_EQ(halves.nodes[3].timeFactor, 3);
  // A bucket's factor follows its share of the bytes: 32 as they were, 96 three
  // times.
  Dag bucket = after(what, {Bucket});
  ASSERT_EQ(bucket.nodes.size(), 1u);
  EXPECT_DOUBLE_EQ(bucket.nodes[0].timeFactor, 2.5);
  Dag plain = after({machine.topology(), source, {}}, {Bucket});
  EXPECT_NEAR(machine.durationUs(bucket, NodeId{0}),
              2.5 * machine.durationUs(plain, NodeId{0}), 1e-9);

  // Named as the plan shows it; what it is cut into takes that over, once.
  what = change("op:first.bucket*=0.5x", plain);
  EXPECT_EQ(what.dag, source);
  bucket = after(what, {Bucket, Split});
  ASSERT_EQ(bucket.nodes.size(), 2u);
  for (const DagNode &node : bucket.nodes)
    EXPECT_EQ(node.timeFactor, 0.5) << node.name;
  std::vector<std::string> nowhere{"op:first.bucket*=0.5x"};
  EXPECT_FALSE(applyWhatIf(nowhere, machine, source, source));
  // Numbers of chunks and plans are found with it.
  PlanRequest options;
  options.transforms = {Bucket};
  auto planned = [&](std::vector<OpFactor> ops) {
    options.ops = std::move(ops);
    exact::Budget budget(1e6, 5);
    auto plan = makePlan(source, machine, options, &budget);
    EXPECT_TRUE(plan) << plan.error().message;
    return *plan;
  };
  TargetPlan as = planned({}), half = planned(what.made);
  ASSERT_EQ(half.plan.transforms, std::vector<std::string>{"bucket"});
  EXPECT_NEAR(half.plan.makespanUs, as.plan.makespanUs / 2, 1e-9);
}

/// The one collective of a plan, with its reason.
static ExposedCollective theOne(const Dag &dag, uint32_t streams) {
  Machine model = hostModel();
  ScheduleOptions options;
  options.streamsPerDevice = streams;
  Plan plan = *schedule(dag, model, options);
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

TEST(Svg, ShowsEveryStepOfTheReplayOnItsStreams) {
  Machine model = hostModel();
  Dag dag = randomDag(7);
  std::find_if(dag.nodes.begin(), dag.nodes.end(), [](const DagNode &node) {
    return partOf(node.phase) == PlanPart::Replay;
  })->name = "<&\"\xff";
  Plan plan = *schedule(dag, model);
  std::string svg = toSvg(plan, dag);
  size_t streams = 0, rectangles = 0;
  for (const PlanStep &step : plan.steps)
    if (partOf(dag.node(step.node).phase) == PlanPart::Replay)
      streams += step.streams.size();
  for (size_t at = svg.find("<rect"); at != std::string::npos;
       at = svg.find("<rect", at + 1))
    ++rectangles;
  EXPECT_EQ(rectangles, streams + 3); // and the legend
  EXPECT_NE(svg.find("&lt;&amp;&quot;?"), std::string::npos);
  EXPECT_TRUE(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  Dag empty;
  empty.numDevices = 1;
  EXPECT_EQ(toSvg(*schedule(empty, model), empty).find("nan"),
            std::string::npos);
}
