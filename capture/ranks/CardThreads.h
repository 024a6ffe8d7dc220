// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_CARDTHREADS_H
#define MGPU_CAPTURE_RANKS_CARDTHREADS_H

// A program on several cards in one process, for whoever cannot have a process
// for each (tools/mgpu-tune/CardWorkers): a thread for each card, with a driver
// and a rank of NCCL of its own. A launch may block until the other cards are
// launched, so no thread launches two; before each launch all threads meet, and
// one replay runs at a time. Where a rank fails or is late the others give up.
// A thread inside a call that does not return cannot be ended: it is left to
// itself, with all that it uses.

#include "capture/ranks/CardRank.h"
#include "capture/ranks/CardSteps.h"

#include <map>

namespace mgpu::capture {

class CardThreads {
public:
  struct Options : CardLimits {
    std::vector<std::string> names; ///< of ranks: "cuda:0"
  };
  /// By KernelId, of a program and its plan.
  using Kernels = std::vector<std::vector<std::byte>>;

  /// Starts a thread for each device, opens, connects and builds. Errors: those
  /// of checkAcrossCards(), and of any rank.
  static Result<std::unique_ptr<CardThreads>>
  start(planner::Dag dag, planner::Plan plan, Kernels kernels,
        CardRank::Open open, Options options);
  /// Ends the drivers in order, where none is lost. Waits no longer than a step
  /// may take.
  ~CardThreads();
  CardThreads(const CardThreads &) = delete;
  CardThreads &operator=(const CardThreads &) = delete;

  /// As Replayer::hostBuffer(); as long as this lives.
  std::span<std::byte> hostBuffer(planner::BufferId id);
  /// As Replayer::rebind(); memory that the contexts of all cards reach.
  Result<void> bind(planner::BufferId id, std::span<std::byte> memory);
  Result<void> load();
  Result<void> replay();
  Result<void> fetch();

private:
  class Crew;
  enum class Step : uint8_t { Open, Build, Bind, Load, Replay, Fetch, Close };
  /// What the threads are to do; of Bind with what.
  struct Asked {
    Step step = Step::Open;
    planner::BufferId buffer;
    std::span<std::byte> memory;
  };
  CardThreads(std::shared_ptr<Crew> crew, uint32_t ranks,
              const Options &options);
  Result<void> askAll(const Asked &asked, const char *what,
                      std::chrono::milliseconds patience);
  Result<void> askAll(Step step, const char *what,
                      std::chrono::milliseconds patience);

  std::shared_ptr<Crew> crew; ///< the threads hold it, too
  CardLimits limits;
  CardSteps steps;
  std::map<uint32_t, std::span<std::byte>> bound; ///< by BufferId
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_CARDTHREADS_H
