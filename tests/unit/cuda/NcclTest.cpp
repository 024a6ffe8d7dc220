// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives among GPUs: a process for each, and the bytes of the host
// target. Failures and NCCL's rules are in NcclFailureTest.cpp.
#include "Ranks.h"

#include "device/host/HostDriver.h"

#include <gtest/gtest.h>
#include <numeric>
#include <sys/mman.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

constexpr size_t memoryBytes = 8192;

struct Script {
  uint32_t ranks = 1;
  std::vector<std::vector<std::byte>> memories; ///< by device
  std::vector<std::vector<DeviceId>> groups;
  std::vector<CollectiveNodeParams> steps;
};

constexpr ElementType reducible[] = {
    ElementType::I8,    ElementType::I32, ElementType::I64,
    ElementType::Index, ElementType::F16, ElementType::BF16,
    ElementType::F32,   ElementType::F64, ElementType::F8E4M3FN,
    ElementType::F8E5M2};

Script randomScript(uint32_t ranks, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t n) { return int64_t(random() % n); };
  Script script;
  script.ranks = ranks;
  for (uint32_t k = 0; k < ranks; ++k) {
    auto &memory = script.memories.emplace_back(memoryBytes);
    for (std::byte &byte : memory)
      byte = std::byte(random());
  }
  script.groups = {firstDevices(ranks)};
  std::vector<DeviceId> other = firstDevices(ranks);
  std::shuffle(other.begin(), other.end(), random);
  script.groups.push_back(other);
  constexpr CollectiveKind kinds[] = {
      CollectiveKind::AllReduce,     CollectiveKind::AllGather,
      CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
      CollectiveKind::Broadcast,     CollectiveKind::SendRecv,
      CollectiveKind::Permute};
  for (int s = 0; s < 6; ++s) {
    CollectiveNodeParams params;
    params.name = "step " + std::to_string(s);
    params.kind = kinds[below(std::size(kinds))];
    params.reduction = ReductionKind(below(4));
    params.elementType = reducible[below(std::size(reducible))];
    bool reduces = params.kind == CollectiveKind::AllReduce ||
                   params.kind == CollectiveKind::ReduceScatter;
    if (!reduces)
      params.elementType = allElementTypes[below(std::size(allElementTypes))];
    std::vector<DeviceId> members = script.groups[size_t(below(2))];
    if (params.kind == CollectiveKind::SendRecv)
      members = {{int32_t(below(ranks))}, {int32_t(below(ranks))}};
    const auto n = int64_t(members.size());
    params.root = uint32_t(below(uint64_t(n)));
    if (params.kind == CollectiveKind::Permute) {
      std::vector<uint32_t> sources(n), targets(n);
      std::iota(sources.begin(), sources.end(), 0u);
      std::iota(targets.begin(), targets.end(), 0u);
      std::shuffle(sources.begin(), sources.end(), random);
      std::shuffle(targets.begin(), targets.end(), random);
      for (int64_t k = below(uint64_t(n) + 1); k > 0; --k)
        params.pairs.push_back(
            {sources[size_t(k) - 1], targets[size_t(k) - 1]});
    }
    const int64_t width = sizeBytes(params.elementType), slice = below(20);
    int64_t send = slice, recv = slice;
    bool isOwnSlice = below(2);
    if (params.kind == CollectiveKind::AllGather) {
      recv = n * slice;
      send = isOwnSlice ? recv : slice;
    } else if (params.kind == CollectiveKind::ReduceScatter) {
      send = n * slice;
    } else if (params.kind == CollectiveKind::AllToAll) {
      send = recv = n * slice;
    }
    // Somewhere in the memory, so that ends overlap now and then.
    auto box = [&](int64_t count) {
      int64_t stride = width * (below(3) == 0 ? 2 : 1);
      int64_t offset = below(4) == 0 ? below(800) : 8 * below(100);
      return Box{offset, {count}, {stride}, uint32_t(width)};
    };
    for (DeviceId device : members) {
      CollectiveMemberParams member;
      member.device = device;
      member.sendBox = box(send);
      member.recvBox =
          below(3) == 0 && send == recv ? member.sendBox : box(recv);
      // In place as NCCL means it.
      if (below(3) == 0 && params.kind == CollectiveKind::AllGather &&
          send != recv) {
        auto rank = int64_t(params.members.size());
        member.recvBox.strides = {width};
        member.sendBox = {member.recvBox.offset + rank * slice * width,
                          {send},
                          {width},
                          uint32_t(width)};
      }
      params.members.push_back(member);
    }
    script.steps.push_back(params);
  }
  return script;
}

/// The script's graph; memories are by device, null for those of others.
Result<std::unique_ptr<GraphExec>>
build(Driver &driver, const Script &script,
      const std::vector<std::byte *> &memories) {
  auto graph = driver.createGraph();
  std::vector<GraphNodeId> last;
  for (CollectiveNodeParams params : script.steps) {
    const auto part = driver.part();
    bool isMember = !part;
    for (CollectiveMemberParams &member : params.members) {
      member.send = member.recv = memories[size_t(member.device.value)];
      isMember |= part && part->holds(member.device);
    }
    if (!isMember)
      continue;
    MGPU_TRY_ASSIGN(GraphNodeId made, graph->addCollective(params, last));
    last = {made};
  }
  return graph->instantiate();
}

Result<void> runTwice(GraphExec &exec) {
  MGPU_TRY(exec.launch());
  std::vector<NodeTiming> timings;
  return exec.launchTimed(timings);
}

Result<void> copy(Driver &driver, DeviceId device, std::byte *to,
                  const std::byte *from) {
  auto graph = driver.createGraph();
  Box all = Box::flat(0, memoryBytes);
  MGPU_TRY(graph->addCopy({"copy", device, to, from, all, all}, {}));
  MGPU_TRY_ASSIGN(auto exec, graph->instantiate());
  return exec->launch();
}

/// The bytes of all devices on the host target.
Result<std::vector<std::vector<std::byte>>> expectedOf(const Script &script) {
  MGPU_TRY_ASSIGN(auto driver, createHostDriver(script.ranks, 1));
  std::vector<std::byte *> memories;
  for (uint32_t k = 0; k < script.ranks; ++k) {
    MGPU_TRY_ASSIGN(std::byte * memory,
                    driver->allocate({int32_t(k)}, memoryBytes));
    std::copy(script.memories[k].begin(), script.memories[k].end(), memory);
    memories.push_back(memory);
  }
  MGPU_TRY_ASSIGN(auto exec, build(*driver, script, memories));
  MGPU_TRY(runTwice(*exec));
  std::vector<std::vector<std::byte>> out;
  for (std::byte *memory : memories)
    out.emplace_back(memory, memory + memoryBytes);
  return out;
}

/// What rank `rank` says of its run; its bytes go to `result`.
std::string runRank(const Script &script,
                    const std::vector<DeviceGroup> &groups, uint32_t rank,
                    uint64_t seed, std::byte *result) {
  freshMachine(seed * 17 + rank);
  FakeNccl::reset();
  auto run = [&]() -> Result<void> {
    DeviceId device{int32_t(rank)};
    MGPU_TRY_ASSIGN(auto driver, openRank(rankOptions(rank)));
    MGPU_TRY(driver->join(groups));
    std::vector<std::byte *> memories(script.ranks);
    MGPU_TRY_ASSIGN(memories[rank], driver->allocate(device, memoryBytes));
    MGPU_TRY_ASSIGN(std::byte * host,
                    driver->allocate(DeviceId::host(), memoryBytes));
    // All of the graph is built before its memory holds anything: calls are
    // made once before they are captured.
    std::copy(script.memories[rank].begin(), script.memories[rank].end(), host);
    MGPU_TRY_ASSIGN(auto exec, build(*driver, script, memories));
    MGPU_TRY(copy(*driver, device, memories[rank], host));
    MGPU_TRY(runTwice(*exec));
    MGPU_TRY(copy(*driver, device, host, memories[rank]));
    std::copy(host, host + memoryBytes, result);
    return {};
  };
  Result<void> ran = run();
  return ran ? rankComplaints() : ran.error().message;
}

class NcclRanks : public testing::TestWithParam<uint32_t> {};

TEST_P(NcclRanks, GiveTheBytesOfTheHost) {
  const uint32_t ranks = GetParam();
  auto *results = static_cast<std::byte *>(
      mmap(nullptr, ranks * memoryBytes, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(results, MAP_FAILED);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Script script = randomScript(ranks, seed);
    auto expected = expectedOf(script);
    ASSERT_TRUE(expected) << expected.error().message;
    freshMachine();
    FakeNccl::reset();
    FakeWorld::create();
    auto groups = groupsOf(script.groups);
    auto said = forkRanks(ranks, [&](uint32_t rank) {
      return runRank(script, groups, rank, seed, results + rank * memoryBytes);
    });
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      ASSERT_EQ(said[rank], "") << "seed " << seed << " rank " << rank;
      for (size_t k = 0; k < memoryBytes; ++k)
        ASSERT_EQ((*expected)[rank][k], results[rank * memoryBytes + k])
            << "seed " << seed << " device " << rank << " byte " << k;
    }
  }
  munmap(results, ranks * memoryBytes);
}

INSTANTIATE_TEST_SUITE_P(Some, NcclRanks, testing::Values(1, 2, 3, 4));

} // namespace
