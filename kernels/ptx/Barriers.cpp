// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Barriers.h"

#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

#include <utility>

// Barriers of a block, a cluster and in memory (ISA 9.0, sections 9.7.13.1 to
// 9.7.13.3 and 9.7.13.15 to 9.7.13.17).

namespace mgpu::kernels::ptx {

namespace {

/// Lets go who waits, once all have come.
void complete(Block &block, Barrier &barrier) {
  uint32_t whole = 0, some = 0;
  for (auto &warp : block.warps) {
    const uint32_t mask = barrier.masks[warp->index];
    const bool hasCome = (warp->live() & ~mask) == 0 && mask != 0;
    whole += hasCome || (barrier.expected == 0 && warp->isDone());
    some += hasCome;
  }
  const uint32_t needed = barrier.expected ? barrier.expected / lanes
                                           : uint32_t(block.warps.size());
  if (whole < needed || some == 0)
    return;
  for (auto &warp : block.warps)
    if (barrier.masks[warp->index]) {
      join(warp->clocks, barrier.clocks);
      join(warp->fenced, barrier.fenced);
    }
  ++barrier.generation;
  ++block.machine.changes;
  barrier.lastCount = barrier.count;
  barrier.lastThreads = barrier.threads;
  barrier.count = barrier.threads = 0;
  barrier.pc = noPlace;
  barrier.masks.clear();
}

constexpr uint32_t alignedFlag = 1, arriveFlag = 2, countFlag = 4, redFlag = 8;

/// `a`: the barrier, `b`: the threads if they are said, `c`: of bar.red a
/// predicate.
void barrier(Warp &warp, const Instr &i) {
  const auto first = uint32_t(std::countr_zero(warp.mask));
  const uint32_t number = warp.cells<uint32_t>(i.a)[first];
  const uint32_t threads =
      i.flags & countFlag ? warp.cells<uint32_t>(i.b)[first] : 0;
  if (number >= 16 || threads % lanes || threads > 1024 ||
      (threads == 0 && (i.flags & countFlag)))
    return warp.fail(fmt::format("barrier {} of {} threads: there are 16 "
                                 "barriers, of whole warps",
                                 number, threads));
  Barrier &at = warp.block.barriers[number];
  if (at.masks.empty()) {
    at.masks.assign(warp.block.warps.size(), 0);
    at.clocks.assign(warp.clocks.size(), 0);
    at.fenced = at.clocks;
    at.expected = threads;
  }
  uint32_t &mask = at.masks[warp.index];
  if (at.expected != threads)
    return warp.fail(fmt::format("barrier {} waits for {} threads, and others "
                                 "say that it waits for {}",
                                 number, threads, at.expected));
  for (const Fragment &each : warp.others)
    if ((i.flags & alignedFlag) && mask && each.barrier == number &&
        each.wait == Fragment::Wait::Barrier && each.pc != warp.pc + 1)
      return warp.fail(fmt::format(
          "the lanes {:#x} of the warp wait at another barrier ({}), which "
          "these skip",
          each.mask, warp.machine.placeText(each.pc - 1)));
  mask |= warp.mask;
  join(at.clocks, warp.clocks);
  join(at.fenced, warp.fenced);
  warp.release();
  if (i.flags & redFlag) {
    uint32_t bits = warp.predicate(i.c) ^ (i.flags & 16 ? ~0u : 0);
    at.count += uint32_t(std::popcount(bits & warp.mask));
    at.threads += uint32_t(std::popcount(warp.mask));
  }
  const uint64_t generation = at.generation;
  if (!(i.flags & arriveFlag))
    warp.park(Fragment::Wait::Barrier, warp.pc + 1, number, generation);
  complete(warp.block, at);
}

/// Writes what bar.red found, behind it. `flags`: 0 popc, 1 and, 2 or.
void reduced(Warp &warp, const Instr &i) {
  const auto first = uint32_t(std::countr_zero(warp.mask));
  const Barrier &at =
      warp.block.barriers[warp.cells<uint32_t>(i.a)[first] & 15];
  if (i.flags == 0) {
    for (uint32_t lane = 0; lane < lanes; ++lane)
      if (warp.mask >> lane & 1)
        warp.cells<uint32_t>(i.d)[lane] = at.lastCount;
    return;
  }
  const bool is =
      i.flags == 1 ? at.lastCount == at.lastThreads : at.lastCount != 0;
  warp.setPredicate(i.d, is ? ~0u : 0);
}

/// The register that names the lanes that meet.
uint32_t firstSource(const Warp &, const Instr &i) { return i.a; }

void syncWarp(Warp &warp, const Instr &i) {
  if (warp.gatherNamed(firstSource, i))
    warp.release();
}

void decodeBlockBarrier(Decoder &d, bool isAligned, size_t first) {
  const bool isArrive = d.has("arrive");
  const bool isRed = d.has("red");
  if (!isArrive && !isRed)
    d.has("sync");
  uint32_t kind = 0;
  if (isRed && d.has("and"))
    kind = 1;
  else if (isRed && d.has("or"))
    kind = 2;
  else if (isRed)
    d.has("popc");
  if (isRed)
    d.type();
  const size_t last = d.numOperands() - (isRed ? 1 : 0);
  d.instr.a = d.source(first, Scalar::B32);
  d.instr.flags = (isAligned ? alignedFlag : 0) | (isArrive ? arriveFlag : 0) |
                  (isRed ? redFlag : 0);
  if (first + 1 < last) {
    d.instr.b = d.source(first + 1, Scalar::B32);
    d.instr.flags |= countFlag;
  }
  if (isRed) {
    bool isNegated = false;
    d.instr.c = d.predicate(d.operand(last), isNegated);
    d.instr.flags |= isNegated ? 16 : 0;
  }
  d.emit(barrier);
  if (!isRed)
    return;
  d.instr.flags = kind;
  d.instr.d = d.target(0, kind == 0 ? Scalar::U32 : Scalar::Pred);
  d.emit(reduced);
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

constexpr uint32_t clusterArrive = 1, clusterWait = 2;

void clusterBarrier(Warp &warp, const Instr &i) {
  Cluster &cluster = warp.block.cluster;
  Barrier &at = cluster.barrier;
  if (i.flags == clusterWait) {
    if (warp.clusterPhase != at.generation)
      return;
    return warp.park(Fragment::Wait::Change, warp.pc, 0, warp.machine.changes);
  }
  if (warp.mask != warp.live()) {
    warp.park(Fragment::Wait::Change, warp.pc, 0, warp.machine.changes);
    return;
  }
  uint32_t count = 0, done = 0;
  for (auto &block : cluster.blocks)
    for (auto &each : block->warps) {
      ++count;
      done += each->isDone() && each.get() != &warp;
    }
  if (at.clocks.empty())
    at.clocks.assign(warp.clocks.size(), 0), at.fenced = at.clocks;
  join(at.clocks, warp.clocks);
  join(at.fenced, warp.fenced);
  warp.release();
  warp.clusterPhase = at.generation;
  if (++at.arrived + done < count)
    return;
  at.arrived = 0;
  ++at.generation;
  ++warp.machine.changes;
  const uint32_t time = ++warp.machine.time;
  for (auto &block : cluster.blocks) {
    if (block->number < warp.machine.published.size())
      warp.machine.published[block->number] = time;
    block->acquired = time;
    for (auto &each : block->warps) {
      join(each->clocks, at.clocks);
      join(each->fenced, at.fenced);
    }
  }
}

void decodeClusterBarrier(Decoder &d) {
  for (std::string_view word : {"aligned", "relaxed", "acquire", "release"})
    d.has(word);
  d.instr.flags = d.has("wait") ? clusterWait : clusterArrive;
  if (d.instr.flags == clusterArrive)
    d.has("arrive");
  d.emit(clusterBarrier);
}

void decodeBarrier(Decoder &d) {
  if (d.has("cluster"))
    return decodeClusterBarrier(d);
  d.has("cta");
  const bool isWarp = d.has("warp");
  const bool isResult = d.hasAnother("red");
  if (isWarp) {
    d.has("sync");
    d.instr.a = d.source(0, Scalar::B32);
    return d.emit(syncWarp);
  }
  const bool isAligned = d.has("aligned") || d.statement->opcode[3] == '.';
  decodeBlockBarrier(d, isAligned, isResult ? 1 : 0);
}

//===----------------------------------------------------------------------===//
// Programmatic launches (section 9.7.13.14) and one of a warp (9.7.13.13)
//===----------------------------------------------------------------------===//

void awaitGrid(Warp &warp, const Instr &) {
  Machine &machine = warp.machine;
  if (!std::exchange(machine.hasAwaited, true) && machine.options.awaitGrids)
    machine.options.awaitGrids();
  warp.hasAwaited = true;
}
void nothing(Warp &, const Instr &) {}

void decodeGridControl(Decoder &d) {
  if (d.has("launch_dependents"))
    return d.emit(nothing);
  d.oneOf({"wait"}, false);
  d.program.hasWait = true;
  d.emit(awaitGrid);
}

void elect(Warp &warp, const Instr &i) {
  if (!warp.gatherNamed(firstSource, i))
    return;
  const auto first = uint32_t(std::countr_zero(warp.mask));
  warp.forParties([&](const Instr &own) {
    uint32_t *to = warp.cells<uint32_t>(own.d);
    for (uint32_t lane = 0; lane < lanes; ++lane)
      if (warp.mask >> lane & 1)
        to[lane] = first;
    warp.setPredicate(own.b, 1u << first);
  });
}

void decodeElect(Decoder &d) {
  d.has("sync");
  const Operand *result = d.operand(0);
  if (!result || result->parts.empty())
    return d.refuse("it has no predicate");
  d.instr.d = d.targetOf(result, Scalar::B32);
  d.instr.b = d.targetOf(&result->parts[0], Scalar::Pred);
  d.instr.a = d.source(1, Scalar::B32);
  d.emit(elect);
}

} // namespace

void leaveBarriers(Warp &warp) {
  for (Barrier &each : warp.block.barriers)
    if (!each.masks.empty())
      complete(warp.block, each);
}

std::span<const Operation> barrierOperations() {
  static const Operation rows[] = {
      {"bar", "9.7.13.1, 9.7.13.2", decodeBarrier},
      {"barrier", "9.7.13.1, 9.7.13.3", decodeBarrier},
      {"griddepcontrol", "9.7.13.14", decodeGridControl},
      {"elect", "9.7.13.13", decodeElect}};
  return rows;
}

} // namespace mgpu::kernels::ptx
