// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/ProfileFacts.h"

#include "planner/cost/TargetMachine.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/db/TempFolder.h"
#include "tests/unit/tuner/ReductionProgram.h"
#include "tests/unit/tuner/WatchedDriver.h"
#include "tuner/space/ProgramSpace.h"

#include <nlohmann/json.hpp>
#include <set>

namespace mgpu::tuner {
namespace {

using namespace bench;

constexpr double beside = planner::hostNodeUs;

TEST(Profile, TimesThatAreTooLongLoseTheSameEach) {
  // 3 runs of 10 us and one of 2 should take 20: 12 too much for four runs, so
  // 3 us each; the short one cannot lose 3, and the rest share what it cannot:
  // 3 (10 - l) = 20 - 4 b, with nothing left of the short one.
  const TimedNode nodes[] = {{10, 3}, {2, 1}};
  const Correction found = correctionFor(nodes, 20);
  EXPECT_EQ(found.factor, 1);
  EXPECT_NEAR(found.lessUs, 10 - (20 - 4 * beside) / 3, 1e-9);
  EXPECT_EQ(found.of(2), 0);
  EXPECT_NEAR(3 * found.of(10) + found.of(2) + 4 * beside, 20, 1e-9);
}

TEST(Profile, TimesThatAreTooShortGrowInProportion) {
  const TimedNode nodes[] = {{10, 1}, {5, 2}};
  const Correction found = correctionFor(nodes, 30 + 3 * beside);
  EXPECT_EQ(found.lessUs, 0);
  EXPECT_NEAR(found.factor, 1.5, 1e-12);
  EXPECT_NEAR(found.of(10), 15, 1e-9);
}

TEST(Profile, WhatCannotBeCorrectedIsLeftNearest) {
  // A replay shorter than what lies beside its nodes.
  const TimedNode nodes[] = {{1, 4}};
  EXPECT_NEAR(correctionFor(nodes, beside).of(1), 0, 1e-9);
  const TimedNode nothing[] = {{0, 4}};
  EXPECT_EQ(correctionFor(nothing, 7).factor, 1);
  EXPECT_EQ(correctionFor({}, 7).factor, 1);
}

struct MeasuredSubject : ReductionSubject {
  std::vector<ProfileSubject> subjects;
  Profile profile;

  std::function<void(capture::Replayer &)> bind() const {
    return [this](capture::Replayer &replayer) { data->bind(replayer, 0); };
  }

  explicit MeasuredSubject(uint64_t rounds) {
    const planner::Machine model = planner::hostMachine();
    for (uint32_t threads : {1, 2})
      subjects.push_back({*planner::schedule(dag, model), threads});
    const std::vector<Bytes> kernels = {kernelWithFault(0)};
    auto made = measureProfile({dag, kernels, bind(), TestSubject::open},
                               subjects, rounds);
    EXPECT_TRUE(made) << made.error().message;
    if (made)
      profile = std::move(*made);
  }
};

TEST(Profile, EveryNodeOfAReplayIsTimed) {
  MeasuredSubject measured(5);
  const Profile &profile = measured.profile;
  EXPECT_EQ(profile.serialUs.count, 5u);
  EXPECT_GT(profile.serialUs.median.middle, 0);
  ASSERT_EQ(profile.subjects.size(), 2u);
  for (const ProfileSamples &samples : profile.subjects) {
    EXPECT_EQ(samples.replayUs.count, 5u);
    ASSERT_EQ(samples.nodeUs.size(), measured.dag.nodes.size());
    for (const std::vector<double> &ofNode : samples.nodeUs) {
      EXPECT_GE(ofNode.size(), 5u);
      for (double us : ofNode)
        EXPECT_TRUE(us >= 0 && us < 1e5) << us;
    }
  }
  // On one thread the medians add up to the replay.
  double sum = 0;
  for (const std::vector<double> &ofNode : profile.subjects[0].nodeUs)
    sum += bench::median(ofNode) + beside;
  EXPECT_NEAR(sum, profile.subjects[0].replayUs.median.middle, 1e-3 * sum);
}

TEST(Profile, ThreadsArePinnedMeanwhileAndGivenBack) {
  const std::vector<int> cpus = bench::cpusInOrder();
  if (cpus.size() < 2)
    GTEST_SKIP() << "there is one CPU, to which everything is pinned";
  MeasuredSubject measured(1);
  std::vector<std::vector<int>> workers;
  std::set<int> ran;
  auto open = [&](uint32_t devices, uint32_t threads,
                  std::span<const int> workerCpus)
      -> Result<std::unique_ptr<device::Driver>> {
    workers.push_back({workerCpus.begin(), workerCpus.end()});
    MGPU_TRY_ASSIGN(auto inner,
                    device::createHostDriver(devices, threads, workerCpus));
    return std::unique_ptr<device::Driver>(
        std::make_unique<WatchedDriver>(std::move(inner), [&](uint32_t) {
          if (bench::cpusInOrder().size() == 1)
            ran.insert(sched_getcpu());
        }));
  };
  const std::vector<Bytes> kernels = {kernelWithFault(0)};
  auto made =
      measureProfile({measured.dag, kernels, measured.bind(), open, cpus},
                     measured.subjects, 3);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(workers, (std::vector<std::vector<int>>{{}, {}, {cpus[1]}}));
  EXPECT_EQ(ran, std::set<int>{cpus[0]});
  EXPECT_EQ(bench::cpusInOrder().size(), cpus.size());
}

TEST(Profile, TheFastestIsTheOneThatIsSoMostOften) {
  Profile profile;
  profile.subjects.resize(3);
  profile.subjects[0].replayUs.p75 = 5;
  profile.subjects[1].replayUs.p75 = 4;
  profile.subjects[1].replayUs.median.middle = 4;
  profile.subjects[2].replayUs.p75 = 6;
  profile.subjects[2].replayUs.median.middle = 1;
  EXPECT_EQ(profile.fastest(), 1u);
}

TEST(Profile, AKernelThatCannotBeLoadedIsAnError) {
  MeasuredSubject measured(1);
  const std::vector<Bytes> kernels = {Bytes(100)};
  auto made = measureProfile(
      {measured.dag, kernels, measured.bind(), TestSubject::open},
      measured.subjects, 1);
  EXPECT_FALSE(made);
}

ProfileFacts factsOf(const MeasuredSubject &measured) {
  return describeProfile(measured.dag, {{"threads", "2"}}, measured.subjects[1],
                         measured.profile.subjects[1],
                         measured.profile.serialUs);
}

TEST(ProfileFacts, AreThePlanBesideTheSamples) {
  MeasuredSubject measured(3);
  // By hand: all samples of a node are its number.
  for (size_t k = 0; k < measured.dag.nodes.size(); ++k)
    measured.profile.subjects[1].nodeUs[k] = {double(k), double(k)};
  measured.profile.subjects[1].nodeUs[3].clear();
  const ProfileFacts facts = factsOf(measured);
  EXPECT_EQ(facts.threads, 2u);
  EXPECT_EQ(facts.model, "host roofline");
  ASSERT_EQ(facts.nodes.size(), measured.dag.nodes.size() - 1);
  for (const NodeProfile &node : facts.nodes) {
    EXPECT_NE(node.node, 3u);
    EXPECT_EQ(node.measured.us, node.node);
    EXPECT_EQ(node.name, measured.dag.nodes[node.node].name);
    EXPECT_GT(node.predictedUs, 0);
    EXPECT_EQ(node.ratio(), node.node / node.predictedUs);
  }
  EXPECT_EQ(facts.predictedUs,
            planner::hostReplayUs(measured.subjects[1].plan, measured.dag, 2));
  planner::Plan plan = measured.subjects[1].plan;
  for (planner::PlanStep &step : plan.steps)
    if (step.node.value != 3)
      step.durationUs = step.node.value;
  EXPECT_EQ(facts.recomputedUs, planner::hostReplayUs(plan, measured.dag, 2));
}

TEST(ProfileFacts, AreStoredAndTheNewestRead) {
  db::TempFolder folder;
  auto store = db::TuningStore::open(folder / "p.db");
  ASSERT_TRUE(store);
  db::TuningProblem program;
  program.program = "p";
  program.policy = "hot";
  auto none = readProfile(program, *store);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);

  MeasuredSubject measured(2);
  ProfileFacts facts = factsOf(measured);
  facts.nodes[0].name = "\"<\xff>"; // a name that is not UTF-8
  ASSERT_TRUE(storeProfile(program, facts, "1", *store));
  facts = factsOf(measured);
  facts.threads = 7;
  facts.pinnedCpus = "1,0";
  const ProfileSamples &samples = measured.profile.subjects[1];
  facts.program = describeProgram(measured.dag, {"p.mlir", "main", {}});
  addMeasured(*facts.program, measured.dag, measured.subjects[1], samples);
  double kernelUs = 0;
  size_t steps = 0;
  for (size_t k = 0; k < measured.dag.nodes.size(); ++k) {
    const planner::DagNode &node = measured.dag.nodes[k];
    const auto &ofNode = samples.nodeUs[k];
    steps += !ofNode.empty();
    if (std::holds_alternative<planner::KernelCall>(node.work))
      kernelUs += bench::median(ofNode);
  }
  EXPECT_GT(kernelUs, 0);
  EXPECT_NEAR(facts.program->kernels.at(0).defaultUs, kernelUs, 1e-9);
  ASSERT_TRUE(facts.program->before && facts.program->before->isMeasured);
  EXPECT_EQ(facts.program->before->steps.size(), steps);
  ASSERT_TRUE(storeProfile(program, facts, "2", *store));
  auto found = readProfile(program, *store);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->version, "2");
  EXPECT_GT((*found)->timeMs, 0);
  facts.timeMs = (*found)->timeMs;
  facts.host = (*found)->host;
  facts.version = "2";
  EXPECT_FALSE((*found)->environment.empty());
  facts.environment = (*found)->environment;
  EXPECT_EQ(**found, facts);

  // A row that says something else is passed over for the one before it.
  db::TuningProblem row = program;
  row.policy += "; profiled";
  auto trials = store->trials(row);
  ASSERT_TRUE(trials);
  ASSERT_EQ(trials->trials.size(), 2u);
  for (const char *about : {"", "[]", R"({"profile":3})", R"({"profile":{}})",
                            R"({"profile":{"model":"m","threads":-1}})"}) {
    db::Trial broken = trials->trials.back();
    broken.provenance.timeMs += 1000;
    broken.provenance.environment = about;
    ASSERT_TRUE(store->record(row, broken));
    found = readProfile(program, *store);
    ASSERT_TRUE(found && *found) << about;
    EXPECT_EQ((*found)->threads, 7u) << about;
  }
  program.shape = "another";
  none = readProfile(program, *store);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

} // namespace
} // namespace mgpu::tuner
