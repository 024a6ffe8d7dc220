// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_REPORT_TESTREPORT_H
#define MGPU_TESTS_UNIT_REPORT_TESTREPORT_H

// A database as a session leaves it, for a program made up.

#include "tests/unit/db/TempFolder.h"
#include "tuner/record/Keys.h"
#include "tuner/report/ReadReport.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace mgpu::tuner {

inline db::TuningProblem testProgram() {
  return {"structure", "x=4xf32",   "host: a machine", "x86-64-v3",
          "mgpu test", "devices=2", policyText(false)};
}

inline db::TuningProblem testKernel() {
  db::TuningProblem problem = testProgram();
  problem.program = std::string(kernelPrefix) + "hash";
  return problem;
}

/// `name` is of the kernel, the steps and the program's file.
inline ProgramFacts testFacts(const std::string &name = "kern") {
  ProgramFacts facts;
  facts.subject = {"dir/" + name, "main", {{"rate", "0.5"}}};
  facts.devices = 2;
  KernelFacts &kernel = facts.kernels.emplace_back();
  kernel = {name, "p.mlir:3:1", testKernel().key(), 2, 4000, 800, 400, 10, 5};
  facts.peaks.flopsPerUs = 1000;
  facts.peaks.memory = {{100, 400}, {1000, 200}};
  Timeline &timeline = facts.before.emplace();
  timeline.isMeasured = true;
  timeline.scheduler = "list";
  using planner::PlanStream;
  using planner::WorkClass;
  timeline.steps = {
      {0, name, "", WorkClass::Kernel, {PlanStream{{0}, {0}}}, 0, 4},
      {1,
       "sum",
       "",
       WorkClass::Collective,
       {PlanStream{{0}, {1}}, PlanStream{{1}, {1}}},
       2,
       10},
      {2, name, "", WorkClass::Kernel, {PlanStream{{1}, {0}}}, 6, 7}};
  facts.after = facts.before;
  return facts;
}

inline void addTrial(db::TuningStore &store, const db::TuningProblem &problem,
                     const db::Pairs &pairs, double us, int64_t timeMs,
                     const std::string &environment = "{}") {
  db::Trial trial = db::okTrial(db::pairsText(pairs), us);
  trial.lowUs = 0.9 * us;
  trial.highUs = 1.2 * us;
  trial.provenance.timeMs = timeMs;
  trial.provenance.environment = environment;
  ASSERT_TRUE(store.record(problem, trial));
}

/// A profile of the decided configuration; `name` is its longest node's.
inline ProfileFacts testProfile(const std::string &name = "kern") {
  ProfileFacts facts;
  facts.configuration = {
      {"threads", "1"}, {"seed", "0"}, {"kernel.kern", "unroll=2"}};
  facts.model = "host roofline";
  facts.samples = 9;
  facts.predictedUs = 40;
  facts.recomputedUs = 55;
  facts.replay = {50, 48, 53};
  facts.serial = {60, 59, 61};
  using planner::WorkClass;
  facts.nodes = {
      {1, "sum", "p.mlir:5:1", WorkClass::Collective, "0,1", 4, {10, 9, 11}},
      {0, name, "p.mlir:3:1", WorkClass::Kernel, "0", 20, {30, 29, 32}}};
  return facts;
}

inline DecidedTimes testTimes() {
  DecidedTimes times;
  times.before = {100, 90, 120, 10};
  times.after = {50, 45, 60, 10};
  times.change = bench::Interval{-0.5, -0.55, -0.4};
  times.pairs = 10;
  times.processes = 5;
  times.verdict = "FAST";
  times.sentence = "the best found beats the default by 50.0 %";
  return times;
}

/// The default takes 100 us, the tuned configuration 50.
inline void fill(db::TuningStore &store, const ProgramFacts &facts,
                 bool decided = true) {
  const db::Pairs defaults{{"threads", "2"}, {"seed", "0"}};
  addTrial(store, testProgram(), defaults, 100, 1000);
  addTrial(store, testKernel(), {{"unroll", "1"}}, 10, 2000);
  addTrial(store, testKernel(), {{"unroll", "2"}}, 5, 3000);
  for (int k = 0; k < 10; ++k)
    addTrial(store, testProgram(),
             {{"threads", "1"}, {"seed", std::to_string(k)}}, 50 + k, 4000 + k);
  db::Trial bad = db::failedTrial(
      db::pairsText({{"threads", "3"}, {"seed", "1"}}), db::TrialStatus::Wrong);
  bad.provenance.timeMs = 5000;
  ASSERT_TRUE(store.record(testProgram(), bad));
  if (!decided)
    return;
  db::TuningProblem decision = testProgram();
  decision.policy += decidedSuffix;
  nlohmann::json about{
      {"environment", {{"cpu", "a machine"}, {"load_average", "0.1"}}},
      {"session",
       {{"complete", true},
        {"exhausted", false},
        {"seconds", 7.5},
        {"evaluations", 13},
        {"times", toJson(testTimes())},
        {"space", 1e9},
        {"parts",
         {{{"name", "kernel kern"}, {"points", 8}, {"tried", 2}},
          {{"name", "program"}, {"points", 100}, {"tried", 5}}}},
        {"strategy", "surrogate"}}},
      {"program", toJson(facts)}};
  addTrial(store, decision,
           {{"threads", "1"}, {"seed", "0"}, {"kernel.kern", "unroll=2"}}, 50,
           6000, about.dump());
}

} // namespace mgpu::tuner

#endif // MGPU_TESTS_UNIT_REPORT_TESTREPORT_H
