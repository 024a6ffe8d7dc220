// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Machine.h"

#include <algorithm>

// Lanes that go different ways (ISA 9.0, section 3.1). The lanes with the
// lowest pc go first, until they are where others are and go on together.

namespace mgpu::kernels::ptx {

Warp::Warp(Machine &machine, Block &block, uint32_t index)
    : machine(machine), block(block), index(index) {
  const std::vector<std::byte> &from = machine.program.file;
  memory.resize(from.size() + 64);
  void *at = memory.data();
  size_t room = memory.size();
  file = static_cast<std::byte *>(std::align(64, from.size(), at, room));
  if (!from.empty())
    std::memcpy(file, from.data(), from.size());
}

uint32_t Warp::live() const { return present & ~exited; }

uint32_t Warp::pcOf(const Instr &instr) const {
  return uint32_t(&instr - machine.program.code.data());
}

static bool isRunnable(const Warp &warp, const Fragment &f) {
  return f.wait == Fragment::Wait::None ||
         (f.wait == Fragment::Wait::Change
              ? f.stamp != warp.machine.changes
              : f.stamp != warp.block.barriers[f.barrier].generation);
}

bool Warp::canRun() const {
  return active != 0 ||
         std::any_of(others.begin(), others.end(),
                     [&](const Fragment &f) { return isRunnable(*this, f); });
}

/// Makes the lowest of the fragments that can run the one that does.
void Warp::choose() {
  if (active)
    others.push_back({pc, active});
  active = 0;
  if (machine.error)
    return;
  Fragment *best = nullptr;
  for (Fragment &each : others)
    if (isRunnable(*this, each) && (!best || each.pc < best->pc))
      best = &each;
  if (!best)
    return;
  pc = best->pc;
  limit = UINT32_MAX;
  size_t kept = 0;
  for (const Fragment &each : others) {
    const bool joins = each.pc == pc && (each.wait != Fragment::Wait::Barrier ||
                                         isRunnable(*this, each));
    if (joins) {
      active |= each.mask;
      continue;
    }
    if (each.pc > pc)
      limit = std::min(limit, each.pc);
    others[kept++] = each;
  }
  others.resize(kept);
}

void Warp::run(uint64_t budget) {
  const uint64_t given = budget;
  const Instr *code = machine.program.code.data();
  if (active && !others.empty() && (machine.random() & 3) == 0) {
    // A lane that spins must not keep the one that it waits for.
    others.insert(others.begin(), {pc, active});
    active = 0;
    const size_t k = machine.random() % others.size();
    if (isRunnable(*this, others[k])) {
      pc = others[k].pc;
      active = others[k].mask;
      others.erase(others.begin() + ptrdiff_t(k));
      limit = pc + 1;
    }
  }
  if (!active)
    choose();
  while (active && budget) {
    --budget;
    const Instr &instr = code[pc];
    next = pc + 1;
    mask = active;
    if (instr.guard != noPlace) {
      const uint32_t bits = predicate(instr.guard);
      mask &= instr.isGuardNegated ? ~bits : bits;
    }
    if (mask)
      instr.run(*this, instr);
    pc = next;
    if (pc >= limit)
      choose();
  }
  machine.instructions += given - budget;
}

void Warp::branch(uint32_t target, uint32_t lanes) {
  if (!others.empty() && target <= pc)
    limit = 0;
  if (lanes == active) {
    next = target;
    return;
  }
  others.push_back({target, lanes});
  active &= ~lanes;
  limit = 0;
}

void Warp::park(Fragment::Wait wait, uint32_t at, uint32_t barrier,
                uint64_t stamp) {
  others.push_back({at, mask, wait, barrier, stamp});
  active &= ~mask;
  limit = 0;
}

void Warp::exit(uint32_t lanes) {
  exited |= lanes;
  active &= ~lanes;
  limit = 0;
  ++machine.changes;
  for (const Fragment &each : others)
    if (each.wait == Fragment::Wait::Barrier && !isRunnable(*this, each)) {
      fail(fmt::format("the lanes {:#x} of the warp wait at a barrier ({}), "
                       "which this one skips",
                       each.mask, machine.placeText(each.pc - 1)));
      return;
    }
}

bool Warp::gather(uint32_t needed, const Instr &instr) {
  needed &= live();
  if (mask == needed)
    return true;
  // Lanes that wait here already go on together with these.
  for (Fragment &each : others)
    if (each.pc == pc && each.wait == Fragment::Wait::Change)
      each.wait = Fragment::Wait::None;
  park(Fragment::Wait::Change, pcOf(instr), 0, machine.changes);
  return false;
}

/// The lanes of some whose register names these.
static uint32_t lanesThatName(const uint32_t *masks, uint32_t of,
                              uint32_t named) {
  uint32_t found = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    found |= uint32_t((of >> lane & 1) && masks[lane] == named) << lane;
  return found;
}

/// The lanes that wait at another instruction of the kind for the same lanes.
uint32_t Warp::parkedFor(PlaceOf placeOf, const Instr &instr,
                         const Fragment &parked, uint32_t named) const {
  const Instr &other = machine.program.code[parked.pc];
  if (parked.wait != Fragment::Wait::Change || parked.pc == pc ||
      other.run != instr.run || other.flags != instr.flags)
    return 0;
  const uint32_t place = placeOf(*this, other);
  return place == noPlace
             ? 0
             : lanesThatName(cells<uint32_t>(place), parked.mask, named);
}

/// Takes them into the meeting; they go on behind their instruction.
void Warp::joinParked(PlaceOf placeOf, const Instr &instr, uint32_t named) {
  std::vector<Fragment> gone;
  for (Fragment &each : others)
    if (const uint32_t joined = parkedFor(placeOf, instr, each, named)) {
      parties.push_back({&machine.program.code[each.pc], joined});
      each.mask &= ~joined;
      mask |= joined;
      gone.push_back({each.pc + 1, joined});
    }
  if (gone.empty())
    return;
  std::erase_if(others, [](const Fragment &each) { return each.mask == 0; });
  others.insert(others.end(), gone.begin(), gone.end());
  limit = 0;
}

bool Warp::gatherNamed(PlaceOf placeOf, const Instr &instr) {
  const uint32_t place = placeOf(*this, instr);
  if (place == noPlace) {
    parties.assign(1, {&instr, mask});
    return true;
  }
  const auto *masks = cells<uint32_t>(place);
  for (uint32_t left = mask; left;) {
    const uint32_t named = masks[std::countr_zero(left)];
    const uint32_t group = lanesThatName(masks, mask, named);
    left &= ~group;
    if (group & ~named) {
      fail(fmt::format("lanes {:#x} execute what says that it is for lanes "
                       "{:#x}",
                       group, named));
      return false;
    }
    uint32_t come = group;
    for (const Fragment &each : others)
      come |= parkedFor(placeOf, instr, each, named);
    if (come != (named & live()))
      continue;
    if (const uint32_t rest = mask & ~group) { // come to it by themselves
      others.push_back({pc, rest});
      active &= ~rest;
      mask = group;
      limit = 0;
    }
    parties.assign(1, {&instr, group});
    joinParked(placeOf, instr, named);
    return true;
  }
  return gather(0, instr);
}

void Warp::fail(std::string message, int lane, ErrorKind kind) {
  limit = 0;
  if (machine.error)
    return;
  const uint32_t who =
      lane >= 0 ? uint32_t(lane) : uint32_t(std::countr_zero(mask | 1u << 31));
  const uint32_t thread = index * lanes + who;
  const Dim3 size = machine.options.block;
  machine.error =
      Error{kind,
            fmt::format("{}: {} (thread {} {} {} of block {} {} {})",
                        machine.placeText(pc), message, thread % size.x,
                        thread / size.x % size.y, thread / size.x / size.y,
                        block.index.x, block.index.y, block.index.z),
            ""};
}

} // namespace mgpu::kernels::ptx
