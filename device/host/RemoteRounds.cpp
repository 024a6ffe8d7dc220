// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/RemoteRounds.h"

#include "device/host/RemoteParts.h"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <set>

namespace mgpu::device {

uint64_t bytesOf(const Box &box) {
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

namespace {

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

Result<RemoteRounds> remoteRounds(const CollectiveNodeParams &params,
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

} // namespace mgpu::device
