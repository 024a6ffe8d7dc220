// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_CARDWORKERS_H
#define MGPU_TOOLS_MGPU_TUNE_CARDWORKERS_H

// A program on several cards: a process for each, forked before anything of
// CUDA is called, so that each has one card and one rank of NCCL. This process
// never calls CUDA. It hands out NCCL's ids, starts each step on all cards and
// waits for all of them; host buffers are memory that all of them share. Where
// one fails, dies or is late, the others give up, and there is one error that
// says which, and which collective the others were in (CardSteps).

#include "capture/ranks/CardRank.h"
#include "capture/ranks/CardSteps.h"
#include "support/ChildProcess.h"

namespace mgpu::tune {

class CardWorkers {
public:
  using Open = capture::CardRank::Open; ///< in the rank's process
  /// Asked in a rank's process once its driver is gone: what is wrong, if
  /// anything.
  using Farewell = std::function<std::string()>;
  /// Something else that a rank can do, in its process; all do it together.
  using Work =
      std::function<Result<std::string>(uint32_t rank, capture::CardRank &)>;

  struct Options : capture::CardLimits {
    std::vector<std::string> names; ///< of ranks: "cuda:0"
    Farewell farewell;
    Work work = nullptr; ///< null: there is none
  };

  /// Forks a process for each device, opens, connects and builds. Must not be
  /// moved; `dag`, `plan` and `kernels` are copied by the fork. Errors: those
  /// of checkAcrossCards(), and of any rank.
  static Result<std::unique_ptr<CardWorkers>>
  start(const planner::Dag &dag, const planner::Plan &plan,
        const std::vector<std::vector<std::byte>> &kernels, Open open,
        Options options);
  ~CardWorkers();
  CardWorkers(const CardWorkers &) = delete;
  CardWorkers &operator=(const CardWorkers &) = delete;

  /// As Replayer::hostBuffer().
  std::span<std::byte> hostBuffer(planner::BufferId id) {
    return memory.hostBuffer(id);
  }
  Result<void> load();
  /// The microseconds of each replay, on the rank where it took longest.
  Result<std::vector<double>> replay(uint64_t count);
  Result<void> fetch();
  /// By rank.
  Result<std::vector<capture::TimedReplay>> replayTimed();
  /// What Options::work says, by rank; `what` is for the error.
  Result<std::vector<std::string>> work(const char *what);
  /// Ends the drivers in order; without it the processes are killed.
  Result<void> close();

  const std::vector<std::string> &descriptions() const { return described; }
  pid_t process(uint32_t rank) const { return workers[rank].process(); }

private:
  CardWorkers(uint32_t ranks, const Options &options)
      : limits(options), steps(ranks, options, options.names) {}
  class Rank;
  /// Posts a request to every rank and waits for all answers; `what` is for
  /// the error.
  Result<std::vector<Bytes>> askAll(const Bytes &request, const char *what,
                                    std::chrono::milliseconds patience);
  Result<std::vector<Bytes>> askAll(const Bytes &request, const char *what) {
    return askAll(request, what, limits.deadline);
  }

  capture::CardLimits limits;
  capture::CardSteps steps;
  capture::CardMemory memory;
  std::vector<ChildProcess> workers;
  std::vector<std::string> described;
};

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_CARDWORKERS_H
