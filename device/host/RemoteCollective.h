// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_REMOTECOLLECTIVE_H
#define MGPU_DEVICE_HOST_REMOTECOLLECTIVE_H

// A collective, or a copy as a send and a receive, some of whose members are in
// other processes. Each process sends the others the bytes that they read, then
// does what is left among its own members by the rules of CollectiveSteps.h:
// all combine in rank order, so the bits are those of one process.

#include "device/host/Collectives.h"
#include "device/host/HostDriver.h"

#include <optional>

namespace mgpu::device {

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
  explicit RemoteCollective(const HostPart &part) : part(part) {}
  Result<void> addUnpack(const CollectiveNodeParams &params);

  const HostPart &part;
  std::string name;
  /// By member; null where the bytes go straight from or to the member's own.
  std::vector<std::unique_ptr<std::byte[]>> staging;
  std::vector<StridedCopy> packs; ///< before sending
  std::vector<Outgoing> sends;
  std::vector<Incoming> recvs;
  // Once all has come:
  std::unique_ptr<Collective> local; ///< null of a send and a receive
  std::optional<StridedCopy> unpack; ///< at the receiver of one
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_REMOTECOLLECTIVE_H
