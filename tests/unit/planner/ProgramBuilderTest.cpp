// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/ProgramBuilder.h"
#include "planner/dag/ProgramText.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;

namespace {

/// Two devices with a buffer of 8 floats each, an argument and a result of 16,
/// and a kernel for the host.
struct Two {
  ProgramBuilder builder{"step", 2};
  BuiltBuffer x = argument("x", {16});
  BuiltBuffer y = add({.name = "y", .kind = BuiltKind::Result, .shape = {16}});
  BuiltBuffer parts[2] = {onDevice("a", 0), onDevice("b", 1)};
  BuiltKernel kernel = *builder.addKernel({.name = "scale",
                                           .hash = {},
                                           .source = source("scale"),
                                           .location = {},
                                           .block = {8},
                                           .numArguments = 0,
                                           .facts = {}});

  static CudaFile source(const char *entry) {
    CudaFile file;
    file.entry = file.hostEntry = entry;
    file.host = "void scale(mgpu_block, float *, float) {}";
    return file;
  }
  BuiltBuffer add(BuiltBufferSpec spec) {
    auto buffer = builder.addBuffer(std::move(spec));
    EXPECT_TRUE(buffer) << buffer.error().message;
    return *buffer;
  }
  BuiltBuffer argument(const char *name, std::vector<int64_t> shape) {
    return add({.name = name, .kind = BuiltKind::Argument, .shape = shape});
  }
  BuiltBuffer onDevice(const char *name, int device) {
    return add({.name = name, .device = {device}, .shape = {8}});
  }
  BuiltView half(BuiltBuffer of, int64_t index) {
    return {of, 8 * index, {8}, {1}};
  }
  BuiltView whole(BuiltBuffer of) { return *builder.whole(of); }
  Result<void> scale(int device, BuiltView view) {
    return builder.launch({.kernel = kernel,
                           .device = {device},
                           .arguments = {{view, true, true},
                                         {BuiltScalar{ElementType::F32, 1}}}});
  }
  /// Scatter, scale, all-reduce, gather.
  void step() {
    for (int d : {0, 1}) {
      ASSERT_TRUE(builder.copy(whole(parts[d]), half(x, d)));
      ASSERT_TRUE(scale(d, whole(parts[d])));
    }
    std::vector<BuiltView> both{whole(parts[0]), whole(parts[1])};
    ASSERT_TRUE(builder.collective({.send = both, .receive = both}));
    for (int d : {0, 1})
      ASSERT_TRUE(builder.copy(half(y, d), whole(parts[d])));
  }
};

void expectRefused(const Result<void> &result, ErrorKind kind,
                   const char *message) {
  ASSERT_FALSE(result) << message;
  EXPECT_EQ(result.error().kind, kind);
  EXPECT_EQ(result.error().message, message);
}

} // namespace

TEST(ProgramBuilder, EdgesComeFromAccesses) {
  Two two;
  two.builder.setPlace("step.py:3");
  two.step();
  auto program = two.builder.program();
  ASSERT_TRUE(program) << program.error().message;
  const Dag &dag = (*program)->dag;
  ASSERT_EQ(dag.nodes.size(), 7u);
  EXPECT_EQ(dag.nodes[1].name, "scale_1");
  EXPECT_EQ(dag.nodes[1].location, "step.py:3");
  EXPECT_EQ(dag.nodes[4].devices.size(), 2u);
  // Nothing but what touches the same bytes: two chains that meet in the sum.
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (const DepEdge &edge : dag.edges)
    edges.emplace_back(edge.from.value, edge.to.value);
  EXPECT_EQ(edges, (std::vector<std::pair<uint32_t, uint32_t>>{
                       {0, 1}, {2, 3}, {1, 4}, {3, 4}, {4, 5}, {4, 6}}));
  EXPECT_EQ((*program)->arguments[0].role, ArgumentRole::Input);
  EXPECT_EQ((*program)->results[0].name, "y");
  const KernelSpec &kernel = dag.kernels.at(0);
  EXPECT_EQ(kernel.numArguments, 2u);
  EXPECT_EQ(kernel.hash.size(), 64u);
  Result<Plan> plan = schedule(dag, planner::testing::hostModel());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(verify(*plan, dag));
}

TEST(ProgramBuilder, ARefusedCallChangesNothing) {
  Two two, clean;
  ASSERT_TRUE(two.builder.copy(two.whole(two.parts[0]), two.half(two.x, 0)));
  ASSERT_TRUE(
      clean.builder.copy(clean.whole(clean.parts[0]), clean.half(clean.x, 0)));
  two.builder.setPlace("step.py:9");
  // One is refused by the builder, others by the Recorder.
  expectRefused(two.builder.copy(two.whole(two.parts[0]), two.half(two.x, 2)),
                ErrorKind::Invalid,
                "step.py:9: reaches outside buffer 'x': bytes 64 to 96 of 64");
  expectRefused(two.builder.copy(two.whole(two.parts[0]), two.whole(two.x)),
                ErrorKind::Invalid, "step.py:9: copies 16 elements into 8");
  expectRefused(two.scale(1, two.whole(two.parts[0])), ErrorKind::Invalid,
                "step.py:9: kernel on device 1 uses buffer 'a' of device 0");
  two.builder.setPlace("");
  auto a = two.builder.program(), b = clean.builder.program();
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b);
  EXPECT_EQ(**a, **b);
  // It goes on from there.
  two.step();
  ASSERT_TRUE(two.builder.program());
  EXPECT_EQ((*two.builder.program())->dag.nodes.size(), 8u);
}

TEST(ProgramBuilder, ALoopIsOneTripWithItsValue) {
  Two two;
  auto value = two.builder.beginLoop(100, 5, 2);
  ASSERT_TRUE(value);
  EXPECT_FALSE(two.builder.program()) << "the loop is open";
  expectRefused(Result<void>(two.builder.beginLoop(2).map([](auto) {})),
                ErrorKind::Unsupported,
                "a loop inside a loop: build the inner one by its trips");
  BuiltBuffer inside = two.onDevice("t", 0);
  auto kernel = two.builder.addKernel({.name = "scale",
                                       .hash = {},
                                       .source = Two::source("scale"),
                                       .location = {},
                                       .block = {8},
                                       .numArguments = 0,
                                       .facts = {}});
  ASSERT_TRUE(kernel);
  ASSERT_TRUE(
      two.builder.launch({.kernel = *kernel,
                          .device = {0},
                          .arguments = {{two.whole(inside), false, true},
                                        {two.whole(*value), true}}}));
  ASSERT_TRUE(two.builder.copy(two.whole(two.parts[0]), two.whole(inside)));
  ASSERT_TRUE(two.builder.endLoop());
  expectRefused(two.builder.copy(two.whole(two.parts[0]), two.whole(*value)),
                ErrorKind::Usage, "uses the value of a loop after the loop");
  ASSERT_TRUE(two.builder.copy(two.half(two.y, 0), two.whole(two.parts[0])));
  auto program = two.builder.program();
  ASSERT_TRUE(program) << program.error().message;
  const Dag &dag = (*program)->dag;
  EXPECT_EQ(dag.loop.trips, 100u);
  ASSERT_EQ(dag.loop.inductions.size(), 1u);
  EXPECT_EQ(dag.loop.inductions[0].at(3), 11u);
  EXPECT_EQ(dag.kernels.at(0).name, "scale_2");
  EXPECT_FALSE(two.builder.beginLoop(2));
}

TEST(ProgramBuilder, ALoopThatFailsIsDroppedWhole) {
  Two two;
  two.step();
  const Program before = **two.builder.program();
  ASSERT_TRUE(two.builder.beginLoop(3));
  two.builder.setPlace("step.py:7");
  // Judged at the end: 16 elements do not fit.
  ASSERT_TRUE(two.builder.copy(two.whole(two.parts[0]), two.whole(two.x)));
  two.builder.setPlace("");
  expectRefused(two.builder.endLoop(), ErrorKind::Invalid,
                "step.py:7: copies 16 elements into 8");
  ASSERT_TRUE(two.builder.program());
  EXPECT_EQ(**two.builder.program(), before);
}

TEST(ProgramBuilder, WhatALoopDeclaresIsItsTrips) {
  Two two;
  auto declare = [&](const char *name) {
    return two.add({.name = name, .device = {0}, .shape = {8}});
  };
  const BuiltBuffer outer = declare("outer");
  ASSERT_TRUE(two.builder.beginLoop(5));
  const BuiltBuffer own = declare("own"), last = declare("last"),
                    late = declare("late");
  ASSERT_TRUE(two.builder.copy(two.whole(own), two.half(two.x, 0)));
  ASSERT_TRUE(two.builder.copy(two.whole(last), two.whole(own)));
  ASSERT_TRUE(two.builder.copy(two.whole(outer), two.whole(last)));
  ASSERT_TRUE(two.builder.endLoop());
  ASSERT_TRUE(two.builder.copy(two.whole(late), two.whole(last)));
  ASSERT_TRUE(two.builder.copy(two.half(two.y, 0), two.whole(late)));
  auto program = two.builder.program();
  ASSERT_TRUE(program) << program.error().message;
  std::map<std::string, BufferRole> roles;
  for (const Buffer &buffer : (*program)->dag.buffers)
    roles[buffer.name] = buffer.role;
  EXPECT_EQ(roles["own"], BufferRole::Temporary);
  for (const char *name : {"outer", "last", "late"})
    EXPECT_EQ(roles[name], BufferRole::Resident) << name;
}

TEST(ProgramBuilder, ALoopThatIsDroppedLeavesItsBuffers) {
  for (bool isRefused : {false, true}) {
    Two two;
    ASSERT_TRUE(two.builder.beginLoop(2));
    const BuiltBuffer own =
        two.add({.name = "own", .device = {0}, .shape = {8}});
    ASSERT_TRUE(two.builder.copy(two.whole(own), two.half(two.x, 0)));
    if (isRefused) {
      ASSERT_TRUE(two.builder.copy(two.whole(own), two.whole(two.x)));
      EXPECT_FALSE(two.builder.endLoop());
    } else {
      ASSERT_TRUE(two.builder.dropLoop());
    }
    ASSERT_TRUE(two.builder.copy(two.whole(own), two.half(two.x, 1)));
    ASSERT_TRUE(two.builder.copy(two.half(two.y, 0), two.whole(own)));
    auto program = two.builder.program();
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ((*program)->dag.nodes.size(), 2u);
  }
}

TEST(ProgramBuilder, NodesKnowTheirPartOfAPipeline) {
  Two two;
  const PipelinePart part{PipelinePart::Kind::Backward, 3, 1};
  two.builder.setPart(part);
  ASSERT_TRUE(two.scale(0, two.whole(two.parts[0])));
  two.builder.setPart(std::nullopt);
  ASSERT_TRUE(two.scale(1, two.whole(two.parts[1])));
  auto program = two.builder.program();
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ((*program)->dag.nodes[0].part, part);
  EXPECT_EQ((*program)->dag.nodes[1].part, std::nullopt);
}

TEST(ProgramBuilder, AKernelIsLaunchedOneWay) {
  Two two;
  ASSERT_TRUE(two.scale(0, two.whole(two.parts[0])));
  expectRefused(two.builder.launch({.kernel = two.kernel,
                                    .device = {0},
                                    .arguments = {{two.whole(two.parts[0])}}}),
                ErrorKind::Usage,
                "launches kernel 'scale' with (f32*), and another launch of it "
                "gives (f32*, f32)");
}

TEST(ProgramBuilder, EveryCollectiveIsBuilt) {
  Two two;
  BuiltBuffer whole[2] = {
      two.add({.name = "p", .device = {0}, .shape = {4, 4}}),
      two.add({.name = "q", .device = {1}, .shape = {4, 4}})};
  BuiltBuffer halves[2] = {
      two.add({.name = "h", .device = {0}, .shape = {4, 2}}),
      two.add({.name = "k", .device = {1}, .shape = {4, 2}})};
  std::vector<BuiltView> wholes{two.whole(whole[0]), two.whole(whole[1])};
  std::vector<BuiltView> parts{two.whole(halves[0]), two.whole(halves[1])};
  using Kind = CollectiveKind;
  for (BuiltCollective call : std::vector<BuiltCollective>{
           {.kind = Kind::ReduceScatter,
         .reduction = ReductionKind::Max,
         .splitAxis = 1,
         .concatAxis = 1,
         .send = wholes,
         .receive = parts},
           {.kind = Kind::AllGather,
           .splitAxis = 1,
           .concatAxis = 1,
           .send = parts,
           .receive = wholes},
           {.kind = Kind::AllToAll,
           .splitAxis = 0,
           .concatAxis = 0,
           .send = wholes,
           .receive = wholes},
           {.kind = Kind::Permute,
           .pairs = {{0, 1}, {1, 0}},
           .send = wholes,
           .receive = wholes},
           {.kind = Kind::Broadcast,
           .root = 1,
           .send = wholes,
           .receive = wholes},
           {.kind = Kind::SendRecv, .send = parts, .receive = parts},
           {.kind = Kind::AllReduce, .send = wholes, .receive = wholes}}) {
    auto built = two.builder.collective(call);
    ASSERT_TRUE(built) << toString(call.kind) << built.error().message;
  }
  auto program = two.builder.program();
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_EQ((*program)->dag.nodes.size(), 7u);
  expectRefused(two.builder.collective({.send = wholes, .receive = parts}),
                ErrorKind::Invalid,
                "all_reduce: rank 0 sends a view of shape [4, 4] and receives "
                "[4, 2]: make them equal");
  expectRefused(two.builder.collective({.send = {wholes[0], wholes[0]},
                                        .receive = {wholes[0], wholes[0]}}),
                ErrorKind::Invalid, "device 0 is listed twice");
}

TEST(ProgramBuilder, TheCallersMemoryOfADevice) {
  Two two;
  const BuiltBuffer outside = two.add({.name = "outside",
                                       .kind = BuiltKind::External,
                                       .device = {1},
                                       .shape = {8}});
  const BuiltBuffer ones = two.add({.name = "ones",
                                    .kind = BuiltKind::Constant,
                                    .shape = {8},
                                    .contents = std::vector<std::byte>(32)});
  ASSERT_TRUE(two.builder.copy(two.whole(outside), two.whole(ones)));
  ASSERT_TRUE(two.builder.copy(two.whole(two.parts[1]), two.whole(ones)));
  ASSERT_TRUE(two.scale(1, two.whole(outside)));
  auto program = two.builder.program();
  ASSERT_TRUE(program) << program.error().message;
  const Dag &dag = (*program)->dag;
  const ProgramArgument &argument = (*program)->arguments.back();
  EXPECT_EQ(argument.name, "outside");
  EXPECT_EQ(argument.role, ArgumentRole::InOut);
  EXPECT_EQ(dag.buffer(*argument.buffer).device, DeviceId{1});
  // Other memory may be there in the next replay, unlike in memory of ours.
  EXPECT_EQ(dag.nodes[0].phase, Phase::Replay);
  EXPECT_EQ(dag.nodes[1].phase, Phase::Load);
  // No plan gives it a place.
  const planner::Machine model = planner::hostMachine();
  auto plan = schedule(dag, model);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(verify(*plan, dag));
  for (const Placement &placement : plan->placements)
    EXPECT_NE(placement.buffer, *argument.buffer);
  // Its text reads back equal.
  Blobs blobs;
  const std::string text = toText(**program, blobs);
  auto back =
      readProgram(text, [&](const std::string &hash) { return blobs[hash]; });
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(*back == **program);
}

TEST(ProgramBuilder, WrongBuffersAndFiguresAreRefused) {
  Two two;
  auto refused = [&](BuiltBufferSpec spec) {
    auto made = two.builder.addBuffer(std::move(spec));
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(refused({.name = "x", .device = {0}}),
            "buffer 'x' has the name of another buffer, and one of them is an "
            "argument or result, which are known by name");
  EXPECT_EQ(refused({.name = "z", .device = {2}}),
            "buffer 'z' is on device 2, and there are 2");
  EXPECT_NE(refused({.name = "z", .device = {0}, .shape = {-1}}), "");
  EXPECT_NE(refused({.name = "z", .device = {0}, .shape = {INT64_MAX, 2}}), "");
  EXPECT_NE(refused({.name = "z", .kind = BuiltKind::Constant, .shape = {2}}),
            "");
  // No sum of these overflows.
  for (int64_t figure : {INT64_MAX, INT64_MIN, int64_t(1) << 47, int64_t(-1)}) {
    EXPECT_FALSE(two.builder.fill({two.x, figure, {1}, {1}}, {4, std::byte()}));
    EXPECT_FALSE(
        two.builder.fill({two.x, 0, {16, 2}, {figure, 2}}, {4, std::byte()}));
  }
  EXPECT_FALSE(two.builder.fill({{99}, 0, {1}, {1}}, {4, std::byte()}));
  EXPECT_FALSE(two.builder.fill(two.whole(two.x), {3, std::byte()}));
}
