// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A random tensor program on N devices gives the bits of the same program on
// one device, which has no collectives and no layouts. MGPU_SPMD_SEED=N runs
// the program of that seed alone, and N-M those from N to M.
#include "tests/conformance/RandomEinsum.h"
#include "tests/conformance/RandomSharded.h"
#include "tests/conformance/RandomSpmd.h"

#include "pipeline/build/MakeBundle.h"
#include "pipeline/compiler/MlirCompiler.h"
#include "pipeline/program/Load.h"
#include "support/FileIO.h"
#include "tests/conformance/Execute.h"
#include "tests/conformance/Import.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/db/TempFolder.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

class Runner {
public:
  /// Results of the program under each of the plans, by name.
  /// Costs of exchanges are random, by a seed; 0: bytes.
  void run(const std::string &text, const HostData &inputs,
           std::vector<std::string> schedulers, std::vector<HostData> &results,
           uint64_t costSeed = 0);

private:
  Importer importer;
  KernelCache cache;
};

void Runner::run(const std::string &text, const HostData &inputs,
                 std::vector<std::string> schedulers,
                 std::vector<HostData> &results, uint64_t costSeed) {
  ImportRequest request;
  request.text = text;
  request.name = "spmd";
  request.racesAreErrors = true;
  request.costSeed = costSeed;
  ImportOutcome outcome = importer.import(request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message
                           << (outcome.errors.empty() ? "" : outcome.errors[0]);
  auto objects = cache.compile(*outcome.dag);
  ASSERT_TRUE(objects) << objects.error().message;
  for (const std::string &scheduler : schedulers) {
    auto plan = makePlan(*outcome.dag, scheduler);
    ASSERT_TRUE(plan) << plan.error().message;
    auto got = execute(*outcome.dag, *plan, *objects, inputs, 2);
    ASSERT_TRUE(got) << got.error().message;
    planner::BufferId result = *outcome.results[0].buffer;
    results.push_back({{"r0", got->at(outcome.dag->buffer(result).name)}});
  }
}

/// The result of the program's bundle, which needs no compiler.
Result<HostData> runBundle(const std::string &text, const HostData &inputs) {
  db::TempFolder folder;
  pipeline::LoadOptions options;
  options.file = folder / "spmd.mlir";
  options.compiler = &pipeline::mlirCompiler();
  MGPU_TRY(writeFileAtomic(options.file, text));
  MGPU_TRY_ASSIGN(auto program, pipeline::loadProgram(options));
  pipeline::PrepareOptions prepare;
  prepare.useTuned = false;
  pipeline::BundleOptions build;
  build.levels = {"x86-64-v2"};
  MGPU_TRY_ASSIGN(auto made,
                  pipeline::makeBundle(std::move(program), prepare, build));
  pipeline::LoadOptions bundled;
  bundled.file = folder / "spmd.mgpu";
  MGPU_TRY(capture::writeBundle(bundled.file, made.contents));
  MGPU_TRY_ASSIGN(auto read, pipeline::loadProgram(bundled));
  MGPU_TRY_ASSIGN(auto prepared, pipeline::prepare(read, prepare));
  MGPU_TRY_ASSIGN(
      auto got, execute(read.dag, prepared.plan, prepared.kernels, inputs, 2));
  return HostData{
      {"r0", got.at(read.dag.buffer(*read.results[0].buffer).name)}};
}

/// The first seed, and one more than the last.
std::pair<uint64_t, uint64_t> seeds(uint64_t few, uint64_t many) {
  const char *only = std::getenv("MGPU_SPMD_SEED");
  if (!only)
    return {0, sweep(few, many)};
  char *end = nullptr;
  const uint64_t first = std::strtoull(only, &end, 10);
  return {first,
          (*end == '-' ? std::strtoull(end + 1, nullptr, 10) : first) + 1};
}

/// Runs both programs of each seed, `make` being what writes them, and some of
/// them as bundles.
void compareSeeds(RandomSpmd (*make)(uint64_t), unsigned few, unsigned many) {
  auto [first, end] = seeds(few, many);
  Runner runner;
  for (uint64_t seed = first; seed < end; ++seed) {
    RandomSpmd program = make(seed);
    SCOPED_TRACE("MGPU_SPMD_SEED=" + std::to_string(seed) + "\n" +
                 program.many);
    HostData inputs = spmdInputs(program, seed);
    std::vector<HostData> one, all;
    runner.run(program.one, inputs, {"serial"}, one);
    runner.run(program.many, inputs, {"list", std::to_string(seed + 1)}, all,
               seed % 3 == 0 ? 0 : seed);
    if (testing::Test::HasFailure())
      return;
    if (seed % 25 == 0) {
      auto bundled = runBundle(program.many, inputs);
      ASSERT_TRUE(bundled) << bundled.error().message;
      all.push_back(std::move(*bundled));
    }
    for (const HostData &got : all)
      ASSERT_EQ(difference(one[0], got), "");
  }
}

TEST(Spmd, ManyDevicesGiveTheBitsOfOne) { compareSeeds(randomSpmd, 200, 4000); }

TEST(Spmd, AnnotatedProgramsGiveTheBitsOfPlainOnes) {
  compareSeeds(randomSharded, 40, 4000);
}

// Small ones, so that hundreds of them take seconds; nothing of them is planned
// twice.
TEST(Spmd, AnnotatedChainsOfProductsGiveWhatTheyAre) {
  auto [first, end] = seeds(200, 20000);
  Runner runner;
  for (uint64_t seed = first; seed < end; ++seed) {
    RandomEinsum chain = randomEinsum(seed);
    SCOPED_TRACE("MGPU_SPMD_SEED=" + std::to_string(seed) + "\n" + chain.text);
    std::vector<HostData> got;
    runner.run(chain.text, chain.inputs, {"list"}, got,
               seed % 3 == 0 ? 0 : seed);
    if (testing::Test::HasFailure())
      return;
    ASSERT_EQ(difference({{"r0", chain.expected}}, got[0]), "");
  }
}

} // namespace
