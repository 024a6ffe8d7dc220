// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/BulkCopies.h"
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

// Atomics and fences (ISA 9.0, sections 9.7.13.4 to 9.7.13.8). Lanes go one
// after the other; every one orders as acq_rel does.

namespace mgpu::kernels::ptx {

namespace {

enum class Atomic : uint8_t {
  And,
  Or,
  Xor,
  Exch,
  Add,
  Inc,
  Dec,
  Min,
  Max,
  Cas
};
constexpr std::string_view names[] = {"and", "or",  "xor", "exch", "add",
                                      "inc", "dec", "min", "max",  "cas"};

template <typename T>
T updated(Atomic operation, T old, T b, T c) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
    const float x = toFloat(old), y = toFloat(b);
    return fromFloat<T>(operation == Atomic::Add   ? x + y
                        : operation == Atomic::Min ? std::fmin(x, y)
                                                   : std::fmax(x, y));
  } else if constexpr (std::is_floating_point_v<T>) {
    return operation == Atomic::Add ? old + b : b;
  } else {
    switch (operation) {
    case Atomic::And:
      return T(old & b);
    case Atomic::Or:
      return T(old | b);
    case Atomic::Xor:
      return T(old ^ b);
    case Atomic::Exch:
      return b;
    case Atomic::Add:
      return T(uint64_t(old) + uint64_t(b));
    case Atomic::Inc:
      return old >= b ? T(0) : T(old + 1);
    case Atomic::Dec:
      return old == 0 || old > b ? b : T(old - 1);
    case Atomic::Min:
      return std::min(old, b);
    case Atomic::Max:
      return std::max(old, b);
    default:
      return old == b ? c : old;
    }
  }
}

template <typename T>
struct Atomics {
  /// `count` elements, each by itself; `words[more..]`: the places of d, then
  /// of b.
  static void run(Warp &warp, const Instr &i) {
    uint64_t addresses[lanes];
    std::byte *at[lanes];
    warp.addresses(i, addresses);
    warp.meet();
    if (!warp.reach(i, addresses, sizeof(T) * i.count, Touch::Atomic, at))
      return;
    const uint32_t *places = &warp.machine.program.words[i.more];
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if (!(warp.mask >> lane & 1))
        continue;
      for (uint32_t k = 0; k < i.count; ++k) {
        using Cell = CellOf<T>;
        T old;
        std::memcpy(&old, at[lane] + k * sizeof(T), sizeof(T));
        const T b = fromCell<T>(warp.cells<Cell>(places[i.count + k])[lane]);
        const T c = fromCell<T>(warp.cells<Cell>(i.c)[lane]);
        const T out = updated(Atomic(i.flags & 15), old, b, c);
        std::memcpy(at[lane] + k * sizeof(T), &out, sizeof(T));
        if (places[k] != noPlace)
          warp.cells<Cell>(places[k])[lane] = toCell<T>(old);
      }
    }
    warp.meet();
    ++warp.machine.changes;
  }
};
/// Pairs of small floats, each half by itself.
template <typename T>
T updatedPair(Atomic, T old, T b) {
  return {updated(Atomic::Add, old.low, b.low, b.low),
          updated(Atomic::Add, old.high, b.high, b.high)};
}
template <>
Pair<Half> updated(Atomic o, Pair<Half> old, Pair<Half> b, Pair<Half>) {
  return updatedPair(o, old, b);
}
template <>
Pair<Bfloat> updated(Atomic o, Pair<Bfloat> old, Pair<Bfloat> b, Pair<Bfloat>) {
  return updatedPair(o, old, b);
}

/// 16 bytes at once (exch and cas of b128).
void atomic16(Warp &warp, const Instr &i) {
  uint64_t addresses[lanes];
  std::byte *at[lanes];
  warp.addresses(i, addresses);
  warp.meet();
  if (!warp.reach(i, addresses, 16, Touch::Atomic, at))
    return;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    std::byte old[16];
    auto cell = [&](uint32_t place) { return warp.file + place + lane * 16; };
    std::memcpy(old, at[lane], 16);
    const bool isCas = Atomic(i.flags & 15) == Atomic::Cas;
    if (!isCas || std::memcmp(old, cell(i.b), 16) == 0)
      std::memcpy(at[lane], cell(isCas ? i.c : i.b), 16);
    std::memcpy(cell(i.d), old, 16);
  }
  warp.meet();
  ++warp.machine.changes;
}

bool isAllowed(Atomic operation, Scalar type) {
  const bool isBits = type == Scalar::B32 || type == Scalar::B64;
  switch (operation) {
  case Atomic::And:
  case Atomic::Or:
  case Atomic::Xor:
    return isBits;
  case Atomic::Exch:
  case Atomic::Cas:
    return isBits || type == Scalar::B16 || type == Scalar::B128;
  case Atomic::Inc:
  case Atomic::Dec:
    return type == Scalar::U32;
  case Atomic::Min:
  case Atomic::Max:
    return !isBits && type != Scalar::F32 && type != Scalar::F64 &&
           type != Scalar::F16x2 && type != Scalar::BF16x2;
  default:
    return !isBits;
  }
}

} // namespace

std::optional<uint32_t> operationNamed(Decoder &d) {
  for (uint32_t k = 0; k < std::size(names); ++k)
    if (d.has(names[k]))
      return k;
  return std::nullopt;
}

namespace {

template <typename T>
void combine(uint32_t operation, std::byte *to, const std::byte *from,
             uint32_t bytes) {
  for (uint32_t at = 0; at < bytes; at += sizeof(T)) {
    T old, b;
    std::memcpy(&old, to + at, sizeof(T));
    std::memcpy(&b, from + at, sizeof(T));
    old = updated(Atomic(operation), old, b, b);
    std::memcpy(to + at, &old, sizeof(T));
  }
}

} // namespace

Combine reductionOf(uint32_t operation, Scalar type) {
  Combine found = nullptr;
  auto offer = [&]<typename... Ts>() {
    ((matches<Ts>(type) ? void(found = combine<Ts>) : void()), ...);
  };
  offer.operator()<uint32_t, int32_t, uint64_t, int64_t, float, double, Half,
                   Bfloat>();
  return operation < uint32_t(Atomic::Cas) && isAllowed(Atomic(operation), type)
             ? found
             : nullptr;
}

namespace {

void decodeAtomic(Decoder &d, bool isReduction) {
  for (std::string_view word :
       {"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu",
        "sys", "L2::cache_hint"})
    d.has(word);
  const Space space = d.space();
  d.has("noftz");
  uint32_t count = 1;
  const uint32_t operation = operationNamed(d).value_or(noPlace);
  for (uint32_t each : {2u, 4u, 8u})
    if (d.has(fmt::format("v{}", each)))
      count = each;
  const Scalar type = d.type();
  if (operation > 9 || !isAllowed(Atomic(operation), type))
    return d.refuse("it has no such operation", ErrorKind::Unsupported);
  const size_t first = isReduction ? 0 : 1;
  d.address(first, space);
  d.instr.flags |= operation;
  d.touches(bytesOf(type));
  if (type == Scalar::B128) {
    d.instr.d = d.target(0, type);
    d.instr.b = d.source(2, type);
    d.instr.c = Atomic(operation) == Atomic::Cas ? d.source(3, type) : 0;
    return d.emit(atomic16);
  }
  std::vector<uint32_t> places;
  auto add = [&](const Operand *value, bool isTarget) {
    const bool isList = value && value->kind == Operand::Kind::List;
    if (isList && value->parts.size() != count)
      return d.refuse("a vector has another number of elements than it says");
    for (uint32_t k = 0; k < count && value; ++k) {
      const Operand *part = isList ? &value->parts[k] : value;
      places.push_back(isTarget ? d.targetOf(part, type)
                                : d.sourceOf(part, type));
    }
  };
  if (isReduction)
    places.assign(count, noPlace);
  else
    add(d.operand(0), true);
  add(d.operand(first + 1), false);
  d.instr.c = places.empty() ? 0 : places.back();
  if (Atomic(operation) == Atomic::Cas)
    d.instr.c = d.source(first + 2, type);
  d.instr.count = uint8_t(count);
  d.instr.more = d.words(places);
  d.emit(forType<uint16_t, uint32_t, int32_t, uint64_t, int64_t, float, double,
                 Half, Bfloat, Pair<Half>, Pair<Bfloat>>(
      type, []<typename T>() { return &Atomics<T>::run; }));
}

constexpr uint32_t proxyFence = 1, barrierFence = 2;

void fence(Warp &warp, const Instr &i) {
  if (i.flags & barrierFence)
    publishBarriers(warp);
  if (i.flags & proxyFence) { // what this warp has seen is for copies, too
    publishBarriers(warp);
    warp.fenced = warp.clocks;
    warp.release();
  } else {
    warp.meet();
  }
}

/// fence.proxy.async orders with asynchronous copies; all others order alike.
void decodeFence(Decoder &d) {
  const bool isProxy = d.has("proxy");
  for (std::string_view word :
       {"sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys",
        "gl", "sync_restrict::shared::cta", "sync_restrict::shared::cluster"})
    d.has(word);
  if (d.has("mbarrier_init"))
    d.instr.flags = barrierFence;
  if (isProxy) {
    const bool isAsync = d.has("async") || d.has("async::generic");
    const bool isGlobal = d.has("global");
    d.instr.flags = isAsync && !isGlobal ? proxyFence : 0; // of shared memory
    for (std::string_view word :
         {"alias", "tensormap::generic", "shared::cta", "shared::cluster"})
      d.has(word);
  }
  d.emit(fence);
}

} // namespace

std::span<const Operation> atomicOperations() {
  static const Operation rows[] = {
      {"membar", "9.7.13.4", decodeFence},
      {"fence", "9.7.13.4", decodeFence},
      {"atom", "9.7.13.5", [](Decoder &d) { decodeAtomic(d, false); }},
      {"red", "9.7.13.6", [](Decoder &d) { decodeAtomic(d, true); }}};
  return rows;
}

} // namespace mgpu::kernels::ptx
