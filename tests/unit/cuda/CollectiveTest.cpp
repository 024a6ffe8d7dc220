// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Collectives between logical devices of one GPU: the text of the CUDA
// target's kernels, compiled for the processor, against the host target.

#include "DeviceKernelList.h"
#include "Twins.h"

#include "device/host/SmallFloat.h"

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

template <typename T>
T load(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename Small>
bool bothNanSmall(const std::byte *a, const std::byte *b) {
  float x = Small::toFloat(load<Small>(a)), y = Small::toFloat(load<Small>(b));
  return x != x && y != y;
}

template <typename T>
bool bothNan(const std::byte *a, const std::byte *b) {
  T x = load<T>(a), y = load<T>(b);
  return x != x && y != y;
}

/// NaN payloads are unspecified (CollectiveSteps.h).
using Equal = bool (*)(const std::byte *, const std::byte *);
Equal equalNans(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
    return bothNanSmall<Float8E4M3FN>;
  case ElementType::F8E5M2:
    return bothNanSmall<Float8E5M2>;
  case ElementType::F16:
    return bothNanSmall<Half>;
  case ElementType::BF16:
    return bothNanSmall<BFloat16>;
  case ElementType::F32:
    return bothNan<float>;
  case ElementType::F64:
    return bothNan<double>;
  default:
    return nullptr;
  }
}

enum class Layout { Packed, Odd, Strided, InPlace, Overlapping };

struct Case {
  CollectiveKind kind;
  ElementType type;
  ReductionKind reduction;
  uint32_t ranks;
  Layout layout;
  int64_t count; ///< elements of the smaller side
  std::string name() const {
    return std::string(toString(kind)) + " " +
           std::string(toString(reduction)) + " " +
           std::string(toString(type)) + " ranks " + std::to_string(ranks) +
           " layout " + std::to_string(int(layout)) + " count " +
           std::to_string(count);
  }
};

/// Where cases are to be few: two and four ranks, each with one of the counts.
bool isLeftOut(uint32_t ranks, int64_t count) {
  return areCasesFew() &&
         !((ranks == 2 && count == 1) || (ranks == 4 && count == 61));
}

void compare(const Case &c, uint64_t seed, size_t times) {
  Twins twins(c.ranks, seed);
  int64_t width = sizeBytes(c.type), n = c.ranks;
  int64_t sendCount = c.count, recvCount = c.count;
  if (c.kind == CollectiveKind::AllGather)
    recvCount = c.count * n;
  if (c.kind == CollectiveKind::ReduceScatter)
    sendCount = c.count * n;
  if (c.kind == CollectiveKind::AllToAll)
    sendCount = recvCount = c.count * n;
  int64_t most = std::max(sendCount, recvCount);
  std::vector<size_t> sends, recvs;
  for (uint32_t r = 0; r < c.ranks; ++r) {
    sends.push_back(
        twins.allocate({int32_t(r)}, size_t((2 * most + 9) * width)));
    recvs.push_back(
        twins.allocate({int32_t(r)}, size_t((2 * most + 9) * width)));
  }
  auto box = [&](int64_t count, bool isSend) -> Box {
    auto bytes = uint32_t(width);
    switch (c.layout) {
    case Layout::Odd: // whole elements, but not of 16 bytes
      return {width * (isSend ? 1 : 3), {count}, {width}, bytes};
    case Layout::Strided:
      return {width * 2, {count}, {width * 2}, bytes};
    default:
      return {0, {count}, {width}, bytes};
    }
  };
  twins.addNodes([&](GraphDriver &graph, auto address) -> Result<void> {
    CollectiveNodeParams params;
    params.name = "collective";
    params.kind = c.kind;
    params.reduction = c.reduction;
    params.elementType = c.type;
    params.root = c.ranks - 1;
    // All but one around; the last is alone with itself now and then.
    if (c.kind == CollectiveKind::Permute)
      for (uint32_t r = 0; r + 1 < c.ranks; ++r)
        params.pairs.push_back({r, r + 1 == c.ranks - 1 ? 0 : r + 1});
    if (c.kind == CollectiveKind::Permute && seed % 2)
      params.pairs.push_back({c.ranks - 1, c.ranks - 1});
    for (uint32_t r = 0; r < c.ranks; ++r) {
      CollectiveMemberParams member;
      member.device = {int32_t(r)};
      member.send = address(sends[r]);
      member.recv = address(recvs[r]);
      member.sendBox = box(sendCount, true);
      member.recvBox = box(recvCount, false);
      if (c.layout == Layout::InPlace)
        member.recv = address(sends[r]);
      if (c.layout == Layout::Overlapping) {
        // What a rank receives lies across what the next one sends.
        member.recv = address(sends[(r + 1) % c.ranks]);
        member.recvBox.offset = width * (c.count / 2);
      }
      params.members.push_back(member);
    }
    MGPU_TRY(graph.addCollective(params, {}));
    return {};
  });
  if (!twins.isRefused())
    twins.replay(times, c.name(), size_t(width), equalNans(c.type));
  twins.close();
}

class Collectives : public testing::TestWithParam<ElementType> {};

TEST_P(Collectives, ReduceAsTheHostDoes) {
  uint64_t seed = 1;
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter})
    for (ReductionKind reduction : allReductions)
      for (uint32_t ranks : {1u, 2u, 3u, 4u})
        for (Layout layout : {Layout::Packed, Layout::Odd, Layout::Strided,
                              Layout::InPlace, Layout::Overlapping})
          for (int64_t count : {1, 16, 61})
            if (!testing::Test::HasFailure() && !isLeftOut(ranks, count))
              compare({kind, GetParam(), reduction, ranks, layout, count},
                      seed++, 2);
}

INSTANTIATE_TEST_SUITE_P(Types, Collectives, testing::ValuesIn(allElementTypes),
                         [](const auto &info) {
                           return std::string(toString(info.param));
                         });

TEST(Collectives, EveryPairOfNarrowFloats) {
  // All 65536: signs, subnormals, infinities, ties.
  for (ElementType type : {ElementType::F8E4M3FN, ElementType::F8E5M2})
    for (ReductionKind reduction : allReductions) {
      Twins twins(2, 7);
      std::vector<std::byte> low(65536), high(65536);
      for (size_t i = 0; i < 65536; ++i) {
        low[i] = std::byte(i & 255);
        high[i] = std::byte(i >> 8);
      }
      size_t a = twins.allocate({0}, low), b = twins.allocate({1}, high);
      twins.addNodes([&](GraphDriver &graph, auto address) -> Result<void> {
        Box all{0, {65536}, {1}, 1};
        CollectiveNodeParams params;
        params.elementType = type;
        params.reduction = reduction;
        params.members = {{{0}, address(a), address(a), all, all},
                          {{1}, address(b), address(b), all, all}};
        MGPU_TRY(graph.addCollective(params, {}));
        return {};
      });
      twins.replay(1, std::string(toString(type)), 1, equalNans(type));
      twins.close();
    }
}

TEST(Collectives, MoveAsTheHostDoes) {
  uint64_t seed = 1000;
  for (CollectiveKind kind :
       {CollectiveKind::AllGather, CollectiveKind::AllToAll,
        CollectiveKind::Broadcast, CollectiveKind::SendRecv,
        CollectiveKind::Permute})
    for (ElementType type : {ElementType::I8, ElementType::F16,
                             ElementType::F32, ElementType::F64})
      for (uint32_t ranks : {1u, 2u, 3u, 4u, 8u})
        for (Layout layout : {Layout::Packed, Layout::Odd, Layout::Strided,
                              Layout::InPlace, Layout::Overlapping})
          for (int64_t count : {1, 16, 61})
            if (!testing::Test::HasFailure() && !isLeftOut(ranks, count))
              compare({kind, type, ReductionKind::Sum, ranks, layout, count},
                      seed++, 2);
}

TEST(Collectives, AllGatherInPlaceReadsItsOwnSlice) {
  Twins twins(4, 3);
  std::vector<size_t> buffers;
  for (int32_t r = 0; r < 4; ++r)
    buffers.push_back(twins.allocate({r}, 256));
  twins.addNodes([&](GraphDriver &graph, auto address) -> Result<void> {
    Box all{0, {64}, {4}, 4};
    CollectiveNodeParams params;
    params.kind = CollectiveKind::AllGather;
    for (int32_t r = 0; r < 4; ++r)
      params.members.push_back({{r},
                                address(buffers[size_t(r)]),
                                address(buffers[size_t(r)]),
                                all,
                                all});
    MGPU_TRY(graph.addCollective(params, {}));
    return {};
  });
  twins.replay(3, "all_gather in place");
  twins.close();
}

TEST(Collectives, AsManyRanksAsAGpuTakes) {
  compare({CollectiveKind::AllReduce, ElementType::F32, ReductionKind::Sum,
           maxReductionRanks, Layout::Packed, 100},
          5, 1);
  compare({CollectiveKind::AllToAll, ElementType::F32, ReductionKind::Sum,
           maxReductionRanks, Layout::Packed, 3},
          6, 1);
}

} // namespace
