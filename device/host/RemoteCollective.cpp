// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/RemoteCollective.h"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <set>

namespace mgpu::device {

namespace {

uint64_t bytesOf(const Box &box) {
  return uint64_t(box.numElements()) * box.elementBytes;
}

/// What one process sends another: bytes of what a member sends, packed.
struct Part {
  uint32_t member = 0, to = 0; ///< `to` is a process
  uint64_t offset = 0, bytes = 0;
};

/// All messages of a collective, in an order that is the same everywhere.
std::vector<Part> partsOf(const CollectiveNodeParams &params,
                          const HostPart &part) {
  const auto n = uint32_t(params.members.size());
  std::vector<uint32_t> rankOf;
  for (const CollectiveMemberParams &member : params.members)
    rankOf.push_back(part.rankOf(member.device));
  const std::set<uint32_t> ranks(rankOf.begin(), rankOf.end());
  std::vector<Part> out;
  for (uint32_t i = 0; i < n; ++i) {
    if (!sidesOf(params, i).sends)
      continue;
    const CollectiveMemberParams &member = params.members[i];
    const uint64_t all = bytesOf(member.sendBox);
    auto add = [&](uint32_t to, uint64_t offset, uint64_t bytes) {
      if (to != rankOf[i] && bytes > 0)
        out.push_back({i, to, offset, bytes});
    };
    switch (params.kind) {
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
      for (uint32_t j = 0; j < n; ++j)
        add(rankOf[j], j * (all / n), all / n);
      break;
    case CollectiveKind::AllGather: {
      const bool isInPlace = all == bytesOf(member.recvBox) && n > 1;
      for (uint32_t to : ranks)
        add(to, isInPlace ? i * (all / n) : 0, isInPlace ? all / n : all);
      break;
    }
    case CollectiveKind::SendRecv:
      add(rankOf[1], 0, all);
      break;
    case CollectiveKind::Permute:
      add(rankOf[*targetOf(params.pairs, i)], 0, all);
      break;
    default: // AllReduce, Broadcast
      for (uint32_t to : ranks)
        add(to, 0, all);
    }
  }
  return out;
}

} // namespace

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
  if (params.kind == CollectiveKind::SendRecv && params.members.size() != 2)
    return fail(ErrorKind::Invalid, "a send_recv is of two members");
  MGPU_TRY(checkPairs(params.pairs, params.members.size()));
  auto out = std::unique_ptr<RemoteCollective>(new RemoteCollective(part));
  out->name = params.name;
  out->staging.resize(params.members.size());
  CollectiveNodeParams here = params;
  const uint32_t own = part.others->rank();
  for (CollectiveMemberParams &member : here.members)
    member.isHere = part.here.holds(member.device);
  // The packed bytes of what a member sends, which each of its messages is a
  // part of: of one's own to send, of others' as they come. What lies without
  // gaps is sent from where it is, and received to where a receiver wants it.
  auto packed = [&](uint32_t i) -> Result<std::byte *> {
    std::unique_ptr<std::byte[]> &memory = out->staging[i];
    CollectiveMemberParams &member = here.members[i];
    if (memory)
      return memory.get();
    MGPU_TRY(checkBox(member.sendBox));
    if (member.isHere && member.sendBox.isContiguous())
      return const_cast<std::byte *>(member.send) + member.sendBox.offset;
    if (!member.isHere && params.kind == CollectiveKind::SendRecv)
      if (const CollectiveMemberParams &to = here.members[1];
          to.recvBox.isContiguous())
        return to.recv + to.recvBox.offset;
    const Box flat = packedBox(member.sendBox);
    memory.reset(new (std::nothrow) std::byte[bytesOf(member.sendBox)]);
    if (!memory)
      return fail(ErrorKind::Absent,
                  fmt::format("no memory for the {} bytes that '{}' exchanges",
                              bytesOf(member.sendBox), params.name));
    if (member.isHere) {
      MGPU_TRY_ASSIGN(
          StridedCopy pack,
          StridedCopy::create(memory.get(), flat, member.send, member.sendBox));
      out->packs.push_back(std::move(pack));
    } else {
      member.send = memory.get();
      member.sendBox = flat;
    }
    return memory.get();
  };
  for (const Part &each : partsOf(params, part)) {
    const bool isMine = part.rankOf(params.members[each.member].device) == own;
    if (!isMine && each.to != own)
      continue;
    MGPU_TRY_ASSIGN(std::byte * memory, packed(each.member));
    const std::span bytes(memory + each.offset, size_t(each.bytes));
    if (isMine)
      out->sends.push_back({each.to, bytes});
    else
      out->recvs.push_back(
          {part.rankOf(params.members[each.member].device), bytes});
  }
  if (params.kind == CollectiveKind::SendRecv) {
    MGPU_TRY(out->addUnpack(here));
  } else {
    MGPU_TRY_ASSIGN(out->local, Collective::create(here));
  }
  return out;
}

/// A copy has elements of its own width, and a receiver alone.
Result<void> RemoteCollective::addUnpack(const CollectiveNodeParams &params) {
  const CollectiveMemberParams &to = params.members[1];
  const uint64_t sent = bytesOf(params.members[0].sendBox);
  MGPU_TRY(checkBox(to.recvBox));
  if (sent != bytesOf(to.recvBox))
    return fail(ErrorKind::Invalid, fmt::format("{} bytes are sent and {} "
                                                "received",
                                                sent, bytesOf(to.recvBox)));
  if (!to.isHere || !staging[0]) // there already
    return {};
  MGPU_TRY_ASSIGN(unpack,
                  StridedCopy::create(to.recv, to.recvBox, staging[0].get(),
                                      packedBox(to.recvBox)));
  return {};
}

Result<void> RemoteCollective::run() {
  for (StridedCopy &pack : packs)
    pack.run();
  MGPU_TRY(part.others->transfer(sends, recvs, name));
  if (local)
    local->run();
  if (unpack)
    unpack->run();
  return {};
}

} // namespace mgpu::device
