// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The double keeps NCCL's rules: each broken once, by calls of its own.
#include "Ranks.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

class NcclRules : public testing::Test {
protected:
  void SetUp() override {
    setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
    freshMachine();
    FakeNccl::reset().polls = 0;
    FakeWorld::create();
    auto made = std::make_shared<CudaApi>(*FakeCuda::api());
    ASSERT_TRUE(initializeCuda(*made));
    cuda = made;
    nccl = FakeNccl::api();
    CUdevice device = 0;
    CUcontext context = nullptr;
    ASSERT_EQ(cuda->cuDeviceGet(&device, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuda->cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ASSERT_EQ(cuda->cuCtxPushCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(
        cuda->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
        CUDA_SUCCESS);
    ASSERT_EQ(cuda->cuMemAlloc(&memory, 256), CUDA_SUCCESS);
    ASSERT_EQ(cuda->cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  }

  /// A communicator of one rank, ready.
  NcclComm join() {
    NcclComm comm = nullptr;
    NcclId id;
    NcclConfig config;
    EXPECT_EQ(nccl->GetUniqueId(&id), NcclResult::Success);
    EXPECT_EQ(nccl->CommInitRankConfig(&comm, 1, id, 0, &config),
              NcclResult::InProgress);
    settle(comm);
    return comm;
  }
  void settle(NcclComm comm) {
    NcclResult state = NcclResult::InProgress;
    while (state == NcclResult::InProgress)
      ASSERT_EQ(nccl->CommGetAsyncError(comm, &state), NcclResult::Success);
  }
  NcclResult sum(NcclComm comm, uint64_t to = 64) {
    auto *at = reinterpret_cast<std::byte *>(uintptr_t(memory));
    return nccl->AllReduce(at, at + to, 8, NcclType::Float32,
                           NcclReduction::Sum, comm, stream);
  }
  void drain() {
    while (cuda->cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
      ;
  }
  void expectViolation(const std::string &words) {
    const auto &all = FakeCuda::instance().violations;
    ASSERT_FALSE(all.empty()) << words;
    EXPECT_NE(all.front().find(words), std::string::npos) << all.front();
  }

  std::shared_ptr<const CudaApi> cuda;
  std::shared_ptr<const NcclApi> nccl;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUgraph graph = nullptr;
};

TEST_F(NcclRules, WhatIsRightIsNotAViolation) {
  NcclComm comm = join();
  EXPECT_EQ(sum(comm), NcclResult::Success);
  drain();
  ASSERT_EQ(
      cuda->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_SUCCESS);
  EXPECT_EQ(sum(comm), NcclResult::Success);
  CUgraph ended = nullptr;
  ASSERT_EQ(cuda->cuStreamEndCapture(stream, &ended), CUDA_SUCCESS);
  EXPECT_EQ(ended, graph);
  EXPECT_EQ(FakeCuda::instance().builtTypes().size(), 1u);
  EXPECT_EQ(cuda->cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(nccl->CommFinalize(comm), NcclResult::InProgress);
  settle(comm);
  EXPECT_EQ(nccl->CommDestroy(comm), NcclResult::Success);
  EXPECT_TRUE(FakeCuda::instance().violations.empty())
      << FakeCuda::instance().violations.front();
}

/// Every value that the size covers, and which of two versions takes it.
TEST_F(NcclRules, EachValueOfAConfigIsChecked) {
  struct Case {
    void (*set)(NcclConfig &);
    bool before28, from28;
  };
  for (const Case &each :
       {Case{[](NcclConfig &) {}, true, true},
        Case{[](NcclConfig &c) { c.size = NcclConfig::headSize; }, true, true},
        Case{[](NcclConfig &c) { c.blocking = 2; }, false, false},
        Case{[](NcclConfig &c) { c.cgaClusterSize = -1; }, false, false},
        Case{[](NcclConfig &c) { c.minCtas = 2; }, false, false},
        Case{[](NcclConfig &c) { c.maxCtas = 2; }, true, true},
        Case{[](NcclConfig &c) { c.maxCtas = 0; }, false, false},
        Case{[](NcclConfig &c) { c.splitShare = 3; }, false, false},
        Case{[](NcclConfig &c) { c.collnetEnable = 3; }, false, false},
        Case{[](NcclConfig &c) { c.ctaPolicy = 2; }, false, true},
        Case{[](NcclConfig &c) { c.ctaPolicy = 3; }, false, false},
        Case{[](NcclConfig &c) { c.shrinkShare = 3; }, false, false},
        Case{[](NcclConfig &c) { c.nvlsCtas = 0; }, false, false},
        Case{[](NcclConfig &c) { c.nvlsCtas = 4; }, true, true},
        Case{[](NcclConfig &c) {
               c.nvlsCtas = 0;
               c.version = 22600;
             },
             true, true}})
    for (int version : {22707, 22809}) {
      FakeNccl::instance().version = version;
      NcclConfig config;
      config.size = sizeof config;
      config.version = NcclConfig::wholeVersion;
      each.set(config);
      NcclComm comm = nullptr;
      NcclId id;
      FakeWorld::create();
      ASSERT_EQ(nccl->GetUniqueId(&id), NcclResult::Success);
      EXPECT_EQ(nccl->CommInitRankConfig(&comm, 1, id, 0, &config),
                (version < 22800 ? each.before28 : each.from28)
                    ? NcclResult::InProgress
                    : NcclResult::InvalidArgument)
          << version << " " << config.nvlsCtas << " " << config.ctaPolicy;
    }
}

TEST_F(NcclRules, ConfigAndRankAreChecked) {
  NcclComm comm = nullptr;
  NcclId id;
  ASSERT_EQ(nccl->GetUniqueId(&id), NcclResult::Success);
  NcclConfig config;
  config.magic = 1;
  EXPECT_EQ(nccl->CommInitRankConfig(&comm, 1, id, 0, &config),
            NcclResult::InvalidArgument);
  NcclConfig good;
  EXPECT_EQ(nccl->CommInitRankConfig(&comm, 1, id, 1, &good),
            NcclResult::InvalidArgument);
  EXPECT_EQ(nccl->CommInitRankConfig(&comm, 2, id, 0, &good),
            NcclResult::InProgress);
  EXPECT_EQ(nccl->CommInitRankConfig(&comm, 2, id, 0, &good),
            NcclResult::InvalidUsage);
  CUcontext popped = nullptr;
  ASSERT_EQ(cuda->cuCtxPopCurrent(&popped), CUDA_SUCCESS);
  EXPECT_EQ(nccl->CommInitRankConfig(&comm, 2, id, 1, &good),
            NcclResult::UnhandledCudaError);
}

TEST_F(NcclRules, ACallIsCompleteBeforeTheNext) {
  NcclComm comm = join();
  FakeNccl::instance().polls = 1;
  EXPECT_EQ(sum(comm), NcclResult::InProgress);
  sum(comm);
  expectViolation("before the last call on the communicator was complete");
}

TEST_F(NcclRules, NothingIsCapturedFirst) {
  NcclComm comm = join();
  ASSERT_EQ(
      cuda->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_SUCCESS);
  sum(comm);
  expectViolation("the first ncclAllReduce of a communicator was captured");
}

TEST_F(NcclRules, GraphsGoBeforeCommunicators) {
  NcclComm comm = join();
  sum(comm);
  drain();
  ASSERT_EQ(
      cuda->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_SUCCESS);
  sum(comm);
  CUgraph ended = nullptr;
  ASSERT_EQ(cuda->cuStreamEndCapture(stream, &ended), CUDA_SUCCESS);
  nccl->CommDestroy(comm);
  expectViolation("ncclCommDestroy while a graph holds calls of it");
}

TEST_F(NcclRules, WhatIsAbortedIsNoMore) {
  NcclComm comm = join();
  EXPECT_EQ(nccl->CommAbort(comm), NcclResult::Success);
  EXPECT_EQ(sum(comm), NcclResult::InvalidArgument);
  expectViolation("on a communicator that is no more");
}

TEST_F(NcclRules, GroupsAreBegunBeforeTheyEnd) {
  EXPECT_EQ(nccl->GroupEnd(), NcclResult::InvalidUsage);
  expectViolation("ncclGroupEnd without ncclGroupStart");
}

TEST_F(NcclRules, AGroupIsCapturedAsAWholeOrNot) {
  NcclComm one = join(), two = join();
  CUstream other = nullptr;
  ASSERT_EQ(cuda->cuStreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(
      cuda->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_SUCCESS);
  auto *at = reinterpret_cast<std::byte *>(uintptr_t(memory));
  nccl->GroupStart();
  nccl->Send(at, 8, NcclType::Int8, 0, one, stream);
  nccl->Recv(at + 8, 8, NcclType::Int8, 0, one, stream);
  nccl->Send(at, 8, NcclType::Int8, 0, two, other);
  nccl->Recv(at + 8, 8, NcclType::Int8, 0, two, other);
  EXPECT_EQ(nccl->GroupEnd(), NcclResult::InvalidUsage);
}

TEST_F(NcclRules, EndsOverlapOnlyInPlace) {
  NcclComm comm = join();
  EXPECT_EQ(sum(comm, 0), NcclResult::Success);
  EXPECT_TRUE(FakeCuda::instance().violations.empty());
  drain();
  sum(comm, 4);
  expectViolation("ends that overlap");
}

TEST_F(NcclRules, MemoryIsTheGpus) {
  NcclComm comm = join();
  sum(comm, 4096);
  expectViolation("on what is not memory of the GPU");
}

TEST_F(NcclRules, RootsAndPeersAreRanks) {
  NcclComm comm = join();
  auto *at = reinterpret_cast<std::byte *>(uintptr_t(memory));
  EXPECT_EQ(nccl->Broadcast(at, at, 1, NcclType::Int8, 1, comm, stream),
            NcclResult::InvalidArgument);
  nccl->GroupStart();
  EXPECT_EQ(nccl->Send(at, 1, NcclType::Int8, 1, comm, stream),
            NcclResult::InvalidArgument);
  nccl->GroupEnd();
}

TEST_F(NcclRules, OtherCallsOfTheThreadAreNotCaptured) {
  ASSERT_EQ(
      cuda->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_SUCCESS);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuda->cuMemAlloc(&more, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuda->cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  EXPECT_NE(cuda->cuGraphInstantiateWithParams(&exec, graph, &params),
            CUDA_SUCCESS);
  CUgraph ended = nullptr;
  CUresult fromAnother = CUDA_SUCCESS;
  std::thread([&] {
    fromAnother = cuda->cuStreamEndCapture(stream, &ended);
  }).join();
  EXPECT_EQ(fromAnother, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  EXPECT_EQ(cuda->cuStreamEndCapture(stream, &ended),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

/// Two ranks that call different things find out.
TEST(NcclOrder, MustBeTheSameOnAllRanks) {
  freshMachine();
  FakeNccl::reset();
  FakeWorld::create();
  auto groups = groupsOf({firstDevices(2)});
  auto said = forkRanks(2, [&](uint32_t rank) -> std::string {
    CudaOptions options = rankOptions(rank);
    options.deadline = std::chrono::milliseconds(500);
    auto driver = openRank(options);
    if (!driver || !(*driver)->join(groups))
      return "cannot join";
    auto memory = (*driver)->allocate({int32_t(rank)}, 256);
    auto graph = (*driver)->createGraph();
    CollectiveNodeParams params;
    params.kind = rank ? CollectiveKind::AllReduce : CollectiveKind::AllGather;
    Box slice{0, {8}, {4}, 4}, whole{128, {16}, {4}, 4};
    for (int k = 0; k < 2; ++k)
      params.members.push_back(
          {{k}, *memory, *memory, slice, rank ? slice : whole});
    (void)graph->addCollective(params, {});
    const auto &violations = FakeCuda::instance().violations;
    return violations.empty() ? "" : violations.front();
  });
  EXPECT_NE((said[0] + said[1]).find("ranks differ: nccl"), std::string::npos)
      << said[0] << said[1];
}

/// A window of one rank, ready.
class NcclWindowRules : public NcclRules {
protected:
  static constexpr size_t bytes = 8192;
  void SetUp() override {
    NcclRules::SetUp();
    comm = join();
    ASSERT_EQ(nccl->MemAlloc(&mine, bytes), NcclResult::Success);
  }
  NcclResult makeWindow(void *at, size_t size, int flags = ncclSymmetric) {
    NcclResult code = nccl->CommWindowRegister(comm, at, size, &window, flags);
    if (code == NcclResult::InProgress)
      settle(comm);
    return code;
  }
  NcclResult sumOf(void *from, void *to) {
    return nccl->AllReduce(from, to, 8, NcclType::Float32, NcclReduction::Sum,
                           comm, stream);
  }
  void *at(size_t offset) { return static_cast<std::byte *>(mine) + offset; }
  void *plain(size_t offset) {
    return reinterpret_cast<std::byte *>(uintptr_t(memory)) + offset;
  }

  NcclComm comm = nullptr;
  void *mine = nullptr;
  NcclWindow window = nullptr;
};

TEST_F(NcclWindowRules, WhatIsRightIsNotAViolation) {
  EXPECT_EQ(makeWindow(mine, bytes), NcclResult::InProgress);
  EXPECT_NE(window, nullptr);
  EXPECT_EQ(sumOf(at(0), at(256)), NcclResult::Success);
  drain();
  EXPECT_EQ(sumOf(plain(0), plain(128)), NcclResult::Success);
  drain();
  EXPECT_EQ(nccl->CommWindowDeregister(comm, window), NcclResult::Success);
  EXPECT_EQ(nccl->CommFinalize(comm), NcclResult::InProgress);
  settle(comm);
  EXPECT_EQ(nccl->CommDestroy(comm), NcclResult::Success);
  EXPECT_EQ(nccl->MemFree(mine), NcclResult::Success);
  EXPECT_TRUE(FakeCuda::instance().violations.empty())
      << FakeCuda::instance().violations.front();
}

TEST_F(NcclWindowRules, OnlyMemoryOfNccls) {
  EXPECT_EQ(makeWindow(at(256), 256), NcclResult::InvalidArgument);
  EXPECT_EQ(makeWindow(mine, bytes + 1), NcclResult::InvalidUsage);
  EXPECT_EQ(makeWindow(mine, bytes, 4), NcclResult::InvalidArgument);
  CUdeviceptr other = 0;
  ASSERT_EQ(cuda->cuMemAlloc(&other, 3 * 4096), CUDA_SUCCESS);
  const auto page = uintptr_t(other + 4095) / 4096 * 4096;
  EXPECT_EQ(makeWindow(reinterpret_cast<void *>(page), 4096),
            NcclResult::InvalidUsage);
  EXPECT_EQ(nccl->CommWindowDeregister(comm, window),
            NcclResult::InvalidArgument);
  EXPECT_EQ(nccl->MemFree(plain(0)), NcclResult::InvalidArgument);
  expectViolation("ncclMemFree of what is not ncclMemAlloc's");
}

TEST_F(NcclWindowRules, BothEndsOrNone) {
  EXPECT_EQ(makeWindow(mine, bytes), NcclResult::InProgress);
  EXPECT_EQ(sumOf(at(0), plain(0)), NcclResult::Success);
  expectViolation("ncclAllReduce with one end in a window alone");
}

TEST_F(NcclWindowRules, MemoryIsRegisteredOnce) {
  EXPECT_EQ(makeWindow(mine, bytes), NcclResult::InProgress);
  EXPECT_EQ(makeWindow(mine, bytes), NcclResult::InProgress);
  expectViolation("a window registered more than once");
}

TEST_F(NcclWindowRules, MemoryIsFreedAfterIt) {
  EXPECT_EQ(makeWindow(mine, bytes), NcclResult::InProgress);
  EXPECT_EQ(nccl->MemFree(mine), NcclResult::Success);
  expectViolation("ncclMemFree of a window that is registered");
}

TEST_F(NcclWindowRules, ItEndsBeforeItsCommunicator) {
  EXPECT_EQ(makeWindow(mine, bytes), NcclResult::InProgress);
  EXPECT_EQ(nccl->CommFinalize(comm), NcclResult::InProgress);
  settle(comm);
  EXPECT_EQ(nccl->CommDestroy(comm), NcclResult::Success);
  expectViolation("ncclCommDestroy before its windows are deregistered");
}

TEST_F(NcclWindowRules, NotOutOfWhatAGraphHolds) {
  EXPECT_EQ(makeWindow(mine, bytes), NcclResult::InProgress);
  EXPECT_EQ(sumOf(at(0), at(256)), NcclResult::Success);
  drain();
  ASSERT_EQ(
      cuda->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_SUCCESS);
  EXPECT_EQ(sumOf(at(0), at(256)), NcclResult::Success);
  CUgraph captured = nullptr;
  ASSERT_EQ(cuda->cuStreamEndCapture(stream, &captured), CUDA_SUCCESS);
  EXPECT_EQ(nccl->CommWindowDeregister(comm, window), NcclResult::Success);
  expectViolation("ncclCommWindowDeregister while a graph holds calls");
}

/// Runs two ranks, the second with a window of this size and an end at this
/// place. Says what each did wrong.
std::vector<std::string> twoRanks(size_t bytesOfOther, size_t placeOfOther) {
  FakeWorld::create();
  freshMachine();
  auto groups = groupsOf({firstDevices(2)});
  return forkRanks(2, [&](uint32_t rank) -> std::string {
    freshMachine(rank);
    FakeNccl::reset();
    auto run = [&]() -> Result<void> {
      MGPU_TRY_ASSIGN(auto driver, openRank(rankOptions(rank)));
      auto nccl = FakeNccl::api();
      auto cuda = FakeCuda::api();
      CUcontext context = nullptr;
      CUdevice device = 0;
      cuda->cuDeviceGet(&device, 0);
      cuda->cuDevicePrimaryCtxRetain(&context, device);
      cuda->cuCtxPushCurrent(context);
      NcclId id;
      std::memcpy(&id, &groups[0].id, sizeof id);
      NcclConfig config;
      NcclComm comm = nullptr;
      auto settle = [&] {
        NcclResult state = NcclResult::InProgress;
        while (state == NcclResult::InProgress)
          nccl->CommGetAsyncError(comm, &state);
      };
      nccl->CommInitRankConfig(&comm, 2, id, int(rank), &config);
      settle();
      void *memory = nullptr;
      NcclWindow window = nullptr;
      nccl->MemAlloc(&memory, 16384);
      nccl->CommWindowRegister(comm, memory, rank ? bytesOfOther : 8192,
                               &window, ncclSymmetric);
      settle();
      CUstream stream = nullptr;
      cuda->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
      auto *at = static_cast<std::byte *>(memory) + (rank ? placeOfOther : 0);
      nccl->AllReduce(at, at, 8, NcclType::Float32, NcclReduction::Sum, comm,
                      stream);
      settle();
      while (cuda->cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
        ;
      return {};
    };
    if (Result<void> ok = run(); !ok)
      return ok.error().message;
    const auto &wrong = FakeCuda::instance().violations;
    return wrong.empty() ? "" : wrong.front();
  });
}

TEST(NcclWindowRanks, HaveWindowsOfOneSizeAndEndsAtEqualPlaces) {
  EXPECT_EQ(twoRanks(8192, 0), (std::vector<std::string>{"", ""}));
  std::string all;
  for (const std::string &said : twoRanks(4096, 0))
    all += said;
  EXPECT_NE(all.find("a window of another size than on other ranks"),
            std::string::npos)
      << all;
  all.clear();
  for (const std::string &said : twoRanks(8192, 256))
    all += said;
  EXPECT_NE(all.find("ranks differ"), std::string::npos) << all;
  EXPECT_NE(all.find("w0+256"), std::string::npos) << all;
}

} // namespace
