// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives among GPUs, of which this process has one: NCCL's calls. NCCL
// takes contiguous memory, so that strided ends go by way of a buffer.
#include "device/cuda/graph/CudaGraph.h"
#include "device/cuda/nccl/Communicators.h"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu::device {

// Collectives between logical devices of one GPU: the GPU reaches the memory
// of them all, so each is a kernel or two of our own. (NCCL refuses two ranks
// on one GPU.)

Result<uint32_t> CudaGraph::addReduction(const CollectiveNodeParams &params,
                                         const CollectiveSteps &steps,
                                         const Specs &after) {
  const auto &reductions = steps.reductions;
  uint64_t width = sizeBytes(params.elementType);
  const ElementwiseReduction &front = reductions[0];
  DeviceReduction reduction{};
  reduction.count = front.count;
  reduction.slices = uint32_t(reductions.size());
  reduction.numInputs = uint32_t(front.inputs.size());
  uint64_t bits = reduction.slices > 1 ? front.count * width : 0;
  for (size_t r = 0; r < front.inputs.size(); ++r)
    bits |= reduction.inputs[r] = uint64_t(uintptr_t(front.inputs[r]));
  for (const ElementwiseReduction &slice : reductions)
    for (std::byte *output : slice.outputs)
      bits |= reduction.outputs[reduction.numOutputs++] =
          uint64_t(uintptr_t(output));
  reduction.isPacked = bits % 16 == 0;
  MGPU_TRY_ASSIGN(
      CUkernel kernel,
      state->deviceKernel(
          reductionKernelName(params.elementType, params.reduction),
          reductionKernelSource(params.elementType, params.reduction)));
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.isUrgent = true;
  launch.block = {deviceKernelThreads, 1, 1};
  uint64_t perThread = reduction.isPacked ? 16 / width : 1;
  uint64_t blocks = front.count / (deviceKernelThreads * perThread) + 1;
  launch.grid = {
      uint32_t(std::min<uint64_t>(blocks, 8u * state->multiprocessors)),
      reduction.slices, 1};
  launch.addParameter(&reduction, sizeof reduction);
  return append(std::move(launch), after);
}

Result<GraphNodeId>
CudaGraph::addCollective(const CollectiveNodeParams &params,
                         std::span<const GraphNodeId> dependencies) {
  if (state->communicators)
    return addNccl(params, dependencies);
  uint32_t first = uint32_t(spec->nodes.size());
  auto add = [&]() -> Result<void> {
    for (const CollectiveMemberParams &member : params.members) {
      if (!state->isHere(member.device))
        return fail(ErrorKind::Invalid,
                    fmt::format("a member is on device {}, but the devices are "
                                "{}",
                                member.device.value, state->devicesText()));
      // A side the kind does not use may be left empty.
      for (auto [base, box] :
           {std::pair{member.send, &member.sendBox},
            std::pair{(const std::byte *)member.recv, &member.recvBox}})
        if (base) {
          MGPU_TRY(checkBox(*box));
          MGPU_TRY(state->memory.check(base, *box));
        }
    }
    if (params.members.size() > maxReductionRanks)
      return fail(ErrorKind::Unsupported,
                  fmt::format("{} ranks, more than the {} devices of a GPU",
                              params.members.size(), maxReductionRanks));
    // The staging is known only once the steps are, and where it lies decides
    // nothing: once with addresses that nothing has, to measure, then for real.
    uint64_t bytes = 0;
    auto measure = [&](uint64_t size) -> Result<std::byte *> {
      bytes += (size + 255) / 256 * 256;
      return reinterpret_cast<std::byte *>(uintptr_t(256));
    };
    const std::byte *zeros = nullptr;
    if (params.kind == CollectiveKind::Permute) {
      MGPU_TRY_ASSIGN(zeros, state->zeros());
    }
    MGPU_TRY(collectiveSteps(params, {measure, zeros, true}));
    std::byte *staging = nullptr;
    if (bytes > 0) {
      MGPU_TRY_ASSIGN(staging, stage(bytes, "a collective's staging buffer"));
    }
    auto take = [&](uint64_t size) -> Result<std::byte *> {
      return std::exchange(staging, staging + (size + 255) / 256 * 256);
    };
    MGPU_TRY_ASSIGN(CollectiveSteps steps,
                    collectiveSteps(params, {take, zeros, true}));
    Specs after = endsOf(dependencies);
    if (!steps.stageIn.empty()) {
      MGPU_TRY_ASSIGN(uint32_t staged, addMoves(steps.stageIn, after));
      after = {staged};
    }
    if (!steps.reductions.empty()) {
      MGPU_TRY_ASSIGN(uint32_t reduced, addReduction(params, steps, after));
      after = {reduced};
    }
    if (!steps.moves.empty()) {
      MGPU_TRY(addMoves(steps.moves, after));
    }
    if (spec->nodes.size() == first)
      join({}, after);
    return {};
  };
  MGPU_TRY(checkNode(params.name, {0}, false, dependencies));
  if (Result<void> ok = add(); !ok) {
    rollBack(first);
    return failIn(fmt::format("node '{}': ", params.name), ok.error());
  }
  return finish(params.name, params.members[0].device, first);
}

namespace {

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce ||
         kind == CollectiveKind::ReduceScatter;
}

/// The sides of a call that NCCL sees: a permute's send to oneself and its
/// zeros are copies.
CollectiveSides ncclSidesOf(const CollectiveNodeParams &params, uint32_t rank) {
  if (params.kind != CollectiveKind::Permute)
    return sidesOf(params, rank);
  auto isOther = [&](std::optional<uint32_t> peer) {
    return peer && *peer != rank;
  };
  return {isOther(targetOf(params.pairs, rank)),
          isOther(sourceOf(params.pairs, rank))};
}

/// The elements that NCCL calls the count; `send` and `recv` are what one rank
/// has.
Result<int64_t> sliceOf(const CollectiveNodeParams &params, int64_t send,
                        int64_t recv) {
  auto n = int64_t(params.members.size());
  int64_t slice = send;
  bool fits = false;
  switch (params.kind) {
  case CollectiveKind::AllReduce:
    fits = send == recv;
    break;
  case CollectiveKind::ReduceScatter:
    slice = recv;
    fits = send == recv * n;
    break;
  case CollectiveKind::AllGather:
    slice = recv / n;
    fits = recv % n == 0 && (send == recv || send == slice);
    break;
  case CollectiveKind::AllToAll:
    slice = send / n;
    fits = send == recv && send % n == 0;
    break;
  default:
    fits = true;
    break;
  }
  if (!fits)
    return fail(ErrorKind::Invalid,
                fmt::format("{} over {} ranks: {} elements to send and {} to "
                            "receive do not fit together",
                            toString(params.kind), n, send, recv));
  return slice;
}

/// Whether NCCL may take the ends of a call from its ranks' arenas where those
/// are windows: all of them are there, and at equal places on every rank, or
/// where NCCL calls a call in place (nccl.h:428, 445). It says the same on
/// every rank. A send to one rank may be at any place.
bool isSymmetric(const CollectiveNodeParams &params) {
  const bool isPair = params.kind == CollectiveKind::SendRecv;
  const bool isPermute = params.kind == CollectiveKind::Permute;
  const auto n = int64_t(params.members.size());
  const auto width = int64_t(sizeBytes(params.elementType));
  auto place = [&](const std::optional<uint64_t> &inArena,
                   const Box &box) -> std::optional<int64_t> {
    if (!inArena || !box.isContiguous())
      return std::nullopt;
    const int64_t at = int64_t(*inArena) + box.offset;
    return reduces(params.kind) && at % width != 0 ? std::nullopt
                                                   : std::optional(at);
  };
  auto bytesOf = [](const Box &box) {
    return box.numElements() * int64_t(box.elementBytes);
  };
  constexpr int64_t inPlace = -1;
  std::optional<std::pair<int64_t, int64_t>> common; // of all ranks so far
  for (int64_t rank = 0; rank < n; ++rank) {
    const CollectiveMemberParams &member = params.members[size_t(rank)];
    auto [sends, receives] = ncclSidesOf(params, uint32_t(rank));
    auto send = sends ? place(member.sendInArena, member.sendBox)
                      : std::optional<int64_t>(0);
    auto recv = receives ? place(member.recvInArena, member.recvBox)
                         : std::optional<int64_t>(0);
    if (!send || !recv)
      return false;
    // This rank packs ends that overlap, and the others would not know.
    if (isPermute && sends && receives &&
        *send < *recv + bytesOf(member.recvBox) &&
        *recv < *send + bytesOf(member.sendBox))
      return false;
    if (isPair || isPermute)
      continue;
    if (params.kind == CollectiveKind::AllGather) {
      const int64_t slice = bytesOf(member.recvBox) / n;
      if (bytesOf(member.sendBox) != slice) // its own slice of the whole
        *send += rank * slice;
      if (*send == *recv + rank * slice)
        send = inPlace;
    } else if (params.kind == CollectiveKind::ReduceScatter) {
      if (*recv == *send + rank * bytesOf(member.recvBox))
        recv = inPlace;
    } else if (params.kind == CollectiveKind::Broadcast) {
      send = 0; // of one rank
    }
    const std::pair mine(*send, *recv);
    if (common.value_or(mine) != mine)
      return false;
    common = mine;
  }
  return true;
}

/// The ranks of a collective that are on one device.
Result<std::vector<uint32_t>> ranksOn(DeviceId device,
                                      const CollectiveNodeParams &params) {
  MGPU_TRY(checkPairs(params.pairs, params.members.size()));
  if (params.kind == CollectiveKind::SendRecv && params.members.size() != 2)
    return fail(ErrorKind::Invalid, "a send_recv has a sender and a receiver");
  std::vector<uint32_t> ranks;
  for (uint32_t k = 0; k < params.members.size(); ++k)
    if (params.members[k].device == device)
      ranks.push_back(k);
  return ranks;
}

/// Gives a call NCCL's numbers: those of its group among `all`.
Result<void> numberRanks(const CollectiveNodeParams &params, uint32_t rank,
                         const Communicators &all, NcclCall &call) {
  const auto n = uint32_t(params.members.size());
  call.rank = rank;
  call.numRanks = n;
  call.root = params.root;
  if (params.kind == CollectiveKind::SendRecv) {
    call.group = 0;
    call.rank = uint32_t(params.members[rank].device.value);
    call.numRanks = uint32_t(all.members(0).size());
    call.pairs = {{uint32_t(params.members[0].device.value),
                   uint32_t(params.members[1].device.value)}};
    MGPU_TRY(checkPairs(call.pairs, call.numRanks));
  } else {
    call.pairs = params.pairs;
    auto isIt = [&](size_t group) {
      const std::vector<DeviceId> &members = all.members(group);
      return members.size() == n &&
             std::equal(members.begin(), members.end(), params.members.begin(),
                        [](DeviceId device, const auto &member) {
                          return device == member.device;
                        });
    };
    while (call.group < all.size() && !isIt(call.group))
      ++call.group;
    if (call.group == all.size())
      return fail(ErrorKind::Internal, "its ranks were not joined");
  }
  return {};
}

} // namespace

Result<int64_t> CudaGraph::elementsAt(const std::byte *base, const Box &box,
                                      ElementType type) const {
  MGPU_TRY(checkBox(box));
  const int64_t width = sizeBytes(type);
  const int64_t bytes = box.numElements() * int64_t(box.elementBytes);
  if (bytes % width != 0)
    return fail(ErrorKind::Invalid,
                fmt::format("{} bytes are not a whole number of {}", bytes,
                            toString(type)));
  if (!base && bytes != 0)
    return fail(ErrorKind::Invalid, "an end on this GPU has no address");
  MGPU_TRY(state->memory.check(base, box));
  return bytes / width;
}

Result<void> CudaGraph::pack(const std::byte *from, const Box &box,
                             Planned &out) {
  const Box flat = packedBox(box);
  MGPU_TRY_ASSIGN(std::byte * held,
                  stage(uint64_t(flat.sizes[0]) * flat.elementBytes,
                        "a copy's staging buffer"));
  out.packing = BoxMove{held, flat, from, box};
  out.call.send = held;
  return {};
}

Result<void> CudaGraph::unpack(std::byte *to, const Box &box, Planned &out) {
  const Box flat = packedBox(box);
  MGPU_TRY_ASSIGN(out.call.recv,
                  stage(uint64_t(flat.sizes[0]) * flat.elementBytes,
                        "a copy's staging buffer"));
  out.unpacking = BoxMove{to, box, out.call.recv, flat};
  return {};
}

Result<void> CudaGraph::keepInside(const CollectiveNodeParams &params,
                                   uint32_t rank, Planned &out) {
  for (const RankPair &pair : params.pairs) {
    const int64_t sent = params.members[pair.source].sendBox.numElements(),
                  wanted = params.members[pair.target].recvBox.numElements();
    if (sent != wanted)
      return fail(ErrorKind::Invalid,
                  fmt::format("rank {} sends {} elements and rank {} receives "
                              "{}",
                              pair.source, sent, pair.target, wanted));
  }
  const CollectiveMemberParams &mine = params.members[rank];
  const std::optional<uint32_t> source = sourceOf(params.pairs, rank);
  if (source && *source != rank)
    return {};
  MGPU_TRY(elementsAt(mine.recv, mine.recvBox, params.elementType));
  if (source) {
    MGPU_TRY(elementsAt(mine.send, mine.sendBox, params.elementType));
    out.unpacking = {mine.recv, mine.recvBox, mine.send, mine.sendBox};
  } else {
    MGPU_TRY_ASSIGN(const std::byte *zeros, state->zeros());
    out.unpacking = zeroMove(mine.recv, mine.recvBox, zeros);
  }
  return {};
}

Result<CudaGraph::Planned>
CudaGraph::planNccl(const CollectiveNodeParams &params, uint32_t rank) {
  const CollectiveMemberParams &mine = params.members[rank];
  const auto n = uint32_t(params.members.size());
  const CollectiveKind kind = params.kind;
  auto [sends, receives] = ncclSidesOf(params, rank);
  Planned out;
  NcclCall &call = out.call;
  call.kind = kind;
  call.reduction = reductionOf(params.reduction);
  const uint32_t width = sizeBytes(params.elementType);
  if (reduces(kind)) {
    MGPU_TRY_ASSIGN(call.type,
                    reductionTypeOf(params.elementType, state->major));
  }
  // Elements that only move are bytes, whatever their type.
  const int64_t perElement = reduces(kind) ? 1 : width;

  int64_t send = 0, recv = 0;
  if (sends) {
    MGPU_TRY_ASSIGN(send,
                    elementsAt(mine.send, mine.sendBox, params.elementType));
  }
  if (receives) {
    MGPU_TRY_ASSIGN(recv,
                    elementsAt(mine.recv, mine.recvBox, params.elementType));
  }
  if (kind == CollectiveKind::Permute)
    MGPU_TRY(keepInside(params, rank, out));
  MGPU_TRY_ASSIGN(int64_t slice, sliceOf(params, send, recv));
  if (!sends)
    slice = recv;
  call.count = uint64_t(slice * perElement);

  // Where all ranks hold the whole, each contributes its own slice of it.
  const bool isOwnSlice =
      kind == CollectiveKind::AllGather && send == recv && n > 1;
  const bool hasWindows = state->communicators->hasWindows();
  const bool isDirect = !hasWindows || isSymmetric(params);
  auto isTaken = [&](const std::byte *base, const Box &box) {
    return isDirect && box.isContiguous() &&
           (!reduces(kind) || uintptr_t(base + box.offset) % width == 0);
  };
  auto packSend = [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(Box box, isOwnSlice ? sliceBox(mine.sendBox, rank, n)
                                        : Result<Box>(mine.sendBox));
    return pack(mine.send, box, out);
  };
  if (sends && isTaken(mine.send, mine.sendBox))
    call.send = mine.send + mine.sendBox.offset +
                (isOwnSlice ? int64_t(rank) * slice * width : 0);
  else if (sends)
    MGPU_TRY(packSend());
  if (receives && isTaken(mine.recv, mine.recvBox))
    call.recv = mine.recv + mine.recvBox.offset;
  else if (receives)
    MGPU_TRY(unpack(mine.recv, mine.recvBox, out));

  MGPU_TRY(numberRanks(params, rank, *state->communicators, call));
  if (!call.isOverlapLegal() && !out.packing) {
    MGPU_TRY(packSend());
    // Both ends are in windows or none is, on every rank.
    if (hasWindows)
      MGPU_TRY(unpack(mine.recv, mine.recvBox, out));
  }
  return out;
}

void CudaGraph::addNcclOrder(size_t group, Specs &after) const {
  const Communicators &all = *state->communicators;
  for (auto [other, last] : lastNccl)
    if ((!all.overlaps() || other == group ||
         all.shareTwoRanks(group, other)) &&
        std::find(after.begin(), after.end(), last) == after.end())
      after.push_back(last);
}

Result<uint32_t *> CudaGraph::nextMark() {
  constexpr uint32_t perBlock = 1024;
  if (markWordsLeft == 0) {
    MGPU_TRY_ASSIGN(auto words,
                    state->borrow(DeviceId::host(), perBlock * sizeof(uint32_t),
                                  "the progress of collectives"));
    markWords = reinterpret_cast<uint32_t *>(words.get());
    spec->staging.push_back(std::move(words));
    markWordsLeft = perBlock;
  }
  --markWordsLeft;
  return markWords++;
}

Result<GraphNodeId>
CudaGraph::addNccl(const CollectiveNodeParams &params,
                   std::span<const GraphNodeId> dependencies) {
  const DeviceId here = state->firstDevice();
  MGPU_TRY(checkNode(params.name, here, false, dependencies));
  uint32_t first = uint32_t(spec->nodes.size()), end = 0;
  const std::map<size_t, uint32_t> before = lastNccl;
  const size_t marksBefore = spec->marks.size();
  const bool isPair = params.kind == CollectiveKind::SendRecv;
  auto add = [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(const std::vector<uint32_t> ranks, ranksOn(here, params));
    Specs after = endsOf(dependencies);
    if (isPair && ranks.size() == 2) { // to itself: a copy
      MGPU_TRY_ASSIGN(
          end, addMove({params.members[1].recv, params.members[1].recvBox,
                        params.members[0].send, params.members[0].sendBox},
                       after));
      return {};
    }
    if (ranks.size() != 1)
      return fail(ErrorKind::Unsupported,
                  fmt::format("{} of its ranks are on device {}: across GPUs "
                              "each rank has its own",
                              ranks.size(), here.value));
    MGPU_TRY_ASSIGN(Planned planned, planNccl(params, ranks[0]));
    const NcclCall call = planned.call;
    // In the order in which all ranks have them; an empty one stands in it too.
    addNcclOrder(call.group, after);
    if (call.count == 0) {
      if (planned.unpacking) {
        MGPU_TRY_ASSIGN(end, addMove(*planned.unpacking, after));
      } else {
        end = join({}, after);
      }
      return {};
    }
    // NCCL connects ranks when they first do a thing, which no capture allows.
    MGPU_TRY(state->warmUp(call, params.name));
    if (planned.packing) {
      MGPU_TRY_ASSIGN(uint32_t packed, addMove(*planned.packing, after));
      after = {packed};
    }
    end = append(call, after);
    lastNccl[call.group] = end;
    MGPU_TRY_ASSIGN(uint32_t * word, nextMark());
    MGPU_TRY_ASSIGN(const std::byte *one, state->wordOfOne());
    append(MarkLaunch{one, word}, {end});
    std::vector<DeviceId> members;
    for (const CollectiveMemberParams &member : params.members)
      members.push_back(member.device);
    spec->marks.push_back(
        {uint32_t(spec->ranges.size()), std::move(members), word});
    if (planned.unpacking) {
      MGPU_TRY_ASSIGN(end, addMove(*planned.unpacking, {end}));
    }
    return {};
  };
  if (Result<void> ok = add(); !ok) {
    rollBack(first);
    lastNccl = before;
    spec->marks.resize(marksBefore);
    return failIn(fmt::format("node '{}': ", params.name), ok.error());
  }
  return finish(params.name, here, first, end);
}

} // namespace mgpu::device
