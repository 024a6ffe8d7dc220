// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/RemoteCollective.h"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <set>

namespace mgpu::device {

namespace {

/// Parts that the makers of rounds share.
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

} // namespace

static uint64_t bytesOf(const Box &box) {
  return uint64_t(box.numElements()) * box.elementBytes;
}

RemoteParts::RemoteParts(const CollectiveNodeParams &all, const HostPart &part)
    : params(all), own(part.others->rank()) {
  for (CollectiveMemberParams &member : params.members) {
    member.isHere = part.here.holds(member.device);
    rankOf.push_back(part.rankOf(member.device));
  }
  const std::set<uint32_t> ranks(rankOf.begin(), rankOf.end());
  processes.assign(ranks.begin(), ranks.end());
}

Result<std::byte *> RemoteParts::stage(uint64_t bytes) {
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
  if (!memory)
    return fail(ErrorKind::Absent,
                fmt::format("no memory for the {} bytes that '{}' exchanges",
                            bytes, params.name));
  out.staging.push_back(std::move(memory));
  return out.staging.back().get();
}

Result<const std::byte *>
RemoteParts::packed(RemoteRound &round, const std::byte *base, const Box &box) {
  MGPU_TRY(checkBox(box));
  if (box.isContiguous())
    return base + box.offset;
  MGPU_TRY_ASSIGN(std::byte * memory, stage(bytesOf(box)));
  MGPU_TRY_ASSIGN(StridedCopy pack,
                  StridedCopy::create(memory, packedBox(box), base, box));
  round.packs.push_back(std::move(pack));
  return memory;
}

// Each process combines a part of an all_reduce, or gets one of a broadcast
// from its root, and passes it on to the others.

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

/// Whether the two rounds of addShares() are the faster ones.
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

/// An all_reduce or a broadcast in two rounds.
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

/// The round of a collective that does not reduce.
class Moving {
public:
  Moving(RemoteParts &parts, const std::vector<MemberMove> &moves)
      : parts(parts), moves(moves) {
    for (const MemberMove &move : moves)
      if (move.from && parts.rankOf[*move.from] == parts.own)
        read.push_back({parts.params.members[*move.from].send, move.source});
  }

  Result<void> add() {
    for (size_t first = 0, last = 0; first < moves.size(); first = last) {
      const MemberMove &one = moves[first];
      auto isAlike = [&](const MemberMove &move) {
        return move.from == one.from && move.source == one.source;
      };
      while (last < moves.size() && isAlike(moves[last]))
        ++last;
      MGPU_TRY(addAlike(std::span(moves).subspan(first, last - first)));
    }
    if (!local.empty()) {
      MGPU_TRY_ASSIGN(round.local, Collective::create(std::move(local)));
    }
    parts.out.rounds.push_back(std::move(round));
    return {};
  }

private:
  struct Source {
    const std::byte *base;
    Box box;
  };

  std::byte *recvOf(const MemberMove &move) const {
    return parts.params.members[move.to].recv;
  }

  /// Adds the moves of one source: a message to each process that reads it.
  Result<void> addAlike(std::span<const MemberMove> alike) {
    const MemberMove &one = alike.front();
    std::vector<const MemberMove *> here;
    std::set<uint32_t> elsewhere;
    for (const MemberMove &move : alike)
      if (const uint32_t rank = parts.rankOf[move.to]; rank == parts.own)
        here.push_back(&move);
      else
        elsewhere.insert(rank);
    if (!one.from) {
      for (const MemberMove *move : here)
        local.push_back(
            zeroMove(recvOf(*move), move->destination, Collective::zeros));
      return {};
    }
    const uint32_t from = parts.rankOf[*one.from];
    if (from != parts.own)
      return here.empty() ? Result<void>() : addReceived(from, here);
    const std::byte *base = parts.params.members[*one.from].send;
    for (const MemberMove *move : here)
      local.push_back({recvOf(*move), move->destination, base, move->source});
    if (elsewhere.empty())
      return {};
    MGPU_TRY_ASSIGN(const std::byte *bytes,
                    parts.packed(round, base, one.source));
    for (uint32_t to : elsewhere)
      round.sends.push_back({to, {bytes, bytesOf(one.source)}});
    return {};
  }

  Result<void> addReceived(uint32_t from,
                           const std::vector<const MemberMove *> &here) {
    const MemberMove *direct = nullptr;
    for (const MemberMove *move : here)
      if (!direct && isFree(*move))
        direct = move;
    std::byte *bytes = nullptr;
    if (direct) {
      bytes = recvOf(*direct) + direct->destination.offset;
    } else {
      MGPU_TRY_ASSIGN(bytes, parts.stage(bytesOf(here[0]->destination)));
    }
    round.recvs.push_back({from, {bytes, bytesOf(here[0]->destination)}});
    for (const MemberMove *move : here)
      if (move != direct)
        local.push_back({recvOf(*move), move->destination, bytes,
                         packedBox(move->destination)});
    return {};
  }

  /// Whether a message may go straight to where it belongs.
  bool isFree(const MemberMove &move) const {
    return move.destination.isContiguous() &&
           std::none_of(read.begin(), read.end(), [&](const Source &each) {
             return overlaps(recvOf(move), move.destination, each.base,
                             each.box);
           });
  }

  RemoteParts &parts;
  const std::vector<MemberMove> &moves;
  std::vector<Source> read; ///< by messages and by what is local
  RemoteRound round;
  std::vector<BoxMove> local;
};

/// A copy, whose elements have a width of their own.
Result<std::vector<MemberMove>> moveOf(const CollectiveNodeParams &params) {
  if (params.members.size() != 2)
    return fail(ErrorKind::Invalid, "a send_recv is of two members");
  const Box &sent = params.members[0].sendBox;
  const Box &received = params.members[1].recvBox;
  MGPU_TRY(checkBox(sent));
  MGPU_TRY(checkBox(received));
  if (bytesOf(sent) != bytesOf(received))
    return fail(ErrorKind::Invalid,
                fmt::format("{} bytes are sent and {} received", bytesOf(sent),
                            bytesOf(received)));
  std::vector<MemberMove> moves;
  if (sent.numElements() > 0)
    moves.push_back({0, sent, 1, received});
  return moves;
}

/// Each process gets what its members combine, whole, and does so.
Result<void> addReduction(RemoteParts &parts) {
  RemoteRound round;
  CollectiveNodeParams here = parts.params;
  const auto n = uint32_t(here.members.size());
  for (uint32_t i = 0; i < n; ++i) {
    CollectiveMemberParams &member = here.members[i];
    MGPU_TRY(checkBox(member.sendBox));
    const uint64_t all = bytesOf(member.sendBox);
    std::byte *received = nullptr;
    const std::byte *sent = nullptr;
    auto add = [&](uint32_t to, uint64_t offset,
                   uint64_t bytes) -> Result<void> {
      const uint32_t from = parts.rankOf[i];
      if (from == to || bytes == 0 || (from != parts.own && to != parts.own))
        return {};
      if (from == parts.own) {
        if (!sent) {
          MGPU_TRY_ASSIGN(sent, parts.packed(round, member.send,
                                             parts.params.members[i].sendBox));
        }
        round.sends.push_back({to, {sent + offset, bytes}});
        return {};
      }
      if (!received) {
        MGPU_TRY_ASSIGN(received, parts.stage(all));
        member.send = received;
        member.sendBox = packedBox(member.sendBox);
      }
      round.recvs.push_back({from, {received + offset, bytes}});
      return {};
    };
    if (here.kind == CollectiveKind::ReduceScatter) {
      for (uint32_t j = 0; j < n; ++j)
        MGPU_TRY(add(parts.rankOf[j], j * (all / n), all / n));
    } else {
      for (uint32_t to : parts.processes)
        MGPU_TRY(add(to, 0, all));
    }
  }
  MGPU_TRY_ASSIGN(round.local, Collective::create(here));
  parts.out.rounds.push_back(std::move(round));
  return {};
}

} // namespace

/// One round, or two where each process takes a share of the work: it combines
/// its part of an all_reduce, or passes on its part of a broadcast. All
/// processes choose alike, as they look at sizes alone. Errors: those of
/// collectiveSteps().
static Result<RemoteRounds> remoteRounds(const CollectiveNodeParams &params,
                                         const HostPart &part) {
  RemoteParts parts(params, part);
  if (params.kind == CollectiveKind::SendRecv) {
    MGPU_TRY_ASSIGN(const auto moves, moveOf(parts.params));
    MGPU_TRY(Moving(parts, moves).add());
  } else if (wantsShares(parts)) {
    MGPU_TRY(addShares(parts));
  } else if (params.kind == CollectiveKind::AllReduce ||
             params.kind == CollectiveKind::ReduceScatter) {
    MGPU_TRY(addReduction(parts));
  } else {
    MGPU_TRY_ASSIGN(const auto moves, collectiveMoves(parts.params));
    MGPU_TRY(Moving(parts, moves).add());
  }
  return std::move(parts.out);
}

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
