// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_HOSTMIRROR_H
#define MGPU_CAPTURE_RANKS_HOSTMIRROR_H

// The host memory of a program whose GPUs are in several processes that share
// no memory. Rank 0 owns all that the program writes there: after a phase each
// process sends it what its GPU wrote, and before a phase it sends each what
// that one reads. Each process has by itself whatever the program only reads.

#include "device/api/MessageRendezvous.h"
#include "device/api/StridedCopy.h"
#include "planner/dag/Dag.h"

#include <array>

namespace mgpu::capture {

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

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_HOSTMIRROR_H
