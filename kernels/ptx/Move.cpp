// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

#include <chrono>

// Values from register to register, and from and to memory (ISA 9.0, sections
// 9.7.9.1 to 9.7.9.20).

namespace mgpu::kernels::ptx {

namespace {

void movePredicate(Warp &warp, const Instr &i) {
  warp.setPredicate(i.d, warp.predicate(i.a) ^ i.flags);
}

/// %clock and %globaltimer: instructions executed, as they are reproducible.
template <typename Cell>
void moveClock(Warp &warp, const Instr &i) {
  Cell out[lanes];
  ++warp.machine.instructions;
  for (Cell &each : out)
    each = Cell(warp.machine.instructions);
  keep(warp, i.d, out);
}

template <typename Cell>
void move16Bytes(Warp &warp, const Instr &i) {
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (warp.mask >> lane & 1)
      std::memcpy(warp.file + i.d + lane * 16, warp.file + i.a + lane * 16, 16);
}

/// Registers of `bytes` each to one or from one; their places are `more`.
template <bool isPack>
void moveParts(Warp &warp, const Instr &i) {
  const uint32_t whole = i.bytes * i.count;
  auto cell = [&](uint32_t place, uint32_t bytes, uint32_t lane) {
    return warp.file + place + lane * std::max(bytes, 4u);
  };
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    std::byte bytes[16] = {};
    if (!isPack)
      std::memcpy(bytes, cell(i.a, whole, lane), whole);
    for (uint32_t k = 0; k < i.count; ++k) {
      std::byte *part =
          cell(warp.machine.program.words[i.more + k], i.bytes, lane);
      if (isPack)
        std::memcpy(bytes + k * i.bytes, part, i.bytes);
      else if (i.bytes < 4)
        std::memset(part, 0, 4);
      if (!isPack)
        std::memcpy(part, bytes + k * i.bytes, i.bytes);
    }
    if (isPack)
      std::memcpy(cell(i.d, whole, lane), bytes, std::max(whole, 4u));
  }
}

Scalar bitsOf(uint32_t bytes) {
  return bytes == 1   ? Scalar::B8
         : bytes == 2 ? Scalar::B16
         : bytes == 4 ? Scalar::B32
         : bytes == 8 ? Scalar::B64
                      : Scalar::B128;
}

void decodeParts(Decoder &d, Scalar type, const Operand &list, bool isPack) {
  const auto count = uint32_t(list.parts.size());
  if (count < 2 || bytesOf(type) % count || type == Scalar::Pred)
    return d.refuse("a vector does not fit its type");
  const uint32_t each = bytesOf(type) / count;
  std::vector<uint32_t> places;
  for (const Operand &part : list.parts) {
    Scalar found = bitsOf(each);
    places.push_back(d.wide(&part, bitsOf(each), found, !isPack));
    if (bytesOf(found) != each)
      return d.refuse("a vector's elements do not fit its type");
  }
  d.instr.more = d.words(places);
  d.instr.bytes = uint8_t(each);
  d.instr.count = uint8_t(count);
  if (isPack)
    d.instr.d = d.target(0, type);
  else
    d.instr.a = d.source(1, type);
  d.emit(isPack ? moveParts<true> : moveParts<false>);
}

void decodeMov(Decoder &d) {
  const Scalar type = d.type();
  const Operand *to = d.operand(0), *from = d.operand(1);
  if (!to || !from)
    return;
  if (from->kind == Operand::Kind::List)
    return decodeParts(d, type, *from, true);
  if (to->kind == Operand::Kind::List)
    return decodeParts(d, type, *to, false);
  d.instr.d = d.targetOf(to, type);
  d.instr.a = d.sourceOf(from, type);
  if (type == Scalar::Pred) {
    d.instr.flags = from->isNegated ? ~0u : 0;
    return d.emit(movePredicate);
  }
  if (from->name.starts_with("%clock") ||
      from->name.starts_with("%globaltimer"))
    return d.emit(cellBytes(type) == 8 ? moveClock<uint64_t>
                                       : moveClock<uint32_t>);
  d.emit(cellBytes(type) == 8   ? one<Same, uint64_t>()
         : cellBytes(type) == 4 ? one<Same, uint32_t>()
                                : move16Bytes<uint64_t>);
}

//===----------------------------------------------------------------------===//
// Addresses (sections 9.7.9.18 to 9.7.9.20 and 9.7.9.24)
//===----------------------------------------------------------------------===//

uint64_t windowOf(Space space) {
  return space == Space::Shared  ? sharedWindow
         : space == Space::Local ? localWindow
         : space == Space::Param ? paramWindow
                                 : 0;
}

/// `flags`: from generic; `offset`: the window.
void convertAddress(Warp &warp, const Instr &i) {
  const auto window = uint64_t(i.offset);
  const auto *a = warp.cells<uint64_t>(i.a);
  uint64_t out[lanes];
  for (uint32_t lane = 0; lane < lanes; ++lane)
    out[lane] = i.flags ? a[lane] - window : a[lane] | window;
  keep(warp, i.d, out);
}

void decodeCvta(Decoder &d) {
  const bool isTo = d.has("to");
  const Space space = d.space();
  const Scalar type = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.flags = isTo;
  d.instr.offset = int64_t(windowOf(space));
  if (bytesOf(type) == 4) {
    if (d.instr.offset)
      return d.refuse("generic addresses of 32 bits are not executed",
                      ErrorKind::Unsupported);
    return d.emit(one<Same, uint32_t>());
  }
  d.emit(convertAddress);
}

void isSpace(Warp &warp, const Instr &i) {
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint64_t address = warp.cells<uint64_t>(i.a)[lane];
    const uint64_t window = address & windowMask;
    const bool isOther = window == sharedWindow || window == localWindow ||
                         window == paramWindow;
    bits |= uint32_t(i.offset ? window == uint64_t(i.offset) : !isOther)
            << lane;
  }
  warp.setPredicate(i.d, bits);
}

void decodeIsSpace(Decoder &d) {
  d.instr.offset = int64_t(windowOf(d.space()));
  d.instr.d = d.target(0, Scalar::Pred);
  d.instr.a = d.source(1, Scalar::B64);
  d.emit(isSpace);
}

/// An address of the same variable in another block of the cluster.
template <typename Cell>
void mapAddress(Warp &warp, const Instr &i) {
  Cell out[lanes];
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint32_t rank = warp.cells<uint32_t>(i.b)[lane];
    const Cell low = warp.cells<Cell>(i.a)[lane] & ((1u << rankShift) - 1);
    const Cell window = i.flags ? Cell(sharedWindow) : 0;
    out[lane] = window | low | Cell((rank & 127) + 1) << rankShift;
  }
  keep(warp, i.d, out);
}

void decodeMapa(Decoder &d) {
  d.instr.flags = d.space() == Space::Generic;
  const Scalar type = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, Scalar::B32);
  d.emit(bytesOf(type) == 8 ? mapAddress<uint64_t> : mapAddress<uint32_t>);
}

template <typename Cell>
void rankOfAddress(Warp &warp, const Instr &i) {
  uint32_t out[lanes];
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint32_t rank =
        uint32_t(warp.cells<Cell>(i.a)[lane]) >> rankShift & 255;
    out[lane] = rank ? rank - 1 : warp.block.rank;
  }
  keep(warp, i.d, out);
}

void decodeGetRank(Decoder &d) {
  d.space();
  const Scalar type = d.type();
  d.instr.d = d.target(0, Scalar::B32);
  d.instr.a = d.source(1, type);
  d.emit(bytesOf(type) == 8 ? rankOfAddress<uint64_t>
                            : rankOfAddress<uint32_t>);
}

//===----------------------------------------------------------------------===//
// Loads and stores (sections 9.7.9.8 to 9.7.9.14)
//===----------------------------------------------------------------------===//

constexpr uint32_t signedFlag = 1, strongFlag = 2, wideFlag = 4;

/// `words[more..]`: a place for each element; a register of 64 bits may hold
/// less, and then `wideFlag` is set.
void load(Warp &warp, const Instr &i) {
  uint64_t addresses[lanes];
  std::byte *at[lanes];
  warp.addresses(i, addresses);
  const uint32_t bytes = i.bytes;
  if (i.flags & strongFlag)
    warp.meet();
  if (!warp.reach(i, addresses, bytes * i.count,
                  i.flags & strongFlag ? Touch::Atomic : Touch::Read, at))
    return;
  const uint32_t *places = &warp.machine.program.words[i.more];
  for (uint32_t k = 0; k < i.count; ++k) {
    auto *narrow = warp.cells<uint32_t>(places[k]);
    auto *wide = warp.cells<uint64_t>(places[k]);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if (!(warp.mask >> lane & 1))
        continue;
      if (bytes == 4 && !(i.flags & wideFlag)) {
        std::memcpy(&narrow[lane], at[lane] + k * 4, 4);
      } else if (bytes == 16) {
        std::memcpy(warp.file + places[k] + lane * 16, at[lane], 16);
      } else {
        uint64_t value = 0;
        std::memcpy(&value, at[lane] + k * bytes, bytes);
        if (i.flags & signedFlag) {
          const int unused = 64 - int(bytes * 8);
          value = uint64_t(int64_t(value << unused) >> unused);
        }
        if (i.flags & wideFlag)
          wide[lane] = value;
        else
          narrow[lane] = uint32_t(value);
      }
    }
  }
}

void store(Warp &warp, const Instr &i) {
  uint64_t addresses[lanes];
  std::byte *at[lanes];
  std::byte values[lanes * 32];
  warp.addresses(i, addresses);
  const uint32_t bytes = i.bytes, all = bytes * i.count;
  const uint32_t *places = &warp.machine.program.words[i.more];
  const uint32_t cell = i.flags & wideFlag ? 8 : std::max(bytes, 4u);
  for (uint32_t k = 0; k < i.count; ++k)
    for (uint32_t lane = 0; lane < lanes; ++lane)
      std::memcpy(values + lane * all + k * bytes,
                  warp.file + places[k] + lane * cell, bytes);
  if (!warp.reach(i, addresses, all,
                  i.flags & strongFlag ? Touch::Atomic : Touch::Write, at,
                  values))
    return;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (warp.mask >> lane & 1)
      std::memcpy(at[lane], values + lane * all, all);
  if (i.flags & strongFlag) {
    warp.meet();
    ++warp.machine.changes;
  }
}

void takeHints(Decoder &d) {
  for (std::string_view hint : {"ca",
                                "cg",
                                "cs",
                                "lu",
                                "cv",
                                "wb",
                                "wt",
                                "nc",
                                "weak",
                                "L1::evict_normal",
                                "L1::evict_unchanged",
                                "L1::evict_first",
                                "L1::evict_last",
                                "L1::no_allocate",
                                "L2::evict_first",
                                "L2::evict_last",
                                "L2::evict_normal",
                                "L2::cache_hint",
                                "L2::64B",
                                "L2::128B",
                                "L2::256B"})
    d.has(hint);
}

void takeStrength(Decoder &d) {
  for (std::string_view word :
       {"volatile", "relaxed", "acquire", "release", "mmio"})
    if (d.has(word))
      d.instr.flags |= strongFlag;
  for (std::string_view scope : {"cta", "cluster", "gpu", "sys"})
    d.has(scope);
}

void decodeAccess(Decoder &d, bool isLoad) {
  const Space space = d.space();
  takeStrength(d);
  takeHints(d);
  uint32_t count = 1;
  for (uint32_t each : {2u, 4u, 8u})
    if (d.has(fmt::format("v{}", each)))
      count = each;
  const Scalar type = d.type();
  const uint32_t bytes = bytesOf(type);
  if (bytes * count > 32 || type == Scalar::Pred)
    return d.refuse("its vector has more than 32 bytes");
  const Operand *value = d.operand(isLoad ? 0 : 1);
  d.address(isLoad ? 1 : 0, space);
  if (!value || d.isWrong())
    return;
  const bool isList = value->kind == Operand::Kind::List;
  if (isList ? value->parts.size() != count : count != 1)
    return d.refuse("a vector has another number of elements than it says");
  std::vector<uint32_t> places;
  bool isWide = false;
  for (uint32_t k = 0; k < count; ++k) {
    const Operand *part = isList ? &value->parts[k] : value;
    Scalar found = type;
    places.push_back(d.wide(part, type, found, isLoad));
    const bool wider = cellBytes(found) == 8;
    if (found == Scalar::Pred || bytesOf(found) < bytes ||
        (k > 0 && wider != isWide) ||
        (cellBytes(found) != cellBytes(type) &&
         !(wider && cellBytes(type) == 4)))
      return d.refuse("a register does not fit its type");
    isWide = wider;
  }
  d.instr.more = d.words(places);
  d.instr.bytes = uint8_t(bytes);
  d.instr.count = uint8_t(count);
  d.instr.flags |= (isWide ? wideFlag : 0) | (isSigned(type) ? signedFlag : 0);
  if (d.instr.space != Space::Param && d.instr.space != Space::Local)
    d.touches(bytes);
  d.emit(isLoad ? load : store);
}

/// An instruction that changes nothing but time.
void nothing(Warp &, const Instr &) {}
void decodePrefetch(Decoder &d) {
  d.space();
  takeHints(d);
  for (std::string_view word : {"L1", "L2", "tensormap"})
    d.has(word);
  d.address(0, Space::Generic);
  d.emit(nothing);
}

} // namespace

std::span<const Operation> moves() {
  static const Operation rows[] = {{"mov", "9.7.9.3", decodeMov},
                                   {"cvta", "9.7.9.20", decodeCvta},
                                   {"isspacep", "9.7.9.19", decodeIsSpace},
                                   {"mapa", "9.7.9.24", decodeMapa},
                                   {"getctarank", "9.7.9.25", decodeGetRank}};
  return rows;
}

std::span<const Operation> memoryOperations() {
  static const Operation rows[] = {
      {"ld", "9.7.9.8", [](Decoder &d) { decodeAccess(d, true); }},
      {"ldu", "9.7.9.10", [](Decoder &d) { decodeAccess(d, true); }},
      {"st", "9.7.9.11", [](Decoder &d) { decodeAccess(d, false); }},
      {"prefetch", "9.7.9.15", decodePrefetch},
      {"prefetchu", "9.7.9.15", decodePrefetch}};
  return rows;
}

} // namespace mgpu::kernels::ptx
