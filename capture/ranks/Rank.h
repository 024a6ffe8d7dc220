// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RANK_H
#define MGPU_CAPTURE_RANKS_RANK_H

// One GPU's part of a program on several, in a process or a thread of its own.

#include "capture/ranks/RankMemory.h"
#include "capture/ranks/RemoteMeeting.h"
#include "capture/replay/Replayer.h"

namespace mgpu::capture {

class Rank;

/// Whether processes or threads carry out the ranks of a program on one
/// machine.
enum class RankPolicy : uint8_t {
  /// A process for each, forked before anything of CUDA is called. The process
  /// that starts them never calls CUDA.
  Processes,
  /// A thread for each, for whoever cannot have processes. A launch may block
  /// until the other GPUs are launched, so no thread launches two.
  Threads,
};

/// The job that all ranks of a program are given; it outlives them.
struct RankJob {
  /// Opens the driver of one of the ranks here, in its process or thread.
  /// `watch` goes into the driver's options.
  using Open = std::function<Result<std::unique_ptr<device::Driver>>(
      uint32_t rank, std::function<Result<void>()> watch)>;
  /// Something else that a rank can do; all ranks do it together.
  using Work = std::function<Result<std::string>(uint32_t rank, Rank &)>;
  /// Asked in a rank's process once its driver is gone: what is wrong, if
  /// anything.
  using Farewell = std::function<std::string()>;

  planner::Dag dag;
  planner::Plan plan;
  std::vector<Bytes> kernels; ///< by KernelId
  RankMemory memory;
  Open open;
  RankPolicy policy = RankPolicy::Processes;
  std::chrono::milliseconds deadline{}; ///< how long to wait for the others
  Work work = nullptr;                  ///< may be null
  Farewell farewell = nullptr;          ///< may be null
  /// Null where all GPUs of the program are ranks here. Threads only.
  std::shared_ptr<RemoteMeeting> remote = nullptr;

  /// One rank for each GPU that is here.
  uint32_t numRanks() const {
    return remote ? remote->part.count : dag.numDevices;
  }
};

enum class RankStep : uint8_t {
  Open,   ///< opens the GPU; answers with its description and its clock
  Build,  ///< joins the others and builds the graphs
  Bind,   ///< Replayer::rebind(); threads only
  Memory, ///< answers with the address of an argument on its device, or 0
  Write,  ///< Replayer::write(), of an argument on its device
  Read,   ///< Replayer::read(), of an argument on its device
  Load,   ///< as Replayer
  Replay, ///< answers with the microseconds of each replay
  Fetch,  ///< as Replayer
  Timed,  ///< Replayer::replayTimed(); answers with the spans
  Work,   ///< answers with what RankJob::work says
  Close,  ///< ends the driver in order; answers with RankJob::farewell
};

/// The step that all ranks are asked to take.
struct RankRequest {
  RankStep step = RankStep::Open;
  uint64_t count = 0;               ///< number of replays
  planner::BufferId buffer = {};    ///< to bind, to write, to read
  std::span<std::byte> memory = {}; ///< to be bound to, or copied
};

/// The identifiers of the groups of communicatingGroups() that `own` is the
/// first of, for the others to be told.
Result<std::vector<device::GroupId>>
makeGroups(const planner::Dag &dag, DeviceId own, device::Driver &driver);
/// Joins all groups. `told` is what the makeGroups() of each device gave.
Result<void> joinGroups(const planner::Dag &dag, std::span<const Bytes> told,
                        device::Driver &driver);

class Rank {
public:
  Rank(uint32_t rank, const RankJob &job);

  /// Appends its answer to `said`. Errors: the step's; Absent for memory.
  Result<void> perform(const RankRequest &request, Bytes &said);

  /// For RankJob::work.
  device::Driver &target() { return *driver; }
  Rendezvous &others() { return *rendezvous; }

  bool isLost() const { return driver && !driver->checkAlive(); }
  /// Leaves what there is of the GPU as it is.
  void abandon(const std::string &reason);

private:
  Result<void> open(Bytes &said);
  Result<void> build();
  Result<void> replay(uint64_t count, Bytes &said);
  Result<void> replayTimed(Bytes &said);
  /// Threads meet before their drivers end: then nothing uses the host buffers
  /// any more.
  Result<void> close(Bytes &said);

  Result<void> meet(std::optional<planner::Phase> next);

  const uint32_t rank; ///< among those here
  const RankJob &job;
  const std::unique_ptr<Rendezvous> rendezvous; ///< of all of the program
  std::unique_ptr<device::Driver> driver;
  std::vector<device::GroupId> led; ///< the groups this rank is the first of
  std::optional<Replayer> replayer; ///< goes before its driver
};

/// The answer of a rank to a step.
struct RankAnswer {
  size_t rank = 0;
  Result<void> said;
  bool isDead = false; ///< it ended, and will answer nothing more
};

/// The processes or threads of all ranks.
class RankCrew {
public:
  virtual ~RankCrew() = default;
  /// Asks every rank for one step; the answers come by next().
  virtual void post(const RankRequest &request) = 0;
  /// The next answer, if there is one within so many seconds.
  virtual std::optional<RankAnswer> next(double seconds) = 0;
  /// Gives up a rank that does not answer any more. Says what was done to it.
  virtual std::string giveUp(size_t rank) = 0;
  /// Gives the ranks up and leaves the GPUs as they are.
  virtual void abandon() {}
  /// The bytes that a rank which answered without an error appended to its
  /// answer.
  virtual std::span<const std::byte> said(size_t rank) const = 0;
  virtual pid_t process(size_t rank) const = 0;
};

/// Forks a process for each rank.
Result<std::unique_ptr<RankCrew>>
startRankProcesses(std::shared_ptr<const RankJob> job);

/// Starts a thread for each rank. The threads end with the crew. It waits for
/// them no longer than `grace`: a thread inside a call that does not return is
/// left to itself, with all that it uses.
Result<std::unique_ptr<RankCrew>>
startRankThreads(std::shared_ptr<RankJob> job, std::chrono::milliseconds grace);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_RANK_H
