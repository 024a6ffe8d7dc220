// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Barriers.h"
#include "kernels/ptx/BulkCopies.h"
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

// Copies that go on beside the thread that asks for them (ISA 9.0, section
// 9.7.9.26.3). A copy is done when it is waited for, or when it is issued
// (LaunchOptions::isEarly); until then its bytes may not be touched.

namespace mgpu::kernels::ptx {

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

/// `a`: the target; `b`: the source's words; `c`: the bytes to read, or
/// noPlace; the rest are zeros. `more`: a predicate that says to read nothing,
/// plus 1; `d`: whether it is negated.
void copyAsync(Warp &warp, const Instr &i) {
  uint64_t to[lanes], from[lanes];
  warp.addresses(i, to);
  warp.addressesAt(i.b, from);
  const uint32_t kept = warp.mask;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(kept >> lane & 1))
      continue;
    uint32_t read = i.bytes;
    if (i.c != noPlace)
      read = warp.cells<uint32_t>(i.c)[lane];
    if (i.more && (warp.predicate(i.more - 1) >> lane & 1) != i.d)
      read = 0;
    if (read > i.bytes)
      return warp.fail("an asynchronous copy reads more than it writes",
                       int(lane));
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
  const uint32_t source = d.addressAt(1, Space::Global);
  d.address(0, Space::Shared);
  d.instr.b = source;
  d.instr.c = noPlace;
  d.instr.bytes = uint8_t(bytes);
  if (d.numOperands() > 3) {
    const Operand *last = d.operand(3);
    if (d.declared(last) == Scalar::Pred) {
      bool isNegated = false;
      d.instr.more = d.predicate(last, isNegated) + 1;
      d.instr.d = isNegated;
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
  const bool isReduction = d.has("reduce");
  if (!d.has("async") || (isReduction && !d.hasAnother("bulk")))
    return d.refuse("it is no asynchronous copy", ErrorKind::Unsupported);
  if (d.has("bulk"))
    return decodeBulk(d, isReduction);
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

std::span<const Operation> copyOperations() {
  static const Operation rows[] = {{"cp", "9.7.9.26, 9.7.9.27", decodeCp}};
  return rows;
}

} // namespace mgpu::kernels::ptx
