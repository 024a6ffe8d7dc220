// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RANKS_H
#define MGPU_CAPTURE_RANKS_RANKS_H

// A program on several GPUs of one machine: a rank for each, with a driver and
// a rank of NCCL of its own, in a process or a thread (RankPolicy). All ranks
// do each step together, one step at a time. Host buffers are memory that all
// of them share. If one rank fails, dies or is late, the others give up, and
// every later step is refused.

#include "capture/ranks/Rank.h"
#include "capture/ranks/Runner.h"
#include "device/api/MessageRendezvous.h"

#include <deque>
#include <map>
#include <string>

namespace mgpu::capture {

// Steps that all ranks of a program do together. If one fails, dies or is late,
// the others give up, and there is one error: it says which rank failed, and
// which collective the others were in.

struct RankLimits {
  /// For each replay, as the drivers have it; 0 means none.
  std::chrono::milliseconds deadline = std::chrono::minutes(2);
  /// How long the others may take to say what they were in.
  std::chrono::milliseconds grace = std::chrono::seconds(5);
  /// The number of this process, where it is one rank of several and errors
  /// call what is here by it.
  std::optional<uint32_t> process = {};
  /// For opening and connecting GPUs, which takes as long as it takes.
  std::chrono::milliseconds patience() const;
  /// For waiting until the others come to a step. It is longer than a replay's,
  /// so that the rank whose replay does not end is the one that says so.
  std::chrono::milliseconds meeting() const;
};

class RankSteps {
public:
  /// `names` are those of ranks, for errors: "cuda:0".
  RankSteps(size_t ranks, RankLimits limits, std::vector<std::string> names)
      : limits(limits), names(std::move(names)), answers(ranks),
        isWaiting(ranks) {}

  /// Waits until each rank has answered what `crew` asked it. `what` names the
  /// step in the error. A rank is given up if it gives no sign of life for
  /// `patience`.
  Result<void> gather(const char *what, std::chrono::milliseconds patience,
                      SharedControl &control, RankCrew &crew);
  /// Invalid once a step has failed: no further one is possible.
  Result<void> checkAlive() const;
  bool isLost() const { return !lost.empty(); }

private:
  tl::unexpected<Error> lose(const char *what);

  RankLimits limits;
  std::vector<std::string> names;
  // The state of the step, by rank. It is kept here so that a step without an
  // error allocates nothing.
  std::vector<RankAnswer> answers;
  std::vector<bool> isWaiting;
  std::string lost; ///< why no further step is possible
};

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
  using Runner::bind;
  Result<void> bind(std::span<const Rebinding> moved) override;
  Result<void> checkAlive() const override { return steps.checkAlive(); }
  Result<void> load() override;
  /// The times are those of the rank where it took longest.
  Result<void> replay(std::span<double> us) override;
  using Runner::replay;
  Result<void> fetch() override;
  Result<OutputHashes> hashOutputs() override;
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

/// A part of a program as one of several processes runs it, each with memory of
/// the host of its own. All processes make the same calls in the same order;
/// hostBuffer() is empty where another process has the buffer, and bind() of it
/// does nothing. Times are those of the slowest process; replayTimed() gives
/// the spans of all. `others` must outlive it.
std::unique_ptr<Runner> runWithOthers(std::unique_ptr<Runner> here,
                                      device::Rendezvous &others);

/// Runs the GPUs of this process, each in a thread, of a program whose others
/// are in other processes, of this machine or of others. The identifiers of
/// NCCL's communicators, and what the program writes to the host's memory, go
/// by `part.others`; what is on the GPUs goes by NCCL alone. hostBuffer() is
/// empty as runWithOthers() says. `open` gives the driver of each GPU here.
/// Errors: as Ranks::start().
Result<std::unique_ptr<Runner>>
runGpusWithOthers(planner::Dag dag, planner::Plan plan,
                  std::vector<Bytes> kernels, RemotePart part,
                  RankJob::Open open, Ranks::Options options);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_RANKS_H
