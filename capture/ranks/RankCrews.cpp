// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/Rank.h"
#include "support/ChildProcess.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace mgpu::capture {

namespace {

constexpr double sendSeconds = 10, answerSeconds = 60;

/// In a rank's process: 0 and what was asked for, or 1 + an ErrorKind, its
/// ErrorCause and a text.
Bytes answer(Rank &rank, std::span<const std::byte> asked) {
  Bytes out;
  append(out, uint8_t(0));
  Result<void> done = rank.perform(ByteReader(asked).take<RankRequest>(), out);
  if (done)
    return out;
  out.clear();
  append(out, uint8_t(1 + uint8_t(done.error().kind)));
  append(out, uint8_t(done.error().cause));
  append(out, done.error().message);
  return out;
}

/// A process for each rank. This process hands out each request, and collects
/// the answers.
class RankProcesses final : public RankCrew {
public:
  explicit RankProcesses(std::shared_ptr<const RankJob> job)
      : job(std::move(job)), answers(this->job->dag.numDevices),
        waiting(answers.size()) {}
  ~RankProcesses() override { job->memory.control().abort(); }

  Result<void> start() {
    for (uint32_t k = 0; k < answers.size(); ++k) {
      // The rank is the child's alone from here on.
      auto rank = std::make_shared<Rank>(k, *job);
      MGPU_TRY_ASSIGN(
          ChildProcess child,
          ChildProcess::start(
              [rank](std::span<const std::byte> asked) -> Outcome<Bytes> {
                return answer(*rank, asked);
              }));
      children.push_back(std::move(child));
    }
    return {};
  }

  void post(const RankRequest &request) override {
    Bytes asked;
    append(asked, request);
    for (size_t rank = 0; rank < children.size(); ++rank) {
      answers[rank].clear();
      waiting[rank] = &children[rank];
      if (auto sent = children[rank].post(asked, sendSeconds); !sent)
        unsent.push_back(died(rank, sent.error()));
    }
  }

  std::optional<RankAnswer> next(double seconds) override {
    if (!unsent.empty()) {
      RankAnswer first = std::move(unsent.front());
      unsent.pop_front();
      return first;
    }
    auto rank = ChildProcess::firstReady(waiting, seconds);
    if (!rank)
      return std::nullopt;
    auto got = children[*rank].receive(answerSeconds);
    if (!got)
      return died(*rank, got.error());
    waiting[*rank] = nullptr;
    answers[*rank] = std::move(*got);
    ByteReader reader(answers[*rank]);
    if (auto code = reader.take<uint8_t>()) {
      auto cause = ErrorCause(reader.take<uint8_t>());
      return RankAnswer{*rank, fail(Error{.kind = ErrorKind(code - 1),
                                          .message = reader.text(),
                                          .cause = cause})};
    }
    return RankAnswer{*rank, {}};
  }

  std::string giveUp(size_t rank) override {
    ::kill(children[rank].process(), SIGKILL);
    waiting[rank] = nullptr;
    return "was ended";
  }

  std::span<const std::byte> said(size_t rank) const override {
    return std::span(answers[rank]).subspan(1);
  }
  pid_t process(size_t rank) const override { return children[rank].process(); }

private:
  RankAnswer died(size_t rank, const Fault &fault) {
    waiting[rank] = nullptr;
    return {rank, fail(ErrorKind::Absent, fault.what), true};
  }

  const std::shared_ptr<const RankJob> job;
  std::vector<ChildProcess> children;
  // The answers of this step, by rank.
  std::vector<Bytes> answers;
  std::vector<ChildProcess *> waiting; ///< null once it has answered
  std::deque<RankAnswer> unsent; ///< answers of ranks that could not be asked
};

} // namespace

Result<std::unique_ptr<RankCrew>>
startRankProcesses(std::shared_ptr<const RankJob> job) {
  auto crew = std::make_unique<RankProcesses>(std::move(job));
  MGPU_TRY(crew->start());
  return std::unique_ptr<RankCrew>(std::move(crew));
}

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
