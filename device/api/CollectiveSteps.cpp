// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/CollectiveSteps.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::device {

namespace {

struct Range {
  uintptr_t low, high;
};

Range rangeOf(const std::byte *base, const Box &box) {
  auto [low, high] = box.byteRange();
  return {uintptr_t(base) + uintptr_t(low), uintptr_t(base) + uintptr_t(high)};
}

/// `box` in elements of `bytes`; a contiguous box of another width is re-cut.
Result<Box> retype(const Box &box, uint32_t bytes) {
  if (box.elementBytes == bytes)
    return box;
  int64_t total = box.numElements() * int64_t(box.elementBytes);
  if (!box.isContiguous() || total % bytes != 0)
    return fail(ErrorKind::Invalid,
                fmt::format("elements of {} bytes cannot be read as elements "
                            "of {}",
                            box.elementBytes, bytes));
  return Box{box.offset, {total / bytes}, {int64_t(bytes)}, bytes};
}

/// Whether some move writes what another one reads.
bool doConflict(const std::vector<BoxMove> &moves) {
  struct Source {
    Range range;
    size_t move;
    uintptr_t highest; ///< end of this and all that begin before it
  };
  std::vector<Source> sources;
  for (size_t k = 0; k < moves.size(); ++k)
    sources.push_back({rangeOf(moves[k].source, moves[k].sourceBox), k, 0});
  std::sort(sources.begin(), sources.end(),
            [](const Source &a, const Source &b) {
              return a.range.low < b.range.low;
            });
  uintptr_t highest = 0;
  for (Source &source : sources)
    source.highest = highest = std::max(highest, source.range.high);
  for (size_t k = 0; k < moves.size(); ++k) {
    Range range = rangeOf(moves[k].destination, moves[k].destinationBox);
    auto past = std::lower_bound(sources.begin(), sources.end(), range.high,
                                 [](const Source &source, uintptr_t high) {
                                   return source.range.low < high;
                                 });
    while (past != sources.begin() && (--past)->highest > range.low)
      if (past->range.high > range.low && past->move != k)
        return true;
  }
  return false;
}

bool isIdle(const BoxMove &move) {
  return move.source == move.destination &&
         collapse(move.sourceBox) == collapse(move.destinationBox);
}

Result<void> stageMoves(CollectiveSteps &steps, const CollectiveSpace &space) {
  std::erase_if(steps.moves, isIdle);
  if (!doConflict(steps.moves))
    return {};
  for (BoxMove &move : steps.moves) {
    if (move.source == space.zeros)
      continue;
    Box flat = packedBox(move.sourceBox);
    MGPU_TRY_ASSIGN(std::byte * held,
                    space.stage(uint64_t(flat.sizes[0]) * flat.elementBytes));
    steps.stageIn.push_back({held, flat, move.source, move.sourceBox});
    move.source = held;
    move.sourceBox = flat;
  }
  return {};
}

struct Builder {
  const CollectiveNodeParams &params;
  const CollectiveSpace &space;
  CollectiveSteps out;
  uint32_t width;
  std::vector<Box> sends, recvs;
  std::vector<MemberMove> moves;
  bool isOfAll = false; ///< moves to members of other processes too

  bool isMisaligned(const std::byte *address) const {
    return space.isAligned && uintptr_t(address) % width != 0;
  }

  uint32_t size() const { return uint32_t(params.members.size()); }

  Result<void> checkMember(uint32_t rank, bool sends, bool receives) {
    const CollectiveMemberParams &member = params.members[rank];
    auto check = [&](const Box &box, bool used, const void *base,
                     const char *side) -> Result<Box> {
      if (!used)
        return Box{0, {0}, {int64_t(width)}, width};
      auto where = [&](const Error &error) {
        return fail(error.kind, fmt::format("{} of rank {}: {}", side, rank,
                                            error.message));
      };
      if (Result<void> ok = checkBox(box); !ok)
        return where(ok.error());
      Result<Box> typed = retype(box, width);
      if (!typed)
        return where(typed.error());
      if (!base && member.isHere && typed->numElements() != 0)
        return fail(ErrorKind::Invalid,
                    fmt::format("{} of rank {} has no address", side, rank));
      return typed;
    };
    MGPU_TRY_ASSIGN(Box send,
                    check(member.sendBox, sends, member.send, "send"));
    MGPU_TRY_ASSIGN(Box recv,
                    check(member.recvBox, receives, member.recv, "recv"));
    this->sends.push_back(std::move(send));
    recvs.push_back(std::move(recv));
    return {};
  }

  tl::unexpected<Error> wrongSize(uint32_t rank, int64_t send, int64_t recv) {
    return fail(ErrorKind::Invalid,
                fmt::format("{} over {} ranks: rank {} has {} elements to send "
                            "and {} to receive, which do not fit together",
                            toString(params.kind), size(), rank, send, recv));
  }

  Result<void> addMove(uint32_t from, const Box &source, uint32_t to,
                       const Box &destination) {
    int64_t count = source.numElements();
    if (count != destination.numElements())
      return wrongSize(to, count, destination.numElements());
    if (count > 0 && (isOfAll || params.members[to].isHere))
      moves.push_back({from, source, to, destination});
    return {};
  }

  Result<void> addMoves() {
    uint32_t n = size();
    switch (params.kind) {
    case CollectiveKind::Broadcast:
      for (uint32_t i = 0; i < n; ++i)
        MGPU_TRY(addMove(params.root, sends[params.root], i, recvs[i]));
      return {};
    case CollectiveKind::SendRecv:
      return addMove(0, sends[0], 1, recvs[1]);
    case CollectiveKind::Permute:
      for (uint32_t i = 0; i < n; ++i)
        if (auto source = sourceOf(params.pairs, i)) {
          MGPU_TRY(addMove(*source, sends[*source], i, recvs[i]));
        } else if (recvs[i].numElements() > 0 &&
                   (isOfAll || params.members[i].isHere)) {
          moves.push_back({std::nullopt, {}, i, recvs[i]});
        }
      return {};
    case CollectiveKind::AllGather:
      for (uint32_t i = 0; i < n; ++i) {
        int64_t send = sends[i].numElements(), recv = recvs[i].numElements();
        if (recv % n != 0 || (send != recv && send != recv / n))
          return wrongSize(i, send, recv);
        Box part = sends[i];
        if (send == recv) {
          MGPU_TRY_ASSIGN(part, sliceBox(sends[i], i, n));
        }
        for (uint32_t j = 0; j < n; ++j) {
          MGPU_TRY_ASSIGN(Box slot, sliceBox(recvs[j], i, n));
          MGPU_TRY(addMove(i, part, j, slot));
        }
      }
      return {};
    default: // AllToAll
      for (uint32_t i = 0; i < n; ++i) {
        int64_t send = sends[i].numElements(), recv = recvs[i].numElements();
        if (send != recv || send % n != 0)
          return wrongSize(i, send, recv);
        for (uint32_t j = 0; j < n; ++j) {
          MGPU_TRY_ASSIGN(Box part, sliceBox(sends[i], j, n));
          MGPU_TRY_ASSIGN(Box slot, sliceBox(recvs[j], i, n));
          MGPU_TRY(addMove(i, part, j, slot));
        }
      }
      return {};
    }
  }

  void finishMoves() {
    for (const MemberMove &move : moves) {
      std::byte *target = params.members[move.to].recv;
      if (move.from)
        out.moves.push_back({target, move.destination,
                             params.members[*move.from].send, move.source});
      else
        out.moves.push_back(zeroMove(target, move.destination, space.zeros));
    }
  }

  /// Writing an output in step with reading the inputs is safe if it shares
  /// bytes with an input only position by position.
  bool reductionsConflict(const std::vector<const std::byte *> &inputs,
                          size_t inputBytes) const {
    for (const ElementwiseReduction &reduction : out.reductions)
      for (const std::byte *output : reduction.outputs)
        for (size_t r = 0; r < inputs.size(); ++r) {
          uintptr_t low = uintptr_t(output), input = uintptr_t(inputs[r]);
          uintptr_t high = low + reduction.count * width;
          if (low < input + inputBytes && input < high &&
              output != reduction.inputs[r])
            return true;
        }
    return false;
  }

  Result<void> addReductions() {
    uint32_t n = size();
    bool scatter = params.kind == CollectiveKind::ReduceScatter;
    int64_t total = sends[0].numElements();
    for (uint32_t i = 0; i < n; ++i)
      if (sends[i].numElements() != total ||
          recvs[i].numElements() * (scatter ? n : 1) != total)
        return wrongSize(i, sends[i].numElements(), recvs[i].numElements());
    auto isHere = [](const auto &member) { return member.isHere; };
    if (total == 0 ||
        std::none_of(params.members.begin(), params.members.end(), isHere))
      return {};
    std::vector<const std::byte *> inputs;
    bool strided = false;
    for (uint32_t i = 0; i < n; ++i) {
      inputs.push_back(params.members[i].send + sends[i].offset);
      strided |= !sends[i].isContiguous() || isMisaligned(inputs.back());
    }
    uint32_t slices = scatter ? n : 1;
    for (uint32_t s = 0; s < slices; ++s) {
      ElementwiseReduction reduction;
      reduction.count = size_t(total / slices);
      for (const std::byte *input : inputs)
        reduction.inputs.push_back(input + s * reduction.count * width);
      std::byte *packed = nullptr;
      for (uint32_t i = scatter ? s : 0; i < (scatter ? s + 1 : n); ++i) {
        if (!params.members[i].isHere)
          continue;
        std::byte *base = params.members[i].recv;
        std::byte *output = base + recvs[i].offset;
        if (recvs[i].isContiguous() && !isMisaligned(output)) {
          reduction.outputs.push_back(output);
          continue;
        }
        if (!packed) {
          MGPU_TRY_ASSIGN(packed, space.stage(reduction.count * width));
          reduction.outputs.push_back(packed);
        }
        out.moves.push_back({base, recvs[i], packed, packedBox(recvs[i])});
      }
      if (!reduction.outputs.empty())
        out.reductions.push_back(std::move(reduction));
    }
    if (!strided && !reductionsConflict(inputs, size_t(total) * width))
      return {};
    for (uint32_t r = 0; r < n; ++r) {
      MGPU_TRY_ASSIGN(std::byte * held, space.stage(uint64_t(total) * width));
      out.stageIn.push_back(
          {held, packedBox(sends[r]), params.members[r].send, sends[r]});
      for (ElementwiseReduction &each : out.reductions)
        each.inputs[r] = held + (each.inputs[r] - inputs[r]);
    }
    return {};
  }
};

} // namespace

BoxMove zeroMove(std::byte *base, const Box &box, const std::byte *zeros) {
  Box source{0, box.sizes, std::vector<int64_t>(box.sizes.size(), 0),
             box.elementBytes};
  return {base, box, zeros, std::move(source)};
}

static Result<Builder> checked(const CollectiveNodeParams &params,
                               const CollectiveSpace &space) {
  Builder builder{params, space, {}, sizeBytes(params.elementType), {}, {}, {}};
  uint32_t n = builder.size();
  if (n == 0)
    return fail(ErrorKind::Invalid, "a collective has no members");
  CollectiveKind kind = params.kind;
  MGPU_TRY(checkPairs(params.pairs, n));
  if (kind == CollectiveKind::Broadcast && params.root >= n)
    return fail(ErrorKind::Invalid,
                fmt::format("broadcast from root {}, but there are {} ranks",
                            params.root, n));
  if (kind == CollectiveKind::SendRecv && n != 2)
    return fail(ErrorKind::Invalid,
                fmt::format("send_recv has {} members: it needs a sender and "
                            "a receiver",
                            n));
  for (uint32_t i = 0; i < n; ++i) {
    auto [sends, receives] = sidesOf(params, i);
    MGPU_TRY(builder.checkMember(i, sends, receives));
  }
  return builder;
}

Result<CollectiveSteps> collectiveSteps(const CollectiveNodeParams &params,
                                        const CollectiveSpace &space) {
  MGPU_TRY_ASSIGN(Builder builder, checked(params, space));
  if (params.kind == CollectiveKind::AllReduce ||
      params.kind == CollectiveKind::ReduceScatter) {
    MGPU_TRY(builder.addReductions());
  } else {
    MGPU_TRY(builder.addMoves());
    builder.finishMoves();
  }
  MGPU_TRY(stageMoves(builder.out, space));
  return std::move(builder.out);
}

Result<std::vector<MemberMove>>
collectiveMoves(const CollectiveNodeParams &params) {
  const CollectiveSpace none;
  MGPU_TRY_ASSIGN(Builder builder, checked(params, none));
  builder.isOfAll = true;
  MGPU_TRY(builder.addMoves());
  return std::move(builder.moves);
}

Result<CollectiveSteps> stepsOf(std::vector<BoxMove> moves,
                                const CollectiveSpace &space) {
  CollectiveSteps steps;
  steps.moves = std::move(moves);
  MGPU_TRY(stageMoves(steps, space));
  return steps;
}

} // namespace mgpu::device
