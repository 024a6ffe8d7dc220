// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Each collective against its definition on int64 and f32 values that are
// exact, with contiguous and strided boxes, in place and apart.

#include "device/host/HostCollective.h"
#include "device/host/HostDriver.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace {

using namespace mgpu;
using namespace mgpu::device;

using Values = std::vector<int64_t>;

/// One rank's side: memory with a box in it, and guards around its elements.
struct Side {
  std::vector<int64_t> memory;
  Box box;

  std::vector<size_t> indices() const {
    std::vector<size_t> out;
    for (int64_t i = 0; i < box.sizes[0]; ++i)
      for (int64_t j = 0; j < box.sizes[1]; ++j)
        out.push_back(
            size_t((box.offset + i * box.strides[0] + j * box.strides[1]) / 8));
    return out;
  }
  Values values() const {
    Values out;
    for (size_t index : indices())
      out.push_back(memory[index]);
    return out;
  }
  std::byte *data() { return reinterpret_cast<std::byte *>(memory.data()); }
};

enum class Layout { Packed, Strided, Reversed };

Side makeSide(int64_t rows, int64_t columns, Layout layout, int64_t seed) {
  Side side;
  int64_t pitch = layout == Layout::Packed ? columns : columns + 3;
  side.memory.assign(size_t(rows * pitch + 8), -777);
  side.box = Box{16, {rows, columns}, {pitch * 8, 8}, 8};
  if (layout == Layout::Reversed && rows > 0) {
    side.box.offset += (rows - 1) * pitch * 8;
    side.box.strides[0] = -pitch * 8;
  }
  int64_t k = 0;
  for (size_t index : side.indices())
    side.memory[index] = (seed * 31 + k++ * 7) % 101 - 50;
  return side;
}

int64_t combine(ReductionKind kind, int64_t a, int64_t b) {
  switch (kind) {
  case ReductionKind::Sum:
    return a + b;
  case ReductionKind::Prod:
    return int64_t(uint64_t(a) * uint64_t(b));
  case ReductionKind::Min:
    return std::min(a, b);
  case ReductionKind::Max:
    return std::max(a, b);
  }
  return 0;
}

/// What each rank must hold afterwards.
std::vector<Values> reference(const CollectiveNodeParams &params,
                              const std::vector<Values> &sends,
                              const std::vector<Values> &recvs) {
  size_t n = sends.size();
  std::vector<Values> out = recvs;
  auto slice = [n](const Values &all, size_t k) {
    size_t count = all.size() / n;
    return Values(all.begin() + k * count, all.begin() + (k + 1) * count);
  };
  auto append = [](Values &to, const Values &from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  Values reduced = sends[0];
  for (size_t r = 1; r < n; ++r)
    for (size_t k = 0; k < std::min(reduced.size(), sends[r].size()); ++k)
      reduced[k] = combine(params.reduction, reduced[k], sends[r][k]);
  for (size_t i = 0; i < n; ++i) {
    Values gathered;
    switch (params.kind) {
    case CollectiveKind::AllReduce:
      out[i] = reduced;
      break;
    case CollectiveKind::ReduceScatter:
      out[i] = slice(reduced, i);
      break;
    case CollectiveKind::AllGather:
      for (size_t r = 0; r < n; ++r)
        append(gathered, sends[r].size() == recvs[r].size() ? slice(sends[r], r)
                                                            : sends[r]);
      out[i] = gathered;
      break;
    case CollectiveKind::AllToAll:
      for (size_t r = 0; r < n; ++r)
        append(gathered, slice(sends[r], i));
      out[i] = gathered;
      break;
    case CollectiveKind::Broadcast:
      out[i] = sends[params.root];
      break;
    case CollectiveKind::SendRecv:
      if (i == 1)
        out[i] = sends[0];
      break;
    case CollectiveKind::Permute:
      out[i].assign(recvs[i].size(), 0);
      for (const RankPair &pair : params.pairs)
        if (pair.target == i)
          out[i] = sends[pair.source];
      break;
    }
  }
  return out;
}

/// The pairs of a case: 0 has none, 1 is a shift, 2 goes all around, in 3 the
/// first rank sends to itself and the next two swap.
std::vector<RankPair> somePairs(uint32_t n, uint32_t which) {
  std::vector<RankPair> pairs;
  if (which == 1 || which == 2)
    for (uint32_t r = 0; r < n; ++r)
      if (which == 2 || r + 1 < n)
        pairs.push_back({r, (r + 1) % n});
  if (which == 3) {
    pairs.push_back({0, 0});
    if (n > 2) {
      pairs.push_back({1, 2});
      pairs.push_back({2, 1});
    }
  }
  return pairs;
}

using Case = std::tuple<CollectiveKind, uint32_t, Layout, Layout, bool>;
class Collectives : public testing::TestWithParam<Case> {};

TEST_P(Collectives, MatchesItsDefinition) {
  auto [kind, n, sendLayout, recvLayout, inPlace] = GetParam();
  bool gathers = kind == CollectiveKind::AllGather;
  bool scatters = kind == CollectiveKind::ReduceScatter;
  // 0 and odd columns; the last is larger than one chunk of the reduction.
  for (int64_t columns : {0, 1, 5, 2111})
    for (int reduction = 0; reduction < 4; ++reduction) {
      CollectiveNodeParams params;
      params.kind = kind;
      params.reduction = ReductionKind(reduction);
      params.elementType = ElementType::I64;
      params.root = n - 1;
      if (kind == CollectiveKind::Permute)
        params.pairs = somePairs(n, uint32_t(reduction));
      int64_t sendRows = gathers && !inPlace ? 1 : n;
      int64_t recvRows = scatters ? 1 : n;
      std::vector<Side> sends, recvs;
      for (uint32_t r = 0; r < n; ++r) {
        sends.push_back(makeSide(sendRows, columns, sendLayout, r + 1));
        recvs.push_back(makeSide(recvRows, columns, recvLayout, r + 50));
      }
      for (uint32_t r = 0; r < n; ++r) {
        // In place: the send's own memory, for reduce_scatter its slice r.
        Side &target = inPlace ? sends[r] : recvs[r];
        Box recvBox = target.box;
        if (inPlace && scatters) {
          recvBox.sizes[0] = 1;
          recvBox.offset += r * recvBox.strides[0];
        }
        params.members.push_back({{int32_t(r)},
                                  sends[r].data(),
                                  target.data(),
                                  sends[r].box,
                                  recvBox});
      }
      std::vector<Values> sent, before;
      for (uint32_t r = 0; r < n; ++r) {
        sent.push_back(sends[r].values());
        Side view = inPlace ? sends[r] : recvs[r];
        view.box = params.members[r].recvBox;
        before.push_back(view.values());
      }
      auto expected = reference(params, sent, before);
      auto sendsBefore = sends, recvsBefore = recvs;
      auto collective = Collective::create(params);
      ASSERT_TRUE(collective) << collective.error().message;
      (*collective)->run();
      for (uint32_t r = 0; r < n; ++r) {
        Side &after = inPlace ? sends[r] : recvs[r];
        Side wanted = inPlace ? sendsBefore[r] : recvsBefore[r];
        wanted.box = params.members[r].recvBox;
        size_t k = 0;
        for (size_t index : wanted.indices())
          wanted.memory[index] = expected[r][k++];
        ASSERT_EQ(after.memory, wanted.memory)
            << toString(kind) << " rank " << r << " columns " << columns;
        if (!inPlace) {
          ASSERT_EQ(sends[r].memory, sendsBefore[r].memory);
        }
      }
    }
}

const auto layouts =
    testing::Values(Layout::Packed, Layout::Strided, Layout::Reversed);

INSTANTIATE_TEST_SUITE_P(
    All, Collectives,
    testing::Combine(
        testing::Values(CollectiveKind::AllReduce, CollectiveKind::AllGather,
                        CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
                        CollectiveKind::Broadcast, CollectiveKind::Permute),
        testing::Values(1u, 2u, 3u, 4u), layouts, layouts, testing::Bool()));

INSTANTIATE_TEST_SUITE_P(
    Pairs, Collectives,
    testing::Combine(testing::Values(CollectiveKind::SendRecv),
                     testing::Values(2u), layouts, layouts, testing::Bool()));

TEST(Collective, AllGatherIntoABufferThatHoldsTheSend) {
  // NCCL's in-place form: send is slice r of recv.
  constexpr uint32_t n = 3, count = 4;
  std::vector<int64_t> memory[n];
  CollectiveNodeParams params;
  params.kind = CollectiveKind::AllGather;
  params.elementType = ElementType::I64;
  for (uint32_t r = 0; r < n; ++r) {
    memory[r].assign(n * count, -1);
    for (uint32_t k = 0; k < count; ++k)
      memory[r][r * count + k] = 100 * r + k;
    auto *base = reinterpret_cast<std::byte *>(memory[r].data());
    params.members.push_back({{int32_t(r)},
                              base,
                              base,
                              Box{r * count * 8, {count}, {8}, 8},
                              Box{0, {n * count}, {8}, 8}});
  }
  auto collective = Collective::create(params);
  ASSERT_TRUE(collective) << collective.error().message;
  (*collective)->run();
  for (uint32_t r = 0; r < n; ++r)
    for (uint32_t k = 0; k < n * count; ++k)
      EXPECT_EQ(memory[r][k], int64_t(100 * (k / count) + k % count));
}

TEST(Collective, ReceivesThatOverlapOtherSendsReadThemFirst) {
  // recv of rank 0 is the send of rank 1, shifted by one element.
  float a[8], b[9];
  for (int k = 0; k < 8; ++k)
    a[k] = float(k), b[k] = float(10 * k);
  b[8] = -1;
  CollectiveNodeParams params;
  params.elementType = ElementType::F32;
  Box box{0, {8}, {4}, 4}, shifted{4, {8}, {4}, 4};
  auto *pa = reinterpret_cast<std::byte *>(a);
  auto *pb = reinterpret_cast<std::byte *>(b);
  params.members = {{{0}, pa, pb, box, shifted}, {{1}, pb, pa, box, box}};
  auto collective = Collective::create(params);
  ASSERT_TRUE(collective);
  (*collective)->run();
  for (int k = 0; k < 8; ++k) {
    EXPECT_EQ(a[k], float(11 * k));
    EXPECT_EQ(b[k + 1], float(11 * k));
  }
}

TEST(Collective, RankOrderIsTheOrderOfAddition) {
  // (1e30 + -1e30) + 1 = 1, any other order loses the 1.
  float values[3] = {1e30f, -1e30f, 1.0f}, result[3] = {};
  CollectiveNodeParams params;
  params.elementType = ElementType::F32;
  for (int r = 0; r < 3; ++r)
    params.members.push_back({{r},
                              reinterpret_cast<std::byte *>(&values[r]),
                              reinterpret_cast<std::byte *>(&result[r]),
                              Box{0, {1}, {4}, 4},
                              Box{0, {1}, {4}, 4}});
  auto collective = Collective::create(params);
  ASSERT_TRUE(collective);
  (*collective)->run();
  for (float sum : result)
    EXPECT_EQ(sum, 1.0f);
}

TEST(Collective, RejectsWhatDoesNotFit) {
  int64_t memory[16] = {};
  auto *base = reinterpret_cast<std::byte *>(memory);
  auto member = [&](int64_t send, int64_t recv) {
    return CollectiveMemberParams{
        {0}, base, base + 64, Box{0, {send}, {8}, 8}, Box{0, {recv}, {8}, 8}};
  };
  auto kindOf = [&](CollectiveKind kind,
                    std::vector<CollectiveMemberParams> members,
                    uint32_t root = 0, std::vector<RankPair> pairs = {}) {
    CollectiveNodeParams params;
    params.kind = kind;
    params.elementType = ElementType::I64;
    params.root = root;
    params.pairs = std::move(pairs);
    params.members = std::move(members);
    auto collective = Collective::create(params);
    EXPECT_FALSE(collective);
    return collective ? ErrorKind::Internal : collective.error().kind;
  };
  auto two = [&](int64_t send, int64_t recv) {
    return std::vector{member(send, recv), member(send, recv)};
  };
  using enum CollectiveKind;
  EXPECT_EQ(kindOf(AllReduce, {}), ErrorKind::Invalid);
  EXPECT_EQ(kindOf(AllReduce, two(2, 3)), ErrorKind::Invalid);
  EXPECT_EQ(kindOf(AllReduce, {member(2, 2), member(3, 3)}),
            ErrorKind::Invalid);
  EXPECT_EQ(kindOf(AllGather, two(2, 3)), ErrorKind::Invalid);
  EXPECT_EQ(kindOf(ReduceScatter, two(3, 1)), ErrorKind::Invalid);
  EXPECT_EQ(kindOf(AllToAll, two(3, 3)), ErrorKind::Invalid);
  EXPECT_EQ(kindOf(Broadcast, two(2, 2), 2), ErrorKind::Invalid);
  EXPECT_EQ(kindOf(SendRecv, {member(1, 1)}), ErrorKind::Invalid);
  EXPECT_EQ(kindOf(Permute, {member(1, 2), member(2, 1)}, 0, {{0, 0}}),
            ErrorKind::Invalid);
  EXPECT_EQ(kindOf(Permute, two(1, 1), 0, {{0, 2}}), ErrorKind::Invalid);
  EXPECT_EQ(kindOf(Permute, two(1, 1), 0, {{0, 1}, {0, 0}}),
            ErrorKind::Invalid);
  EXPECT_EQ(kindOf(Permute, two(1, 1), 0, {{0, 1}, {1, 1}}),
            ErrorKind::Invalid);
  auto noAddress = two(1, 1);
  noAddress[1].recv = nullptr;
  EXPECT_EQ(kindOf(AllReduce, noAddress), ErrorKind::Invalid);
}

} // namespace
