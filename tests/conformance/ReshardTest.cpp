// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor changes its layout in the way that the target's model says is the
// fastest, and the plan says so too.
#include "pipeline/compiler/MlirCompiler.h"
#include "pipeline/plan/ProgramPlan.h"
#include "pipeline/program/Compiler.h"
#include "pipeline/program/Load.h"
#include "pipeline/target/OpenMachine.h"
#include "support/FileIO.h"
#include "support/Random.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/db/TempFolder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace mgpu;

namespace {

struct Change {
  std::string target, grid, shape, from, to;
};

/// Each element of `x` is negated in one layout and made positive in another.
std::string textOf(const Change &change) {
  const std::string type = fmt::format("tensor<{}xf32>", change.shape);
  return fmt::format("shard.grid @grid(shape = {0})\n"
                     "func.func @main(%x: {1}) -> {1} {{\n"
                     "  %a = shard.sharding @grid split_axes = {2} : "
                     "!shard.sharding\n"
                     "  %b = shard.sharding @grid split_axes = {3} : "
                     "!shard.sharding\n"
                     "  %xa = shard.shard %x to %a : {1}\n"
                     "  %n = arith.negf %xa : {1}\n"
                     "  %nb = shard.shard %n to %b : {1}\n"
                     "  %y = math.absf %nb : {1}\n"
                     "  return %y : {1}\n}}\n",
                     change.grid, type, change.from, change.to);
}

/// The kinds of the program's collectives, and how many copies go from device
/// to device.
std::string exchangesOf(const planner::Dag &dag) {
  std::string kinds;
  size_t copies = 0;
  for (const planner::DagNode &node : dag.nodes) {
    if (auto *call = std::get_if<planner::CollectiveCall>(&node.work);
        call && kinds.find(toString(call->kind)) == std::string::npos)
      kinds += fmt::format("{} ", toString(call->kind));
    copies += std::holds_alternative<planner::CopyCall>(node.work) &&
              node.devices.size() == 2;
  }
  return copies > 0 ? kinds + "copies" : kinds;
}

Result<double> makespanOf(const pipeline::LoadedProgram &program,
                          const std::string &target) {
  pipeline::PlanOptions options;
  options.budget = "20";
  pipeline::LoadedProgram planned = program;
  planned.from.target = target;
  MGPU_TRY_ASSIGN(auto made, pipeline::makePlan(planned, {options}));
  return made.plan.makespanUs;
}

struct Compared {
  std::string chosen, byBytes; ///< what is exchanged
  double chosenUs = 0, byBytesUs = 0;
};

/// Plans the program as the target chooses and as bytes do.
Compared compare(const Change &change) {
  db::TempFolder folder;
  pipeline::LoadOptions load;
  load.file = folder / "change.mlir";
  load.target = change.target;
  load.compiler = &pipeline::mlirCompiler();
  EXPECT_TRUE(writeFileAtomic(load.file, textOf(change)));
  auto chosen = pipeline::loadProgram(load);
  auto byBytes = load.compiler->importProgram(load, nullptr);
  EXPECT_TRUE(chosen && byBytes);
  if (!chosen || !byBytes)
    return {};
  auto chosenUs = makespanOf(*chosen, change.target);
  auto byBytesUs = makespanOf(*byBytes, change.target);
  EXPECT_TRUE(chosenUs && byBytesUs);
  if (!chosenUs || !byBytesUs)
    return {};
  return {exchangesOf(chosen->dag), exchangesOf(byBytes->dag), *chosenUs,
          *byBytesUs};
}

// Two devices swap a few bytes: a collective takes longer to start than copies.
TEST(Reshard, FewBytesAreCopied) {
  const Compared made =
      compare({"sim:dgx-h100", "2", "64x64", "[[0], []]", "[[], [0]]"});
  EXPECT_EQ(made.chosen, "copies");
  EXPECT_EQ(made.byBytes, "all_to_all ");
  EXPECT_LT(made.chosenUs, made.byBytesUs);
}

// Copies are the fewest bytes, but go over network cards, where an all_gather
// stays inside the nodes.
TEST(Reshard, BytesStayInsideNodes) {
  const Compared made = compare(
      {"sim:dgx-h200-x64", "2x8", "4096x4096", "[[0], [1]]", "[[], [0]]"});
  EXPECT_EQ(made.chosen, "all_gather all_to_all ");
  EXPECT_EQ(made.byBytes, "copies");
  EXPECT_LT(made.chosenUs, made.byBytesUs);
}

TEST(Reshard, BothMayAgree) {
  const Compared made =
      compare({"sim:dgx-h100", "8", "4096x4096", "[[0], []]", "[[], [0]]"});
  EXPECT_EQ(made.chosen, "all_to_all ");
  EXPECT_EQ(made.byBytes, "all_to_all ");
  EXPECT_DOUBLE_EQ(made.chosenUs, made.byBytesUs);
}

/// Axes in dimensions at random, some of them in none.
std::string splitOf(Random &random, size_t axes) {
  std::vector<std::vector<size_t>> split(2);
  const bool isReversed = random.below(2) != 0;
  for (size_t k = 0; k < axes; ++k)
    if (size_t dim = random.below(3); dim < 2)
      split[dim].push_back(isReversed ? axes - 1 - k : k);
  return fmt::format("{}", split);
}

// Exchanges are weighed alone, and in a plan other work runs beside them, so a
// plan may be a little longer than the other.
TEST(Reshard, PlansAreNotMuchLongerThanThoseOfTheFewestBytes) {
  static const char *targets[] = {"sim:dgx-h100-x2", "sim:dgx-h200-x2",
                                  "sim:dgx-a100-x2", "sim:dgx-b200-x2"};
  static const std::pair<const char *, size_t> grids[] = {
      {"2", 1}, {"4", 1}, {"2x2", 2}, {"2x4", 2}, {"2x8", 2}, {"2x2x2", 3}};
  static const char *shapes[] = {"16x64", "96x64", "1024x512", "4096x4096"};
  const uint64_t end = sweep(12, 400);
  for (uint64_t seed = 0; seed < end; ++seed) {
    Random random(seed);
    auto [grid, axes] = grids[random.below(std::size(grids))];
    const Change change{targets[random.below(std::size(targets))], grid,
                        shapes[random.below(std::size(shapes))],
                        splitOf(random, axes), splitOf(random, axes)};
    SCOPED_TRACE(fmt::format("seed {}: {} {} {} {} to {}", seed, change.target,
                             grid, change.shape, change.from, change.to));
    const Compared made = compare(change);
    EXPECT_LE(made.chosenUs, 1.15 * made.byBytesUs)
        << made.chosen << " or " << made.byBytes;
  }
}

} // namespace
