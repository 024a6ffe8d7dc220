// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Examples and random programs on several cards that are not there: a process
// for each, an NCCL that moves their data, and the bits of the host target.
#include "tests/conformance/CudaPrograms.h"
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/RandomProgram.h"
#include "tests/unit/cuda/Ranks.h"
#include "tools/mgpu-tune/CardWorkers.h"

#include "capture/graph/Cards.h"

#include <gtest/gtest.h>

#include <csignal>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

bool isVisible(const planner::Buffer &buffer) {
  return buffer.role == planner::BufferRole::Argument ||
         buffer.role == planner::BufferRole::Result;
}

tune::CardWorkers::Open opener(const CudaPrograms &programs, uint64_t seed) {
  return [&programs, seed](uint32_t rank, std::function<Result<void>()> watch) {
    return programs.openRank(rank, seed, std::move(watch));
  };
}

tune::CardWorkers::Options cardOptions() {
  tune::CardWorkers::Options options;
  options.deadline = std::chrono::seconds(20);
  options.farewell = fake::rankComplaints;
  return options;
}

Result<HostData> onCards(const CudaPrograms &programs, size_t number,
                         const planner::Dag &dag, const planner::Plan &plan,
                         uint64_t seed, const HostData &inputs,
                         uint64_t numReplays) {
  fake::FakeWorld::create();
  MGPU_TRY_ASSIGN(auto cards, tune::CardWorkers::start(
                                  dag, plan, programs.objects(number),
                                  opener(programs, seed), cardOptions()));
  for (uint32_t b = 0; b < dag.buffers.size(); ++b)
    if (auto given = inputs.find(dag.buffers[b].name);
        given != inputs.end() && isVisible(dag.buffers[b]))
      std::copy(given->second.begin(), given->second.end(),
                cards->hostBuffer({b}).begin());
  MGPU_TRY(cards->load());
  MGPU_TRY(cards->replay(numReplays));
  MGPU_TRY(cards->fetch());
  HostData data;
  for (uint32_t b = 0; b < dag.buffers.size(); ++b)
    if (isVisible(dag.buffers[b])) {
      auto bytes = cards->hostBuffer({b});
      data[dag.buffers[b].name].assign(bytes.begin(), bytes.end());
    }
  MGPU_TRY(cards->replayTimed());
  MGPU_TRY(cards->close());
  return data;
}

void check(const CudaPrograms &programs, size_t number, const planner::Dag &dag,
           const std::string &scheduler, const HostData &inputs,
           const HostData &expected, uint32_t numReplays) {
  auto plan = makePlan(dag, scheduler);
  ASSERT_TRUE(plan) << scheduler << ": " << plan.error().message;
  uint64_t seed = std::hash<std::string>()(scheduler) + number;
  auto got = onCards(programs, number, dag, *plan, seed, inputs, numReplays);
  ASSERT_TRUE(got) << scheduler << ": " << got.error().message;
  ASSERT_EQ(difference(expected, *got), "") << "scheduler " << scheduler;
}

class CardsExamples : public testing::TestWithParam<Example> {};

TEST_P(CardsExamples, GiveTheBitsOfTheHost) {
  ImportOutcome outcome = importExample(GetParam());
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  ASSERT_LE(dag.numDevices, fake::Meeting::maxRanks);
  auto inputs = randomInputs(dag, 7);
  ASSERT_TRUE(inputs) << inputs.error().message;
  auto objects = KernelCache().compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto serial = makePlan(dag, "serial");
  ASSERT_TRUE(serial) << serial.error().message;
  auto expected = execute(dag, *serial, *objects, *inputs, 1, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  std::mt19937_64 random(3);
  CudaPrograms programs;
  auto number = programs.add(dag, random);
  ASSERT_TRUE(number) << number.error().message;
  Result<void> compiled = programs.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  RecordProperty("devices", int(dag.numDevices));
  for (const char *scheduler : {"serial", "list", "1", "2"}) {
    check(programs, *number, dag, scheduler, *inputs, *expected, 2);
    if (HasFatalFailure())
      return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CardsExamples, testing::ValuesIn(allExamples()),
                         exampleName);

/// Those whose cards meet in communications alone; the others are refused.
TEST(CardsRandomPrograms, GiveTheBitsOfTheHost) {
  constexpr uint64_t count = 24;
  Importer importer;
  KernelCache cache;
  CudaPrograms programs;
  std::vector<planner::Dag> dags;
  std::mt19937_64 random(5);
  for (uint64_t seed = 0; seed < count; ++seed) {
    RandomProgram program = makeRandomProgram(seed);
    if (seed % 2)
      addRandomLoop(program, seed);
    ImportRequest request;
    request.text = printProgram(program);
    request.name = "seed" + std::to_string(seed);
    ImportOutcome outcome = importer.import(request);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    dags.push_back(std::move(*outcome.dag));
    auto number = programs.add(dags.back(), random);
    ASSERT_TRUE(number) << number.error().message;
  }
  Result<void> compiled = programs.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  size_t ran = 0, refused = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const planner::Dag &dag = dags[seed];
    if (dag.numDevices > fake::Meeting::maxRanks)
      continue;
    if (Result<void> may = capture::checkAcrossCards(dag); !may) {
      EXPECT_EQ(may.error().kind, ErrorKind::Unsupported);
      ++refused;
      continue;
    }
    auto inputs = randomInputs(dag, seed);
    ASSERT_TRUE(inputs) << inputs.error().message;
    auto objects = cache.compile(dag);
    ASSERT_TRUE(objects) << objects.error().message;
    auto serial = makePlan(dag, "serial");
    ASSERT_TRUE(serial) << serial.error().message;
    auto expected = execute(dag, *serial, *objects, *inputs, 1, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    for (const char *scheduler : {"list", "1"}) {
      check(programs, seed, dag, scheduler, *inputs, *expected, 1);
      if (HasFatalFailure())
        return;
    }
    ++ran;
  }
  RecordProperty("ran", int(ran));
  RecordProperty("refused", int(refused));
  EXPECT_GT(ran, 0u);
}

} // namespace
