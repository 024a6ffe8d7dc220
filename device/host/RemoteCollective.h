// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_REMOTECOLLECTIVE_H
#define MGPU_DEVICE_HOST_REMOTECOLLECTIVE_H

// A collective, or a copy as a send and a receive, some of whose members are in
// other processes. Each process sends the others what they read, then does what
// is left among its own members by the rules of CollectiveSteps.h: all combine
// in rank order, so the bits are those of one process.

#include "device/host/HostCollective.h"
#include "device/host/HostDriver.h"

namespace mgpu::device {

// Who sends what to whom in a collective of several processes. Bytes without
// gaps are sent from where they lie; received ones go where their first
// receiver wants them, unless something here still reads that place.

/// All messages of a round go at once, after the packs and before `local`.
struct RemoteRound {
  std::vector<StridedCopy> packs;
  std::vector<Outgoing> sends;
  std::vector<Incoming> recvs;
  std::unique_ptr<Collective> local; ///< null: nothing is left to do
};

struct RemoteRounds {
  std::vector<RemoteRound> rounds;
  std::vector<std::unique_ptr<std::byte[]>> staging;
};

class RemoteCollective {
public:
  /// Whether a member is in another process.
  static bool isRemote(const CollectiveNodeParams &params,
                       const HostPart &part);
  /// Members of other processes have no addresses. `part` must outlive it.
  static Result<std::unique_ptr<RemoteCollective>>
  create(const CollectiveNodeParams &params, const HostPart &part);
  /// All processes with members call it, and several of them in one order.
  /// Errors: those of MessageRendezvous::transfer().
  Result<void> run();

private:
  RemoteCollective(std::string name, MessageRendezvous &others)
      : name(std::move(name)), others(others) {}

  std::string name;
  MessageRendezvous &others;
  RemoteRounds rounds;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_REMOTECOLLECTIVE_H
