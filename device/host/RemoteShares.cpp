// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each process combines a part of an all_reduce, or gets one of a broadcast
// from its root, and passes it on to the others.
#include "device/host/RemoteParts.h"

#include <algorithm>

namespace mgpu::device {

namespace {

/// Below so many bytes that a process sends in one round, a second one costs
/// more than it saves.
constexpr uint64_t mostInOneRound = 128 << 10;

struct Share {
  uint32_t process = 0;
  uint64_t first = 0, bytes = 0;
};

std::vector<Share> sharesOf(const std::vector<uint32_t> &processes,
                            uint64_t bytes, uint64_t width) {
  std::vector<Share> out;
  const uint64_t count = bytes / width, of = processes.size();
  for (uint64_t k = 0; k < of; ++k) {
    const uint64_t first = count * k / of, end = count * (k + 1) / of;
    out.push_back({processes[k], first * width, (end - first) * width});
  }
  return out;
}

class Sharing {
public:
  Sharing(RemoteParts &parts, std::vector<uint32_t> processes)
      : parts(parts),
        shares(sharesOf(processes, bytesOf(parts.params.members[0].recvBox),
                        sizeBytes(parts.params.elementType))) {
    for (const Share &share : shares)
      if (share.process == parts.own)
        mine = share;
  }

  /// Where all of it is in the end: the first member's own place, if it can.
  Result<void> place() {
    for (const CollectiveMemberParams &member : parts.params.members)
      if (member.isHere && !holder)
        holder = &member;
    if (!holder->recvBox.isContiguous()) {
      holder = nullptr;
      MGPU_TRY_ASSIGN(whole,
                      parts.stage(bytesOf(parts.params.members[0].recvBox)));
    } else {
      whole = holder->recv + holder->recvBox.offset;
    }
    return {};
  }

  Result<void> combine() {
    RemoteRound round;
    CollectiveNodeParams here = parts.params;
    const uint32_t width = sizeBytes(here.elementType);
    const Box box{0, {int64_t(mine.bytes / width)}, {int64_t(width)}, width};
    bool isFirst = true;
    for (size_t i = 0; i < here.members.size(); ++i) {
      CollectiveMemberParams &member = here.members[i];
      if (member.isHere) {
        MGPU_TRY_ASSIGN(const std::byte *all,
                        parts.packed(round, member.send, member.sendBox));
        for (const Share &share : shares)
          if (share.process != parts.own)
            round.sends.push_back(
                {share.process, {all + share.first, share.bytes}});
        member.send = all + mine.first;
        member.isHere = std::exchange(isFirst, false);
        member.recv = whole + mine.first;
      } else {
        MGPU_TRY_ASSIGN(std::byte * part, parts.stage(mine.bytes));
        round.recvs.push_back({parts.rankOf[i], {part, mine.bytes}});
        member.send = part;
      }
      member.sendBox = member.recvBox = box;
    }
    MGPU_TRY_ASSIGN(round.local, Collective::create(here));
    parts.out.rounds.push_back(std::move(round));
    return {};
  }

  Result<void> scatter() {
    RemoteRound round;
    const uint32_t from = parts.rankOf[parts.params.root];
    if (from == parts.own) {
      const CollectiveMemberParams &root =
          parts.params.members[parts.params.root];
      MGPU_TRY_ASSIGN(const std::byte *all,
                      parts.packed(round, root.send, root.sendBox));
      for (const Share &share : shares)
        round.sends.push_back(
            {share.process, {all + share.first, share.bytes}});
      MGPU_TRY(copyFrom(round, root.send, root.sendBox, nullptr));
    } else {
      round.recvs.push_back({from, {whole + mine.first, mine.bytes}});
    }
    parts.out.rounds.push_back(std::move(round));
    return {};
  }

  Result<void> gather() {
    RemoteRound round;
    for (const Share &share : shares)
      if (share.process != parts.own) {
        round.sends.push_back(
            {share.process, {whole + mine.first, mine.bytes}});
        round.recvs.push_back(
            {share.process, {whole + share.first, share.bytes}});
      }
    MGPU_TRY(copyFrom(round, whole, packedBox(parts.params.members[0].recvBox),
                      holder));
    parts.out.rounds.push_back(std::move(round));
    return {};
  }

private:
  /// To all members here but the one that has it.
  Result<void> copyFrom(RemoteRound &round, const std::byte *source,
                        const Box &box, const CollectiveMemberParams *has) {
    std::vector<BoxMove> moves;
    for (const CollectiveMemberParams &member : parts.params.members)
      if (member.isHere && &member != has)
        moves.push_back({member.recv, member.recvBox, source, box});
    if (!moves.empty()) {
      MGPU_TRY_ASSIGN(round.local, Collective::create(std::move(moves)));
    }
    return {};
  }

  RemoteParts &parts;
  std::vector<Share> shares;
  Share mine;
  const CollectiveMemberParams *holder = nullptr;
  std::byte *whole = nullptr;
};

} // namespace

bool wantsShares(const RemoteParts &parts) {
  const CollectiveNodeParams &params = parts.params;
  const bool isReduced = params.kind == CollectiveKind::AllReduce;
  if (!isReduced && params.kind != CollectiveKind::Broadcast)
    return false;
  if (params.root >= params.members.size() || // an error elsewhere
      std::ranges::count(parts.processes, parts.own) == 0)
    return false;
  const uint32_t width = sizeBytes(params.elementType);
  const CollectiveMemberParams &one = params.members[params.root];
  auto fits = [&](const Box &box) {
    return checkBox(box) && box.elementBytes == width &&
           box.numElements() == one.sendBox.numElements();
  };
  for (const CollectiveMemberParams &member : params.members)
    if (!fits(member.recvBox) ||
        ((isReduced || &member == &one) && !fits(member.sendBox)))
      return false;
  const size_t count = parts.processes.size();
  return count > (isReduced ? 1 : 2) &&
         (count - 1) * bytesOf(one.recvBox) > mostInOneRound;
}

Result<void> addShares(RemoteParts &parts) {
  std::vector<uint32_t> processes = parts.processes;
  const bool isReduced = parts.params.kind == CollectiveKind::AllReduce;
  if (!isReduced)
    std::erase(processes, parts.rankOf[parts.params.root]);
  const bool takes = std::ranges::count(processes, parts.own) > 0;
  Sharing sharing(parts, std::move(processes));
  if (takes)
    MGPU_TRY(sharing.place());
  MGPU_TRY(isReduced ? sharing.combine() : sharing.scatter());
  return takes ? sharing.gather() : Result<void>();
}

} // namespace mgpu::device
