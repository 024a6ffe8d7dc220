// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RANKS_H
#define MGPU_CAPTURE_RANKS_RANKS_H

// A program on several GPUs of one machine: a rank for each, with a driver and
// a rank of NCCL of its own, in a process or a thread (RankPolicy). All ranks
// do each step together, one step at a time. Host buffers are memory that all
// of them share. If one rank fails, dies or is late, the others give up, and
// every later step is refused.

#include "capture/ranks/RankSteps.h"
#include "capture/ranks/Runner.h"

#include <deque>
#include <map>

namespace mgpu::capture {

class Ranks final : public Runner {
public:
  struct Options : RankLimits {
    RankPolicy policy = RankPolicy::Processes;
    std::vector<std::string> names; ///< what ranks are called: "cuda:0"
    RankJob::Farewell farewell = nullptr;
    RankJob::Work work = nullptr;
  };

  /// Starts a process or a thread for each device, or for each that is in this
  /// process (threads only); then all open, connect and build. Errors: those of
  /// checkAcrossRanks(), and of any rank.
  static Result<std::unique_ptr<Ranks>>
  start(planner::Dag dag, planner::Plan plan, std::vector<Bytes> kernels,
        RankJob::Open open, Options options,
        std::optional<RemotePart> part = {});
  /// Processes are killed. The drivers of threads end in order, if none is
  /// lost and no others are in other processes; that takes no longer than a
  /// step may.
  ~Ranks() override;

  std::string description() const override;
  std::span<std::byte> hostBuffer(planner::BufferId id) override;
  Result<std::span<std::byte>> memory(planner::BufferId id) override;
  Result<void> write(planner::BufferId id,
                     std::span<const std::byte> bytes) override;
  Result<void> read(planner::BufferId id, std::span<std::byte> bytes) override;
  bool isOnHost() const override { return false; }
  Result<std::span<std::byte>> makeMemory(planner::BufferId id) override;
  /// Threads: as Replayer::rebind(), and `memory` is reached by the contexts of
  /// all GPUs. Processes do not share `memory`: its bytes are copied.
  Result<void> bind(planner::BufferId id, std::span<std::byte> memory) override;
  Result<void> checkAlive() const override { return steps.checkAlive(); }
  Result<void> load() override;
  /// The times are those of the rank where it took longest.
  Result<void> replay(std::span<double> us) override;
  using Runner::replay;
  Result<void> fetch() override;
  Result<std::vector<TimedReplay>> replayTimed() override; ///< by rank
  std::string timedBy() const override { return clock; }
  /// The words of Options::work, by rank; `what` is for the error.
  Result<std::vector<std::string>> work(const char *what);
  Result<void> close() override;

  pid_t process(uint32_t rank) const { return crew->process(rank); }

private:
  bool isOnDevice(planner::BufferId id) const {
    return !job->dag.buffer(id).device.isHost();
  }
  Ranks(std::shared_ptr<RankJob> job, const Options &options)
      : job(std::move(job)), limits(options),
        steps(this->job->numRanks(), options, options.names) {}
  /// Asks every rank and waits for all answers; `what` is for the error.
  Result<void> askAll(const RankRequest &request, const char *what,
                      std::chrono::milliseconds patience);
  Result<void> askAll(RankStep step, const char *what) {
    return askAll({.step = step}, what, limits.deadline);
  }

  std::shared_ptr<RankJob> job; ///< threads hold it, too
  RankLimits limits;
  RankSteps steps;
  std::unique_ptr<RankCrew> crew;
  std::vector<std::string> descriptions;          ///< by rank
  std::string clock;                              ///< timedBy(), of the first
  std::map<uint32_t, std::span<std::byte>> bound; ///< by BufferId
  std::deque<Bytes> made;                         ///< by makeMemory()
  bool isClosed = false;
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_RANKS_H
