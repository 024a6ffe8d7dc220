// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_REMOTEROUNDS_H
#define MGPU_DEVICE_HOST_REMOTEROUNDS_H

// Who sends what to whom in a collective of several processes. Bytes without
// gaps are sent from where they lie; received ones go where their first
// receiver wants them, unless something here still reads that place.

#include "device/host/HostCollective.h"
#include "device/host/HostDriver.h"

namespace mgpu::device {

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

/// One round, or two where each process takes a share of the work: it combines
/// its part of an all_reduce, or passes on its part of a broadcast. All
/// processes choose alike, as they look at sizes alone. Errors: those of
/// collectiveSteps().
Result<RemoteRounds> remoteRounds(const CollectiveNodeParams &params,
                                  const HostPart &part);

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_REMOTEROUNDS_H
