// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Candidates that are sound pass and are measured; those that crash, hang,
// write out of bounds or compute something else are caught by name, each in
// the process it was given and at its own cost.
#include "tuner/candidate/Candidate.h"

#include "tests/unit/tuner/TestSubject.h"
#include "tests/unit/tuner/WatchedDriver.h"

#include <sched.h>
#include <unistd.h>

namespace mgpu::tuner {
namespace {

struct Setting : TestSubject {
  CandidateOptions options;

  Setting() {
    options.openDriver = open;
    options.secondsToPrepare = 20;
  }

  Realization realization(uint32_t faultNumber = 0) const {
    Realization made;
    made.dag = std::make_shared<planner::Dag>(program.dag);
    made.plan = program.plan;
    made.kernels.push_back(
        std::make_shared<Bytes>(kernelWithFault(faultNumber)));
    return made;
  }

  Bytes reference(uint64_t seed) const {
    Realization sound = realization();
    auto candidate = Candidate::start(sound, *data, options);
    EXPECT_TRUE(candidate);
    auto outputs = candidate->outputs(seed);
    EXPECT_TRUE(outputs) << outputs.error().what;
    return outputs.value_or(Bytes());
  }

  /// What is said of a candidate with that fault.
  Fault judge(uint32_t faultNumber) const {
    Realization faulty = realization(faultNumber);
    auto candidate = Candidate::start(faulty, *data, options);
    EXPECT_TRUE(candidate);
    auto outcome = candidate->check(1, reference(1));
    EXPECT_FALSE(outcome);
    return outcome ? Fault() : outcome.error();
  }
};

TEST(Candidate, ASoundOnePassesOnFreshDataAndIsMeasured) {
  Setting setting;
  Realization sound = setting.realization();
  auto candidate = Candidate::start(sound, *setting.data, setting.options);
  ASSERT_TRUE(candidate);
  Bytes given = setting.reference(0), fresh = setting.reference(42);
  EXPECT_NE(given, fresh);
  EXPECT_NE(fresh, setting.reference(43));
  for (auto &[seed, expected] :
       {std::pair(uint64_t(0), given), std::pair(uint64_t(42), fresh)}) {
    auto outcome = candidate->check(seed, expected);
    EXPECT_TRUE(outcome) << outcome.error().what;
  }
  for (int k = 0; k < 3; ++k) {
    auto sample = candidate->sample();
    ASSERT_TRUE(sample) << sample.error().what;
    EXPECT_GT(sample->seconds, 0);
    EXPECT_LT(sample->seconds, 0.1);
  }
  // Still sound after all those replays.
  EXPECT_TRUE(candidate->check(42, fresh));
  auto times = candidate->nodeTimes(1e-3);
  ASSERT_TRUE(times);
  ASSERT_EQ(times->size(), setting.program.dag.nodes.size());
  for (size_t k = 0; k < times->size(); ++k) {
    bool replayed =
        setting.program.dag.nodes[k].phase == planner::Phase::Replay;
    EXPECT_EQ((*times)[k] > 0, replayed) << k;
  }
}

/// How many CPUs the calling thread may use.
int usable() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

TEST(Candidate, IsMeasuredWhereItWasPinned) {
  if (usable() < 2)
    GTEST_SKIP() << "there is one CPU, to which everything is pinned";
  Setting setting;
  Realization sound = setting.realization();
  // A replay takes 50 ms wherever its thread may move: far more than what a
  // busy machine takes from the others.
  setting.options.openDriver = [](uint32_t devices, uint32_t threads,
                                  std::span<const int> workerCpus)
      -> Result<std::unique_ptr<device::Driver>> {
    if (workerCpus.size() + 1 != threads && !workerCpus.empty())
      return fail(ErrorKind::Internal, "a CPU for each worker, or none");
    MGPU_TRY_ASSIGN(auto inner,
                    device::createHostDriver(devices, threads, workerCpus));
    return std::unique_ptr<device::Driver>(
        std::make_unique<WatchedDriver>(std::move(inner), [](uint32_t) {
          if (usable() > 1)
            usleep(50'000);
        }));
  };
  auto secondsOf = [&](std::vector<int> cpus, uint32_t threads) {
    setting.options.cpus = std::move(cpus);
    sound.threads = threads;
    auto candidate = Candidate::start(sound, *setting.data, setting.options);
    EXPECT_TRUE(candidate);
    // Checks come before and after.
    EXPECT_TRUE(candidate->check(0, setting.reference(0)));
    auto sample = candidate->sample();
    EXPECT_TRUE(sample) << sample.error().what;
    EXPECT_TRUE(candidate->check(0, setting.reference(0)));
    return sample ? sample->seconds : 0;
  };
  const std::vector<int> cpus = bench::cpusInOrder();
  EXPECT_LT(secondsOf(cpus, 1), 4e-2);
  EXPECT_LT(secondsOf(cpus, 2), 4e-2);
  EXPECT_GE(secondsOf({}, 2), 4e-2);
  EXPECT_GE(secondsOf({cpus[0]}, 2), 4e-2); // one for two: neither
  EXPECT_EQ(usable(), int(cpus.size()));
}

TEST(Candidate, TheOutputsAreTheProgramsOwn) {
  // Two replays of y += 2x, so y + 4x, then reduced into the result.
  Setting setting;
  Bytes outputs = setting.reference(0);
  std::vector<float> values(outputs.size() / 4);
  std::memcpy(values.data(), outputs.data(), outputs.size());
  ASSERT_EQ(values.size(), 3u * capture::half); // y, then out
  for (size_t k = 0; k < 2 * capture::half; ++k) {
    float x = float(k) / 7, y = float(k + 100) / 7;
    EXPECT_NEAR(values[k], y + 4 * x, 1e-3) << k;
  }
}

TEST(Candidate, ACrashIsCaught) {
  Fault found = Setting().judge(1);
  EXPECT_EQ(found.kind, FaultKind::Crash) << found.what;
}

TEST(Candidate, AHangIsCaught) {
  Setting setting;
  Bytes expected = setting.reference(1);
  setting.options.secondsToPrepare = 0.5;
  Realization faulty = setting.realization(2);
  auto candidate = Candidate::start(faulty, *setting.data, setting.options);
  ASSERT_TRUE(candidate);
  auto outcome = candidate->check(1, expected);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, FaultKind::Hang);
}

TEST(Candidate, AWritePastTheEndIsCaught) {
  Fault found = Setting().judge(3);
  EXPECT_EQ(found.kind, FaultKind::OutOfBounds);
  EXPECT_NE(found.what.find("after buffer 'y"), std::string::npos)
      << found.what;
}

TEST(Candidate, AWriteBeforeTheBeginningIsCaught) {
  Fault found = Setting().judge(6);
  EXPECT_EQ(found.kind, FaultKind::OutOfBounds) << found.what;
}

TEST(Candidate, OneWrongBitIsCaught) {
  Fault found = Setting().judge(4);
  EXPECT_EQ(found.kind, FaultKind::WrongResult);
  EXPECT_NE(found.what.find("where the reference gives"), std::string::npos)
      << found.what;
}

TEST(Candidate, WorkLeftOutIsCaught) {
  EXPECT_EQ(Setting().judge(7).kind, FaultKind::WrongResult);
}

TEST(Candidate, AnExitIsCaught) {
  Fault found = Setting().judge(5);
  EXPECT_EQ(found.kind, FaultKind::Crash);
  EXPECT_EQ(found.what, "ended by itself with exit code 0");
}

TEST(Candidate, APlanThatDoesNotFitIsRefused) {
  Setting setting;
  Realization broken = setting.realization();
  broken.kernels.clear();
  auto candidate = Candidate::start(broken, *setting.data, setting.options);
  ASSERT_TRUE(candidate);
  auto outcome = candidate->check(1, setting.reference(1));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, FaultKind::Refused);
}

} // namespace
} // namespace mgpu::tuner
