// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/RemoteCollective.h"

#include <algorithm>

namespace mgpu::device {

bool RemoteCollective::isRemote(const CollectiveNodeParams &params,
                                const HostPart &part) {
  return std::any_of(params.members.begin(), params.members.end(),
                     [&](const CollectiveMemberParams &member) {
                       return !part.here.holds(member.device);
                     });
}

Result<std::unique_ptr<RemoteCollective>>
RemoteCollective::create(const CollectiveNodeParams &params,
                         const HostPart &part) {
  auto out = std::unique_ptr<RemoteCollective>(
      new RemoteCollective(params.name, *part.others));
  MGPU_TRY_ASSIGN(out->rounds, remoteRounds(params, part));
  return out;
}

Result<void> RemoteCollective::run() {
  for (RemoteRound &round : rounds.rounds) {
    for (StridedCopy &pack : round.packs)
      pack.run();
    MGPU_TRY(others.transfer(round.sends, round.recvs, name));
    if (round.local)
      round.local->run();
  }
  return {};
}

} // namespace mgpu::device
