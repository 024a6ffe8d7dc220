// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/profile/Profile.h"

#include "bench/measure/Environment.h"
#include "bench/measure/Sampler.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/list/Schedulers.h"
#include "support/Clock.h"

#include <algorithm>
#include <numeric>

namespace mgpu::bench {

using namespace planner;

Sampler::Runs replaysOf(capture::Runner &runner) {
  return [&runner](uint64_t count) -> Result<double> {
    std::vector<double> us(count);
    MGPU_TRY(runner.replay(us));
    return std::accumulate(us.begin(), us.end(), 0.0) * 1e-6;
  };
}

namespace {

/// The time that reading the clock around a node adds to it.
Result<double> clockUs(device::Rendezvous *others) {
  std::vector<double> gaps;
  for (int k = 0; k < 1001; ++k) {
    const Clock::time_point first = Clock::now(), second = Clock::now();
    gaps.push_back(
        std::chrono::duration<double, std::micro>(second - first).count());
  }
  const double us = median(std::move(gaps));
  return others ? others->largest(us) : us;
}

/// A plan ready to be replayed, and what its replays took.
struct Run {
  uint32_t threads = 1;
  std::unique_ptr<device::Driver> driver;
  std::optional<capture::Replayer> replayer;
  std::unique_ptr<capture::Runner> runner; ///< in place of both
  std::optional<Sampler> sampler;
  device::Rendezvous *others = nullptr;
  std::vector<double> us;
  std::vector<std::vector<double>> nodeUs;
  std::vector<Overlap> overlaps;
  std::vector<double> spanUs;
  capture::TimedReplay last;

  Result<capture::TimedReplay> timed() {
    if (!runner)
      return replayTimed(*replayer, others);
    MGPU_TRY_ASSIGN(const auto all, runner->replayTimed());
    return slowestOf(all);
  }
  Result<std::optional<double>> span() {
    return runner ? std::optional<double>() : replayer->replaySpan();
  }
  std::string timedBy() const {
    return runner ? runner->timedBy() : driver->timedBy();
  }
};

Result<std::unique_ptr<Run>> openRanks(const ProfileInput &input,
                                       const Plan &plan) {
  auto made = std::make_unique<Run>();
  made->nodeUs.resize(input.dag.nodes.size());
  MGPU_TRY_ASSIGN(made->runner, input.openRunner(plan));
  MGPU_TRY(made->runner->load());
  made->sampler.emplace([] { return Result<void>(); }, replaysOf(*made->runner),
                        SamplingOptions{.others = input.others});
  MGPU_TRY(made->sampler->warmUp());
  return made;
}

Result<std::unique_ptr<Run>> open(const ProfileInput &input, const Plan &plan,
                                  uint32_t threads) {
  if (input.openRunner)
    return openRanks(input, plan);
  auto made = std::make_unique<Run>();
  made->threads = threads;
  made->others = input.others;
  made->nodeUs.resize(input.dag.nodes.size());
  const std::vector<int> cpus = cpusFor(input.cpus, threads);
  MGPU_TRY_ASSIGN(made->driver,
                  input.openDriver(input.dag.numDevices, threads,
                                   std::span<const int>(cpus).subspan(
                                       std::min<size_t>(cpus.size(), 1))));
  MGPU_TRY_ASSIGN(
      made->replayer,
      capture::Replayer::create(input.dag, plan, input.kernels, *made->driver));
  input.bind(*made->replayer);
  MGPU_TRY(made->replayer->load());
  capture::Replayer *replayer = &*made->replayer;
  made->sampler.emplace([] { return Result<void>(); },
                        [replayer] { return replayer->replay(); },
                        SamplingOptions{.others = input.others});
  MGPU_TRY(made->sampler->warmUp());
  return made;
}

/// After a sample of whole replays timed ones: of short replays many, without
/// the one that finds the caches as the sampler left them.
Result<void> sampleNodes(Run &run, const Dag &dag, double clock) {
  constexpr double burstUs = 500; // as long as a sample
  constexpr uint64_t mostInBurst = 20;
  const double us = std::max(run.us.back(), 1e-3);
  const uint64_t burst =
      std::clamp<uint64_t>(uint64_t(burstUs / us), 1, mostInBurst);
  for (uint64_t j = 0; j < burst; ++j) {
    MGPU_TRY_ASSIGN(run.last, run.timed());
    if (j == 0 && burst > 1)
      continue;
    run.overlaps.push_back(overlapOf(dag, run.last.nodes));
    for (const capture::NodeSpan &span : run.last.nodes)
      run.nodeUs[span.node.value].push_back(
          std::max(span.endUs - span.startUs - clock, 0.0));
  }
  return {};
}

Result<std::vector<capture::NodeSpan>> timelineOf(Run &run, uint64_t rounds) {
  constexpr uint64_t mostReplays = 11;
  std::vector<std::vector<capture::NodeSpan>> replays;
  for (uint64_t k = 0; k < std::min(rounds, mostReplays); ++k) {
    MGPU_TRY_ASSIGN(auto timed, run.timed());
    replays.push_back(std::move(timed.nodes));
  }
  return medianReplay(std::move(replays));
}

std::vector<TimedNode> timedNodes(const Run &run, const Dag &dag) {
  std::vector<TimedNode> nodes;
  for (uint32_t id = 0; id < run.nodeUs.size(); ++id)
    if (!run.nodeUs[id].empty())
      nodes.push_back(
          {median(run.nodeUs[id]), dag.nodes[id].phase == Phase::Replay
                                       ? double(dag.loop.trips)
                                       : 1.0});
  return nodes;
}

} // namespace

double Correction::of(double us) const {
  return std::max(us - lessUs, 0.0) * factor;
}

Correction correctionFor(std::span<const TimedNode> nodes, double replayUs) {
  auto sum = [&](const Correction &with) {
    double us = 0;
    for (const TimedNode &node : nodes)
      us += node.count * (with.of(node.us) + hostNodeUs);
    return us;
  };
  Correction result;
  const double all = sum(result), overhead = sum({0, 0});
  if (all <= replayUs) {
    if (all > overhead)
      result.factor = (replayUs - overhead) / (all - overhead);
    return result;
  }
  double low = 0, high = all;
  for (int k = 0; k < 60; ++k) {
    result.lessUs = (low + high) / 2;
    (sum(result) > replayUs ? low : high) = result.lessUs;
  }
  return result;
}

size_t Profile::fastest() const {
  auto at = std::min_element(subjects.begin(), subjects.end(),
                             [](const auto &a, const auto &b) {
                               return a.replayUs.p75 < b.replayUs.p75;
                             });
  return size_t(at - subjects.begin());
}

Result<Profile> measureProfile(const ProfileInput &input,
                               std::span<const ProfileSubject> subjects,
                               uint64_t rounds) {
  const PlanDurations durations(subjects.front().plan, input.dag);
  MGPU_TRY_ASSIGN(const Plan serial,
                  schedule(input.dag, durations, {"serial"}));
  std::vector<std::unique_ptr<Run>> runs;
  MGPU_TRY_ASSIGN(auto first, open(input, serial, 1));
  for (const ProfileSubject &subject : subjects) {
    MGPU_TRY_ASSIGN(runs.emplace_back(),
                    open(input, subject.plan, subject.threads));
  }
  const PinnedThread pinned(input.cpus.empty() ? -1 : input.cpus[0]);
  auto sample = [](Run &run) -> Result<void> {
    MGPU_TRY_ASSIGN(Sample sample, run.sampler->sample());
    run.us.push_back(sample.seconds * 1e6);
    return {};
  };
  double clock = 0;
  if (!input.onGpu) {
    MGPU_TRY_ASSIGN(clock, clockUs(input.others));
  }
  for (uint64_t k = 0; k < rounds; ++k) {
    MGPU_TRY(sample(*first));
    for (const std::unique_ptr<Run> &run : runs) {
      MGPU_TRY(sample(*run));
      if (!input.onGpu)
        MGPU_TRY(sampleNodes(*run, input.dag, clock));
    }
  }
  if (input.onGpu) {
    for (uint64_t k = 0; k < rounds; ++k)
      for (const std::unique_ptr<Run> &run : runs) {
        MGPU_TRY_ASSIGN(std::optional<double> us, run->span());
        if (us)
          run->spanUs.push_back(*us);
      }
    for (uint64_t k = 0; k < rounds; ++k)
      for (const std::unique_ptr<Run> &run : runs)
        MGPU_TRY(sampleNodes(*run, input.dag, clock));
  }
  Correction correction;
  // Processes replay beside each other, so nodes do not add up to a replay.
  if (!input.onGpu && !input.others && !runs.empty() && runs[0]->threads == 1)
    correction =
        correctionFor(timedNodes(*runs[0], input.dag), median(runs[0]->us));
  Profile profile;
  profile.serialUs = summarize(std::move(first->us));
  for (const std::unique_ptr<Run> &run : runs) {
    for (std::vector<double> &ofNode : run->nodeUs)
      for (double &us : ofNode)
        us = correction.of(us);
    ProfileSamples &samples = profile.subjects.emplace_back();
    samples.replayUs = summarize(std::move(run->us));
    samples.nodeUs = std::move(run->nodeUs);
    samples.overlaps = std::move(run->overlaps);
    if (!run->spanUs.empty())
      samples.spanUs = summarize(std::move(run->spanUs));
    samples.last = std::move(run->last);
    profile.timedBy = run->timedBy();
    MGPU_TRY_ASSIGN(samples.timeline, timelineOf(*run, rounds));
    if (run->runner)
      MGPU_TRY(run->runner->close());
  }
  if (first->runner)
    MGPU_TRY(first->runner->close());
  return profile;
}

} // namespace mgpu::bench
