// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/tune/GpuCandidate.h"

#include "bench/profile/Profile.h"
#include "capture/ranks/RemoteRunner.h"
#include "support/Escape.h"
#include "tuner/candidate/CandidateRun.h"

#include <algorithm>
#include <bit>

namespace mgpu::pipeline {

using tuner::Command;
using Answer = Result<Outcome<Bytes>>;

namespace {

/// The work of a rank's thread with its driver, which is guarded.
Result<std::string> workOn(device::Driver &driver, bool arms,
                           const planner::Plan &plan, const planner::Dag &dag) {
  auto &guarded = static_cast<tuner::GuardedDriver &>(driver);
  if (arms) {
    MGPU_TRY(guarded.arm(plan, dag));
    return std::string();
  }
  const Outcome<void> intact = guarded.check();
  return intact ? std::string() : intact.error().what;
}

} // namespace

Result<GpuCandidate::Opened> GpuCandidate::start(planner::Plan plan,
                                                 bool isGuarded) {
  MGPU_TRY_ASSIGN(RanksToOpen opening, gpus.opening(nccl));
  Opened out;
  if (isGuarded) {
    out.arms = std::make_shared<bool>(true);
    opening.open = [open = std::move(opening.open)](
                       uint32_t rank, std::function<Result<void>()> watch)
        -> Result<std::unique_ptr<device::Driver>> {
      MGPU_TRY_ASSIGN(auto driver, open(rank, std::move(watch)));
      return std::make_unique<tuner::GuardedDriver>(std::move(driver));
    };
    opening.how.work = [arms = out.arms, plan,
                        dag = realization.dag](uint32_t, capture::Rank &rank) {
      return workOn(rank.target(), *arms, plan, *dag);
    };
  }
  std::vector<Bytes> kernels;
  for (const tuner::KernelObject &kernel : realization.kernels)
    kernels.push_back(*kernel);
  opening.how.policy = capture::RankPolicy::Threads;
  auto here = capture::Ranks::start(*realization.dag, std::move(plan),
                                    std::move(kernels), std::move(opening.open),
                                    std::move(opening.how), gpus.here.part);
  if (!here)
    return fail(others.giveUp(std::move(here.error())));
  out.ranks = here->get();
  out.runner = capture::runWithOthers(std::move(*here), others);
  return out;
}

Result<void> GpuCandidate::open() {
  MGPU_TRY_ASSIGN(timed, start(realization.plan, false));
  return {};
}

Result<void> GpuCandidate::close() { return timed.runner->close(); }

/// The results of an earlier replay come to rank 0 before inputs are written.
Result<void> GpuCandidate::bind(Opened &on, uint64_t seed) {
  if (on.hasRun)
    MGPU_TRY(on.runner->fetch());
  on.hasRun = true;
  data.bind(
      [&](planner::BufferId id, std::span<const std::byte> bytes) {
        return on.runner->write(id, bytes); // nothing of what is not here
      },
      seed);
  return {};
}

/// The fault of the first rank that has one.
Result<Outcome<void>> GpuCandidate::agree(const Outcome<void> &mine) {
  Bytes bytes;
  append(bytes, mine ? FaultKind::Refused : mine.error().kind);
  append(bytes, mine ? std::string() : mine.error().what);
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange(bytes));
  for (const Bytes &each : all) {
    ByteReader reader(each);
    const auto kind = std::min(reader.take<FaultKind>(), FaultKind::Refused);
    if (const std::string what = reader.text(); !what.empty())
      return Outcome<void>(fault(kind, escaped(what)));
  }
  return Outcome<void>();
}

/// Two replays, as CandidateRun has them. The outputs are rank 0's.
Answer GpuCandidate::run(Opened &on, uint64_t seed) {
  if (on.arms) {
    *on.arms = true;
    MGPU_TRY(on.ranks->work("filling memory with a pattern"));
  }
  MGPU_TRY(bind(on, seed));
  MGPU_TRY(on.runner->load());
  MGPU_TRY(on.runner->replay());
  MGPU_TRY(on.runner->replay());
  MGPU_TRY(on.runner->fetch());
  Outcome<void> intact;
  if (on.arms) {
    *on.arms = false;
    MGPU_TRY_ASSIGN(const std::vector<std::string> said,
                    on.ranks->work("comparing memory with the pattern"));
    for (const std::string &each : said)
      if (intact && !each.empty())
        intact = fault(FaultKind::OutOfBounds, each);
  }
  MGPU_TRY_ASSIGN(const Outcome<void> agreed, agree(intact));
  if (!agreed)
    return Outcome<Bytes>(tl::make_unexpected(agreed.error()));
  return Outcome<Bytes>(
      data.outputs([&](planner::BufferId id, std::span<std::byte> bytes) {
        return on.runner->read(id, bytes);
      }));
}

/// With each buffer in a place of its own.
Answer GpuCandidate::runSpread(uint64_t seed) {
  MGPU_TRY_ASSIGN(
      Opened spread,
      start(tuner::spreadBuffers(realization.plan, *realization.dag), true));
  MGPU_TRY_ASSIGN(auto found, run(spread, seed));
  MGPU_TRY(spread.runner->close());
  return found;
}

Answer GpuCandidate::check(uint64_t seed, std::span<const std::byte> body) {
  tuner::Agreement furthest;
  for (const bool isSpread : {true, false}) {
    MGPU_TRY_ASSIGN(auto found, isSpread ? runSpread(seed) : run(timed, seed));
    if (!found)
      return found;
    Outcome<void> mine;
    if (others.rank() == 0) {
      auto agreement = tuner::compareWith(body, *found, data);
      if (agreement)
        furthest.add(*agreement);
      else
        mine = tl::make_unexpected(agreement.error());
    }
    MGPU_TRY_ASSIGN(const Outcome<void> agreed, agree(mine));
    if (!agreed)
      return Outcome<Bytes>(tl::make_unexpected(agreed.error()));
  }
  Bytes answer;
  append(answer, furthest);
  return Outcome<Bytes>(std::move(answer));
}

Result<Bytes> GpuCandidate::sample() {
  if (!sampler)
    sampler.emplace(
        [this]() -> Result<void> {
          MGPU_TRY(bind(timed, 0));
          return timed.runner->load();
        },
        bench::replaysOf(*timed.runner),
        bench::SamplingOptions{.cache = cache, .others = &others});
  MGPU_TRY_ASSIGN(const bench::Sample sample, sampler->sample());
  Bytes answer;
  append(answer, sample);
  return answer;
}

Result<std::vector<bench::Spans>> GpuCandidate::timedReplays(double seconds) {
  MGPU_TRY(bind(timed, 0));
  MGPU_TRY(timed.runner->load());
  MGPU_TRY(timed.runner->replay());
  return bench::timedFor(
      seconds, &others, [this]() -> Result<capture::TimedReplay> {
        MGPU_TRY_ASSIGN(const auto all, timed.runner->replayTimed());
        return bench::slowestOf(all);
      });
}

Answer GpuCandidate::answer(std::span<const std::byte> request) {
  ByteReader reader(request);
  const auto command = reader.take<Command>();
  const auto number = reader.take<uint64_t>();
  if (command == Command::Check)
    return check(number, reader.rest());
  if (command == Command::Outputs)
    return runSpread(number);
  if (command == Command::Sample) {
    MGPU_TRY_ASSIGN(Bytes sampled, sample());
    return Outcome<Bytes>(std::move(sampled));
  }
  MGPU_TRY_ASSIGN(auto replays, timedReplays(std::bit_cast<double>(number)));
  return Outcome<Bytes>(command == Command::NodeTimes
                            ? tuner::nodeTimesOf(*realization.dag, replays)
                            : tuner::timelineOf(std::move(replays)));
}

} // namespace mgpu::pipeline
