// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Machine.h"

#include <algorithm>

// Which bytes an address stands for (ISA 9.0, sections 5.1 and 6.4), and
// whether they may be touched. Nothing but what is given out here is read or
// written for a kernel.

namespace mgpu::kernels::ptx {

Region *Machine::regionOf(uint64_t address, uint32_t bytes) {
  auto holds = [&](const Region &r) {
    return address >= r.address && bytes <= r.bytes &&
           address - r.address <= r.bytes - bytes;
  };
  if (lastRegion < regions.size() && holds(regions[lastRegion]))
    return &regions[lastRegion];
  const auto after = std::upper_bound(
      regions.begin(), regions.end(), address,
      [](uint64_t at, const Region &r) { return at < r.address; });
  if (after == regions.begin() || !holds(*(after - 1)))
    return nullptr;
  lastRegion = size_t(after - regions.begin()) - 1;
  return &regions[lastRegion];
}

void Warp::addresses(const Instr &instr, uint64_t *out) const {
  const auto offset = uint64_t(instr.offset);
  const bool isWide = instr.flags & wideAddress;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint64_t base = instr.a == noPlace ? 0 : value(instr.a, lane, isWide);
    out[lane] = base + offset;
  }
  auto within = [&](uint64_t window) {
    for (uint32_t lane = 0; lane < lanes; ++lane)
      out[lane] = window | uint32_t(out[lane]);
  };
  if (instr.space == Space::Shared)
    within(sharedWindow);
  else if (instr.space == Space::Local)
    within(localWindow);
  else if (instr.space == Space::Param)
    within(paramWindow);
  else if (!isWide && instr.a != noPlace)
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const auto low = uint32_t(out[lane]);
      out[lane] = low >> 31 ? variableWindow | (low & ~(1u << 31)) : low;
    }
}

void Warp::addressesAt(uint32_t word, uint64_t *out) const {
  const uint32_t *words = &machine.program.words[word];
  Instr instr;
  instr.a = words[0];
  instr.flags = words[1];
  instr.space = Space(words[2]);
  instr.offset = int64_t(words[3] | uint64_t(words[4]) << 32);
  addresses(instr, out);
}

const char *wordOf(ByteState state) {
  return state == ByteState::Awaited
             ? "which an asynchronous copy that was not waited for writes"
         : state == ByteState::Lent
             ? "which an asynchronous copy that was not waited for reads"
             : "some of which nobody wrote";
}

namespace {

const char *wordOf(Touch touch) {
  return touch == Touch::Read    ? "read"
         : touch == Touch::Write ? "write"
                                 : "atomic access";
}

} // namespace

/// The usual case at once: all lanes within the buffer of the last access,
/// which has nothing to be noted of each byte. False: look at each lane.
bool Warp::reachTogether(const uint64_t *addresses, uint32_t bytes, Touch touch,
                         std::byte **out) {
  if (machine.hasManyBlocks || machine.lastRegion >= machine.regions.size())
    return false;
  Region &region = machine.regions[machine.lastRegion];
  const bool isOpen = region.isSteady || !machine.program.hasWait || hasAwaited;
  if (region.written || machine.options.onTouch || !isOpen ||
      bytes > region.bytes || (touch != Touch::Read && !region.isWritable))
    return false;
  const uint64_t first = region.address, most = region.bytes - bytes;
  uint32_t beyond = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    beyond |= uint32_t(addresses[lane] - first > most) << lane;
  if (beyond & mask)
    return false;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    out[lane] = region.at + (beyond >> lane & 1 ? 0 : addresses[lane] - first);
  region.isRead |= touch != Touch::Write;
  region.isWrote |= touch != Touch::Read;
  return true;
}

bool Warp::reach(const Instr &instr, const uint64_t *addresses, uint32_t bytes,
                 Touch touch, std::byte **out, const std::byte *values) {
  uint64_t windows = 0, unaligned = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (mask >> lane & 1) {
      windows |= addresses[lane] & windowMask;
      unaligned |= addresses[lane] & (bytes - 1);
    }
  if (unaligned) {
    uint32_t lane = 0;
    while (!(mask >> lane & 1) || !(addresses[lane] & (bytes - 1)))
      ++lane;
    fail(fmt::format("{} of {} bytes at address {:#x}, which is not aligned "
                     "to {}",
                     wordOf(touch), bytes, addresses[lane], bytes),
         int(lane));
    return false;
  }
  if (windows == 0 && reachTogether(addresses, bytes, touch, out))
    return true;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    const uint64_t window = windows ? addresses[lane] & windowMask : 0;
    const bool isReached =
        window == 0
            ? reachGlobal(addresses[lane], bytes, touch, lane, &out[lane])
        : window == sharedWindow
            ? reachShared(addresses[lane], bytes, touch, lane, &out[lane],
                          values ? values + size_t(lane) * bytes : nullptr)
            : reachOther(addresses[lane], bytes, touch, lane, &out[lane]);
    if (!isReached)
      return false;
  }
  return true;
}

bool Warp::reachGlobal(uint64_t address, uint32_t bytes, Touch touch,
                       uint32_t lane, std::byte **out) {
  Region *region = machine.regionOf(address, bytes);
  if (!region) {
    std::string nearest;
    uint64_t least = UINT64_MAX;
    for (const Region &each : machine.regions) {
      const uint64_t end = each.address + each.bytes;
      const uint64_t far = address < each.address ? each.address - address
                           : address < end        ? 0
                                                  : address - end;
      if (far < least && far < (uint64_t(1) << 32))
        nearest = fmt::format(
            ": {} of {} bytes {}", each.name.empty() ? "a buffer" : each.name,
            each.bytes,
            address < each.address ? "begins behind it"
            : address < end        ? "ends within it"
                            : fmt::format("ends {} bytes before it", far));
      least = std::min(least, far);
    }
    fail(fmt::format("{} of {} bytes at address {:#x}, outside of all buffers "
                     "that the launch was given{}",
                     wordOf(touch), bytes, address, nearest),
         int(lane));
    return false;
  }
  const uint64_t offset = address - region->address;
  if (touch != Touch::Read && !region->isWritable) {
    fail(fmt::format("{} of {} bytes of {}, which the launch declares to be "
                     "read only",
                     wordOf(touch), bytes,
                     region->name.empty() ? "a buffer" : region->name),
         int(lane));
    return false;
  }
  if (!region->isSteady && machine.program.hasWait && !hasAwaited) {
    fail(fmt::format("{} of {} before griddepcontrol.wait, while the kernel "
                     "before may still write it",
                     wordOf(touch), region->name),
         int(lane));
    return false;
  }
  region->isRead |= touch != Touch::Write;
  region->isWrote |= touch != Touch::Read;
  if (machine.options.onTouch) {
    if (touch != Touch::Write)
      machine.options.onTouch(address, bytes, false);
    if (touch != Touch::Read)
      machine.options.onTouch(address, bytes, true);
  }
  if (region->written) {
    uint8_t *written = region->written + offset;
    if (touch == Touch::Write) {
      std::memset(written, 1, bytes);
    } else if (std::memchr(written, 0, bytes)) {
      fail(fmt::format("read of {} bytes at offset {} of {}, some of which "
                       "nobody wrote",
                       bytes, offset, region->name),
           int(lane));
      return false;
    }
  }
  if (machine.hasManyBlocks &&
      !raceGlobal(size_t(region - machine.regions.data()), offset, bytes, touch,
                  lane))
    return false;
  *out = region->at + offset;
  return true;
}

bool Warp::reachShared(uint64_t address, uint32_t bytes, Touch touch,
                       uint32_t lane, std::byte **out, const std::byte *value) {
  const auto low = uint32_t(address);
  const uint32_t rank = low >> rankShift;
  uint64_t offset = low & ((1u << rankShift) - 1);
  if (rank > block.cluster.blocks.size()) {
    fail(fmt::format("shared address {:#x} is of no block of the cluster", low),
         int(lane));
    return false;
  }
  Block &owner = rank ? *block.cluster.blocks[rank - 1] : block;
  SharedMemory &shared = owner.shared;
  if (offset + bytes > shared.bytes.size()) {
    fail(
        fmt::format("{} of {} bytes at offset {} of shared memory, of which "
                    "the launch has {} bytes: {} of the kernel's own and {} "
                    "that the launch asks for",
                    wordOf(touch), bytes, offset,
                    shared.bytes.size() - machine.program.sharedPadding,
                    machine.program.sharedBytes - machine.program.sharedPadding,
                    machine.options.sharedBytes),
        int(lane));
    return false;
  }
  *out = shared.bytes.data() + offset;
  ByteState *states = shared.states.data() + offset;
  for (uint32_t k = 0; k < bytes; ++k)
    if (states[k] == ByteState::Awaited ||
        states[k] ==
            (touch == Touch::Read ? ByteState::Unwritten : ByteState::Lent) ||
        (touch == Touch::Atomic && states[k] == ByteState::Unwritten)) {
      fail(fmt::format("{} of {} bytes at offset {} of shared memory, {}",
                       wordOf(touch), bytes, offset, wordOf(states[k])),
           int(lane));
      return false;
    }
  if (touch == Touch::Write)
    std::memset(static_cast<void *>(states), int(ByteState::Written), bytes);
  const bool isSame =
      touch == Touch::Write && value && std::memcmp(*out, value, bytes) == 0;
  const uint32_t granule = machine.program.granule;
  for (uint64_t cell = offset / granule; cell * granule < offset + bytes;
       ++cell)
    if (!race(shared.cells[cell], touch, lane, cell * granule, isSame))
      return false;
  return true;
}

bool Warp::reachOther(uint64_t address, uint32_t bytes, Touch touch,
                      uint32_t lane, std::byte **out) {
  const uint64_t window = address & windowMask;
  const uint64_t offset = address & ~windowMask;
  std::byte *base = nullptr;
  uint64_t size = 0;
  const char *what = "no memory";
  if (window == localWindow) {
    size = machine.program.localBytes;
    base = block.local.data() + (uint64_t(index) * lanes + lane) * size;
    what = "the thread's local memory";
  } else if (window == paramWindow) {
    size = machine.parameters.size();
    base = machine.parameters.data();
    what = "the parameters";
  } else if (window == variableWindow) {
    size = machine.instance.variables.size();
    base = machine.instance.variables.data();
    what = "the module's variables";
  }
  if (offset > size || bytes > size - offset ||
      (window == paramWindow && touch != Touch::Read)) {
    fail(fmt::format("{} of {} bytes at offset {} of {}, which has {} bytes",
                     wordOf(touch), bytes, offset, what, size),
         int(lane));
    return false;
  }
  *out = base + offset;
  return true;
}

void Warp::finishCopies(uint32_t lane, uint32_t groups, bool all) {
  size_t kept = 0;
  for (size_t k = 0; k < copies.size(); ++k) {
    const AsyncCopy copy = copies[k];
    if (copy.lane != lane || (copy.group >= groups && !all)) {
      copies[kept++] = copy;
      continue;
    }
    SharedMemory &shared = block.shared;
    if (copy.read)
      std::memcpy(shared.bytes.data() + copy.to, copy.from, copy.read);
    std::memset(shared.bytes.data() + copy.to + copy.read, 0,
                copy.bytes - copy.read);
    std::memset(static_cast<void *>(shared.states.data() + copy.to),
                int(ByteState::Written), copy.bytes);
    const uint32_t granule = machine.program.granule;
    for (uint64_t at = copy.to; at < copy.to + copy.bytes; at += granule)
      shared.cells[at / granule].write = {now(), pc, uint16_t(id),
                                          uint8_t(lane)};
  }
  copies.resize(kept);
}

} // namespace mgpu::kernels::ptx
