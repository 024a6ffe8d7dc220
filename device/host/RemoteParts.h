// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_REMOTEPARTS_H
#define MGPU_DEVICE_HOST_REMOTEPARTS_H

// Parts that the makers of rounds share. For RemoteRounds.cpp and
// RemoteShares.cpp alone.

#include "device/host/RemoteRounds.h"

namespace mgpu::device {

struct RemoteParts {
  RemoteParts(const CollectiveNodeParams &params, const HostPart &part);

  CollectiveNodeParams params;     ///< isHere as `part` says
  std::vector<uint32_t> rankOf;    ///< the process of each member
  std::vector<uint32_t> processes; ///< those with members, ascending
  uint32_t own = 0;                ///< this process
  RemoteRounds out;

  /// Memory that lives as long as the rounds.
  Result<std::byte *> stage(uint64_t bytes);
  /// Where the bytes of a box follow each other: where they are, or packed
  /// before the round's messages go.
  Result<const std::byte *> packed(RemoteRound &round, const std::byte *base,
                                   const Box &box);
};

uint64_t bytesOf(const Box &box);

/// Whether the two rounds of addShares() are the faster ones.
bool wantsShares(const RemoteParts &parts);
/// An all_reduce or a broadcast in two rounds.
Result<void> addShares(RemoteParts &parts);

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_REMOTEPARTS_H
