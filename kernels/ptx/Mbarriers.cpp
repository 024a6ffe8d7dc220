// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Barriers.h"
#include "kernels/ptx/BulkCopies.h"
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

// Barriers in memory (ISA 9.0, section 9.7.13.15): arrivals of threads, and
// bytes of copies in bulk.

namespace mgpu::kernels::ptx {

MbarrierWord MbarrierWord::of(uint64_t word) {
  return {uint32_t(word & 0xfffff), uint32_t(word >> 20 & 0xfffff),
          int32_t(uint32_t(word >> 40 & 0x3fffff) << 10) >> 10,
          bool(word >> 62 & 1)};
}
MbarrierWord MbarrierWord::settled(Machine &machine) const {
  if (pending != 0 || bytes != 0)
    return *this;
  ++machine.changes;
  return {expected, expected, 0, !phase};
}
uint64_t MbarrierWord::bits() const {
  return uint64_t(expected & 0xfffff) | uint64_t(pending & 0xfffff) << 20 |
         uint64_t(uint32_t(bytes) & 0x3fffff) << 40 | uint64_t(phase) << 62;
}

namespace {

/// The word of a barrier, and what its arrivals showed.
std::byte *mbarrierAt(Warp &warp, uint32_t lane, uint64_t address,
                      std::pair<Clocks, Clocks> **shown) {
  std::byte *at = nullptr;
  if (address & 7) {
    warp.fail("an mbarrier is not aligned to 8 bytes", int(lane));
    return nullptr;
  }
  if ((address & windowMask) != sharedWindow) {
    warp.fail("an mbarrier is not in shared memory", int(lane));
    return nullptr;
  }
  if (!warp.reachShared(address, 8, Touch::Atomic, lane, &at, nullptr))
    return nullptr;
  const uint32_t rank = uint32_t(address) >> rankShift;
  Block &owner = rank ? *warp.block.cluster.blocks[rank - 1] : warp.block;
  auto &found = owner.arrivals[uint32_t(address) & ((1u << rankShift) - 1)];
  found.first.resize(warp.clocks.size());
  found.second.resize(warp.clocks.size());
  if (shown)
    *shown = &found;
  return at;
}

} // namespace

bool arrive(Warp &warp, uint32_t lane, uint64_t address, int64_t arrivals,
            int64_t bytes, uint64_t *before, bool isDrop) {
  std::pair<Clocks, Clocks> *shown = nullptr;
  std::byte *at = mbarrierAt(warp, lane, address, &shown);
  if (!at)
    return false;
  uint64_t bits = 0;
  std::memcpy(&bits, at, 8);
  MbarrierWord word = MbarrierWord::of(bits);
  if (before)
    *before = bits;
  if (arrivals > word.pending) {
    warp.fail(fmt::format("{} arrivals at an mbarrier that expects {} more in "
                          "this phase",
                          arrivals, word.pending),
              int(lane));
    return false;
  }
  if (const int64_t sum = int64_t(word.bytes) + bytes;
      sum <= -mostTransactions || sum >= mostTransactions) {
    warp.fail(fmt::format("an mbarrier that expects {} bytes of copies: it "
                          "counts 2^20 - 1 at most",
                          sum),
              int(lane));
    return false;
  }
  join(shown->first, warp.clocks);
  join(shown->second, warp.fenced);
  warp.release();
  word.pending -= uint32_t(arrivals);
  if (isDrop)
    word.expected -= uint32_t(arrivals);
  word.bytes += int32_t(bytes);
  bits = word.settled(warp.machine).bits();
  std::memcpy(at, &bits, 8);
  return true;
}

namespace {

/// `b`: the count or the bytes; `flags`: which.
enum MbarrierKind : uint32_t { Init, Inval, Arrive, Drop, Expect, Complete };
constexpr uint32_t kindMask = 7, hasState = 8, hasCount = 16, arrives = 32;

bool make(Warp &warp, uint32_t lane, uint64_t address, uint32_t kind,
          uint32_t count) {
  if (count == 0 || count > 0xfffff || (address & 7) ||
      (address & windowMask) != sharedWindow ||
      uint32_t(address) >> rankShift) {
    warp.fail("an mbarrier needs a count from 1 to 2^20 - 1, and 8 aligned "
              "bytes of the block's shared memory",
              int(lane));
    return false;
  }
  std::byte *at = nullptr;
  if (!warp.reachShared(address, 8, Touch::Write, lane, &at, nullptr))
    return false;
  const uint32_t offset = uint32_t(address);
  const uint64_t bits = MbarrierWord{count, count, 0, false}.bits();
  std::memcpy(at, &bits, 8);
  if (kind == Init) {
    warp.block.unpublished[offset] = {warp.now(), warp.pc, uint16_t(warp.id),
                                      uint8_t(lane)};
  } else { // its bytes are again what nobody wrote
    auto &states = warp.block.shared.states;
    std::fill_n(states.begin() + offset, 8, ByteState::Unwritten);
    warp.block.arrivals.erase(offset);
  }
  return true;
}

void mbarrier(Warp &warp, const Instr &i) {
  uint64_t addresses[lanes];
  warp.addresses(i, addresses);
  const uint32_t kind = i.flags & kindMask;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    const uint32_t count =
        i.flags & hasCount ? warp.cells<uint32_t>(i.b)[lane] : 1;
    const uint64_t address = addresses[lane];
    const int64_t bytes = kind == Expect     ? int64_t(count)
                          : kind == Complete ? -int64_t(count)
                                             : 0;
    const int64_t arrivals = bytes || kind == Expect || kind == Complete
                                 ? (i.flags & arrives ? 1 : 0)
                                 : int64_t(count);
    uint64_t before = 0;
    if (kind <= Inval ? !make(warp, lane, address, kind, count)
                      : !arrive(warp, lane, address, arrivals, bytes, &before,
                                kind == Drop))
      return;
    if (i.flags & hasState)
      warp.cells<uint64_t>(i.d)[lane] = before;
  }
}

/// Whether the phase of a state or of a parity is over; a waiter that may be
/// suspended is. `flags`: 1 the operand `b` is a parity, 2 it may wait.
void testMbarrier(Warp &warp, const Instr &i) {
  uint64_t addresses[lanes];
  warp.addresses(i, addresses);
  uint32_t done = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    std::pair<Clocks, Clocks> *shown = nullptr;
    std::byte *at = mbarrierAt(warp, lane, addresses[lane], &shown);
    if (!at)
      return;
    const uint32_t asked =
        i.flags & 1 ? warp.cells<uint32_t>(i.b)[lane] & 1
                    : MbarrierWord::of(warp.cells<uint64_t>(i.b)[lane]).phase;
    auto isOver = [&] {
      uint64_t bits = 0;
      std::memcpy(&bits, at, 8);
      return MbarrierWord::of(bits).phase != asked;
    };
    while (!isOver() && finishLoad(warp, addresses[lane])) {
    }
    if (!isOver())
      continue;
    done |= 1u << lane;
    join(warp.clocks, shown->first);
    join(warp.fenced, shown->second);
  }
  if (done == 0 && (i.flags & 2))
    return warp.park(Fragment::Wait::Change, warp.pc, 0, warp.machine.changes);
  warp.setPredicate(i.d, done);
}

void pendingCount(Warp &warp, const Instr &i) {
  uint32_t out[lanes];
  for (uint32_t lane = 0; lane < lanes; ++lane)
    out[lane] = MbarrierWord::of(warp.cells<uint64_t>(i.a)[lane]).pending;
  keep(warp, i.d, out);
}

void decodeMbarrier(Decoder &d) {
  for (std::string_view word :
       {"release", "acquire", "relaxed", "cta", "cluster"})
    d.has(word);
  const Space space = d.space();
  if (d.has("pending_count")) {
    d.type();
    d.instr.d = d.target(0, Scalar::B32);
    d.instr.a = d.source(1, Scalar::B64);
    return d.emit(pendingCount);
  }
  const bool isTest = d.has("test_wait"), isTry = d.has("try_wait");
  if (isTest || isTry) {
    const bool isParity = d.has("parity");
    d.type();
    d.address(1, space);
    d.instr.d = d.target(0, Scalar::Pred);
    d.instr.b = d.source(2, isParity ? Scalar::B32 : Scalar::B64);
    if (d.numOperands() > 3)
      d.source(3, Scalar::B32); // how long it may take
    d.instr.flags |= (isParity ? 1 : 0) | (isTry ? 2 : 0);
    return d.emit(testMbarrier);
  }
  const bool isDrop = d.has("arrive_drop");
  const bool isArrive = d.has("arrive") || isDrop;
  const bool isExpect = d.has("expect_tx"), isComplete = d.has("complete_tx");
  const bool isInit = d.has("init");
  if (!isArrive && !isExpect && !isComplete && !isInit && !d.has("inval"))
    return d.refuse("it has no operation");
  if (isDrop && isExpect)
    return d.refuse("this form is not executed", ErrorKind::Unsupported);
  d.has("noComplete");
  d.type();
  const Operand *state = isArrive ? d.operand(0) : nullptr;
  if (isArrive && !state)
    return;
  const bool isFirst = state && state->kind == Operand::Kind::Address;
  const size_t first = isArrive && !isFirst ? 1 : 0;
  d.address(first, space);
  d.instr.flags |= isInit       ? Init
                   : isExpect   ? Expect | (isArrive ? arrives : 0)
                   : isDrop     ? Drop
                   : isArrive   ? Arrive
                   : isComplete ? Complete
                                : Inval;
  if (first && state->kind != Operand::Kind::Sink) {
    d.instr.d = d.target(0, Scalar::B64);
    d.instr.flags |= hasState;
  }
  if (d.numOperands() > first + 1) {
    d.instr.b = d.source(first + 1, Scalar::B32);
    d.instr.flags |= hasCount;
  }
  d.emit(mbarrier);
}

} // namespace

std::span<const Operation> mbarrierOperations() {
  static const Operation rows[] = {{"mbarrier", "9.7.13.15", decodeMbarrier}};
  return rows;
}

} // namespace mgpu::kernels::ptx
