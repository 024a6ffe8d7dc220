// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_REMOTEMEETING_H
#define MGPU_CAPTURE_RANKS_REMOTEMEETING_H

// How the GPUs of this process meet those of other processes: its ranks meet
// among themselves, and the first of them meets the others for all.

#include "capture/ranks/HostMirror.h"

namespace mgpu::capture {

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
