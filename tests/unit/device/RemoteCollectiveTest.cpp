// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random collectives whose members are in several processes, here threads that
// share nothing but sockets, give the bits of Collective in one process,
// wherever sends and receives lie and overlap.
#include "device/host/RemoteCollective.h"
#include "device/tcp/TcpChannel.h"

#include "tests/unit/Sweep.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace mgpu::device {
namespace {

using Random = std::mt19937_64;

int64_t below(Random &random, int64_t limit) {
  return int64_t(random() % uint64_t(limit));
}

/// Rows of so many columns, with gaps or without, from either end.
Box randomBox(Random &random, int64_t rows, int64_t columns, uint32_t width) {
  const int64_t pitch = (columns + below(random, 2) * 3) * width;
  Box box{16, {rows, columns}, {pitch, width}, width};
  if (rows > 0 && below(random, 4) == 0) {
    box.offset += (rows - 1) * pitch;
    box.strides[0] = -pitch;
  }
  return box;
}

struct RandomCase {
  CollectiveNodeParams params;  ///< without addresses
  std::vector<Bytes> memories;  ///< of each member, for its send and receive
  std::vector<uint32_t> shares; ///< members of each process

  RandomCase(uint64_t seed, uint32_t numProcesses) {
    Random random(seed);
    params.name = "case " + std::to_string(seed);
    params.kind = CollectiveKind(below(random, 7));
    params.reduction = ReductionKind(below(random, 4));
    const ElementType types[] = {ElementType::F32, ElementType::I64,
                                 ElementType::BF16, ElementType::F16,
                                 ElementType::I8};
    params.elementType = types[below(random, 5)];
    const bool isPair = params.kind == CollectiveKind::SendRecv;
    const auto n = isPair ? 2 : uint32_t(1 + below(random, 6));
    params.root = uint32_t(below(random, n));
    if (params.kind == CollectiveKind::Permute)
      for (uint32_t shift = uint32_t(below(random, n)), k = 0; k < n; ++k)
        if (below(random, 3) > 0)
          params.pairs.push_back({k, (k + shift) % n});
    const int64_t some[] = {0, 1, 5, 701, 700, 40'000, 40'003};
    const int64_t columns = some[below(random, 7)];
    const bool isSmall = params.kind == CollectiveKind::AllGather &&
                         below(random, 2) == 0; // not the form in place
    const bool scatters = params.kind == CollectiveKind::ReduceScatter;
    for (uint32_t k = 0; k < n; ++k)
      addMember(random, k, isSmall ? 1 : n, scatters ? 1 : n, columns);
    shares.resize(numProcesses);
    for (uint32_t k = 0; k < n; ++k)
      ++shares[size_t(below(random, numProcesses))];
  }

  void addMember(Random &random, uint32_t k, int64_t sendRows, int64_t recvRows,
                 int64_t columns) {
    const uint32_t width = sizeBytes(params.elementType);
    CollectiveMemberParams member;
    member.device = DeviceId{int32_t(k)};
    member.sendBox = randomBox(random, sendRows, columns, width);
    member.recvBox = randomBox(random, recvRows, columns, width);
    switch (below(random, 4)) {
    case 0: // the same place, as far as the two are alike
      break;
    case 1: // some elements further
      member.recvBox.offset += below(random, 1 + 2 * columns) * width;
      break;
    case 2: // slice k of what is sent, or sends slice k of what it gets
      (sendRows == 1 ? member.sendBox : member.recvBox).offset +=
          k * columns * width;
      break;
    default: // apart
      member.recvBox.offset += member.sendBox.byteRange().second;
    }
    Bytes &memory = memories.emplace_back(size_t(std::max(
        member.sendBox.byteRange().second, member.recvBox.byteRange().second)));
    for (size_t at = 0; at + width <= memory.size(); at += width)
      fill(random, memory.data() + at);
    params.members.push_back(member);
  }

  /// Sums of these differ with their order.
  void fill(Random &random, std::byte *at) const {
    const float value = float(below(random, 20001) - 10000) / 7;
    const int64_t whole = int64_t(random());
    // Its sign is any, and its size between 2^-9 and 2^2.
    const uint16_t half =
        uint16_t((whole & 0x83ff) | int64_t(6 + uint64_t(whole) % 11) << 10);
    switch (params.elementType) {
    case ElementType::F32:
      std::memcpy(at, &value, 4);
      break;
    case ElementType::BF16:
      std::memcpy(at, reinterpret_cast<const char *>(&value) + 2, 2);
      break;
    case ElementType::F16:
      std::memcpy(at, &half, 2);
      break;
    default:
      std::memcpy(at, &whole, sizeBytes(params.elementType));
    }
  }

  /// What the memories are afterwards in one process.
  std::vector<Bytes> alone() const {
    std::vector<Bytes> after = memories;
    CollectiveNodeParams all = params;
    for (size_t k = 0; k < after.size(); ++k)
      all.members[k].send = all.members[k].recv = after[k].data();
    auto collective = Collective::create(all);
    EXPECT_TRUE(collective) << collective.error().message;
    (*collective)->run();
    return after;
  }

  void checkProcess(MessageRendezvous &others) const {
    const HostPart part = hostPart(shares, others);
    std::vector<Bytes> mine = memories;
    CollectiveNodeParams here = params;
    bool takesPart = false;
    for (size_t k = 0; k < mine.size(); ++k)
      if (part.here.holds(here.members[k].device)) {
        here.members[k].send = here.members[k].recv = mine[k].data();
        takesPart = true;
      }
    if (!takesPart)
      return;
    auto remote = RemoteCollective::create(here, part);
    ASSERT_TRUE(remote) << params.name << remote.error().message;
    const auto done = (*remote)->run();
    ASSERT_TRUE(done) << params.name << done.error().message;
    const std::vector<Bytes> expected = alone();
    for (size_t k = 0; k < mine.size(); ++k)
      if (part.here.holds(here.members[k].device))
        EXPECT_EQ(mine[k], expected[k])
            << params.name << " of " << shares.size()
            << " processes: " << toString(params.kind) << ", member " << k;
  }
};

TEST(RemoteCollective, GivesTheBitsOfOneProcess) {
  const uint64_t numCases = sweep(100, 5000);
  for (uint32_t count : {2u, 3u, 4u}) {
    auto listening = listenOn(loopbackAt(0));
    ASSERT_TRUE(listening);
    const uint16_t port = localOf(*listening).port();
    *listening = {};
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] {
        const std::chrono::seconds deadline(60);
        auto channel = joinByTcp({rank, count, "127.0.0.1", port}, deadline);
        ASSERT_TRUE(channel) << channel.error().message;
        MessageRendezvous others(std::move(*channel), deadline);
        for (uint64_t seed = 0; seed < numCases; ++seed)
          RandomCase(seed * 8 + count, count).checkProcess(others);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
}

} // namespace
} // namespace mgpu::device
