// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/tune/TuneTogether.h"

#include "device/host/HostDriver.h"
#include "support/Escape.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline {

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
