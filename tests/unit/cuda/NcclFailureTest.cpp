// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What goes wrong among GPUs: every call, ranks that do not take part, and
// what NCCL does not have.
#include "Ranks.h"

#include "device/cuda/nccl/Communicators.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

void freshRank(uint64_t seed = 0) {
  freshMachine(seed);
  FakeNccl::reset();
  FakeWorld::create();
}

/// A bit of every kind, on one rank.
Result<void> rankScenario(bool &isTearingDown) {
  isTearingDown = false;
  static std::byte shared[4096];
  CudaOptions options = rankOptions(0);
  options.nccl.windows = true;
  MGPU_TRY_ASSIGN(auto driver, openRank(options));
  MGPU_TRY_ASSIGN(GroupId id, driver->makeGroupId());
  DeviceGroup group{firstDevices(1), id};
  MGPU_TRY(driver->join({&group, 1}));
  MGPU_TRY(driver->adoptHost(shared));
  MGPU_TRY_ASSIGN(std::byte * a, driver->allocateArena({0}, 4096, 4096));
  auto graph = driver->createGraph();
  Box low{0, {64}, {4}, 4}, high{1024, {64}, {4}, 4}, rows{512, {64}, {8}, 4};
  std::vector<GraphNodeId> last;
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::AllGather,
        CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
        CollectiveKind::Broadcast}) {
    CollectiveNodeParams params;
    params.name = std::string(toString(kind));
    params.kind = kind;
    params.members = {{{0}, a, a, low, last.empty() ? rows : high}};
    MGPU_TRY_ASSIGN(GraphNodeId made, graph->addCollective(params, last));
    last = {made};
  }
  MGPU_TRY(graph->addCopy({"down", {0}, shared, a, low, high}, last));
  MGPU_TRY_ASSIGN(auto exec, graph->instantiate());
  MGPU_TRY(exec->launch());
  std::vector<NodeTiming> timings;
  MGPU_TRY(exec->launchTimed(timings));
  isTearingDown = true;
  return {};
}

bool endsSomething(const std::string &call) {
  for (const char *end : {"Destroy", "Free", "Unload", "Release", "Pop",
                          "Unregister", "Deregister", "Finalize", "EndCapture"})
    if (call.find(end) != std::string::npos)
      return true;
  return false;
}

TEST(NcclFailure, OfEveryCall) {
  freshRank();
  bool isTearingDown = false;
  Result<void> ok = rankScenario(isTearingDown);
  ASSERT_TRUE(ok) << ok.error().message;
  ASSERT_EQ(rankComplaints(), "");
  std::set<std::string> tried;
  for (NcclResult code :
       {NcclResult::UnhandledCudaError, NcclResult::SystemError,
        NcclResult::RemoteError, NcclResult::InvalidUsage})
    // To the first run without an nth call: how many there are depends on the
    // time, as a replay that takes longer asks NCCL for errors meanwhile.
    for (uint64_t n = 1;; ++n) {
      freshRank();
      FakeCuda &fake = FakeCuda::instance();
      fake.failAt = n;
      fake.failCode = CUDA_ERROR_NOT_PERMITTED;
      FakeNccl::instance().failCode = code;
      Result<void> result = rankScenario(isTearingDown);
      const std::string at = "call " + std::to_string(n) + ", " +
                             fake.failedCall + ", code " +
                             std::to_string(int(code));
      if (fake.failedCall.empty()) {
        ASSERT_TRUE(result) << at << ": " << result.error().message;
        ASSERT_EQ(rankComplaints(), "");
        break;
      }
      tried.insert(fake.failedCall);
      ASSERT_TRUE(fake.violations.empty()) << at << fake.violations.front();
      // Without its context current the driver frees nothing, nor where it has
      // given up what it waits for and what may still run.
      const bool isGivenUp =
          !result &&
          result.error().message.find(" on cuda:0: ncclCommGetAsyncError") !=
              std::string::npos;
      if ((fake.failedCall != "cuCtxPushCurrent" || !isTearingDown) &&
          !isGivenUp) {
        ASSERT_EQ(fake.leaks(), std::vector<std::string>()) << at;
        ASSERT_EQ(FakeNccl::instance().comms.size(), 0u) << at;
        ASSERT_EQ(FakeNccl::instance().memory.size(), 0u) << at;
      }
      if (isTearingDown || endsSomething(fake.failedCall) ||
          fake.failedCall == "cuLogsRegisterCallback")
        continue;
      ASSERT_FALSE(result) << at;
      const std::string &message = result.error().message;
      ASSERT_NE(message.find(fake.failedCall), std::string::npos)
          << at << ": " << message;
      bool isNccls = fake.failedCall.find("nccl") == 0;
      ASSERT_NE(message.find(isNccls ? "words of NCCL" : "words of the driver"),
                std::string::npos)
          << at << ": " << message;
    }
  for (const char *call : {"ncclGetUniqueId",
                           "ncclCommInitRankConfig",
                           "ncclCommGetAsyncError",
                           "ncclAllReduce",
                           "ncclAllGather",
                           "ncclReduceScatter",
                           "ncclBroadcast",
                           "ncclGroupStart",
                           "ncclSend",
                           "ncclRecv",
                           "ncclGroupEnd",
                           "ncclMemAlloc",
                           "ncclMemFree",
                           "ncclCommWindowRegister",
                           "ncclCommWindowDeregister",
                           "ncclCommFinalize",
                           "ncclCommDestroy",
                           "cuStreamBeginCaptureToGraph",
                           "cuStreamGetCaptureInfo",
                           "cuStreamEndCapture",
                           "cuGraphNodeGetDependencies",
                           "cuMemHostRegister"})
    EXPECT_TRUE(tried.count(call)) << call;
}

/// A sum of two ranks; rank 1 does what `other` says in place of a replay.
std::vector<std::string>
sumOfTwo(const std::function<void()> &other,
         const std::function<void(CudaOptions &)> &change) {
  freshRank();
  auto groups = groupsOf({firstDevices(2)});
  return forkRanks(2, [&](uint32_t rank) -> std::string {
    auto run = [&]() -> Result<void> {
      CudaOptions options = rankOptions(rank);
      change(options);
      MGPU_TRY_ASSIGN(auto driver, openRank(options));
      MGPU_TRY(driver->join(groups));
      DeviceId device{int32_t(rank)};
      MGPU_TRY_ASSIGN(std::byte * memory, driver->allocate(device, 256));
      CollectiveNodeParams params;
      params.name = "total";
      Box all{0, {64}, {4}, 4};
      params.members = {{{0}, memory, memory, all, all},
                        {{1}, memory, memory, all, all}};
      auto graph = driver->createGraph();
      MGPU_TRY(graph->addCollective(params, {}));
      MGPU_TRY_ASSIGN(auto exec, graph->instantiate());
      MGPU_TRY(exec->launch());
      if (rank == 1) {
        other();
        return {};
      }
      Result<void> ran = exec->launch();
      if (FakeNccl::instance().aborts != 1)
        return fail(ErrorKind::Internal, "nothing was aborted");
      if (Result<void> again = exec->launch(); again)
        return fail(ErrorKind::Internal, "it goes on");
      return ran;
    };
    Result<void> ran = run();
    return ran ? "" : ran.error().message;
  });
}

TEST(NcclFailure, ARankThatDoesNotTakePartIsGivenUp) {
  auto said = sumOfTwo([] { usleep(300'000); },
                       [](CudaOptions &options) {
                         options.deadline = std::chrono::milliseconds(200);
                       });
  EXPECT_NE(said[0].find("a replay on cuda:0 did not end within 200 ms"),
            std::string::npos)
      << said[0];
  EXPECT_NE(said[0].find("'total' among devices 0, 1 has not ended"),
            std::string::npos)
      << said[0];
}

TEST(NcclFailure, TheWatchEndsAReplay) {
  auto said = sumOfTwo([] { usleep(100'000); },
                       [](CudaOptions &options) {
                         auto from = std::make_shared<int>(0);
                         options.watch = [from]() -> Result<void> {
                           if (++*from < 500)
                             return {};
                           return fail(ErrorKind::Absent, "rank 1 is gone");
                         };
                       });
  EXPECT_NE(said[0].find("rank 1 is gone"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("'total' among devices 0, 1"), std::string::npos)
      << said[0];
}

TEST(NcclFailure, AnErrorNcclFindsItselfEndsAReplay) {
  auto said = sumOfTwo(
      [] {
        // What a rank that aborts does to the others.
        FakeWorld::instance().meetings[0].aborted = 1;
      },
      [](CudaOptions &) {});
  EXPECT_NE(said[0].find("words of NCCL (NCCL's code 6)"), std::string::npos)
      << said[0];
  EXPECT_NE(said[0].find("another rank ended"), std::string::npos) << said[0];
}

TEST(NcclFailure, ARankThatDoesNotComeIsGivenUp) {
  freshRank();
  auto groups = groupsOf({firstDevices(2)});
  CudaOptions options = rankOptions(0);
  options.deadline = std::chrono::milliseconds(100);
  auto driver = openRank(options);
  ASSERT_TRUE(driver) << driver.error().message;
  Result<void> joined = (*driver)->join(groups);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().kind, ErrorKind::Absent);
  EXPECT_NE(joined.error().message.find(
                "ncclCommInitRankConfig as rank 0 of 2 on cuda:0 did not end"),
            std::string::npos)
      << joined.error().message;
  driver->reset();
  EXPECT_EQ(rankComplaints(), "");
}

TEST(NcclFailure, WithMixingOnNothingIsJoined) {
  freshRank();
  auto groups = groupsOf({firstDevices(1)});
  auto driver = openRank(rankOptions(0));
  ASSERT_TRUE(driver);
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "1", 1);
  Result<void> joined = (*driver)->join(groups);
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().message.find("NCCL_GRAPH_MIXING_SUPPORT must be 0"),
            std::string::npos);
}

/// Were it on all the same, what NCCL adds is found in the graph.
TEST(NcclFailure, ANodeThatNothingWaitsForIsFound) {
  freshRank();
  auto groups = groupsOf({firstDevices(1)});
  auto driver = openRank(rankOptions(0));
  ASSERT_TRUE(driver);
  ASSERT_TRUE((*driver)->join(groups));
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "1", 1);
  auto memory = (*driver)->allocate({0}, 256);
  ASSERT_TRUE(memory);
  CollectiveNodeParams params;
  params.name = "total";
  Box low{0, {8}, {4}, 4}, high{64, {8}, {4}, 4};
  params.members = {{{0}, *memory, *memory, low, high}};
  auto graph = (*driver)->createGraph();
  ASSERT_TRUE(graph->addCollective(params, {}));
  auto exec = graph->instantiate();
  ASSERT_FALSE(exec);
  EXPECT_NE(exec.error().message.find("3 nodes, not 2"), std::string::npos)
      << exec.error().message;
}

TEST(NcclFailure, WhatNcclDoesNotHaveIsSaid) {
  freshRank();
  auto groups = groupsOf({firstDevices(1)});
  auto driver = openRank(rankOptions(0));
  ASSERT_TRUE(driver);
  ASSERT_TRUE((*driver)->join(groups));
  auto memory = (*driver)->allocate({0}, 256);
  auto graph = (*driver)->createGraph();
  for (ElementType type : {ElementType::I1, ElementType::I16}) {
    CollectiveNodeParams params;
    params.name = "total";
    params.elementType = type;
    Box all{0, {8}, {sizeBytes(type)}, sizeBytes(type)};
    params.members = {{{0}, *memory, *memory, all, all}};
    auto made = graph->addCollective(params, {});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, ErrorKind::Unsupported);
    EXPECT_EQ(made.error().message.find("node 'total': NCCL has no reduction "
                                        "of i"),
              0u)
        << made.error().message;
    // Moving it is another matter.
    params.kind = CollectiveKind::Broadcast;
    EXPECT_TRUE(graph->addCollective(params, {}));
  }
  EXPECT_TRUE(reductionTypeOf(ElementType::F8E5M2, 9));
  auto old = reductionTypeOf(ElementType::F8E5M2, 8);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().kind, ErrorKind::Unsupported);
  // Two ranks of a collective on one GPU.
  CollectiveNodeParams twice;
  twice.name = "twice";
  Box all{0, {8}, {4}, 4};
  twice.members = {{{0}, *memory, *memory, all, all},
                   {{0}, *memory, *memory, all, all}};
  auto made = graph->addCollective(twice, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Unsupported);
  // A device of another process.
  EXPECT_FALSE((*driver)->allocate({1}, 64));
}

TEST(NcclLibrary, IsFoundOrSaysWhatToInstall) {
  auto none = openNccl("libnccl-that-is-not-there.so");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Absent);
  EXPECT_NE(none.error().message.find("package libnccl2"), std::string::npos);
  auto nccl = openNccl();
  if (!nccl)
    GTEST_SKIP() << nccl.error().message;
  EXPECT_GE((*nccl)->version, 21400);
  EXPECT_EQ(ncclVersionText(22809), "2.28.9");
}

} // namespace
