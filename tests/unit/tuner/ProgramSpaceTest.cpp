// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/space/ProgramSpace.h"

#include "tests/unit/tuner/TestSubject.h"

#include <gtest/gtest.h>
#include <set>

namespace mgpu::tuner {
namespace {

using kernels::Formula;
using kernels::KernelConfig;
using kernels::KernelSpace;
using kernels::Relation;
using P = kernels::KernelParameter;

KernelSpace hostSpace() {
  KernelSpace space;
  space.block = {32, 1, 1};
  space.maxGrid = {32, 8, 1};
  space.reshapable = true;
  space.defaults[P::BlockX] = 32;
  space.offerDefaults("");
  space.choice(P::BlockX).values = {8, 32, 256, 1024};
  space.choice(P::BlockY).values = {1, 2, 4};
  space.choice(P::Items).values = {1, 4};
  space.choice(P::TileX).values = {0, 16, 64};
  space.choice(P::TileY).values = {0, 1, 4};
  const Formula row = Formula(P::BlockX) * P::Items;
  space.covers[0] = row;
  space.requireLaunch();
  space.require("two sizes", P::TileX, Relation::ZeroTogether, P::TileY, "");
  space.require("divide", row, Relation::MultipleOf, P::TileX, "");
  space.require("divide", P::BlockY, Relation::MultipleOf, P::TileY, "");
  return space;
}

TEST(ProgramSpace, AKernelsSpaceIsWhatItSaysIsLegal) {
  KernelSpace kernel = hostSpace();
  auto space = spaceOf(kernel);
  ASSERT_TRUE(space) << space.error().message;
  std::vector<KernelConfig> legal = kernel.legal();
  EXPECT_LT(legal.size(), kernel.productSize());
  ASSERT_EQ(space->size(), legal.size());
  for (ConfigId id = 0; id < space->size(); ++id) {
    EXPECT_EQ(kernelConfigAt(*space, id), legal[id]);
    EXPECT_EQ(findConfig(*space, legal[id]), id);
  }
  KernelConfig foreign = legal[0];
  foreign[P::Items] = 3;
  EXPECT_FALSE(findConfig(*space, foreign));
}

TEST(ProgramSpace, TunablesAreSearchedLikeParameters) {
  KernelSpace kernel = hostSpace();
  kernel.target = kernels::KernelTarget::Cuda;
  for (P unused : {P::Items, P::TileX, P::TileY})
    kernel.choice(unused).values = {kernel.defaults[unused]};
  kernel.sharedBytes = Formula(4) * (kernel.covers[0] + kernel.covers[1] + 1) *
                       Formula::tunable(0) * Formula::tunable(1);
  kernel.requireStaticShared();
  kernel.addTunable({"MGPU_DEPTH", {32, 16, 64}});
  kernel.addTunable({"MGPU_STAGES", {3, 2}});
  auto space = spaceOf(kernel);
  ASSERT_TRUE(space) << space.error().message;
  std::vector<KernelConfig> legal = kernel.legal();
  // The stages of some do not fit shared memory.
  EXPECT_LT(legal.size(), kernel.productSize());
  ASSERT_EQ(space->size(), legal.size());
  std::set<KernelConfig> found;
  for (ConfigId id = 0; id < space->size(); ++id) {
    found.insert(kernelConfigAt(*space, id));
    EXPECT_EQ(findConfig(*space, kernelConfigAt(*space, id)), id);
  }
  EXPECT_EQ(found, std::set<KernelConfig>(legal.begin(), legal.end()));
  KernelConfig without = kernel.defaults;
  without.numTunables = 0;
  EXPECT_FALSE(findConfig(*space, without));
  // A kernel that keeps its launch has its tunables alone.
  KernelSpace file;
  file.target = kernels::KernelTarget::Cuda;
  file.defaults[P::BlockX] = 100;
  file.offerDefaults("is a file");
  file.addTunable({"TILE", {16, 8, 32}});
  file.block = {100, 1, 1};
  file.maxGrid = {4, 1, 1};
  auto ofFile = spaceOf(file);
  ASSERT_TRUE(ofFile) << ofFile.error().message;
  EXPECT_EQ(ofFile->size(), 3u);
}

struct Fixture : TestSubject {
  std::vector<KernelSpace> kernels = {hostSpace()};
  std::vector<KernelConfig> chosen = {kernels[0].defaults, kernels[0].defaults};
  Fixture() { chosen[1][P::Items] = 4; }
};

TEST(ProgramSpace, PointsAndConfigurationsAreTheSame) {
  Fixture fixture;
  auto space = ProgramSpace::create(fixture.program.dag, {{}}, {},
                                    {fixture.chosen}, {2, 8});
  ASSERT_TRUE(space) << space.error().message;
  // 4 stream counts, 2 thread count and 16 seeds or the program's order of the
  // list scheduler, collectives early or not, and one serial plan; each with
  // both kernels.
  EXPECT_EQ(space->points().size(), 2u * (4 * 2 * 17 * 2 + 1));
  EXPECT_EQ(space->points().size(), 2 * ProgramSpace::numPlans(1, {}, {2, 8}));
  for (ConfigId id = 0; id < space->points().size(); ++id)
    EXPECT_EQ(space->find(space->at(id)), id);
  ProgramConfig other = space->at(0);
  other.kernels[0][P::BlockX] = 8;
  EXPECT_FALSE(space->find(other));
  other = space->at(0);
  other.transforms = {planner::TransformKind::Split};
  EXPECT_FALSE(space->find(other));
}

TEST(ProgramSpace, TransformsAreSwitchesOfIt) {
  Fixture fixture;
  using K = planner::TransformKind;
  const std::vector<TransformList> lists = {
      {},
      {K::Bucket},
      {{K::Chunk, {4, 1}}},
      {K::Bucket, {K::Chunk, {2}}, K::Split}};
  auto space = ProgramSpace::create(fixture.program.dag, lists, {},
                                    {fixture.chosen}, {2, 8});
  ASSERT_TRUE(space) << space.error().message;
  EXPECT_EQ(space->points().size(), 2 * ProgramSpace::numPlans(4, {}, {2, 8}));
  std::set<TransformList> seen;
  for (ConfigId id = 0; id < space->points().size(); ++id) {
    const ProgramConfig config = space->at(id);
    seen.insert(config.transforms);
    ASSERT_EQ(space->find(config), id);
  }
  EXPECT_EQ(seen, std::set<TransformList>(lists.begin(), lists.end()));
}

TEST(ProgramSpace, SettingsOfATargetAreParametersOfIt) {
  Fixture fixture;
  const std::vector<TargetSetting> settings = {
      {"algorithm", {"ring LL", "tree LL", "nvls Simple"}, ""},
      {"cta_policy", {"none"}, "is NCCL's"}};
  auto space = ProgramSpace::create(fixture.program.dag, {{}}, settings,
                                    {fixture.chosen}, {2, 4});
  ASSERT_TRUE(space) << space.error().message;
  // Three stream counts, as the target has room for no more.
  EXPECT_EQ(space->points().size(), 2u * 3 * (3 * 2 * 17 * 2 + 1));
  EXPECT_EQ(space->points().size(),
            2 * ProgramSpace::numPlans(1, settings, {2, 4}));
  std::map<std::string, uint32_t> seen;
  const planner::Dag &dag = fixture.program.dag;
  for (ConfigId id = 0; id < space->points().size(); ++id) {
    const ProgramConfig config = space->at(id);
    ASSERT_EQ(space->find(config), id);
    auto at = config.settings.find("algorithm");
    ++seen[at == config.settings.end() ? "" : at->second];
    auto pairs = toPairs(config, dag, fixture.kernels);
    auto read = fromPairs(pairs, dag, fixture.kernels, settings);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(*read, config);
  }
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen.contains("") && seen.contains("tree LL"));
  std::vector<SpaceParameter> described = space->describe();
  EXPECT_EQ(described.back().name, "cta_policy");
  EXPECT_EQ(described.back().values, (std::vector<std::string>{"none"}));
  EXPECT_EQ(described.back().reason, "is NCCL's");

  // Elsewhere the same row is of no configuration.
  ProgramConfig config = space->at(0);
  config.settings["algorithm"] = "tree LL";
  const db::Pairs pairs = toPairs(config, dag, fixture.kernels);
  EXPECT_FALSE(fromPairs(pairs, dag, fixture.kernels, {}));
  const std::vector<TargetSetting> fewer = {{"algorithm", {"ring LL"}, "one"}};
  EXPECT_FALSE(fromPairs(pairs, dag, fixture.kernels, fewer));
  config.settings = {{"algorithm", "unheard of"}};
  EXPECT_FALSE(space->find(config));
  config.settings = {{"other", "on"}};
  EXPECT_FALSE(space->find(config));
}

TEST(ProgramSpace, ConfigurationsGoThroughText) {
  Fixture fixture;
  const planner::Dag &dag = fixture.program.dag;
  ProgramConfig config;
  config.seed = 7;
  config.threads = 2;
  config.schedulePolicy.early = false;
  config.kernels = {fixture.chosen[1]};
  using K = planner::TransformKind;
  config.transforms = {{K::Chunk, {4, 1}}, K::Split};
  std::string text = db::pairsText(toPairs(config, dag, fixture.kernels));
  auto pairs = db::parsePairs(text);
  ASSERT_TRUE(pairs) << pairs.error().message;
  auto read = fromPairs(*pairs, dag, fixture.kernels, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, config);

  for (auto [name, value] :
       {std::pair("scheduler", "magic"), std::pair("order", "other"),
        std::pair("early", "on"), std::pair("streams", "many"),
        std::pair("kernel.axpy", "items=3"), std::pair("kernel.gone", ""),
        std::pair("chunks.0", "no"), std::pair("chunks", "4"),
        std::pair("chunks.7", "2"), std::pair("split", "maybe")}) {
    db::Pairs wrong = *pairs;
    wrong[name] = value;
    EXPECT_FALSE(fromPairs(wrong, dag, fixture.kernels, {})) << name;
  }
  // As it was stored before there were transforms.
  for (const char *name : {"chunks.0", "chunks.1", "split", "early"})
    pairs->erase(name);
  read = fromPairs(*pairs, dag, fixture.kernels, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->transforms.empty());
  (*pairs)["lanes"] = "2"; // as threads were called
  pairs->erase("threads");
  read = fromPairs(*pairs, dag, fixture.kernels, {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->threads, 2u);
  pairs->erase("lanes");
  EXPECT_FALSE(fromPairs(*pairs, dag, fixture.kernels, {}));
}

TEST(ProgramSpace, AConfigurationIsAPlan) {
  Fixture fixture;
  const planner::Dag &dag = fixture.program.dag;
  auto space = ProgramSpace::create(dag, {{}}, {}, {fixture.chosen}, {2, 8});
  ASSERT_TRUE(space);
  auto plain = planOf(dag, space->at(0), planner::hostMachine());
  ASSERT_TRUE(plain);
  std::set<std::string> texts;
  for (ConfigId id = 0; id < space->points().size(); ++id) {
    auto plan = planOf(dag, space->at(id), planner::hostMachine());
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(toText(*plan, dag),
              toText(*planOf(dag, space->at(id), planner::hostMachine()), dag));
    texts.insert(toText(*plan, dag));
    // Whatever was drawn for the order, the durations are the model's.
    EXPECT_EQ(plan->lowerBoundUs, plain->lowerBoundUs);
    EXPECT_GE(plan->makespanUs, plan->lowerBoundUs * (1 - 1e-9));
  }
  EXPECT_GT(texts.size(), 2u);
}

} // namespace
} // namespace mgpu::tuner
