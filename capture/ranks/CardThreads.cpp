// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/CardThreads.h"

#include "capture/graph/Cards.h"

#include <algorithm>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace mgpu::capture {

/// What the threads share. The last that holds it frees it, which may be a
/// thread that came back from a call long after it was given up.
class CardThreads::Crew {
public:
  Crew(planner::Dag dag, planner::Plan plan, Kernels kernels,
       CardRank::Open open, const Options &options)
      : dag(std::move(dag)), plan(std::move(plan)),
        kernels(std::move(kernels)), job{this->dag,          this->plan,
                                         this->kernels,      std::move(open),
                                         options.meeting(),
                                         /*areThreads=*/true},
        led(this->dag.numDevices), hasEnded(this->dag.numDevices) {
    answers.reserve(this->dag.numDevices);
  }
  ~Crew() {
    if (isAbandoned)
      memory.keep();
  }

  /// What thread `rank` does. Its driver is this thread's from its beginning to
  /// its end.
  void run(uint32_t rank) {
    {
      CardRank card(rank, job, memory);
      // What one card may still be doing reaches the memory of all, which the
      // first has pinned.
      if (serve(rank, card))
        card.abandon("another card was lost");
      else if (rank == 0)
        awaitOthers();
    }
    std::lock_guard<std::mutex> lock(mutex);
    hasEnded[rank] = true;
    answered.notify_all();
  }

  void post(const Asked &what) {
    std::lock_guard<std::mutex> lock(mutex);
    wanted = what;
    ++numSteps;
    asked.notify_all();
  }

  std::optional<CardAnswer> next(double seconds) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!answered.wait_for(lock, std::chrono::duration<double>(seconds),
                           [&] { return !answers.empty(); }))
      return std::nullopt;
    CardAnswer answer = std::move(answers.back());
    answers.pop_back();
    return answer;
  }

  /// From here on nobody waits for the thread.
  void leave() {
    std::lock_guard<std::mutex> lock(mutex);
    ++numLeft;
    isAbandoned = true;
  }

  /// Ends the threads, and waits for so long at most for those that were not
  /// left.
  void end(std::chrono::milliseconds most) {
    std::unique_lock<std::mutex> lock(mutex);
    isOver = true;
    numStarted = threads.size();
    asked.notify_all();
    answered.wait_for(lock, most,
                      [&] { return numEnded() + numLeft >= numStarted; });
    for (size_t rank = 0; rank < threads.size(); ++rank) {
      if (!hasEnded[rank]) {
        isAbandoned = true;
        threads[rank].detach();
        continue;
      }
      lock.unlock();
      threads[rank].join();
      lock.lock();
    }
  }

  CardMemory memory;
  std::vector<std::thread> threads; ///< the caller's alone
  const planner::Dag dag;

private:
  /// Does the steps; whether the card is to be left as it is.
  bool serve(uint32_t rank, CardRank &card) {
    std::unique_lock<std::mutex> lock(mutex);
    for (uint64_t done = 0;; ++done) {
      asked.wait(lock, [&] { return numSteps != done || isOver; });
      if (numSteps == done)
        return isAbandoned;
      const Asked what = wanted;
      lock.unlock();
      Result<void> said = tryStep(rank, card, what);
      const bool isLost = card.isLost();
      lock.lock();
      isAbandoned = isAbandoned || isLost;
      answers.push_back({rank, std::move(said)});
      answered.notify_all();
    }
  }

  void awaitOthers() {
    std::unique_lock<std::mutex> lock(mutex);
    answered.wait(lock, [&] { return numEnded() + 1 >= numStarted; });
  }
  size_t numEnded() const {
    return size_t(std::count(hasEnded.begin(), hasEnded.end(), true));
  }

  Result<void> tryStep(uint32_t rank, CardRank &card, const Asked &what) {
    try {
      return doStep(rank, card, what);
    } catch (const std::bad_alloc &) {
      return fail(ErrorKind::Absent, "out of memory");
    }
  }

  Result<void> doStep(uint32_t rank, CardRank &card, const Asked &what) {
    switch (what.step) {
    case Step::Open: {
      MGPU_TRY_ASSIGN(auto ids, card.open());
      std::lock_guard<std::mutex> lock(mutex);
      led[rank] = std::move(ids);
      return {};
    }
    case Step::Build:
      return card.build(led); // complete once all have opened
    case Step::Bind:
      return card.replayer().rebind(dag, plan, what.buffer, what.memory);
    case Step::Load:
      return card.replayer().load();
    case Step::Replay:
      return card.replayer().replay();
    case Step::Fetch:
      return card.replayer().fetch();
    case Step::Close:
      break;
    }
    return card.close();
  }

  const planner::Plan plan;
  const Kernels kernels;
  const CardRank::Job job;
  std::mutex mutex;
  std::condition_variable asked, answered;
  // Under the mutex.
  std::vector<std::vector<device::GroupId>> led; ///< by rank
  std::vector<bool> hasEnded;                    ///< by rank
  Asked wanted;
  uint64_t numSteps = 0;
  size_t numLeft = 0, numStarted = 0;
  bool isOver = false, isAbandoned = false;
  std::vector<CardAnswer> answers;
};

CardThreads::CardThreads(std::shared_ptr<Crew> crew, uint32_t ranks,
                         const Options &options)
    : crew(std::move(crew)), limits(options),
      steps(ranks, options, options.names) {}

Result<std::unique_ptr<CardThreads>>
CardThreads::start(planner::Dag dag, planner::Plan plan, Kernels kernels,
                   CardRank::Open open, Options options) {
  MGPU_TRY(checkAcrossCards(dag));
  const uint32_t ranks = dag.numDevices;
  MGPU_TRY_ASSIGN(CardMemory memory, CardMemory::make(dag));
  auto crew =
      std::make_shared<Crew>(std::move(dag), std::move(plan),
                             std::move(kernels), std::move(open), options);
  crew->memory = std::move(memory);
  std::unique_ptr<CardThreads> out(new CardThreads(crew, ranks, options));
  try {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      crew->threads.emplace_back([crew, rank] { crew->run(rank); });
  } catch (const std::system_error &error) {
    return fail(
        ErrorKind::Absent,
        fmt::format("no thread for each of {} cards: {}", ranks, error.what()));
  }
  const auto patience = out->limits.patience();
  MGPU_TRY(out->askAll(Step::Open, "opening", patience));
  MGPU_TRY(out->askAll(Step::Build, "building", patience));
  return out;
}

CardThreads::~CardThreads() {
  const bool isWhole = crew->threads.size() == steps.size();
  if (isWhole && !steps.isLost())
    (void)askAll(Step::Close, "the end", limits.patience());
  crew->end(limits.grace);
}

Result<void> CardThreads::askAll(Step step, const char *what,
                                 std::chrono::milliseconds patience) {
  return askAll({step, {}, {}}, what, patience);
}

Result<void> CardThreads::askAll(const Asked &asked, const char *what,
                                 std::chrono::milliseconds patience) {
  MGPU_TRY(steps.checkAlive());
  crew->post(asked);
  return steps.gather(
      what, patience, crew->memory.control(),
      [&](double seconds) { return crew->next(seconds); },
      [&](size_t) -> std::string {
        crew->leave();
        return "is left to itself";
      });
}

std::span<std::byte> CardThreads::hostBuffer(planner::BufferId id) {
  auto own = bound.find(id.value);
  return own == bound.end() ? crew->memory.hostBuffer(id) : own->second;
}

Result<void> CardThreads::bind(planner::BufferId id,
                               std::span<std::byte> memory) {
  // What is wrong on every card alike costs none.
  MGPU_TRY(checkRebind(crew->dag, id, memory));
  MGPU_TRY(askAll({Step::Bind, id, memory}, "binding memory of the caller's",
                  limits.patience()));
  bound[id.value] = memory;
  return {};
}

Result<void> CardThreads::load() {
  return askAll(Step::Load, "the load", limits.deadline);
}

Result<void> CardThreads::replay() {
  return askAll(Step::Replay, "the replay", limits.deadline);
}

Result<void> CardThreads::fetch() {
  return askAll(Step::Fetch, "the fetch", limits.deadline);
}

} // namespace mgpu::capture
