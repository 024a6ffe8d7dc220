// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts of kernels as text: what comes from a file is of its kernel and within
// what can be counted, or it is refused.
#include "tests/unit/planner/RandomProgramDag.h"

#include "planner/dag/KernelWork.h"
#include "planner/dag/ProgramText.h"
#include "support/JsonFields.h"
#include "tests/unit/Sweep.h"

#include <cmath>
#include <gtest/gtest.h>

namespace mgpu::planner {
namespace {

using testing::randomFacts;

/// The count of a launch in forms that differ in all that a form may say.
void expectCounts(const KernelFacts &facts, const std::string &text) {
  const LaunchWidth forms[] = {
      {},
      {.vector = 4, .unroll = 8},
      {.vector = 2, .rows = 4},
      {.vector = 8, .blockX = 1024, .items = 64},
      {.blockX = 32, .blockY = 16, .blockZ = 2, .isStaged = true}};
  for (const LaunchWidth &form : forms) {
    const LaunchWork work = workOf(facts, form);
    for (double count :
         {work.instructions, work.lines, work.movedBytes, work.blocks})
      EXPECT_TRUE(count >= 0 && count < 1e300) << count << "\n" << text;
  }
}

TEST(KernelFacts, ReadBackAsTheyAre) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 200; ++k) {
    const KernelFacts facts = randomFacts(random, "h");
    EXPECT_TRUE(facts.areCountable());
    const std::string text = JsonFields::text(facts);
    auto back = JsonFields::read<KernelFacts>("facts", text);
    ASSERT_TRUE(back) << back.error().message << "\n" << text;
    EXPECT_TRUE(*back == facts) << text;
    expectCounts(*back, text);
  }
}

TEST(KernelFacts, OfNoKernelAreRefused) {
  std::mt19937_64 random(2);
  KernelFacts sound = randomFacts(random, "h");
  sound.steps.resize(1);
  sound.steps[0].kind = KernelFacts::Step::Kind::Load;
  sound.steps[0].address = {0, {{0, 1}}};
  ASSERT_TRUE(sound.areCountable());
  using Change = void (*)(KernelFacts &);
  for (Change change : {
           +[](KernelFacts &f) { f.grid.x += 1; }, // the counters say another
           +[](KernelFacts &f) {
             f.block = {4096, 1, 1};
           },
           +[](KernelFacts &f) { f.grid.y = 0; },
           +[](KernelFacts &f) { f.counters = {}; },
           +[](KernelFacts &f) { f.steps[0].place = 3; },
           +[](KernelFacts &f) { f.steps[0].buffer = 2; },
           +[](KernelFacts &f) { f.steps[0].width = 0; },
           +[](KernelFacts &f) { f.steps[0].bytes = 1 << 30; },
           +[](KernelFacts &f) { f.steps[0].instructions = -1; },
           +[](KernelFacts &f) { f.steps[0].address->terms[0].first = 99; },
           +[](KernelFacts &f) {
             f.steps[0].address->terms[0].second = int64_t(1) << 60;
           },
           +[](KernelFacts &f) { f.places[0].times = -1; },
           +[](KernelFacts &f) { f.places[1].times = INFINITY; },
       }) {
    KernelFacts changed = sound;
    change(changed);
    EXPECT_FALSE(changed.areCountable()) << JsonFields::text(changed);
  }
}

// A program's text whose facts are of another kernel, or of none, is not read.
TEST(KernelFacts, AreOfTheKernelThatHasThem) {
  std::mt19937_64 random(3);
  Program program = testing::randomProgram(3);
  const std::string hash = program.dag.kernels[0].hash;
  program.dag.kernels = {program.dag.kernels[0]};
  for (DagNode &node : program.dag.nodes)
    if (auto *call = std::get_if<KernelCall>(&node.work))
      call->kernel.value = 0;
  KernelFacts facts = randomFacts(random, hash);
  program.dag.kernels[0].facts = facts;
  Blobs blobs;
  const std::string text = toText(program, blobs);
  const std::string sound = JsonFields::text(facts);
  auto messageOf = [&](const KernelFacts &other) -> std::string {
    auto back = readProgram(
        text, [&](const std::string &name) -> Result<std::vector<std::byte>> {
          const auto &bytes = blobs.at(name);
          if (std::string(reinterpret_cast<const char *>(bytes.data()),
                          bytes.size()) != sound)
            return bytes;
          const std::string changed = JsonFields::text(other);
          const auto all = std::as_bytes(std::span(changed));
          return std::vector<std::byte>(all.begin(), all.end());
        });
    return back ? "read" : back.error().message;
  };
  EXPECT_EQ(messageOf(facts), "read");
  facts.kernel = "another";
  EXPECT_NE(messageOf(facts).find("the facts are of another kernel"),
            std::string::npos)
      << messageOf(facts);
  facts.kernel = hash;
  facts.grid.x += 1;
  EXPECT_NE(messageOf(facts).find("figures that no kernel has"),
            std::string::npos)
      << messageOf(facts);
}

// Whatever the text says, it is refused or can be counted.
TEST(KernelFacts, SurviveDamage) {
  std::mt19937_64 random(4);
  const std::string letters = "0123456789-.,[]{}:e\" ";
  size_t accepted = 0, read = 0;
  for (uint64_t k = 0; k < sweep(300, 10000); ++k) {
    std::string text = JsonFields::text(randomFacts(random, "h"));
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      char &at = text[random() % text.size()];
      if (std::isdigit(at)) // a figure for a figure is read most often
        at = char('0' + random() % 10);
      else if (random() % 4 == 0)
        at = letters[random() % letters.size()];
    }
    auto facts = JsonFields::read<KernelFacts>("facts", text);
    read += facts.has_value();
    if (!facts || !facts->areCountable())
      continue;
    ++accepted;
    expectCounts(*facts, text);
  }
  EXPECT_GT(accepted, 20u);
  EXPECT_GT(read, accepted);
}

} // namespace
} // namespace mgpu::planner
