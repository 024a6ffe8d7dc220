// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_REMOTEMEETING_H
#define MGPU_CAPTURE_RANKS_REMOTEMEETING_H

// How the GPUs of this process meet those of other processes: its ranks meet
// among themselves, and the first of them meets the others for all.

#include "device/api/CopyNest.h"
#include "device/api/MessageRendezvous.h"
#include "planner/dag/Dag.h"

#include <array>

namespace mgpu::capture {

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

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_REMOTEMEETING_H
