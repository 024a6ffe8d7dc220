// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

// Exchanges among the lanes of a warp (ISA 9.0, sections 9.7.9.6 and 9.7.13.9
// to 9.7.13.12).

namespace mgpu::kernels::ptx {

namespace {

uint32_t firstLane(const Warp &warp) {
  return uint32_t(std::countr_zero(warp.mask));
}

// The registers that name the lanes that meet.
uint32_t shuffleMask(const Warp &warp, const Instr &i) {
  return warp.machine.program.words[i.more];
}
uint32_t secondSource(const Warp &, const Instr &i) { return i.b; }

/// `c`: the lanes' clamp and segment; `more`: of the mask, then of the
/// predicate, if there is one.
void shuffle(Warp &warp, const Instr &i) {
  if (!warp.gatherNamed(shuffleMask, i))
    return;
  uint32_t room[3][lanes];
  const uint32_t *a = warp.ofParties(&Instr::a, room[0]),
                 *b = warp.ofParties(&Instr::b, room[1]),
                 *c = warp.ofParties(&Instr::c, room[2]);
  uint32_t out[lanes] = {}, in = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint32_t by = b[lane] & 31, clamp = c[lane] & 31;
    const uint32_t segment = c[lane] >> 8 & 31;
    const uint32_t most = (lane & segment) | (clamp & ~segment);
    const uint32_t least = lane & segment;
    uint32_t from = 0;
    bool isIn = false;
    switch (i.flags) {
    case 0: // up: the clamp is the lowest lane
      from = lane - by;
      isIn = int32_t(from) >= int32_t(most);
      break;
    case 1:
      from = lane + by;
      isIn = from <= most;
      break;
    case 2:
      from = lane ^ by;
      isIn = from <= most;
      break;
    default:
      from = least | (by & ~segment);
      isIn = from <= most;
    }
    from = isIn ? from & 31 : lane;
    in |= uint32_t(isIn) << lane;
    out[lane] = a[from];
    if ((warp.mask >> lane & 1) && !(warp.mask >> from & 1)) {
      if (warp.live() >> from & 1)
        return warp.fail(fmt::format("lane {} takes a value of lane {}, which "
                                     "does not execute the shuffle",
                                     lane, from),
                         int(lane));
      out[lane] = 0;
    }
  }
  warp.forParties([&](const Instr &own) {
    keep(warp, own.d, out);
    const uint32_t isIn = warp.machine.program.words[own.more + 1];
    if (isIn != noPlace)
      warp.setPredicate(isIn, in);
  });
}

void decodeShuffle(Decoder &d) {
  const bool isSync = d.has("sync");
  const auto mode = d.placeOf({"up", "down", "bfly", "idx"});
  if (!mode)
    d.refuse("it has no mode");
  d.instr.flags = mode.value_or(4);
  d.type();
  const Operand *result = d.operand(0);
  if (!result)
    return;
  d.instr.d = d.targetOf(result, Scalar::B32);
  d.instr.a = d.source(1, Scalar::B32);
  d.instr.b = d.source(2, Scalar::B32);
  d.instr.c = d.source(3, Scalar::B32);
  const uint32_t mask = isSync ? d.source(4, Scalar::B32) : noPlace;
  const uint32_t in = result->parts.empty()
                          ? noPlace
                          : d.targetOf(&result->parts[0], Scalar::Pred);
  d.instr.more = d.word(mask);
  d.word(in);
  d.emit(shuffle);
}

/// `flags`: 0 all, 1 any, 2 uni, 3 ballot; `c`: whether the source is negated;
/// `b`: the mask.
void vote(Warp &warp, const Instr &i) {
  if (!warp.gatherNamed(secondSource, i))
    return;
  uint32_t bits = 0;
  warp.forParties([&](const Instr &own) {
    bits |= (warp.predicate(own.a) ^ (own.c ? ~0u : 0)) & warp.mask;
  });
  const bool all = bits == warp.mask, any = bits != 0;
  const bool is[] = {all, any, all || !any, false};
  uint32_t out[lanes];
  std::fill_n(out, lanes, bits);
  warp.forParties([&](const Instr &own) {
    if (i.flags == 3)
      keep(warp, own.d, out);
    else
      warp.setPredicate(own.d, is[i.flags] ? ~0u : 0);
  });
}

void decodeVote(Decoder &d) {
  const bool isSync = d.has("sync");
  const auto mode = d.placeOf({"all", "any", "uni", "ballot"});
  if (!mode)
    return d.refuse("it has no mode");
  d.instr.flags = *mode;
  d.type();
  d.instr.d = d.target(0, d.instr.flags == 3 ? Scalar::B32 : Scalar::Pred);
  bool isNegated = false;
  d.instr.a = d.predicate(d.operand(1), isNegated);
  d.instr.c = isNegated;
  d.instr.b = isSync ? d.source(2, Scalar::B32) : noPlace;
  d.emit(vote);
}

/// `more`: the predicate of match.all, if there is one.
template <typename Cell, bool isAll>
void match(Warp &warp, const Instr &i) {
  if (!warp.gatherNamed(secondSource, i))
    return;
  Cell room[lanes];
  const Cell *a = warp.ofParties(&Instr::a, room);
  uint32_t out[lanes] = {};
  bool same = true;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    for (uint32_t other = 0; other < lanes; ++other)
      if ((warp.mask >> lane & 1) && (warp.mask >> other & 1)) {
        out[lane] |= uint32_t(a[lane] == a[other]) << other;
        same &= a[lane] == a[other];
      }
  if (isAll)
    std::fill_n(out, lanes, same ? warp.mask : 0);
  warp.forParties([&](const Instr &own) {
    keep(warp, own.d, out);
    if (own.more)
      warp.setPredicate(own.more - 1, same ? ~0u : 0);
  });
}

void decodeMatch(Decoder &d) {
  const bool isAll = d.oneOf({"any", "all"}, false) == "all";
  d.has("sync");
  const Scalar type = d.type();
  const Operand *result = d.operand(0);
  if (!result)
    return;
  d.instr.d = d.targetOf(result, Scalar::B32);
  if (!result->parts.empty())
    d.instr.more = d.targetOf(&result->parts[0], Scalar::Pred) + 1;
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, Scalar::B32);
  d.emit(bytesOf(type) == 8
             ? (isAll ? match<uint64_t, true> : match<uint64_t, false>)
             : (isAll ? match<uint32_t, true> : match<uint32_t, false>));
}

struct Reduction {
  std::string_view name;
  bool isSigned;
  uint32_t (*of)(uint32_t, uint32_t);
};
uint32_t order(float a, float b, bool isMax) {
  const bool takes = std::isnan(b) || (isMax ? a >= b : a <= b);
  return std::bit_cast<uint32_t>(takes ? a : b);
}
constexpr Reduction reductions[] = {
    {"add", false, [](uint32_t a, uint32_t b) { return a + b; }},
    {"min", false, [](uint32_t a, uint32_t b) { return std::min(a, b); }},
    {"max", false, [](uint32_t a, uint32_t b) { return std::max(a, b); }},
    {"and", false, [](uint32_t a, uint32_t b) { return a & b; }},
    {"or", false, [](uint32_t a, uint32_t b) { return a | b; }},
    {"xor", false, [](uint32_t a, uint32_t b) { return a ^ b; }},
    {"min", true,
     [](uint32_t a, uint32_t b) {
       return uint32_t(std::min(int32_t(a), int32_t(b)));
     }},
    {"max", true, [](uint32_t a, uint32_t b) {
       return uint32_t(std::max(int32_t(a), int32_t(b)));
     }}};

/// `flags`: which of the reductions; 16 and more are of floats: 1 for the
/// largest, 2 for the size, 4 for NaN.
void reduce(Warp &warp, const Instr &i) {
  if (!warp.gatherNamed(secondSource, i))
    return;
  uint32_t room[lanes];
  const uint32_t *a = warp.ofParties(&Instr::a, room);
  uint32_t result = a[firstLane(warp)];
  const bool isFloat = i.flags & 16;
  bool isNan = false;
  for (uint32_t lane = firstLane(warp); lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    uint32_t value = a[lane];
    if (isFloat) {
      value &= i.flags & 2 ? 0x7fffffff : ~0u;
      isNan |= std::isnan(std::bit_cast<float>(value));
      result = lane == firstLane(warp)
                   ? value
                   : order(std::bit_cast<float>(result),
                           std::bit_cast<float>(value), i.flags & 1);
    } else if (lane != firstLane(warp)) {
      result = reductions[i.flags].of(result, value);
    }
  }
  if (isFloat &&
      (std::isnan(std::bit_cast<float>(result)) || (isNan && i.flags & 4)))
    result = 0x7fffffff;
  uint32_t out[lanes];
  std::fill_n(out, lanes, result);
  warp.forParties([&](const Instr &own) { keep(warp, own.d, out); });
}

void decodeRedux(Decoder &d) {
  d.has("sync");
  uint32_t found = 99;
  for (uint32_t k = 0; k < 6; ++k)
    if (d.has(reductions[k].name))
      found = k;
  const uint32_t size = d.has("abs") ? 2 : 0, nan = d.has("NaN") ? 4 : 0;
  const Scalar type = d.type();
  if (found == 99 || (type == Scalar::F32 && found != 1 && found != 2))
    return d.refuse("it has no such operation");
  if (type == Scalar::F32)
    found = 16 | (found == 2) | size | nan;
  else if (isSigned(type) && (found == 1 || found == 2))
    found += 5;
  d.instr.flags = found;
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, Scalar::B32);
  d.emit(bytesOf(type) == 4 ? reduce : nullptr);
}

void activeMask(Warp &warp, const Instr &i) {
  uint32_t out[lanes];
  std::fill_n(out, lanes, warp.mask);
  keep(warp, i.d, out);
}

} // namespace

std::span<const Operation> laneOperations() {
  static const Operation rows[] = {{"shfl", "9.7.9.6", decodeShuffle},
                                   {"vote", "9.7.13.9", decodeVote},
                                   {"match", "9.7.13.10", decodeMatch},
                                   {"activemask", "9.7.13.11",
                                    [](Decoder &d) {
                                      d.type();
                                      d.instr.d = d.target(0, Scalar::B32);
                                      d.emit(activeMask);
                                    }},
                                   {"redux", "9.7.13.12", decodeRedux}};
  return rows;
}

} // namespace mgpu::kernels::ptx
