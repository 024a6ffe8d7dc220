// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RANK_H
#define MGPU_CAPTURE_RANKS_RANK_H

// One GPU's part of a program on several, in a process or a thread of its own.

#include "capture/ranks/RankMemory.h"
#include "capture/replay/Replayer.h"
#include "device/api/CopyNest.h"
#include "device/api/MessageRendezvous.h"
#include "planner/dag/Dag.h"

#include <array>

namespace mgpu::capture {

// How the GPUs of this process meet those of other processes: its ranks meet
// among themselves, and the first of them meets the others for all.

// The host memory of a program whose GPUs are in several processes that share
// no memory. Rank 0 owns all that the program writes there: after a phase each
// process sends it what its GPU wrote, and before a phase it sends each what
// that one reads. Each process has by itself whatever the program only reads.

class HostMirror {
public:
  /// `memory` is this process's, by hostLayout(); `rankOf` has the process of
  /// each device, and that of device 0 is rank 0. `memory` and `others` must
  /// outlive it.
  static Result<HostMirror> create(const planner::Dag &dag,
                                   std::span<const uint32_t> rankOf,
                                   std::span<std::byte> memory,
                                   device::MessageRendezvous &others);
  /// Whether this process has a buffer's value, or is to have it.
  bool holds(planner::BufferId id) const { return isHeld[id.value]; }
  /// Rank 0 has what the phase before wrote, all have come here, and then each
  /// has what it reads in `next`. Errors: those of the rendezvous.
  Result<void> meet(std::optional<planner::Phase> next);

private:
  /// A box of the host's memory that goes from one process to another.
  struct Move {
    uint32_t rank = 0; ///< the process that is not rank 0
    std::vector<std::byte> packed{};
    device::StridedCopy pack, unpack;
  };
  using Moves = std::vector<Move>;
  explicit HostMirror(device::MessageRendezvous &others) : others(&others) {}
  Result<void> carry(Moves &moves, bool isToFirst, const char *what);

  device::MessageRendezvous *others;
  std::vector<bool> isHeld; ///< by BufferId
  // By Phase: what is written in it, and what is read of what is written.
  std::array<Moves, planner::allPhases.size()> written, read;
  std::optional<planner::Phase> last; ///< that was launched after a meeting
};

/// The GPUs of this process, of a program whose others are in other processes.
struct RemotePart {
  uint32_t first = 0, count = 1;               ///< its devices
  std::vector<uint32_t> rankOf;                ///< the process of each device
  device::MessageRendezvous *others = nullptr; ///< outlives the ranks
};

/// The state that all ranks of this process share.
struct RemoteMeeting {
  /// `memory` is the process's of the host, by hostLayout().
  static Result<std::shared_ptr<RemoteMeeting>>
  create(const planner::Dag &dag, RemotePart part, std::span<std::byte> memory);

  const RemotePart part;
  HostMirror mirror;
  // By the first rank, for all, between two meetings of theirs:
  std::optional<Error> fault;
  double largest = 0;
  std::vector<Bytes> gathered; ///< by device
};

/// One GPU's rank among all of the program.
class RemoteRank final : public device::Rendezvous {
public:
  /// `here` is its rank among those of this process. `shared` must outlive it.
  RemoteRank(RemoteMeeting &shared, std::unique_ptr<device::Rendezvous> here)
      : shared(shared), here(std::move(here)) {}

  uint32_t rank() const override { return shared.part.first + here->rank(); }
  uint32_t count() const override {
    return uint32_t(shared.part.rankOf.size());
  }
  Result<void> watch() override;
  Result<void> meet() override;
  Result<double> largest(double mine) override;
  Result<std::vector<Bytes>> exchange(std::span<const std::byte> mine) override;
  void abort(const std::string &reason) override { here->abort(reason); }
  /// meet(), with HostMirror::meet() for the process.
  Result<void> meetFor(std::optional<planner::Phase> next);

private:
  /// The first rank does `work` for all, once all are here.
  Result<void> byFirst(const std::function<Result<void>()> &work);

  RemoteMeeting &shared;
  const std::unique_ptr<device::Rendezvous> here;
};

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
  Bind,   ///< Replayer::rebind() of the Rebindings in `memory`; threads only
  Memory, ///< answers with the address of an argument on its device, or 0
  Write,  ///< Replayer::write(), of an argument on its device
  Read,   ///< Replayer::read(), of an argument on its device
  Load,   ///< as Replayer
  Replay, ///< answers with the microseconds of each replay
  Fetch,  ///< as Replayer
  Hashes, ///< Replayer::hashOutputs(); answers with nodes, then buffers
  Timed,  ///< Replayer::replayTimed(); answers with the spans
  Work,   ///< answers with what RankJob::work says
  Close,  ///< ends the driver in order; answers with RankJob::farewell
};

/// The step that all ranks are asked to take.
struct RankRequest {
  RankStep step = RankStep::Open;
  uint64_t count = 0;               ///< number of replays
  planner::BufferId buffer = {};    ///< to write, to read
  std::span<std::byte> memory = {}; ///< to be copied, or what to bind
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
