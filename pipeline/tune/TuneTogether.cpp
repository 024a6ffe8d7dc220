// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/tune/TuneTogether.h"

#include "bench/profile/Profile.h"
#include "capture/ranks/Ranks.h"
#include "device/host/HostDriver.h"
#include "support/Escape.h"
#include "tuner/candidate/Candidate.h"

#include <fmt/format.h>

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

using tuner::Realization;

RankCandidates::RankCandidates(const planner::Dag &dag,
                               const tuner::ProgramData &data, bool coldCaches,
                               device::MessageRendezvous &others,
                               const GpuRanks *gpus)
    : dag(dag), data(data), others(others), gpus(gpus) {
  options.openDriver = [&others](uint32_t devices, uint32_t threads,
                                 std::span<const int>) {
    return device::createHostDriver(device::hostPart(devices, others), threads);
  };
  options.sampling.cache =
      coldCaches ? bench::CacheMode::Cold : bench::CacheMode::Hot;
  options.sampling.others = &others;
}

/// Hears what each rank says: a fault where one of them says something.
static Result<Outcome<void>> hear(const std::string &mine,
                                  device::MessageRendezvous &others) {
  Bytes bytes;
  append(bytes, mine);
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange(bytes));
  for (uint32_t rank = 0; rank < all.size(); ++rank)
    if (const std::string text = ByteReader(all[rank]).text(); !text.empty())
      return Outcome<void>(
          fault(FaultKind::Refused,
                fmt::format("on rank {}: {}", rank, escaped(text))));
  return Outcome<void>();
}

Result<Outcome<void>> RankCandidates::open(uint64_t id,
                                           const Realization *mine) {
  Each &each = all[id];
  planner::Dag changed = mine ? *mine->dag : dag;
  Prepared prepared;
  if (mine) {
    prepared.plan = mine->plan;
    prepared.threads = mine->threads;
    for (const tuner::KernelObject &kernel : mine->kernels)
      prepared.kernels.push_back(*kernel);
    prepared.nccl = ncclText(mine->settings);
  }
  MGPU_TRY(sharePrepared(changed, prepared, others,
                         gpus ? KernelsFor::Gpu : KernelsFor::Processor));
  each.realization.dag =
      std::make_shared<const planner::Dag>(std::move(changed));
  each.realization.plan = std::move(prepared.plan);
  each.realization.threads = prepared.threads;
  for (Bytes &kernel : prepared.kernels)
    each.realization.kernels.push_back(
        std::make_shared<const Bytes>(std::move(kernel)));
  if (gpus) {
    each.onGpus = std::make_unique<GpuCandidate>(
        each.realization, data, *gpus, prepared.nccl, options.sampling.cache);
    MGPU_TRY(each.onGpus->open());
    return Outcome<void>();
  }
  each.run.emplace(each.realization, data, options);
  auto opened = each.run->openTimed();
  MGPU_TRY_ASSIGN(auto heard, hear(opened ? "" : opened.error().what, others));
  if (!heard)
    drop(id);
  return heard;
}

Result<Outcome<Bytes>>
RankCandidates::answer(uint64_t id, std::span<const std::byte> request) {
  auto at = all.find(id);
  if (at == all.end())
    return fail(ErrorKind::Absent,
                "rank 0 asks for a candidate that is not open");
  if (at->second.onGpus)
    return at->second.onGpus->answer(request);
  auto answer = at->second.run->answer(request);
  if (!answer) // the others are somewhere in what they do together
    return fail(ErrorKind::Absent,
                "a candidate that was checked failed as it was measured: it " +
                    answer.error().what);
  return answer;
}

void RankCandidates::drop(uint64_t id) {
  if (auto at = all.find(id); at != all.end() && at->second.onGpus)
    (void)at->second.onGpus->close(); // once it is lost, nothing is closed
  all.erase(id);
}

/// A candidate of rank 0's, which the ranks open when they are first asked.
struct TuneLeader::Led {
  TuneLeader &leader;
  Realization realization;
  uint64_t id = 0; ///< 0: not open
  ~Led() {
    if (id == 0)
      return;
    std::lock_guard<std::mutex> lock(leader.mutex);
    (void)leader.tell(Step::Drop, id);
    leader.candidates->drop(id);
  }
};

TuneLeader::TuneLeader(device::MessageRendezvous &others,
                       std::chrono::milliseconds deadline)
    : others(others) {
  using std::chrono::milliseconds;
  const milliseconds most(5000), least(100);
  const milliseconds period =
      deadline.count() == 0 ? most : std::clamp(deadline / 4, least, most);
  signs = std::thread([this, period] { giveSigns(period); });
}

TuneLeader::~TuneLeader() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  wake.notify_all();
  signs.join();
}

/// The others wait for what is next, and no longer than their deadline.
void TuneLeader::giveSigns(std::chrono::milliseconds period) {
  std::unique_lock<std::mutex> lock(mutex);
  while (!wake.wait_for(lock, period, [this] { return isOver; }))
    (void)tell(Step::Idle);
}

/// With the mutex.
Result<void> TuneLeader::tell(Step step, uint64_t id,
                              std::span<const std::byte> body) {
  if (lost)
    return fail(*lost);
  Bytes words;
  append(words, step);
  append(words, id);
  append(words, body);
  auto told = others.exchange(words);
  if (!told)
    lost = told.error();
  return told ? Result<void>() : fail(*lost);
}

Outcome<Bytes> TuneLeader::ask(Led &led, std::span<const std::byte> request) {
  std::lock_guard<std::mutex> lock(mutex);
  auto lose = [&](const Error &error) {
    lost = error;
    others.abort(error.message);
    return fault(FaultKind::Crash, error.message);
  };
  if (led.id == 0) {
    const uint64_t id = numOpened + 1;
    if (auto told = tell(Step::Open, id); !told)
      return fault(FaultKind::Crash, told.error().message);
    auto opened = candidates->open(id, &led.realization);
    if (!opened)
      return lose(opened.error());
    numOpened = id;
    if (!*opened)
      return tl::make_unexpected(opened->error());
    led.id = id;
  }
  // Rank 0 alone compares with what is expected.
  const auto head =
      request.first(std::min(request.size(), tuner::requestHeadBytes));
  if (auto told = tell(Step::Ask, led.id, head); !told)
    return fault(FaultKind::Crash, told.error().message);
  auto answer = candidates->answer(led.id, request);
  return answer ? *answer : lose(answer.error());
}

Result<void> TuneLeader::checkWhole() {
  std::lock_guard<std::mutex> lock(mutex);
  return lost ? fail(*lost) : Result<void>();
}

void TuneLeader::lead(tuner::TuningSubject &subject, bool coldCaches,
                      const GpuRanks *gpus) {
  candidates = std::make_unique<RankCandidates>(subject.dag, subject.data,
                                                coldCaches, others, gpus);
  subject.checksTogether = gpus != nullptr;
  subject.together = [this](const Realization &realization) -> tuner::Asked {
    auto led = std::make_shared<Led>(Led{*this, realization});
    return [this, led](std::span<const std::byte> request) {
      return ask(*led, request);
    };
  };
  subject.checkWhole = [this] { return checkWhole(); };
}

Result<void> TuneLeader::end() {
  std::lock_guard<std::mutex> lock(mutex);
  isOver = true;
  return tell(Step::End);
}

Result<void> followTuning(const planner::Dag &dag,
                          const tuner::ProgramData &data, bool coldCaches,
                          device::MessageRendezvous &others,
                          const GpuRanks *gpus) {
  using Step = TuneLeader::Step;
  RankCandidates candidates(dag, data, coldCaches, others, gpus);
  while (true) {
    MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange({}));
    ByteReader words(all[0]);
    const auto step = words.take<Step>();
    const auto id = words.take<uint64_t>();
    switch (step) {
    case Step::Idle:
      continue;
    case Step::Open:
      MGPU_TRY(candidates.open(id, nullptr));
      continue;
    case Step::Ask:
      MGPU_TRY(candidates.answer(id, words.rest()));
      continue;
    case Step::Drop:
      candidates.drop(id);
      continue;
    case Step::End:
      return {};
    }
    return fail(ErrorKind::Absent, "rank 0 asks for what no rank does");
  }
}

} // namespace mgpu::pipeline
