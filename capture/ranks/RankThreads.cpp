// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/Rank.h"

#include <algorithm>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace mgpu::capture {

namespace {

/// The state that the threads share. The last that holds it frees it, which may
/// be a thread that came back from a call long after it was given up.
class Crew {
public:
  explicit Crew(std::shared_ptr<RankJob> job)
      : job(std::move(job)), answered(this->job->numRanks()),
        hasEnded(answered.size()) {
    waiting.reserve(answered.size());
  }

  /// The work of thread `k`. Its driver is this thread's from its beginning to
  /// its end.
  void run(uint32_t k) {
    {
      Rank rank(k, *job);
      // Work that one GPU may still be doing reaches the memory of all, which
      // the first has pinned.
      if (serve(k, rank))
        rank.abandon("another GPU was lost");
      else if (k == 0)
        awaitOthers();
    }
    std::lock_guard<std::mutex> lock(mutex);
    hasEnded[k] = true;
    changed.notify_all();
  }

  void post(const RankRequest &request) {
    std::lock_guard<std::mutex> lock(mutex);
    wanted = request;
    ++numSteps;
    asked.notify_all();
  }

  std::optional<RankAnswer> next(double seconds) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!changed.wait_for(lock, std::chrono::duration<double>(seconds),
                          [&] { return !waiting.empty(); }))
      return std::nullopt;
    RankAnswer answer = std::move(waiting.back());
    waiting.pop_back();
    return answer;
  }

  /// From here on nobody waits for one more thread.
  void leaveOne() {
    std::lock_guard<std::mutex> lock(mutex);
    ++numLeft;
    abandon();
  }

  void giveUpAll() {
    std::lock_guard<std::mutex> lock(mutex);
    abandon();
  }

  /// Ends the threads, and waits for so long at most for those that were not
  /// left.
  void end(std::vector<std::thread> &threads, std::chrono::milliseconds most) {
    std::unique_lock<std::mutex> lock(mutex);
    isOver = true;
    numStarted = threads.size();
    asked.notify_all();
    changed.wait_for(lock, most,
                     [&] { return numEnded() + numLeft >= numStarted; });
    for (size_t k = 0; k < threads.size(); ++k) {
      if (!hasEnded[k]) {
        abandon();
        threads[k].detach();
        continue;
      }
      lock.unlock();
      threads[k].join();
      lock.lock();
    }
  }

  /// The rank's answer to a step that all threads have answered.
  std::span<const std::byte> said(size_t rank) const { return answered[rank]; }

private:
  /// Does the steps; whether the GPU is to be left as it is.
  bool serve(uint32_t k, Rank &rank) {
    std::unique_lock<std::mutex> lock(mutex);
    for (uint64_t done = 0;; ++done) {
      asked.wait(lock, [&] { return numSteps != done || isOver; });
      if (numSteps == done)
        return isAbandoned;
      const RankRequest request = wanted;
      lock.unlock();
      answered[k].clear();
      Result<void> said = perform(rank, request, answered[k]);
      const bool isLost = rank.isLost();
      lock.lock();
      if (isLost)
        abandon();
      waiting.push_back({k, std::move(said)});
      changed.notify_all();
    }
  }

  static Result<void> perform(Rank &rank, const RankRequest &request,
                              Bytes &said) {
    try {
      return rank.perform(request, said);
    } catch (const std::bad_alloc &) {
      return fail(ErrorKind::Absent, "out of memory");
    }
  }

  void awaitOthers() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return numEnded() + 1 >= numStarted; });
  }
  size_t numEnded() const {
    return size_t(std::count(hasEnded.begin(), hasEnded.end(), true));
  }
  void abandon() {
    isAbandoned = true;
    job->memory.keep();
  }

  const std::shared_ptr<RankJob> job;
  std::vector<Bytes> answered; ///< by rank; each is its thread's in a step
  std::mutex mutex;
  std::condition_variable asked, changed;
  // Under the mutex.
  std::vector<bool> hasEnded; ///< by rank
  RankRequest wanted;
  uint64_t numSteps = 0;
  size_t numLeft = 0, numStarted = 0;
  bool isOver = false, isAbandoned = false;
  std::vector<RankAnswer> waiting; ///< answers, until next() takes them
};

class RankThreads final : public RankCrew {
public:
  RankThreads(std::shared_ptr<RankJob> job, std::chrono::milliseconds grace)
      : numRanks(job->numRanks()), grace(grace),
        crew(std::make_shared<Crew>(std::move(job))) {}
  ~RankThreads() override { crew->end(threads, grace); }

  Result<void> start() {
    try {
      for (uint32_t rank = 0; rank < numRanks; ++rank)
        threads.emplace_back([crew = crew, rank] { crew->run(rank); });
    } catch (const std::system_error &error) {
      return fail(ErrorKind::Absent,
                  fmt::format("no thread for each of {} GPUs: {}", numRanks,
                              error.what()));
    }
    return {};
  }

  void post(const RankRequest &request) override { crew->post(request); }
  std::optional<RankAnswer> next(double seconds) override {
    return crew->next(seconds);
  }
  void abandon() override { crew->giveUpAll(); }
  std::string giveUp(size_t) override {
    crew->leaveOne();
    return "is left to itself";
  }
  std::span<const std::byte> said(size_t rank) const override {
    return crew->said(rank);
  }
  pid_t process(size_t) const override { return getpid(); }

private:
  const uint32_t numRanks;
  const std::chrono::milliseconds grace;
  const std::shared_ptr<Crew> crew; ///< the threads hold it, too
  std::vector<std::thread> threads;
};

} // namespace

Result<std::unique_ptr<RankCrew>>
startRankThreads(std::shared_ptr<RankJob> job,
                 std::chrono::milliseconds grace) {
  auto crew = std::make_unique<RankThreads>(std::move(job), grace);
  MGPU_TRY(crew->start());
  return std::unique_ptr<RankCrew>(std::move(crew));
}

} // namespace mgpu::capture
