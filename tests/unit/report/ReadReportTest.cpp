// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "tests/unit/report/TestReport.h"
#include "tuner/report/ReportText.h"

namespace mgpu::tuner {
namespace {

struct Fixture {
  db::TempFolder folder;
  db::TuningStore store = std::move(*db::TuningStore::open(folder / "t.db"));
};

TEST(ReadReport, HasWhatTheSessionLeft) {
  Fixture fixture;
  fill(fixture.store, testFacts());
  auto report = readReport(fixture.store, testProgram());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->title, "kern");
  EXPECT_TRUE(report->isDecided);
  EXPECT_FALSE(report->isDefault);
  EXPECT_EQ(report->verdict, "FAST");
  EXPECT_EQ(report->before, (Measured{100, 90, 120, 10}));
  EXPECT_EQ(report->after, (Measured{50, 45, 60, 10}));
  EXPECT_NEAR(report->change(), -0.5, 1e-12);
  EXPECT_EQ(report->tried, 13u); // the default is not tried
  EXPECT_EQ(report->failed, 1u);
  EXPECT_EQ(report->best.front().medianUs, 50);
  EXPECT_EQ(report->spaceSize, 1e9);
  ASSERT_EQ(report->decisions.size(), 1u);
  EXPECT_EQ(report->decisions[0].seconds, 7.5);
  EXPECT_TRUE(report->notes.empty()) << report->notes[0];
}

TEST(ReadReport, PutsTrialsInOrderBesideTheDefaultOfTheSameThing) {
  Fixture fixture;
  fill(fixture.store, testFacts());
  auto report = readReport(fixture.store, testProgram());
  ASSERT_TRUE(report);
  const auto &trials = report->trials;
  EXPECT_EQ(trials[0].kernel, -1);
  EXPECT_EQ(trials[0].relative, 1);
  EXPECT_EQ(trials[2].kernel, 0);
  EXPECT_EQ(trials[2].relative, 0.5);   // 5 us of the kernel's 10
  EXPECT_EQ(trials[3].relative, 0.5);   // 50 us of the program's 100
  EXPECT_EQ(trials.back().relative, 0); // failed
  EXPECT_NEAR(trials[2].spentSeconds, 1.5, 1e-12);
}

TEST(ReadReport, ComparesKernelsWithTheRoofOfWhatTheyTouch) {
  Fixture fixture;
  fill(fixture.store, testFacts());
  auto report = readReport(fixture.store, testProgram());
  ASSERT_TRUE(report);
  ASSERT_EQ(report->kernels.size(), 1u);
  const ReportKernel &kernel = report->kernels[0];
  // 4000 operations at 1000 a microsecond; 800 bytes at 400, the roof of the
  // largest size that is not larger than the 400 bytes a launch touches.
  EXPECT_EQ(kernel.boundUs, 4);
  EXPECT_FALSE(kernel.isMemoryBound);
  EXPECT_NEAR(kernel.shareOfPeak(), 4.0 / 5, 1e-12); // of the tuned 5 us
  EXPECT_EQ(kernel.tried, 2u);
  EXPECT_EQ(kernel.configuration, "unroll=2");

  ProgramFacts facts = testFacts();
  facts.kernels[0].bytesTouched = 1000; // the lower roof
  facts.kernels[0].bytes = 2000;
  Fixture other;
  fill(other.store, facts);
  report = readReport(other.store, testProgram());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kernels[0].boundUs, 10);
  EXPECT_TRUE(report->kernels[0].isMemoryBound);
}

TEST(ReadReport, SaysWhatIsNotThere) {
  Fixture fixture;
  fill(fixture.store, testFacts(), false);
  auto report = readReport(fixture.store, testProgram());
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->isDecided);
  EXPECT_TRUE(report->kernels.empty());
  EXPECT_EQ(report->before.us, 100);
  EXPECT_EQ(report->after, report->before);
  EXPECT_GE(report->notes.size(), 2u);
  // The program says itself what it is.
  report = readReport(fixture.store, testProgram(), testFacts());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->title, "kern");
  EXPECT_EQ(report->kernels.at(0).tried, 2u);
  EXPECT_TRUE(report->timelineBefore);

  ProgramFacts unmeasured = testFacts();
  unmeasured.peaks = {};
  unmeasured.before->left = 7;
  Fixture other;
  fill(other.store, unmeasured);
  report = readReport(other.store, testProgram());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->kernels.at(0).shareOfPeak(), 0);
  EXPECT_EQ(report->notes.size(), 2u); // no peak; steps left out
}

TEST(ReadReport, WhatIsNoSessionIsNotRead) {
  Fixture fixture;
  EXPECT_FALSE(readReport(fixture.store, testProgram()));
  db::TuningProblem decision = testProgram();
  decision.policy += decidedSuffix;
  for (const char *about :
       {"", "[]", "{\"session\":3}", "{\"session\":{},\"program\":{}}",
        "{\"session\":{\"seconds\":\"x\"},\"program\":[1]}",
        "{\"environment\":7,\"session\":{},\"program\":{\"file\":1}}"}) {
    addTrial(fixture.store, decision, {{"threads", "1"}}, 50, 10, about);
    addTrial(fixture.store, testProgram(), {{"threads", "1"}}, 50, 10, about);
    auto report = readReport(fixture.store, testProgram());
    ASSERT_TRUE(report) << about;
    EXPECT_TRUE(report->kernels.empty()) << about;
    EXPECT_FALSE(toHtml(*report).empty());
  }
}

TEST(ReadReport, ListsProgramsAndNotTheirKernels) {
  Fixture fixture;
  fill(fixture.store, testFacts());
  db::TuningProblem other = testProgram();
  other.shape = "x=8xf32";
  addTrial(fixture.store, other, {{"threads", "1"}}, 50, 100);
  auto programs = tunedPrograms(fixture.store);
  ASSERT_TRUE(programs);
  ASSERT_EQ(programs->size(), 2u);
  EXPECT_EQ((*programs)[0].name, "kern");
  EXPECT_EQ((*programs)[0].problem, testProgram());
  EXPECT_EQ((*programs)[0].timeMs, 6000);
  EXPECT_EQ((*programs)[1].problem, other);
}

TEST(ReadReport, AProgramThatWasOnlyProfiledHasOne) {
  Fixture fixture;
  ProfileFacts profile = testProfile();
  profile.program = testFacts();
  profile.program->after.reset();
  profile.program->kernels[0].tunedUs = 0;
  ASSERT_TRUE(storeProfile(testProgram(), profile, "7", fixture.store));
  auto programs = tunedPrograms(fixture.store);
  ASSERT_TRUE(programs);
  ASSERT_EQ(programs->size(), 1u);
  EXPECT_EQ((*programs)[0].name, "kern");
  EXPECT_EQ((*programs)[0].problem, testProgram());
  auto report = readReport(fixture.store, testProgram());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->wasTuned());
  EXPECT_EQ(report->title, "kern");
  EXPECT_EQ(report->before.us, 50); // of the profile's replays
  EXPECT_FALSE(report->environment.empty());
  ASSERT_TRUE(report->timelineBefore);
  EXPECT_TRUE(report->timelineBefore->timeline.isMeasured);
  ASSERT_EQ(report->kernels.size(), 1u);
  EXPECT_EQ(report->kernels[0].us(), 10);
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(
      report->notes[0].find("mgpu-tune tune dir/kern --arg rate=0.5 --db "),
      std::string::npos);
  report->subject = {"it's", "other", {{"a", "$x"}}};
  report->database = "t.db";
  EXPECT_EQ(commandText(*report, "tune"),
            "mgpu-tune tune 'it'\\''s' --entry other --arg 'a=$x' --db t.db");
  for (const std::string &text : {toHtml(*report), toMarkdown(*report)}) {
    EXPECT_NE(text.find("Profiled, not tuned: a replay takes 50.00 us on 1 "
                        "thread"),
              std::string::npos);
    EXPECT_NE(text.find("sum"), std::string::npos); // of the table of nodes
    EXPECT_EQ(text.find("nothing was surely faster"), std::string::npos);
  }

  // Once it is tuned, the session tells.
  fill(fixture.store, testFacts());
  programs = tunedPrograms(fixture.store);
  ASSERT_TRUE(programs);
  EXPECT_EQ(programs->size(), 1u);
  report = readReport(fixture.store, testProgram());
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->wasTuned());
  EXPECT_EQ(report->before.us, 100);
  EXPECT_TRUE(report->profile);
}

TEST(ReadReport, SaysHowMuchOfTheSpaceWasTried) {
  Fixture fixture;
  fill(fixture.store, testFacts());
  auto report = readReport(fixture.store, testProgram());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->parts, (std::vector<SpacePart>{{"kernel kern", 8, 2},
                                                   {"program", 100, 5}}));
  EXPECT_EQ(report->parts[0].coverage(), 0.25);
  EXPECT_NE(toMarkdown(*report).find(
                "13 trials, 1 failed, of 1e+09 configurations; variants of "
                "one kernel by itself: 2 of 8 (25 %); plans with the best few "
                "of them: 5 of 100 (5 %)."),
            std::string::npos)
      << toMarkdown(*report);
}

TEST(ProgramFacts, AreReadBackAsTheyWere) {
  const ProgramFacts facts = testFacts();
  auto back = factsFromJson(nlohmann::json::parse(toJson(facts).dump()));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->subject.arguments, facts.subject.arguments);
  EXPECT_EQ(back->kernels, facts.kernels);
  EXPECT_EQ(back->before, facts.before);
  EXPECT_EQ(back->after, facts.after);
  EXPECT_EQ(back->peaks.bytesPerUs(5), 400);
  EXPECT_EQ(back->peaks.bytesPerUs(1e6), 200);
}

} // namespace
} // namespace mgpu::tuner
