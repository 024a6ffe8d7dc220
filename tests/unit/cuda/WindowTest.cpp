// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arenas that are NCCL's symmetric windows, and the rules of those.
#include "Ranks.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

constexpr uint32_t ranks = 3;
constexpr int64_t count = 16;                       // of a slice
constexpr uint64_t slice = count * sizeof(int32_t); // bytes
constexpr uint64_t mostBytes = 8192;

/// Where rank `rank` sends from and receives at.
using Places = std::function<std::pair<uint64_t, uint64_t>(uint32_t rank)>;

Box wordsAt(uint64_t offset, int64_t words) {
  return {int64_t(offset), {words}, {4}, 4};
}

/// The ends of a collective of `kind` in every rank's arena, of which that of
/// rank `here` has an address.
CollectiveNodeParams paramsOf(CollectiveKind kind, uint32_t here,
                              std::byte *arena, const Places &places) {
  CollectiveNodeParams params;
  params.name = std::string(toString(kind));
  params.kind = kind;
  params.elementType = ElementType::I32;
  const bool isPair = kind == CollectiveKind::SendRecv;
  if (kind == CollectiveKind::Permute)
    params.pairs = {{0, 1}, {1, 2}, {2, 0}};
  for (uint32_t rank = 0; rank < (isPair ? 2 : ranks); ++rank) {
    const auto [send, recv] = places(rank);
    const int64_t all = count * ranks;
    CollectiveMemberParams member{{int32_t(rank)}, nullptr, nullptr, {}, {}};
    const bool isAll = kind == CollectiveKind::AllToAll;
    member.sendBox = wordsAt(
        0, isAll || kind == CollectiveKind::ReduceScatter ? all : count);
    member.recvBox =
        wordsAt(0, isAll || kind == CollectiveKind::AllGather ? all : count);
    if (!isPair || rank == 0)
      member.sendInArena = send;
    if (!isPair || rank == 1)
      member.recvInArena = recv;
    if (rank == here && member.sendInArena)
      member.send = arena + send;
    if (rank == here && member.recvInArena)
      member.recv = arena + recv;
    params.members.push_back(std::move(member));
  }
  return params;
}

/// What rank `rank` has to send as its word `k`.
int32_t wordOf(uint32_t rank, int64_t k) {
  return int32_t(100 * rank) + int32_t(k);
}
/// What it then has as its word `k`.
int32_t resultOf(CollectiveKind kind, uint32_t rank, int64_t k) {
  const auto peer = uint32_t(k / count);
  int32_t sum = 0;
  switch (kind) {
  case CollectiveKind::AllReduce:
    for (uint32_t each = 0; each < ranks; ++each)
      sum += wordOf(each, k);
    return sum;
  case CollectiveKind::ReduceScatter:
    for (uint32_t each = 0; each < ranks; ++each)
      sum += wordOf(each, rank * count + k);
    return sum;
  case CollectiveKind::AllGather:
    return wordOf(peer, k % count);
  case CollectiveKind::AllToAll:
    return wordOf(peer, rank * count + k % count);
  case CollectiveKind::Permute:
    return wordOf((rank + ranks - 1) % ranks, k);
  default: // of rank 0
    return wordOf(0, k);
  }
}

/// Runs one collective on every rank; what they have to complain of, and else
/// how many kernels of the target's own it took beside NCCL's.
std::vector<std::string> run(CollectiveKind kind, const Places &places) {
  FakeWorld::create();
  freshMachine();
  auto groups = groupsOf({firstDevices(ranks)});
  return forkRanks(ranks, [&](uint32_t rank) -> std::string {
    auto runRank = [&]() -> Result<std::string> {
      freshMachine(rank);
      FakeNccl::reset();
      CudaOptions options = rankOptions(rank);
      options.nccl.windows = true;
      MGPU_TRY_ASSIGN(auto driver, openRank(options));
      MGPU_TRY(driver->join(groups));
      const DeviceId here{int32_t(rank)};
      // Arenas differ in size from rank to rank; what is registered does not.
      MGPU_TRY_ASSIGN(
          std::byte * arena,
          driver->allocateArena(here, mostBytes - 512 * rank, mostBytes));
      for (uint64_t k = 0; k < mostBytes - 512 * rank; ++k)
        if (arena[k] != std::byte(0))
          return "not zero";
      CollectiveNodeParams params = paramsOf(kind, rank, arena, places);
      const bool takesPart = rank < params.members.size();
      auto graph = driver->createGraph();
      if (takesPart)
        MGPU_TRY(graph->addCollective(params, {}));
      MGPU_TRY_ASSIGN(auto exec, graph->instantiate());
      size_t kernels = 0;
      if (takesPart)
        for (const auto &node : FakeCuda::instance().graphs.youngest()->nodes)
          kernels += node->params.type != CU_GRAPH_NODE_TYPE_EMPTY &&
                     !isMark(*node) && !node->owner;
      for (int replay = 0; replay < 2; ++replay) {
        // In place a replay leaves something else there; as does the first call
        // of its kind, before the graph.
        if (takesPart && params.members[rank].send)
          for (int64_t k = 0; k < count * ranks; ++k)
            reinterpret_cast<int32_t *>(const_cast<std::byte *>(
                params.members[rank].send))[k] = wordOf(rank, k);
        MGPU_TRY(exec->launch());
      }
      if (takesPart && params.members[rank].recv) {
        const int64_t words = params.members[rank].recvBox.sizes[0];
        for (int64_t k = 0; k < words; ++k)
          if (reinterpret_cast<int32_t *>(params.members[rank].recv)[k] !=
              resultOf(kind, rank, k))
            return "word " + std::to_string(k) + " is wrong";
      }
      exec.reset();
      graph.reset();
      driver.reset();
      return std::to_string(kernels);
    };
    auto said = runRank();
    if (!said)
      return said.error().message;
    std::string wrong = rankComplaints();
    if (!FakeNccl::instance().memory.empty())
      wrong = "left: memory of NCCL's";
    return wrong.empty() ? *said : wrong;
  });
}

constexpr CollectiveKind kinds[] = {
    CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
    CollectiveKind::AllGather, CollectiveKind::AllToAll,
    CollectiveKind::Broadcast, CollectiveKind::SendRecv,
    CollectiveKind::Permute};

/// At equal places: NCCL takes and puts everything in the windows.
TEST(NcclWindows, CallsWithEqualPlacesGoThroughThem) {
  for (CollectiveKind kind : kinds)
    for (const std::string &said : run(kind, [](uint32_t) {
           return std::pair<uint64_t, uint64_t>(0, 1024);
         }))
      EXPECT_EQ(said, "0") << toString(kind);
}

/// Where NCCL calls it in place: the slice of its own that each rank has.
TEST(NcclWindows, SoDoSlicesInPlace) {
  for (const std::string &said :
       run(CollectiveKind::AllGather, [](uint32_t rank) {
         return std::pair<uint64_t, uint64_t>(512 + rank * slice, 512);
       }))
    EXPECT_EQ(said, "0");
  for (const std::string &said :
       run(CollectiveKind::ReduceScatter, [](uint32_t rank) {
         return std::pair<uint64_t, uint64_t>(512, 512 + rank * slice);
       }))
    EXPECT_EQ(said, "0");
}

/// At other places on each rank: by way of memory that is in no window. A send
/// and its recv may each be where they like, and so in a permute.
TEST(NcclWindows, CallsWithOtherPlacesGoAroundThem) {
  for (CollectiveKind kind : kinds) {
    const bool isPair =
        kind == CollectiveKind::SendRecv || kind == CollectiveKind::Permute;
    for (const std::string &said : run(kind, [](uint32_t rank) {
           return std::pair<uint64_t, uint64_t>(256 * rank, 1024 + 256 * rank);
         })) {
      // A number: nothing was wrong.
      EXPECT_EQ(said.find_first_not_of("0123456789"), std::string::npos)
          << toString(kind) << ": " << said;
      EXPECT_EQ(said == "0", isPair) << toString(kind);
    }
  }
}

/// NCCL has no group in place, so a permute that is goes around them as well,
/// on every rank.
TEST(NcclWindows, PermutesInPlaceGoAroundThem) {
  for (const std::string &said : run(CollectiveKind::Permute, [](uint32_t r) {
         return std::pair<uint64_t, uint64_t>(512, r == 1 ? 512 : 1024);
       }))
    EXPECT_EQ(said, "2");
}

TEST(NcclWindows, OldLibrariesAreRefusedAndOthersSaidToHaveNone) {
  for (int version : {22600, 22700}) {
    FakeWorld::create();
    freshMachine();
    FakeNccl::reset().version = version;
    setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
    CudaOptions options = rankOptions(0);
    options.nccl.windows = true;
    std::vector<std::string> warnings;
    options.warn = [&](const std::string &text) { warnings.push_back(text); };
    auto driver = openRank(options);
    ASSERT_TRUE(driver) << driver.error().message;
    auto early = (*driver)->allocateArena({0}, 64, 64);
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().kind, ErrorKind::Usage);
    Result<void> ok = (*driver)->join(groupsOf({firstDevices(1)}));
    if (version < 22700) {
      ASSERT_FALSE(ok);
      EXPECT_EQ(ok.error().kind, ErrorKind::Absent);
      EXPECT_NE(ok.error().message.find("NCCL 2.26.0 has no windows"),
                std::string::npos)
          << ok.error().message;
      continue;
    }
    ASSERT_TRUE(ok) << ok.error().message;
    FakeNccl::instance().hasNoWindows = true;
    EXPECT_TRUE((*driver)->allocateArena({0}, 64, 64));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("registers no windows"), std::string::npos);
    driver->reset();
    EXPECT_EQ(rankComplaints(), "");
  }
}

/// NCCL's kernels over windows are launched so that they may begin before a
/// kernel in front of them has ended: the plan's.
TEST(NcclWindows, TheirKernelsBeginBehindAKernelOfOurs) {
  uint64_t began = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FakeWorld::create();
    FakeCuda &fake = freshMachine(seed);
    FakeNccl::reset();
    fake.kernels["fill"].parameterSizes = {8};
    fake.kernels["fill"].run = [](void **parameters, const unsigned *,
                                  const unsigned *) {
      for (int32_t k = 0; k < count; ++k)
        (*static_cast<int32_t **>(parameters[0]))[k] = wordOf(1, k);
    };
    CudaOptions options = rankOptions(0);
    options.nccl.windows = true;
    auto driver = openRank(options);
    ASSERT_TRUE(driver) << driver.error().message;
    ASSERT_TRUE((*driver)->join(groupsOf({firstDevices(1)})));
    auto arena = (*driver)->allocateArena({0}, mostBytes, mostBytes);
    ASSERT_TRUE(arena) << arena.error().message;
    kernels::KernelImage object;
    object.entry = "fill";
    object.arch = "sm_90";
    object.takesPart = false;
    object.sourceBlock = object.block = object.covers = {1, 1, 1};
    object.setBytes(fakeCubin({"fill"}));
    auto kernel = (*driver)->loadKernel("fill", kernels::encodeImage(object));
    ASSERT_TRUE(kernel) << kernel.error().message;
    auto graph = (*driver)->createGraph();
    auto filled = graph->addKernel(
        {"fill", {0}, *kernel, {1, 1, 1}, {uintptr_t(*arena)}}, {});
    ASSERT_TRUE(filled) << filled.error().message;
    CollectiveNodeParams params =
        paramsOf(CollectiveKind::AllReduce, 0, *arena, [](uint32_t) {
          return std::pair<uint64_t, uint64_t>(0, 1024);
        });
    params.members.resize(1);
    auto added = graph->addCollective(params, {{*filled}});
    ASSERT_TRUE(added) << added.error().message;
    auto exec = graph->instantiate();
    ASSERT_TRUE(exec) << exec.error().message;
    fake.earlyBegins = 0;
    ASSERT_TRUE((*exec)->launch());
    for (int32_t k = 0; k < count; ++k)
      EXPECT_EQ(reinterpret_cast<int32_t *>(*arena + 1024)[k], wordOf(1, k));
    began += fake.earlyBegins;
    exec->reset();
    graph.reset();
    driver->reset();
    EXPECT_EQ(rankComplaints(), "");
  }
  EXPECT_GT(began, 3u);
}

/// Without the setting nothing of this is called.
TEST(NcclWindows, AreNotMadeUnasked) {
  FakeWorld::create();
  freshMachine();
  FakeNccl::reset();
  auto driver = openRank(rankOptions(0));
  ASSERT_TRUE(driver) << driver.error().message;
  ASSERT_TRUE((*driver)->join(groupsOf({firstDevices(1)})));
  ASSERT_TRUE((*driver)->allocateArena({0}, 64, 8192));
  EXPECT_TRUE(FakeNccl::instance().memory.empty());
  EXPECT_EQ(FakeCuda::instance().deviceMemory.begin()->second.bytes, 64u);
}

TEST(NcclWindows, OutOfMemorySaysOfWhat) {
  FakeWorld::create();
  freshMachine();
  FakeNccl::reset();
  CudaOptions options = rankOptions(0);
  options.nccl.windows = true;
  auto driver = openRank(options);
  ASSERT_TRUE(driver) << driver.error().message;
  ASSERT_TRUE((*driver)->join(groupsOf({firstDevices(1)})));
  auto much = (*driver)->allocateArena({0}, 1, uint64_t(1) << 30);
  ASSERT_FALSE(much);
  EXPECT_NE(much.error().message.find(
                "ncclMemAlloc of 1073741824 bytes for a GPU's arena"),
            std::string::npos)
      << much.error().message;
  driver->reset();
  EXPECT_EQ(rankComplaints(), "");
}

} // namespace
