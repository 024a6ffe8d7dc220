// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/profile/Profile.h"

#include "bench/measure/Environment.h"
#include "bench/measure/Sampler.h"
#include "bench/measure/Summary.h"
#include "capture/ranks/Runner.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/list/Schedulers.h"
#include "support/Clock.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace mgpu::bench {

using namespace planner;

capture::TimedReplay slowestOf(std::span<const capture::TimedReplay> all) {
  capture::TimedReplay out;
  std::map<uint32_t, capture::NodeSpan> longest;
  uint32_t firstQueue = 0;
  for (const capture::TimedReplay &each : all) {
    uint32_t nextQueue = firstQueue;
    for (capture::NodeSpan span : each.nodes) {
      span.queue += firstQueue; // those of each process are apart
      nextQueue = std::max(nextQueue, span.queue + 1);
      auto [at, isNew] = longest.emplace(span.node.value, span);
      if (!isNew &&
          span.endUs - span.startUs > at->second.endUs - at->second.startUs)
        at->second = span;
    }
    firstQueue = nextQueue;
  }
  for (const auto &[node, span] : longest)
    out.nodes.push_back(span);
  std::sort(out.nodes.begin(), out.nodes.end(),
            [](const capture::NodeSpan &a, const capture::NodeSpan &b) {
              return a.startUs < b.startUs;
            });
  return out;
}

Result<capture::TimedReplay> replayTimed(capture::Replayer &replayer,
                                         device::Rendezvous *others) {
  if (!others)
    return replayer.replayTimed();
  MGPU_TRY(others->meet());
  MGPU_TRY_ASSIGN(capture::TimedReplay timed, replayer.replayTimed());
  Bytes mine;
  capture::appendTimedReplay(mine, timed);
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others->exchange(mine));
  std::vector<capture::TimedReplay> each;
  for (const Bytes &bytes : all)
    each.push_back(capture::takeTimedReplay(bytes));
  timed.nodes = slowestOf(each).nodes;
  return timed;
}

Result<std::vector<Spans>>
timedFor(double seconds, device::Rendezvous *others,
         const std::function<Result<capture::TimedReplay>()> &timed) {
  std::vector<Spans> replays;
  const Clock::time_point start = Clock::now();
  for (double passed = 0; replays.size() < 3 || passed < seconds;) {
    MGPU_TRY_ASSIGN(capture::TimedReplay spans, timed());
    replays.push_back(std::move(spans.nodes));
    passed = secondsSince(start);
    if (others) {
      MGPU_TRY_ASSIGN(passed, others->largest(passed));
    }
  }
  return replays;
}

std::vector<double> medianTimes(size_t numNodes,
                                std::span<const Spans> replays) {
  std::vector<std::vector<double>> times(numNodes);
  for (const Spans &spans : replays)
    for (const capture::NodeSpan &span : spans)
      if (span.node.value < numNodes) // another process may have said it
        times[span.node.value].push_back(span.endUs - span.startUs);
  std::vector<double> out;
  for (std::vector<double> &ofNode : times)
    out.push_back(ofNode.empty() ? 0.0 : median(std::move(ofNode)));
  return out;
}

std::vector<capture::NodeSpan>
medianReplay(std::vector<std::vector<capture::NodeSpan>> replays) {
  if (replays.empty())
    return {};
  auto length = [](const std::vector<capture::NodeSpan> &spans) {
    double end = 0;
    for (const capture::NodeSpan &span : spans)
      end = std::max(end, span.endUs);
    return end;
  };
  auto middle = replays.begin() + ptrdiff_t(replays.size() / 2);
  std::nth_element(
      replays.begin(), middle, replays.end(),
      [&](const auto &a, const auto &b) { return length(a) < length(b); });
  return std::move(*middle);
}

Overlap overlapOf(const Dag &dag, std::span<const capture::NodeSpan> spans) {
  Overlap out;
  out.share.assign(dag.nodes.size(), -1);
  std::vector<const capture::NodeSpan *> order;
  for (const capture::NodeSpan &span : spans)
    order.push_back(&span);
  std::sort(order.begin(), order.end(),
            [](auto *a, auto *b) { return a->startUs < b->startUs; });
  auto meets = [&](const DagNode &a, const DagNode &b) {
    return std::any_of(a.devices.begin(), a.devices.end(), [&](DeviceId d) {
      return std::find(b.devices.begin(), b.devices.end(), d) !=
             b.devices.end();
    });
  };
  // The cover of a span is the union of the others' parts of it, which come in
  // the order of their starts. Before one that starts earlier nothing may end
  // later than the longest span before.
  double longest = 0;
  for (const capture::NodeSpan *span : order)
    longest = std::max(longest, span->endUs - span->startUs);
  for (size_t k = 0; k < order.size(); ++k) {
    const capture::NodeSpan &mine = *order[k];
    const DagNode &node = dag.node(mine.node);
    const double length = mine.endUs - mine.startUs;
    double any = 0, kernels = 0, anyTo = mine.startUs, kernelsTo = mine.startUs;
    size_t first = k;
    while (first > 0 && order[first - 1]->startUs > mine.startUs - longest)
      --first;
    for (size_t j = first; j < order.size() && order[j]->startUs < mine.endUs;
         ++j) {
      const capture::NodeSpan &other = *order[j];
      const DagNode &beside = dag.node(other.node);
      if (j == k || other.endUs <= mine.startUs || !meets(node, beside))
        continue;
      auto add = [&](double &sum, double &to) {
        double from = std::max(to, other.startUs),
               until = std::min(mine.endUs, other.endUs);
        sum += std::max(0.0, until - from);
        to = std::max(to, until);
      };
      add(any, anyTo);
      if (workClass(beside) == WorkClass::Kernel)
        add(kernels, kernelsTo);
    }
    out.share[mine.node.value] = length > 0 ? any / length : 0;
    if (workClass(node) != WorkClass::Kernel) {
      out.communicationUs += length;
      out.hiddenUs += kernels;
    }
  }
  return out;
}

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
