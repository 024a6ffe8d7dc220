// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/BulkCopies.h"

#include "kernels/ptx/Barriers.h"
#include "kernels/ptx/Opcodes.h"

#include <algorithm>

// Copies and reductions in bulk (ISA 9.0, sections 9.7.9.26.4 and 9.7.9.27.1).

namespace mgpu::kernels::ptx {

namespace {

enum class Kind : uint8_t { Load, Store, Across, Prefetch };

/// `words[more..]`: addresses of the target, the source and the mbarrier, and
/// the coordinates; `count`: how many. `b`: the bytes of what is no tensor;
/// `c`: the blocks of a multicast, or noPlace; `bytes`: the kind; `flags`: an
/// operation and a type of a reduction, and `reduces`.
constexpr uint32_t reduces = 1u << 16;

struct SharedPlace {
  Block *block = nullptr;
  uint32_t offset = 0;
};

/// Where a shared address of the cluster is.
bool placeOf(Warp &warp, uint64_t address, uint32_t align, uint32_t lane,
             SharedPlace &out) {
  const auto low = uint32_t(address);
  const uint32_t rank = low >> rankShift;
  auto &blocks = warp.block.cluster.blocks;
  out.offset = low & ((1u << rankShift) - 1);
  if ((address & windowMask) != sharedWindow || rank > blocks.size() ||
      out.offset % align) {
    warp.fail(fmt::format("a copy in bulk of what is not shared memory aligned "
                          "to {}: address {:#x}",
                          align, address),
              int(lane));
    return false;
  }
  out.block = rank ? blocks[rank - 1].get() : &warp.block;
  return true;
}

void setStates(const BulkCopy &copy, ByteState state) {
  for (const BulkCopy::Piece &piece : copy.pieces)
    std::memset(
        static_cast<void *>(copy.block->shared.states.data() + piece.offset),
        int(state), piece.bytes);
}

/// Where the source of a copy between blocks begins in its block.
uint32_t sourceOf(const BulkCopy &copy) {
  return uint32_t(copy.pieces[0].outside - copy.source->shared.bytes.data());
}
void lendSource(const BulkCopy &copy, ByteState state) {
  if (copy.source)
    std::memset(
        static_cast<void *>(copy.source->shared.states.data() + sourceOf(copy)),
        int(state), copy.bytes);
}

/// Lends what other copies still read again.
void lendAgain(Block &block) {
  for (const auto &warp : block.warps)
    for (const BulkCopy &copy : warp->stores)
      setStates(copy, ByteState::Lent);
  for (const BulkCopy &copy : block.cluster.loads)
    if (copy.source == &block)
      lendSource(copy, ByteState::Lent);
}

void move(const BulkCopy &copy) {
  for (const BulkCopy::Piece &piece : copy.pieces) {
    std::byte *inside = copy.block->shared.bytes.data() + piece.offset;
    if (!piece.outside && !copy.isStore)
      std::memset(inside, 0, piece.bytes);
    if (!piece.outside)
      continue;
    std::byte *to = copy.isStore ? piece.outside : inside;
    const std::byte *from = copy.isStore ? inside : piece.outside;
    if (copy.combine)
      copy.combine(copy.operation, to, from, piece.bytes);
    else
      std::memmove(to, from, piece.bytes);
  }
}

void endLoad(Machine &machine, const BulkCopy &copy) {
  Block &block = *copy.block;
  SharedMemory &shared = block.shared;
  const auto proxy = uint16_t(block.warps[0]->clocks.size() - 1);
  Touched by = copy.by;
  by.warp = proxy;
  by.time = ++block.cluster.asyncTime;
  move(copy);
  setStates(copy, ByteState::Written);
  lendSource(copy, ByteState::Written);
  if (copy.source)
    lendAgain(*copy.source);
  const uint32_t granule = machine.program.granule;
  for (const BulkCopy::Piece &piece : copy.pieces)
    for (uint32_t at = piece.offset; at < piece.offset + piece.bytes;
         at += granule)
      shared.cells[at / granule].write = by;
  auto &[seen, visible] = block.arrivals[copy.barrier];
  for (Clocks *each : {&seen, &visible}) {
    each->resize(proxy + 1u);
    each->back() = by.time;
  }
  uint64_t bits = 0;
  std::byte *at = shared.bytes.data() + copy.barrier;
  std::memcpy(&bits, at, 8);
  MbarrierWord word = MbarrierWord::of(bits);
  const int64_t left = int64_t(word.bytes) - int64_t(copy.bytes);
  if (left <= -mostTransactions && !machine.error)
    machine.error = Error{ErrorKind::Invalid,
                          "copies in bulk have ended with more bytes than an "
                          "mbarrier counts, 2^20 - 1",
                          ""};
  word.bytes = int32_t(std::max(left, 1 - mostTransactions));
  bits = word.settled(machine).bits();
  std::memcpy(at, &bits, 8);
}

void endStore(Warp &warp, const BulkCopy &copy) {
  move(copy);
  setStates(copy, ByteState::Written);
  for (const BulkCopy::Piece &piece : copy.pieces)
    warp.noteAsyncRead(*copy.block, piece.offset, piece.bytes, copy.by.lane);
}

bool isEarly(Machine &machine) {
  return machine.options.isEarly ||
         (machine.options.seed && (machine.random() & 1));
}

bool mayLoad(Warp &warp, uint32_t lane, const BulkCopy &copy) {
  const SharedMemory &shared = copy.block->shared;
  if (uint64_t(copy.barrier) + 8 > shared.bytes.size() ||
      shared.states[copy.barrier] != ByteState::Written) {
    warp.fail("a copy in bulk names an mbarrier that was not made", int(lane));
    return false;
  }
  if (copy.block->unpublished.contains(copy.barrier)) {
    warp.fail("a copy in bulk names an mbarrier behind whose init there is no "
              "fence.mbarrier_init or fence.proxy.async",
              int(lane));
    return false;
  }
  for (const BulkCopy::Piece &piece : copy.pieces)
    if (!warp.reachAsync(*copy.block, piece.offset, piece.bytes, true, lane,
                         warp.clocks, warp.fenced))
      return false;
  return true;
}

/// One block's part of a load.
bool load(Warp &warp, uint32_t lane, BulkCopy copy) {
  Machine &machine = warp.machine;
  if (!mayLoad(warp, lane, copy))
    return false;
  ++machine.changes; // who waits for the mbarrier may end it
  if (isEarly(machine)) {
    endLoad(machine, copy);
    return true;
  }
  setStates(copy, ByteState::Awaited);
  lendSource(copy, ByteState::Lent);
  warp.block.cluster.loads.push_back(std::move(copy));
  return true;
}

bool store(Warp &warp, uint32_t lane, BulkCopy copy) {
  for (const BulkCopy::Piece &piece : copy.pieces)
    if (!warp.reachAsync(*copy.block, piece.offset, piece.bytes, false, lane,
                         warp.clocks, warp.fenced))
      return false;
  setStates(copy, ByteState::Lent);
  if (isEarly(warp.machine)) { // its bytes are lent until it is waited for
    move(copy);
    for (BulkCopy::Piece &piece : copy.pieces)
      piece.outside = nullptr;
  }
  warp.stores.push_back(std::move(copy));
  return true;
}

/// How a copy touches what lies outside.
Touch touchOf(const Instr &i, Kind kind) {
  return kind != Kind::Store ? Touch::Read
         : i.flags & reduces ? Touch::Atomic
                             : Touch::Write;
}

/// The other side of a copy that is no tensor.
bool outsideOf(Warp &warp, const Instr &i, Kind kind, uint64_t address,
               uint32_t lane, BulkCopy &copy) {
  if (copy.bytes % 16 || address % 16) {
    warp.fail(fmt::format("a copy in bulk of {} bytes at address {:#x}: both "
                          "must be multiples of 16",
                          copy.bytes, address),
              int(lane));
    return false;
  }
  // A hint reads nothing that the kernel could see.
  if (copy.bytes == 0 ||
      (kind == Kind::Prefetch && warp.machine.regionOf(address, copy.bytes)))
    return true;
  std::byte *outside = nullptr;
  if (kind == Kind::Across) {
    SharedPlace from;
    if (!placeOf(warp, address, 16, lane, from) ||
        !warp.reachAsync(*from.block, from.offset, copy.bytes, false, lane,
                         warp.clocks, warp.fenced))
      return false;
    copy.source = from.block;
    outside = from.block->shared.bytes.data() + from.offset;
  } else if (!warp.reachGlobal(address, copy.bytes, touchOf(i, kind), lane,
                               &outside)) {
    return false;
  }
  copy.pieces = {{outside, 0, copy.bytes}};
  return true;
}

/// The pieces of a box of a tensor, and the type of its elements.
bool boxOf(Warp &warp, const Instr &i, Kind kind, uint64_t map, uint32_t tile,
           uint32_t lane, BulkCopy &copy, Scalar &type) {
  Box box;
  box.map = map;
  box.rank = i.count;
  const uint32_t *places = &warp.machine.program.words[i.more + 3];
  for (uint32_t k = 0; k < i.count; ++k)
    box.at[k] = int32_t(warp.cells<uint32_t>(places[k])[lane]);
  if (!boxPieces(warp, lane, box, tile, touchOf(i, kind), copy.pieces))
    return false;
  for (const BulkCopy::Piece &piece : copy.pieces)
    copy.bytes += piece.bytes;
  type = box.type;
  return true;
}

/// To one block, or to all of a multicast.
bool loadAll(Warp &warp, const Instr &i, uint64_t barrierAt, uint32_t lane,
             BulkCopy copy) {
  SharedPlace barrier;
  if (!placeOf(warp, barrierAt, 8, lane, barrier))
    return false;
  if (barrier.block != copy.block) {
    warp.fail("a copy in bulk and its mbarrier are in two blocks", int(lane));
    return false;
  }
  copy.barrier = barrier.offset;
  if (i.c == noPlace)
    return load(warp, lane, std::move(copy));
  const uint32_t blocks = warp.cells<uint32_t>(i.c)[lane] & 0xffff;
  const auto &all = warp.block.cluster.blocks;
  if (blocks >> all.size()) {
    warp.fail(fmt::format("a multicast to the blocks {:#x}, and the cluster "
                          "has {}",
                          blocks, all.size()),
              int(lane));
    return false;
  }
  for (uint32_t rank = 0; rank < all.size(); ++rank) {
    copy.block = all[rank].get();
    if ((blocks >> rank & 1) && !load(warp, lane, copy))
      return false;
  }
  return true;
}

bool copyOfLane(Warp &warp, const Instr &i, uint32_t lane, uint64_t to,
                uint64_t from, uint64_t barrier) {
  const auto kind = Kind(i.bytes);
  const bool isStore = kind == Kind::Store, isPrefetch = kind == Kind::Prefetch;
  const uint64_t outside = isStore ? to : from;
  if (i.count && isPrefetch) // a hint
    return true;
  BulkCopy copy;
  SharedPlace inside;
  copy.isStore = isStore;
  copy.group = openGroup;
  copy.by = {warp.now(), warp.pc, uint16_t(warp.id), uint8_t(lane)};
  if (!isPrefetch &&
      !placeOf(warp, isStore ? from : to, i.count ? 128 : 16, lane, inside))
    return false;
  copy.block = inside.block;
  Scalar type = Scalar(i.flags >> 8 & 255);
  if (i.count) {
    if (!boxOf(warp, i, kind, outside, inside.offset, lane, copy, type))
      return false;
  } else {
    copy.bytes = warp.cells<uint32_t>(i.b)[lane];
    if (!outsideOf(warp, i, kind, outside, lane, copy))
      return false;
    for (BulkCopy::Piece &piece : copy.pieces)
      piece.offset = inside.offset;
  }
  if (i.flags & reduces) {
    copy.operation = i.flags & 255;
    copy.combine = reductionOf(copy.operation, type);
    if (!copy.combine) {
      warp.fail("the elements of the tensor map have no such reduction",
                int(lane), ErrorKind::Unsupported);
      return false;
    }
  }
  return isPrefetch ||
         (isStore ? store(warp, lane, std::move(copy))
                  : loadAll(warp, i, barrier, lane, std::move(copy)));
}

void copyBulk(Warp &warp, const Instr &i) {
  uint64_t to[lanes] = {}, from[lanes], barriers[lanes] = {};
  const uint32_t *words = &warp.machine.program.words[i.more];
  const auto kind = Kind(i.bytes);
  if (kind != Kind::Prefetch)
    warp.addressesAt(words[0], to);
  warp.addressesAt(words[1], from);
  if (kind == Kind::Load || kind == Kind::Across)
    warp.addressesAt(words[2], barriers);
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if ((warp.mask >> lane & 1) &&
        !copyOfLane(warp, i, lane, to[lane], from[lane], barriers[lane]))
      return;
}

void commitStores(Warp &warp, const Instr &) {
  for (BulkCopy &copy : warp.stores)
    if ((warp.mask >> copy.by.lane & 1) && copy.group == openGroup)
      copy.group = warp.bulkGroups[copy.by.lane];
  for (uint32_t lane = 0; lane < lanes; ++lane)
    warp.bulkGroups[lane] += warp.mask >> lane & 1;
}

/// `offset`: how many of the last groups may go on. A wait for the reads alone
/// (.read) is one for all.
void awaitStores(Warp &warp, const Instr &i) {
  std::vector<BulkCopy> ended;
  for (BulkCopy &copy : warp.stores) {
    const uint32_t groups = warp.bulkGroups[copy.by.lane];
    if ((warp.mask >> copy.by.lane & 1) && copy.group != openGroup &&
        copy.group < groups - std::min(groups, uint32_t(i.offset)))
      ended.push_back(std::exchange(copy, {}));
  }
  std::erase_if(warp.stores, [](const BulkCopy &copy) { return !copy.block; });
  for (const BulkCopy &copy : ended)
    endStore(warp, copy);
  lendAgain(warp.block);
}

/// The spaces and the completion say the kind.
Kind kindOf(Decoder &d) {
  if (d.has("prefetch")) {
    d.has("L2");
    d.has("global");
    return Kind::Prefetch;
  }
  const bool isToShared = d.has("shared::cluster");
  const bool isCta = d.has("shared::cta");
  const bool isGlobal = d.has("global");
  const bool isGroup = d.has("bulk_group");
  const bool isBarrier = d.has("mbarrier::complete_tx::bytes");
  if (isGlobal && isCta && isGroup && !isToShared)
    return Kind::Store;
  if (isGlobal && (isCta || isToShared) && isBarrier)
    return Kind::Load;
  if (!isGlobal && isCta && isToShared && isBarrier)
    return Kind::Across;
  d.refuse("it says no pair of spaces that it knows, or how it ends",
           ErrorKind::Unsupported);
  return Kind::Load;
}

uint32_t rankOf(Decoder &d) {
  if (!d.has("tensor"))
    return 0;
  d.has("tile");
  const auto rank = d.placeOf({"1d", "2d", "3d", "4d", "5d"});
  if (!rank)
    d.refuse("it does not say how many dimensions there are");
  return rank.value_or(0) + 1;
}

void decodeCopy(Decoder &d, bool isReduction) {
  const uint32_t rank = rankOf(d);
  const Kind kind = kindOf(d);
  const bool hasBarrier = kind == Kind::Load || kind == Kind::Across;
  const size_t first = kind == Kind::Prefetch ? 0 : 1;
  const bool isMulticast = d.has("multicast::cluster");
  d.has("L2::cache_hint");
  if (isReduction) {
    d.has("noftz");
    const auto operation = operationNamed(d);
    const Scalar type = rank ? Scalar::B8 : d.type();
    if (!operation || (!rank && !reductionOf(*operation, type)))
      return d.refuse("it has no such operation", ErrorKind::Unsupported);
    d.instr.flags = reduces | *operation | uint32_t(type) << 8;
  }
  const size_t outside = kind == Kind::Store || kind == Kind::Prefetch ? 0 : 1;
  const size_t sizeAt = first + 1;
  const size_t barrierAt = rank ? first + 1 : first + 2;
  std::vector<uint32_t> words{0, 0, 0};
  if (first)
    words[0] = d.addressAt(0, kind == Kind::Store
                                  ? rank ? Space::Generic : Space::Global
                                  : Space::Shared);
  words[1] = d.addressAt(first, kind == Kind::Store || kind == Kind::Across
                                    ? Space::Shared
                                : rank ? Space::Generic
                                       : Space::Global);
  if (hasBarrier)
    words[2] = d.addressAt(barrierAt, Space::Shared);
  if (rank) {
    const Operand *map = d.operand(outside);
    if (!map || map->parts.size() != 1 || map->parts[0].parts.size() != rank)
      return d.refuse("it has other coordinates than it says dimensions");
    for (const Operand &each : map->parts[0].parts)
      words.push_back(d.sourceOf(&each, Scalar::B32));
  } else {
    d.instr.b = d.source(sizeAt, Scalar::B32);
  }
  d.instr.c = isMulticast ? d.source(barrierAt + 1, Scalar::B16) : noPlace;
  d.instr.more = d.words(words);
  d.instr.count = uint8_t(rank);
  d.instr.bytes = uint8_t(kind);
  d.emit(copyBulk);
}

} // namespace

void decodeBulk(Decoder &d, bool isReduction) {
  if (d.has("commit_group"))
    return d.emit(commitStores);
  if (d.has("wait_group")) {
    d.has("read");
    d.instr.offset = int64_t(std::min<uint64_t>(d.integer(0), 1 << 20));
    return d.emit(awaitStores);
  }
  decodeCopy(d, isReduction);
}

bool finishLoad(Warp &warp, uint64_t address) {
  Machine &machine = warp.machine;
  std::vector<BulkCopy> &loads = warp.block.cluster.loads;
  if (loads.empty())
    return false;
  SharedPlace barrier;
  if (!placeOf(warp, address, 8, 0, barrier))
    return false;
  std::vector<size_t> found;
  for (size_t k = 0; k < loads.size(); ++k)
    if (loads[k].block == barrier.block && loads[k].barrier == barrier.offset)
      found.push_back(k);
  if (found.empty())
    return false;
  const size_t k =
      found[machine.options.seed ? machine.random() % found.size() : 0];
  const BulkCopy copy = std::move(loads[k]);
  loads.erase(loads.begin() + ptrdiff_t(k));
  endLoad(machine, copy);
  return true;
}

void publishBarriers(Warp &warp) {
  std::erase_if(warp.block.unpublished, [&](const auto &each) {
    const Touched &by = each.second;
    return by.warp == warp.id || by.time <= warp.clocks[by.warp];
  });
}

void leaveCopies(Warp &warp) {
  const BulkCopy *left = warp.stores.empty() ? nullptr : &warp.stores.front();
  if (!left && warp.block.isDone())
    for (const BulkCopy &copy : warp.block.cluster.loads)
      if (copy.block == &warp.block || copy.source == &warp.block)
        left = &copy;
  if (!left)
    return;
  warp.pc = left->by.pc;
  warp.fail(left->isStore
                ? "the thread ends before its copy in bulk has read "
                  "shared memory: cp.async.bulk.wait_group is missing"
                : "the block ends while a copy in bulk from or to its "
                  "shared memory goes on: nobody waited for it",
            left->by.lane);
}

} // namespace mgpu::kernels::ptx
