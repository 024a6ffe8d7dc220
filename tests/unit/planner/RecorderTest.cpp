// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/Recorder.h"
#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;

namespace {

/// Two devices with one stream and one buffer of 64 floats each, an argument
/// that is the input of both, and a kernel that reads and writes its argument.
struct TwoDevices {
  std::vector<Finding> findings;
  Recorder recorder{
      {.name = "main", .numDevices = 2, .sink = [this](const Finding &found) {
         findings.push_back(found);
       }}};
  BufferId x = recorder.addArgument({.name = "x", .shape = {64}});
  SourceStream streams[2] = {recorder.createStream({0}),
                             recorder.createStream({1})};
  BufferId buffers[2] = {onDevice("a", 0), onDevice("b", 1)};
  KernelId kernel = recorder.addKernel({.name = "scale",
                                        .hash = "scale",
                                        .source = {},
                                        .location = "k:1",
                                        .block = {64},
                                        .numArguments = 1,
                                        .facts = {}});
  uint32_t both =
      *recorder.createCommunicator({{0}, {1}}, recorder.place("p:1"));

  BufferId onDevice(const char *name, int device) {
    return recorder.addBuffer(name, {device}, BufferRole::Temporary,
                              ElementType::F32, {64});
  }
  CallSite at(const char *place, int device) {
    return {recorder.place(place), streams[device]};
  }
  Result<void> load(int device, const char *place) {
    return recorder.copy(
        {recorder.whole(buffers[device]), recorder.whole(x), "load"},
        at(place, device));
  }
  Result<void> launchOn(int device, CallSite site) {
    BufferId buffer = buffers[device];
    return recorder.launch(
        {.device = {device},
         .kernel = kernel,
         .arguments = {{buffer}},
         .uses = {{{buffer, Box::flat(0, 256), true, true}}}},
        site);
  }
  Result<void> reduceOn(int device, const char *place, ReductionKind kind) {
    View view = recorder.whole(buffers[device]);
    return recorder.allReduce(both, kind, view, view, at(place, device));
  }
  Result<void> storeTo(BufferId host, const char *place) {
    return recorder.copy({recorder.whole(host), recorder.whole(buffers[0])},
                         at(place, 0));
  }
};

void expectPlanned(const Program &program) {
  ASSERT_TRUE(program.check()) << program.check().error().message;
  Result<Plan> plan = schedule(program.dag, planner::testing::hostModel());
  ASSERT_TRUE(plan) << plan.error().message;
  auto safe = verify(*plan, program.dag);
  EXPECT_TRUE(safe) << safe.error().message;
}

} // namespace

TEST(Recorder, APlannedProgramOfTwoDevices) {
  TwoDevices two;
  for (int device : {0, 1}) {
    ASSERT_TRUE(two.load(device, "p:2"));
    ASSERT_TRUE(two.launchOn(device, two.at("p:3", device)));
    ASSERT_TRUE(two.reduceOn(device, "p:4", ReductionKind::Sum));
  }
  BufferId y = two.recorder.addBuffer(
      "y", DeviceId::host(), BufferRole::HostLocal, ElementType::F32, {64});
  ASSERT_TRUE(two.storeTo(y, "p:5"));
  ASSERT_TRUE(two.recorder.addResult(two.recorder.whole(y)));
  Result<Program> program = two.recorder.finish();
  ASSERT_TRUE(program) << program.error().message;
  // Two loads, two launches, one all-reduce for both ranks, one store.
  ASSERT_EQ(program->dag.nodes.size(), 6u);
  EXPECT_EQ(program->dag.nodes[4].name, "all_reduce_4");
  EXPECT_EQ(program->dag.nodes[4].location, "p:4");
  EXPECT_EQ(program->dag.nodes[4].devices.size(), 2u);
  EXPECT_EQ(program->arguments[0].role, ArgumentRole::Input);
  EXPECT_EQ(program->results[0].name, "r0");
  expectPlanned(*program);
}

TEST(Recorder, ARaceIsFoundAtBothPlaces) {
  TwoDevices two;
  ASSERT_TRUE(two.load(0, "p:2"));
  SourceStream other = two.recorder.createStream({0});
  ASSERT_TRUE(two.launchOn(0, {two.recorder.place("p:3"), other}));
  EXPECT_EQ(two.recorder.numRaces(), 1u);
  auto raced = two.recorder.finish();
  ASSERT_FALSE(raced);
  EXPECT_EQ(raced.error().kind, ErrorKind::Invalid);
  EXPECT_EQ(raced.error().message,
            "p:3: race on buffer 'a': nothing in the program's streams and "
            "waits orders this use after an earlier one; add mgpu.stream_wait "
            "or a sync between them (p:2: the earlier use is here)");
  ASSERT_EQ(two.findings.size(), 1u);
  EXPECT_EQ(two.findings[0].notes.size(), 1u);
  EXPECT_EQ(two.recorder.numRaces(), 1u);

  TwoDevices ordered;
  ASSERT_TRUE(ordered.load(0, "p:2"));
  other = ordered.recorder.createStream({0});
  Place wait = ordered.recorder.place("p:3");
  ASSERT_TRUE(ordered.recorder.streamWait(other, ordered.streams[0], wait));
  EXPECT_TRUE(ordered.launchOn(0, {ordered.recorder.place("p:4"), other}));
  EXPECT_TRUE(ordered.findings.empty());
}

TEST(Recorder, AMismatchedCollectiveIsFoundAtBothPlaces) {
  TwoDevices two;
  ASSERT_TRUE(two.reduceOn(0, "p:2", ReductionKind::Sum));
  auto mismatch = two.reduceOn(1, "p:3", ReductionKind::Max);
  ASSERT_FALSE(mismatch);
  EXPECT_EQ(mismatch.error().message,
            "p:3: deadlock: rank 1 reduces by max where the other reduces by "
            "sum (p:2: the matching call of rank 0 is here)");

  TwoDevices lonely;
  ASSERT_TRUE(lonely.reduceOn(0, "p:2", ReductionKind::Sum));
  auto unanswered = lonely.recorder.finish();
  ASSERT_FALSE(unanswered);
  EXPECT_EQ(unanswered.error().message,
            "p:2: deadlock: all_reduce is called by rank 0 but never by rank 1 "
            "(p:1: of this communicator)");
}

// Buffers of 64 floats as 8 x 8, whose right half is rank 1's.
TEST(Recorder, SlicesAlongAnAxisComeFirst) {
  TwoDevices two;
  BufferId halves[2] = {two.onDevice("h", 0), two.onDevice("k", 1)};
  for (int device : {0, 1}) {
    ASSERT_TRUE(two.load(device, "p:2"));
    View whole{two.buffers[device], 0, {8, 8}, {8, 1}};
    View half{halves[device], 0, {8, 4}, {4, 1}};
    ASSERT_TRUE(two.recorder.reduceScatter(two.both, ReductionKind::Max, 1,
                                           whole, half, two.at("p:3", device)));
    ASSERT_TRUE(two.recorder.allToAll(two.both, 1, 0, whole,
                                      {halves[device], 0, {16, 4}, {4, 1}},
                                      two.at("p:4", device)));
    // Its own half of the result, where it lies.
    ASSERT_TRUE(two.recorder.allGather(
        two.both, 1, {two.buffers[device], device * 4, {8, 4}, {8, 1}}, whole,
        two.at("p:5", device)));
    ASSERT_TRUE(two.recorder.permute(two.both, {{1, 1}, {0, 0}}, whole, whole,
                                     two.at("p:6", device)));
  }
  Result<Program> program = two.recorder.finish();
  ASSERT_TRUE(program) << program.error().message;
  auto call = [&](size_t node) {
    return std::get<CollectiveCall>(program->dag.nodes[node].work);
  };
  ASSERT_EQ(program->dag.nodes.size(), 6u);
  const Box byHalves{0, {2, 8, 4}, {16, 32, 4}, 4}, rows{0, {8, 4}, {16, 4}, 4};
  EXPECT_EQ(call(2).members[1].sendBox, byHalves);
  EXPECT_EQ(call(2).members[1].recvBox, rows);
  EXPECT_EQ(call(3).members[0].sendBox, byHalves);
  EXPECT_EQ(call(3).members[0].recvBox, (Box{0, {16, 4}, {16, 4}, 4}));
  EXPECT_EQ(call(4).members[1].sendBox, (Box{16, {8, 4}, {32, 4}, 4}));
  EXPECT_EQ(call(4).members[1].recvBox, byHalves);
  EXPECT_EQ(call(5).pairs, (std::vector<RankPair>{{0, 0}, {1, 1}}));
  expectPlanned(*program);
}

TEST(Recorder, PairsAreAskedFor) {
  TwoDevices two;
  View view = two.recorder.whole(two.buffers[0]);
  auto outside =
      two.recorder.permute(two.both, {{0, 2}}, view, view, two.at("p:2", 0));
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().message, "p:2: pair [0, 2] is outside of 2 ranks");
}

TEST(Recorder, ALoopKeepsOneTripAndItsPhases) {
  TwoDevices two;
  ASSERT_TRUE(two.load(0, "p:2"));
  LoopSpec spec{.trips = 1000, .place = two.recorder.place("p:3")};
  auto body = [&](BufferId) { return two.launchOn(0, two.at("p:4", 0)); };
  ASSERT_TRUE(two.recorder.loop(spec, body));
  ASSERT_TRUE(two.storeTo(two.x, "p:5"));
  Result<Program> program = two.recorder.finish();
  ASSERT_TRUE(program) << program.error().message;
  const Dag &dag = program->dag;
  ASSERT_EQ(dag.nodes.size(), 3u);
  EXPECT_EQ(dag.loop.trips, 1000u);
  EXPECT_EQ(dag.loop.location, "p:3");
  EXPECT_EQ(dag.nodes[0].phase, Phase::Prologue);
  EXPECT_EQ(dag.nodes[1].phase, Phase::Replay);
  EXPECT_EQ(dag.nodes[2].phase, Phase::Epilogue);
  EXPECT_EQ(dag.buffer(two.buffers[0]).role, BufferRole::Resident);
  EXPECT_EQ(program->arguments[0].role, ArgumentRole::InOut);
  expectPlanned(*program);

  TwoDevices uneven;
  spec.place = uneven.recorder.place("p:3");
  int trip = 0;
  ASSERT_TRUE(uneven.recorder.loop(spec, [&](BufferId) {
    return trip++ == 0 ? Result<void>() : uneven.load(0, "p:4");
  }));
  EXPECT_FALSE(uneven.recorder.finish());
}

TEST(Recorder, AFillAndAScalarParameterAreCopies) {
  TwoDevices two;
  Recorder &recorder = two.recorder;
  ASSERT_TRUE(recorder.fill(recorder.whole(two.buffers[0]),
                            std::vector<std::byte>(4), two.at("p:2", 0)));
  BufferId scalar = recorder.addArgument(
      {.name = "n", .role = ArgumentRole::Dynamic, .shape = {}});
  auto parameter = recorder.parameterOn({0}, scalar, {});
  ASSERT_TRUE(parameter);
  EXPECT_EQ(*recorder.parameterOn({0}, scalar, {}), *parameter);
  EXPECT_FALSE(recorder.fill(recorder.whole(two.buffers[0]),
                             std::vector<std::byte>(2), two.at("p:3", 0)));
  Result<Program> program = recorder.finish();
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_EQ(program->dag.nodes.size(), 2u);
  EXPECT_EQ(program->dag.nodes[1].name, "n.parameter_1");
  expectPlanned(*program);
}

TEST(Recorder, WrongCallsAreErrorsAtTheirPlace) {
  auto refused = [](const Result<void> &result, const char *message) {
    ASSERT_FALSE(result) << message;
    EXPECT_EQ(result.error().message, message);
  };
  TwoDevices two;
  Recorder &recorder = two.recorder;
  View past = recorder.whole(two.buffers[0]);
  past.offset = 1;
  refused(recorder.copy({past, recorder.whole(two.x)}, two.at("p:2", 0)),
          "p:2: reaches outside buffer 'a': bytes 4 to 260 of 256");
  refused(
      recorder.launch({.device = {0}, .kernel = two.kernel}, two.at("p:3", 0)),
      "p:3: passes 0 arguments to kernel 'scale', which takes 1");
  ASSERT_TRUE(two.load(0, "p:4"));
  refused(recorder.free(two.buffers[0], {}, recorder.place("p:5")),
          "p:5: frees buffer 'a' while work on it may still run; sync its "
          "stream first");
  ASSERT_TRUE(recorder.syncDevice({0}, {}));
  ASSERT_TRUE(recorder.free(two.buffers[0], {}, recorder.place("p:6")));
  refused(two.load(0, "p:7"), "p:7: uses buffer 'a' after it was freed (p:6: "
                              "it is freed here)");
}
