// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

static void expectEqual(const Plan &a, const Plan &b) {
  EXPECT_EQ(a.scheduler, b.scheduler);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.numDevices, b.numDevices);
  EXPECT_EQ(a.streamsPerDevice, b.streamsPerDevice);
  EXPECT_EQ(a.memoryBytes, b.memoryBytes);
  EXPECT_EQ(a.arenaBytes, b.arenaBytes);
  EXPECT_EQ(a.makespanUs, b.makespanUs);
  EXPECT_EQ(a.lowerBoundUs, b.lowerBoundUs);
  EXPECT_EQ(a.boundBy, b.boundBy);
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t s = 0; s < a.steps.size(); ++s) {
    EXPECT_EQ(a.steps[s].node, b.steps[s].node);
    EXPECT_EQ(a.steps[s].streams, b.steps[s].streams);
    EXPECT_EQ(a.steps[s].waits, b.steps[s].waits);
    EXPECT_EQ(a.steps[s].startUs, b.steps[s].startUs);
    EXPECT_EQ(a.steps[s].durationUs, b.steps[s].durationUs);
    EXPECT_EQ(a.steps[s].origin, b.steps[s].origin);
    EXPECT_EQ(a.steps[s].algorithm, b.steps[s].algorithm);
  }
  ASSERT_EQ(a.placements.size(), b.placements.size());
  for (size_t k = 0; k < a.placements.size(); ++k) {
    EXPECT_EQ(a.placements[k].buffer, b.placements[k].buffer);
    EXPECT_EQ(a.placements[k].offset, b.placements[k].offset);
  }
}

TEST(PlanText, ReadsBackExactly) {
  device::Topology host = hostMachine().topology();
  host.name = "model \"quoted\" \\ \n\x01";
  const Machine model(host);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Dag dag = randomDag(seed);
    dag.nodes[0].name = "odd \"name\" \t\\x41 \r\n after";
    Result<Plan> plan = schedule(dag, model, {"shuffled", seed});
    ASSERT_TRUE(plan);
    std::mt19937_64 random(seed);
    plan->boundBy = BoundArgument(seed % (1 + allBoundArguments.size()));
    if (seed % 3)
      plan->memoryBytes = uint64_t(1) << (seed % 64);
    for (PlanStep &step : plan->steps) { // doubles of many digits
      step.startUs += double(random()) * 0x1p-60;
      step.origin = allOrigins[random() % allOrigins.size()];
      if (workClass(dag.node(step.node)) == WorkClass::Collective &&
          random() % 3 > 0)
        step.algorithm =
            CollectiveAlgorithm{CollectiveAlgorithm::Shape(random() % 3),
                                CollectiveAlgorithm::Protocol(random() % 3)};
    }
    std::string text = toText(*plan, dag);
    Result<Plan> back = parsePlan(text, dag);
    ASSERT_TRUE(back) << back.error().message << "\n" << text;
    expectEqual(*plan, *back);
    EXPECT_EQ(text, toText(*back, dag));
  }
}

namespace {
class PlanTextErrors : public ::testing::Test {
protected:
  void SetUp() override {
    dag = randomDag(12);
    text = toText(*schedule(dag, hostModel()), dag);
  }
  /// The message for the text with the first `from` replaced by `to`.
  std::string message(const std::string &from, const std::string &to) {
    std::string changed = text;
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    Result<Plan> plan = parsePlan(changed, dag);
    return plan ? "accepted" : plan.error().message;
  }
  Dag dag;
  std::string text;
};
} // namespace

TEST_F(PlanTextErrors, NameTheLine) {
  EXPECT_EQ(message("mgpu-plan 5", "mgpu-plan 6"),
            "plan line 1: the plan has version 6, of a later mgpu; this one "
            "reads version 5: make it anew by `mgpu-tune plan PROGRAM -o "
            "FILE`");
  EXPECT_EQ(message("mgpu-plan 5", "mgpu-plan 4"),
            "plan line 1: the plan has version 4, of an earlier mgpu; this one "
            "reads version 5: make it anew by `mgpu-tune plan PROGRAM -o "
            "FILE`");
  EXPECT_EQ(message("scheduler", "schedule"),
            "plan line 2: expected \"scheduler\", found \"schedule\"");
  EXPECT_EQ(message("\"list\"", "\"list"),
            "plan line 2: a name lacks its closing quote");
  EXPECT_EQ(message("streams 4", "streams -4"),
            "plan line 5: \"-4\" is not a valid count");
  EXPECT_EQ(message("load ", "memory 1e9\nload "),
            "plan line 6: \"1e9\" is not a valid byte count");
  EXPECT_EQ(message("load ", "memory 1000000000\nload "), "accepted");
  EXPECT_NE(message("replay ", "replay nan ")
                .find("plan line 7: \"nan\" is not a valid time"),
            std::string::npos);
  EXPECT_NE(message("replay ", "replay -").find("not a valid time"),
            std::string::npos);
  EXPECT_NE(message("\narena 0", " by luck\narena 0")
                .find("plan line 9: \"luck\" does not prove a bound"),
            std::string::npos);
  EXPECT_NE(message("place 0", "place 4000").find("no buffer 4000"),
            std::string::npos);
  EXPECT_NE(message("\"b0\"", "\"other\"").find("\"b0\" in the program"),
            std::string::npos);
  EXPECT_NE(message("step ", "step 7777").find("the program has no node"),
            std::string::npos);
  EXPECT_NE(message(" start ", " begin ").find("plan line"), std::string::npos);
  EXPECT_NE(message("end\n", "").find("cut short"), std::string::npos);
  EXPECT_NE(message("end\n", "end\nmore\n").find("after \"end\""),
            std::string::npos);
  EXPECT_EQ(message("end\n", "# a comment\n\n end \r\n"), "accepted");
}

TEST_F(PlanTextErrors, OnlyCollectivesHaveAnAlgorithm) {
  Plan plan = *parsePlan(text, dag);
  for (const PlanStep &step : plan.steps) {
    std::string head = "step " + std::to_string(step.node.value) + " ";
    size_t line = text.find("\n" + head), at = text.find(" start ", line);
    ASSERT_NE(line, std::string::npos);
    auto with = [&](const std::string &words) {
      std::string changed = text;
      changed.insert(at, words);
      Result<Plan> other = parsePlan(changed, dag);
      return other ? "accepted" : other.error().message;
    };
    bool isCollective = workClass(dag.node(step.node)) == WorkClass::Collective;
    if (isCollective)
      EXPECT_EQ(with(" by nvls Simple"), "accepted");
    else
      EXPECT_NE(with(" by nvls Simple").find("not a collective"),
                std::string::npos);
    EXPECT_NE(with(" by star LL").find("\"star LL\" is not an algorithm"),
              std::string::npos);
    EXPECT_NE(with(" by ring").find("is not an algorithm"), std::string::npos);
  }
}

// No prefix of a plan and no single changed byte may crash the reader.
TEST_F(PlanTextErrors, SurvivesDamage) {
  for (size_t length = 0; length + 4 < text.size(); length += 3)
    EXPECT_FALSE(parsePlan(text.substr(0, length), dag));
  std::mt19937_64 random(1);
  for (int k = 0; k < 3000; ++k) {
    std::string damaged = text;
    damaged[random() % damaged.size()] = char(random());
    (void)parsePlan(damaged, dag);
  }
}
