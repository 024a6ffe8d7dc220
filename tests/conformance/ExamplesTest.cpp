// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every example gives the same bits under every legal plan, on one thread and
// on two.
#include "tests/conformance/Execute.h"
#include "tests/conformance/Import.h"

#include "planner/plan/Verify.h"
#include "support/FileIO.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

constexpr uint32_t numShuffles = 200;

struct Example {
  const char *name, *entry;
  std::map<std::string, std::string> scalars;
};

/// Else the name of each test would hold the addresses of this run.
void PrintTo(const Example &shown, std::ostream *os) { *os << shown.name; }

ImportOutcome importExample(const Example &example) {
  std::string path = std::string(MGPU_EXAMPLES) + "/" + example.name + "/" +
                     example.name + ".mlir";
  auto file = readFile(path);
  if (!file)
    return {fail(file.error()), 0, {}};
  ImportRequest request;
  request.text.assign(reinterpret_cast<const char *>(file->data()),
                      file->size());
  request.name = path;
  request.entry = example.entry;
  request.scalars = example.scalars;
  request.racesAreErrors = true;
  return Importer().import(request);
}

class ExamplePlans : public testing::TestWithParam<Example> {};

TEST_P(ExamplePlans, AllGiveTheSameBits) {
  ImportOutcome outcome = importExample(GetParam());
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  auto objects = KernelCache().compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto inputs = randomInputs(dag, 7);
  ASSERT_TRUE(inputs) << inputs.error().message;

  auto serial = makePlan(dag, "serial");
  ASSERT_TRUE(serial) << serial.error().message;
  // Two replays: the second starts from what the first left behind.
  auto expected = execute(dag, *serial, *objects, *inputs, 1, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  ASSERT_NE(difference(*inputs, *expected), "") << "it computes nothing";

  std::vector<std::string> schedulers{"serial", "list"};
  for (uint32_t seed = 0; seed < numShuffles; ++seed)
    schedulers.push_back(std::to_string(seed));
  for (const std::string &scheduler : schedulers) {
    auto plan = makePlan(dag, scheduler);
    ASSERT_TRUE(plan) << scheduler << ": " << plan.error().message;
    for (uint32_t lanes : {1, 2}) {
      auto got = execute(dag, *plan, *objects, *inputs, lanes, 2);
      ASSERT_TRUE(got) << scheduler << ": " << got.error().message;
      ASSERT_EQ(difference(*expected, *got), "")
          << "scheduler " << scheduler << " on " << lanes << " lanes";
    }
  }
}

TEST_P(ExamplePlans, TransformsKeepEveryBit) {
  ImportOutcome outcome = importExample(GetParam());
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  auto objects = KernelCache().compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto inputs = randomInputs(dag, 7);
  ASSERT_TRUE(inputs) << inputs.error().message;
  auto serial = makePlan(dag, "serial");
  ASSERT_TRUE(serial) << serial.error().message;
  auto expected = execute(dag, *serial, *objects, *inputs, 1, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  auto all = transformed(dag);
  ASSERT_TRUE(all) << all.error().message;
  for (const Transformed &each : *all)
    for (const char *scheduler : {"serial", "list", "1", "2", "3", "4", "5"}) {
      auto plan = makePlan(each.dag, scheduler);
      ASSERT_TRUE(plan) << each.name << ": " << plan.error().message;
      auto got = execute(each.dag, *plan, *objects, *inputs, 2, 2);
      ASSERT_TRUE(got) << each.name << ": " << got.error().message;
      ASSERT_EQ(difference(*expected, *got), "")
          << each.name << ", scheduler " << scheduler;
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, ExamplePlans,
    testing::Values(Example{"saxpy", "main", {{"a", "2.5"}}},
                    Example{"heat", "main", {}},
                    Example{"mandelbrot", "main", {}},
                    Example{"mlp", "main", {}}, Example{"ops", "main", {}},
                    Example{"digits", "main", {{"rate", "0.5"}}},
                    Example{"digits", "eval", {}}),
    [](const auto &info) {
      return std::string(info.param.name) + "_" + info.param.entry;
    });

} // namespace
