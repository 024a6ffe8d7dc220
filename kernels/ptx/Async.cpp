// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Barriers.h"
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

// Copies that go on beside the thread that asks for them, and barriers in
// memory (ISA 9.0, sections 9.7.9.26 and 9.7.13.15). A copy is done when it is
// waited for, or when it is issued (LaunchOptions::isEarly); until then its
// bytes may not be touched.

namespace mgpu::kernels::ptx {

//===----------------------------------------------------------------------===//
// cp.async
//===----------------------------------------------------------------------===//

namespace {

/// The shared bytes of an address, without a check of races: those are looked
/// for when the copy ends.
std::byte *sharedBytes(Warp &warp, uint64_t address, uint32_t bytes,
                       uint32_t lane, uint64_t &offset) {
  offset = uint32_t(address) & ((1u << rankShift) - 1);
  SharedMemory &shared = warp.block.shared;
  if (offset + bytes <= shared.bytes.size() && offset % bytes == 0)
    return shared.bytes.data() + offset;
  warp.fail(fmt::format("asynchronous copy of {} bytes to offset {} of shared "
                        "memory, which has {} bytes",
                        bytes, offset, shared.bytes.size()),
            int(lane));
  return nullptr;
}

/// `a`: the target; `b`: the source; `c`: the bytes to read, or noPlace; the
/// rest are zeros. `more`: a predicate that says to read nothing, plus 1.
void copyAsync(Warp &warp, const Instr &i) {
  uint64_t to[lanes], from[lanes];
  warp.addresses(i, to);
  const bool isWide = i.flags & 1;
  const uint32_t kept = warp.mask;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(kept >> lane & 1))
      continue;
    uint32_t read = i.bytes;
    if (i.c != noPlace)
      read = warp.cells<uint32_t>(i.c)[lane];
    if (i.more &&
        (warp.predicate(i.more - 1) >> lane & 1) != (i.flags >> 1 & 1))
      read = 0;
    if (read > i.bytes)
      return warp.fail("an asynchronous copy reads more than it writes",
                       int(lane));
    from[lane] = warp.value(i.b, lane, isWide) +
                 uint64_t(int64_t(warp.machine.program.words[i.d]));
    std::byte *source = nullptr;
    if (read != 0) {
      std::byte *at[lanes];
      warp.mask = 1u << lane;
      const bool isReached =
          from[lane] % i.bytes == 0
              ? warp.reachGlobal(from[lane], read, Touch::Read, lane, &source)
              : warp.reach(i, from, i.bytes, Touch::Read, at);
      warp.mask = kept;
      if (!isReached)
        return;
    }
    uint64_t offset = 0;
    std::byte *target = sharedBytes(warp, to[lane], i.bytes, lane, offset);
    std::byte *reached = nullptr;
    if (!target || !warp.reachShared(to[lane], i.bytes, Touch::Write, lane,
                                     &reached, nullptr))
      return;
    std::memset(static_cast<void *>(warp.block.shared.states.data() + offset),
                int(ByteState::Awaited), i.bytes);
    if (warp.machine.options.isEarly && read)
      std::memcpy(target, source, read);
    warp.copies.push_back(
        {offset, source, i.bytes, read, uint8_t(lane), openGroup});
  }
}

void commitGroup(Warp &warp, const Instr &) {
  for (AsyncCopy &copy : warp.copies)
    if ((warp.mask >> copy.lane & 1) && copy.group == openGroup)
      copy.group = warp.groups[copy.lane];
  for (uint32_t lane = 0; lane < lanes; ++lane)
    warp.groups[lane] += warp.mask >> lane & 1;
}

/// `offset`: how many of the last groups may go on; -1: wait for all copies.
void waitGroup(Warp &warp, const Instr &i) {
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (warp.mask >> lane & 1) {
      const uint32_t groups = warp.groups[lane];
      const uint32_t until =
          i.offset < 0 ? openGroup
                       : groups - std::min(groups, uint32_t(i.offset));
      warp.finishCopies(lane, until, i.offset < 0);
    }
}

void decodeCopyAsync(Decoder &d) {
  for (std::string_view hint :
       {"ca", "cg", "L2::64B", "L2::128B", "L2::256B", "L2::cache_hint",
        "global", "shared", "shared::cta"})
    d.has(hint);
  const uint64_t bytes = d.integer(2);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return d.refuse("it copies 4, 8 or 16 bytes");
  // The source is decoded as an address of its own, whose offset is a word.
  d.address(1, Space::Global);
  const uint32_t source =
      d.instr.a == noPlace ? d.constant(0, true) : d.instr.a;
  const bool isWide = d.instr.a == noPlace || d.instr.flags & wideAddress;
  const int64_t offset = d.instr.offset;
  if (offset != int32_t(offset))
    return d.refuse("its source is too far from its register",
                    ErrorKind::Unsupported);
  d.instr.flags = 0;
  d.instr.d = d.word(uint32_t(int32_t(offset)));
  d.address(0, Space::Shared);
  d.instr.b = source;
  d.instr.c = noPlace;
  d.instr.bytes = uint8_t(bytes);
  d.instr.flags |= isWide ? 1 : 0;
  if (d.numOperands() > 3) {
    const Operand *last = d.operand(3);
    if (d.declared(last) == Scalar::Pred) {
      bool isNegated = false;
      d.instr.more = d.predicate(last, isNegated) + 1;
      d.instr.flags |= isNegated ? 2 : 0;
    } else {
      d.instr.c = d.source(3, Scalar::B32);
    }
  }
  d.touches(4);
  d.emit(copyAsync);
}

void arriveAfterCopies(Warp &warp, const Instr &i) {
  uint64_t addresses[lanes];
  warp.addresses(i, addresses);
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (warp.mask >> lane & 1) {
      warp.finishCopies(lane, openGroup, true);
      // Without .noinc the arrival is one more than the barrier expects.
      if (i.flags & 1 ? !arrive(warp, lane, addresses[lane], 1, 0)
                      : !arrive(warp, lane, addresses[lane], 0, 0))
        return;
    }
}

void decodeCp(Decoder &d) {
  if (!d.has("async") || d.hasAnother("bulk"))
    return d.refuse("copies in bulk are not executed", ErrorKind::Unsupported);
  if (d.has("commit_group"))
    return d.emit(commitGroup);
  if (d.has("wait_group")) {
    d.instr.offset = int64_t(std::min<uint64_t>(d.integer(0), 1 << 20));
    return d.emit(waitGroup);
  }
  if (d.has("wait_all")) {
    d.instr.offset = -1;
    return d.emit(waitGroup);
  }
  if (d.has("mbarrier")) {
    d.has("arrive");
    const bool isNoinc = d.has("noinc");
    d.space();
    d.type();
    d.address(0, Space::Shared);
    d.instr.flags |= isNoinc;
    return d.emit(arriveAfterCopies);
  }
  decodeCopyAsync(d);
}

} // namespace

//===----------------------------------------------------------------------===//
// Barriers in memory
//===----------------------------------------------------------------------===//

MbarrierWord MbarrierWord::of(uint64_t word) {
  return {uint32_t(word & 0xfffff), uint32_t(word >> 20 & 0xfffff),
          int32_t(uint32_t(word >> 40 & 0x3fffff) << 10) >> 10,
          bool(word >> 62 & 1)};
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
            int64_t bytes, uint64_t *before) {
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
  join(shown->first, warp.clocks);
  join(shown->second, warp.fenced);
  warp.release();
  word.pending -= uint32_t(arrivals);
  word.bytes += int32_t(bytes);
  if (word.pending == 0 && word.bytes == 0) {
    word.phase = !word.phase;
    word.pending = word.expected;
    ++warp.machine.changes;
  }
  bits = word.bits();
  std::memcpy(at, &bits, 8);
  return true;
}

namespace {

/// `b`: the count or the bytes; `flags`: which.
enum MbarrierKind : uint32_t {
  Init,
  Inval,
  Arrive,
  ArriveDrop,
  Expect,
  Pending
};
constexpr uint32_t kindMask = 7, hasState = 8, hasCount = 16;

void mbarrier(Warp &warp, const Instr &i) {
  uint64_t addresses[lanes];
  warp.addresses(i, addresses);
  const uint32_t kind = i.flags & kindMask;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    const uint32_t count =
        i.flags & hasCount ? warp.cells<uint32_t>(i.b)[lane] : 1;
    uint64_t before = 0;
    if (kind == Init || kind == Inval) {
      if (count == 0 || count > 0xfffff || (addresses[lane] & 7))
        return warp.fail("an mbarrier needs a count from 1 to 2^20 - 1, and 8 "
                         "aligned bytes",
                         int(lane));
      std::byte *at = nullptr;
      if ((addresses[lane] & windowMask) != sharedWindow ||
          !warp.reachShared(addresses[lane], 8, Touch::Write, lane, &at,
                            nullptr))
        return;
      before = MbarrierWord{count, count, 0, false}.bits();
      std::memcpy(at, &before, 8);
    } else if (kind == Expect) {
      if (!arrive(warp, lane, addresses[lane], i.flags & 32 ? 1 : 0,
                  int64_t(count), &before))
        return;
    } else if (!arrive(warp, lane, addresses[lane], count, 0, &before)) {
      return;
    }
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
    uint64_t bits = 0;
    std::memcpy(&bits, at, 8);
    const uint32_t phase = MbarrierWord::of(bits).phase;
    const uint32_t asked =
        i.flags & 1 ? warp.cells<uint32_t>(i.b)[lane] & 1
                    : MbarrierWord::of(warp.cells<uint64_t>(i.b)[lane]).phase;
    if (phase == asked)
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
  const bool isArrive = d.has("arrive"), isDrop = d.has("arrive_drop");
  const bool isExpect = d.has("expect_tx");
  const bool isInit = d.has("init");
  if (isDrop || d.hasAnother("complete_tx"))
    return d.refuse("this form is not executed", ErrorKind::Unsupported);
  if (!isArrive && !isExpect && !isInit && !d.has("inval"))
    return d.refuse("it has no operation");
  d.has("noComplete");
  d.type();
  const size_t first = isArrive ? 1 : 0;
  d.address(first, space);
  const bool isSink =
      isArrive && d.operand(0) && d.operand(0)->kind == Operand::Kind::Sink;
  d.instr.flags |= isInit     ? Init
                   : isExpect ? Expect | (isArrive ? 32 : 0)
                   : isArrive ? Arrive
                              : Inval;
  if (isArrive && !isSink) {
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

std::span<const Operation> copyOperations() {
  static const Operation rows[] = {{"cp", "9.7.9.26", decodeCp},
                                   {"mbarrier", "9.7.13.15", decodeMbarrier}};
  return rows;
}

} // namespace mgpu::kernels::ptx
