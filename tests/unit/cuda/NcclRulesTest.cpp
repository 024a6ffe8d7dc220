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

TEST_F(NcclRules, MemoryIsTheCards) {
  NcclComm comm = join();
  sum(comm, 4096);
  expectViolation("on what is no memory of the card");
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
  EXPECT_EQ(cuda->cuStreamEndCapture(stream, &ended), CUDA_SUCCESS);
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

} // namespace
