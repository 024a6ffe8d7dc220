// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How communicators are made, and which of their calls may run at once.

#include "Ranks.h"

#include "capture/graph/Communication.h"
#include "device/cuda/nccl/Communicators.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

constexpr size_t bytes = 64;

/// Three ranks, communicators of all, of 0 and 1, and of 1 and 2; each rank
/// takes part in those it is in, in this order: 0 and 1, 1 and 2, all.
struct Overlapping {
  std::unique_ptr<Driver> driver;
  std::vector<std::byte *> memory; ///< of each call
  std::unique_ptr<GraphExec> exec;

  std::string run(uint32_t rank, const std::vector<DeviceGroup> &groups,
                  const NcclOptions &options) {
    freshMachine(rank);
    FakeNccl::reset();
    CudaOptions how = rankOptions(rank);
    how.nccl = options;
    auto opened = fake::openRank(how);
    if (!opened)
      return opened.error().message;
    driver = std::move(*opened);
    if (auto ok = driver->join(groups); !ok)
      return ok.error().message;
    auto graph = driver->createGraph();
    std::vector<std::pair<size_t, GraphNodeId>> nodes;
    for (size_t group : {1u, 2u, 0u}) {
      CollectiveNodeParams params;
      params.name = "call " + std::to_string(group);
      params.elementType = ElementType::I32;
      bool isIn = false;
      for (DeviceId member : groups[group].members) {
        CollectiveMemberParams each{member, nullptr, nullptr, {}, {}};
        if (member.value == int32_t(rank)) {
          isIn = true;
          std::byte *own = *driver->allocate(member, bytes);
          *reinterpret_cast<int32_t *>(own) = 1 + int32_t(rank);
          memory.push_back(own);
          each.send = each.recv = own;
        }
        each.sendBox = each.recvBox = Box{0, {bytes / 4}, {4}, 4};
        params.members.push_back(each);
      }
      if (!isIn)
        continue;
      auto node = graph->addCollective(params, {});
      if (!node)
        return node.error().message;
      nodes.push_back({group, *node});
    }
    auto made = graph->instantiate();
    if (!made)
      return made.error().message;
    exec = std::move(*made);
    return "";
  }

  /// For each call of NCCL's in the graph: how many of them it waits for.
  static std::string order() {
    std::string out;
    std::map<const Node *, std::set<const Node *>> before;
    for (const auto &node : FakeCuda::instance().graphs.youngest()->nodes) {
      std::set<const Node *> &of = before[node.get()];
      for (const Node *each : node->dependencies) {
        of.insert(before[each].begin(), before[each].end());
        if (each->owner)
          of.insert(each);
      }
      if (node->owner)
        out += std::to_string(of.size());
    }
    return out;
  }
};

std::vector<std::string> runAll(const NcclOptions &options) {
  FakeWorld::create();
  freshMachine();
  const std::vector<DeviceGroup> groups =
      groupsOf({firstDevices(3),
                {DeviceId{0}, DeviceId{1}},
                {DeviceId{1}, DeviceId{2}}});
  return forkRanks(3, [&](uint32_t rank) -> std::string {
    Overlapping program;
    std::string said = program.run(rank, groups, options);
    if (!said.empty())
      return said;
    std::string order = Overlapping::order();
    for (int replay = 0; replay < 3; ++replay)
      if (Result<void> ok = program.exec->launch(); !ok)
        return ok.error().message;
    program.exec.reset();
    program.driver.reset();
    if (std::string wrong = rankComplaints(); !wrong.empty())
      return wrong;
    return order;
  });
}

TEST(NcclSettings, AllCallsOfAGpuFollowEachOther) {
  EXPECT_EQ(runAll({}), (std::vector<std::string>{"01", "012", "01"}));
}

TEST(NcclSettings, ThoseThatShareARankMayOverlapAndThoseThatShareTwoMayNot) {
  NcclOptions options;
  options.overlaps = true;
  // On rank 1 the first two wait for nothing, the third for both.
  EXPECT_EQ(runAll(options), (std::vector<std::string>{"01", "002", "01"}));
}

TEST(NcclSettings, CtasAreAskedForAndOldLibrariesRefused) {
  FakeWorld::create();
  freshMachine();
  FakeNccl::reset();
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
  auto groups = groupsOf({firstDevices(1)});
  for (bool isOld : {false, true}) {
    auto api = std::make_shared<CudaApi>(*FakeCuda::api());
    ASSERT_TRUE(initializeCuda(*api));
    auto nccl = std::make_shared<NcclApi>(*FakeNccl::api());
    if (isOld)
      nccl->version = 22600;
    CudaOptions how = rankOptions(0);
    how.nccl.leastCtas = 2;
    how.nccl.mostCtas = 8;
    how.nccl.ctas = NcclOptions::Ctas::Efficiency;
    auto driver = createCudaDriver(api, how, nccl);
    ASSERT_TRUE(driver) << driver.error().message;
    groups = groupsOf({firstDevices(1)});
    Result<void> ok = (*driver)->join(groups);
    if (isOld) {
      ASSERT_FALSE(ok);
      EXPECT_EQ(ok.error().kind, ErrorKind::Absent);
      EXPECT_NE(ok.error().message.find("2.26.0"), std::string::npos)
          << ok.error().message;
      continue;
    }
    ASSERT_TRUE(ok) << ok.error().message;
    const NcclConfig &config = FakeNccl::instance().lastConfig;
    EXPECT_EQ(config.minCtas, 2);
    EXPECT_EQ(config.maxCtas, 8);
    EXPECT_EQ(config.ctaPolicy, 1);
    EXPECT_EQ(config.blocking, 0);
  }
  EXPECT_TRUE(FakeCuda::instance().violations.empty());
}

/// Opens one rank over NCCL `version` with the settings; what it complains of.
std::string joinBy(const NcclOptions &options, int version = 22809) {
  FakeWorld::create();
  freshMachine();
  FakeNccl::reset().version = version;
  CudaOptions how = rankOptions(0);
  how.nccl = options;
  auto driver = fake::openRank(how);
  if (!driver)
    return driver.error().message;
  Result<void> ok = (*driver)->join(groupsOf({firstDevices(1)}));
  return ok ? "" : ok.error().message;
}

TEST(NcclSettings, EachAloneIsTaken) {
  using Ctas = NcclOptions::Ctas;
  for (auto [least, most, ctas] : {std::tuple(2u, 0u, Ctas::Default),
                                   {64u, 0u, Ctas::Default},
                                   {0u, 3u, Ctas::Default},
                                   {5u, 5u, Ctas::Zero},
                                   {0u, 0u, Ctas::Efficiency},
                                   {0u, 0u, Ctas::Zero}}) {
    NcclOptions options;
    options.leastCtas = least;
    options.mostCtas = most;
    options.ctas = ctas;
    EXPECT_EQ(joinBy(options), "") << least << " " << most << " " << int(ctas);
    const NcclConfig &config = FakeNccl::instance().lastConfig;
    EXPECT_EQ(config.minCtas, least ? int(least) : INT_MIN);
    EXPECT_EQ(config.maxCtas, most ? int(most) : least ? 64 : INT_MIN);
    EXPECT_EQ(config.nvlsCtas, INT_MIN);
    EXPECT_EQ(config.size, 72u);
  }
}

TEST(NcclSettings, TheZeroPolicyNeedsALaterOneThanTheRest) {
  NcclOptions options;
  options.ctas = NcclOptions::Ctas::Efficiency;
  EXPECT_EQ(joinBy(options, 22707), "");
  options.ctas = NcclOptions::Ctas::Zero;
  EXPECT_EQ(joinBy(options, 22707),
            "NCCL 2.27.7 does not know ctas=zero: install 2.28 or later");
  EXPECT_EQ(joinBy(options, 22800), "");
}

TEST(NcclSettings, WithoutThemTheOldHeadIsEnough) {
  FakeWorld::create();
  freshMachine();
  FakeNccl::reset();
  auto driver = fake::openRank(rankOptions(0));
  ASSERT_TRUE(driver) << driver.error().message;
  auto groups = groupsOf({firstDevices(1)});
  ASSERT_TRUE((*driver)->join(groups));
  EXPECT_EQ(FakeNccl::instance().lastConfig.size, NcclConfig::headSize);
  EXPECT_EQ(FakeNccl::instance().lastConfig.version, 21400u);
}

TEST(NcclSettings, TwoRanksAreSharedOrNot) {
  using capture::shareTwoRanks;
  const std::vector<DeviceId> a = firstDevices(2), all = firstDevices(4);
  const std::vector<DeviceId> b{DeviceId{1}, DeviceId{2}},
      c{DeviceId{1}, DeviceId{0}};
  EXPECT_FALSE(shareTwoRanks(a, b));
  EXPECT_TRUE(shareTwoRanks(a, c));
  EXPECT_TRUE(shareTwoRanks(a, all));
  EXPECT_FALSE(shareTwoRanks(firstDevices(1), all));
}

} // namespace
