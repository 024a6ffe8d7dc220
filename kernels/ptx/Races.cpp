// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Machine.h"

#include <algorithm>

// Accesses of the same bytes that nothing orders (ISA 9.0, section 8): between
// the warps of a cluster in shared memory, and between blocks in global memory.
// Strong accesses, atomics and fences are taken to order all before with all
// behind, so what is reported is a race, and some races are not.

namespace mgpu::kernels::ptx {

void join(Clocks &into, const Clocks &from) {
  for (size_t k = 0; k < std::min(into.size(), from.size()); ++k)
    into[k] = std::max(into[k], from[k]);
}

void Warp::meet() {
  auto &[seen, visible] = block.arrivals[UINT32_MAX];
  seen.resize(clocks.size());
  visible.resize(clocks.size());
  join(clocks, seen);
  join(fenced, visible);
  seen = clocks;
  visible = fenced;
  release();
  machine.published[block.number] = block.acquired = ++machine.time;
}

void Warp::race(const Touched &other, const char *did, const char *does,
                uint64_t offset, uint32_t lane, const char *missing) {
  const uint32_t warpsOfBlock = uint32_t(block.warps.size());
  std::string who = "an asynchronous copy";
  if (other.warp + 1u < clocks.size())
    who = fmt::format("thread {}{}",
                      other.warp % warpsOfBlock * lanes + other.lane,
                      other.warp / warpsOfBlock == block.rank
                          ? ""
                          : " of another block of the cluster");
  fail(fmt::format("{} of shared memory at offset {}, which {} {} at {}, "
                   "without {} between them",
                   does, offset, who, did, machine.placeText(other.pc),
                   missing),
       int(lane));
}

bool Warp::reachAsync(Block &owner, uint32_t offset, uint32_t bytes,
                      bool isWrite, uint32_t lane, const Clocks &seen,
                      const Clocks &visible) {
  SharedMemory &shared = owner.shared;
  const char *does = isWrite ? "asynchronous write" : "asynchronous read";
  const bool isWithin = uint64_t(offset) + bytes <= shared.bytes.size();
  for (uint32_t k = 0; isWithin && k < bytes; ++k) {
    const ByteState state = shared.states[offset + k];
    if (state == ByteState::Awaited ||
        state == (isWrite ? ByteState::Lent : ByteState::Unwritten)) {
      fail(fmt::format("{} of {} bytes at offset {} of shared memory, {}", does,
                       bytes, offset, wordOf(state)),
           int(lane));
      return false;
    }
  }
  if (!isWithin) {
    fail(fmt::format("{} of {} bytes at offset {} of shared memory, which has "
                     "{} bytes",
                     does, bytes, offset, shared.bytes.size()),
         int(lane));
    return false;
  }
  const uint32_t granule = machine.program.granule;
  for (uint32_t at = offset / granule; at * granule < offset + bytes; ++at) {
    const SharedCell &cell = shared.cells[at];
    const Touched &write = cell.write;
    const bool isOfProxy = write.warp + 1u == seen.size();
    if (write.time > (isOfProxy ? seen : visible)[write.warp]) {
      const bool isSeen =
          !isOfProxy && (write.warp == id || write.time <= seen[write.warp]);
      race(write, "wrote", does, at * granule, lane,
           isSeen ? "fence.proxy.async" : "a barrier");
      return false;
    }
    for (const Touched *read : {&cell.read, &cell.older})
      if (isWrite && read->warp != id && read->time > seen[read->warp]) {
        race(*read, "read", does, at * granule, lane);
        return false;
      }
  }
  return true;
}

void Warp::noteAsyncRead(Block &owner, uint32_t offset, uint32_t bytes,
                         uint32_t lane) {
  const uint32_t granule = machine.program.granule;
  for (uint32_t at = offset / granule; at * granule < offset + bytes; ++at) {
    SharedCell &cell = owner.shared.cells[at];
    if (cell.read.warp != id || cell.read.time == 0)
      cell.older = cell.read;
    cell.read = {now(), pc, uint16_t(id), uint8_t(lane)};
  }
}

bool Warp::race(SharedCell &cell, Touch touch, uint32_t lane, uint64_t offset,
                bool isSame) {
  auto isUnseen = [&](const Touched &other) {
    return other.time != 0 && other.warp != id &&
           other.time > clocks[other.warp];
  };
  if (!isSame && isUnseen(cell.write)) {
    race(cell.write, "wrote", touch == Touch::Read ? "read" : "write", offset,
         lane);
    return false;
  }
  const Touched self{now(), pc, uint16_t(id), uint8_t(lane)};
  if (touch == Touch::Read) {
    if (cell.read.warp != id || cell.read.time == 0)
      cell.older = cell.read;
    cell.read = self;
    return true;
  }
  for (const Touched *other : {&cell.read, &cell.older})
    if (touch == Touch::Write && !isSame && isUnseen(*other)) {
      race(*other, "read", "write", offset, lane);
      return false;
    }
  if (touch == Touch::Write)
    cell.write = self;
  return true;
}

bool Warp::raceGlobal(size_t region, uint64_t offset, uint32_t bytes,
                      Touch touch, uint32_t lane) {
  constexpr uint64_t cellsOfPage = 1024;
  const uint32_t granule = machine.program.granule;
  auto &pages = machine.pages[region];
  auto isUnseen = [&](uint32_t who, uint32_t when) {
    if (who == 0 || who == block.number)
      return false;
    const uint32_t shown = machine.published[who];
    return shown <= when || block.acquired <= when;
  };
  auto report = [&](const char *does, const char *did, uint32_t who,
                    uint32_t where) {
    fail(fmt::format("{} of {} at offset {}, which block {} {} at {}: nothing "
                     "orders two blocks of a launch",
                     does, machine.regions[region].name, offset, who - 1, did,
                     machine.placeText(where)),
         int(lane));
    return false;
  };
  for (uint64_t at = offset / granule; at * granule < offset + bytes; ++at) {
    auto &page = pages[at / cellsOfPage];
    if (!page)
      page = std::make_unique<GlobalCell[]>(cellsOfPage);
    GlobalCell &cell = page[at % cellsOfPage];
    if (isUnseen(cell.writer, cell.writeTime))
      return report(touch == Touch::Read ? "read" : "write", "wrote",
                    cell.writer, cell.writePc);
    if (touch == Touch::Read) {
      if (cell.reader != block.number) {
        cell.older = cell.reader;
        cell.olderTime = cell.readTime;
      }
      cell.reader = block.number;
      cell.readTime = machine.time;
      cell.readPc = pc;
    } else if (touch == Touch::Write) {
      if (isUnseen(cell.reader, cell.readTime))
        return report("write", "read", cell.reader, cell.readPc);
      if (isUnseen(cell.older, cell.olderTime))
        return report("write", "read", cell.older, cell.readPc);
      cell.writer = block.number;
      cell.writeTime = machine.time;
      cell.writePc = pc;
    }
  }
  return true;
}

} // namespace mgpu::kernels::ptx
