// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

// Bits of registers (ISA 9.0, sections 9.7.1.14 to 9.7.1.22, 9.7.8
// and 9.7.9.8).

namespace mgpu::kernels::ptx {

namespace {

struct And {
  template <typename T>
  static T of(T a, T b) {
    return T(a & b);
  }
};
struct Or {
  template <typename T>
  static T of(T a, T b) {
    return T(a | b);
  }
};
struct Xor {
  template <typename T>
  static T of(T a, T b) {
    return T(a ^ b);
  }
};
struct Not {
  template <typename T>
  static T of(T a) {
    return T(~a);
  }
};
struct CNot {
  template <typename T>
  static T of(T a) {
    return T(a == 0);
  }
};
/// Shifts by more than the width are by the width.
struct Shl {
  template <typename T>
  static T of(T a, uint32_t by) {
    return by >= sizeof(T) * 8 ? T(0) : T(uint64_t(a) << by);
  }
};
struct Shr {
  template <typename T>
  static T of(T a, uint32_t by) {
    constexpr uint32_t width = sizeof(T) * 8;
    if (std::is_signed_v<T>)
      return T(a >> (by >= width ? width - 1 : by));
    return by >= width ? T(0) : T(a >> (by & (width - 1)));
  }
};
/// A funnel of two words (shf): `wraps` takes the shift modulo 32.
template <bool isLeft, bool wraps>
struct Funnel {
  static uint32_t of(uint32_t low, uint32_t high, uint32_t by) {
    const uint64_t both = uint64_t(high) << 32 | low;
    const uint32_t shift = wraps ? by & 31 : std::min(by, 32u);
    return isLeft ? uint32_t(both << shift >> 32) : uint32_t(both >> shift);
  }
};
/// Any function of three bits (lop3): `table` has its result by bits.
uint32_t tableOf(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t out = 0;
  for (uint32_t k = 0; k < 8; ++k)
    if (table >> k & 1)
      out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  return out;
}
/// `of` takes three words, and the `flags` of the instruction.
template <uint32_t (*of)(uint32_t, uint32_t, uint32_t, uint32_t)>
void threeWords(Warp &warp, const Instr &i) {
  const auto *a = warp.cells<uint32_t>(i.a), *b = warp.cells<uint32_t>(i.b),
             *c = warp.cells<uint32_t>(i.c);
  uint32_t out[lanes];
  for (uint32_t lane = 0; lane < lanes; ++lane)
    out[lane] = of(a[lane], b[lane], c[lane], i.flags);
  keep(warp, i.d, out);
}

struct Popc {
  template <typename T>
  static uint32_t of(T a) {
    return uint32_t(std::popcount(a));
  }
};
struct Clz {
  template <typename T>
  static uint32_t of(T a) {
    return uint32_t(std::countl_zero(a));
  }
};
struct Brev {
  template <typename T>
  static T of(T a) {
    T out = 0;
    for (size_t k = 0; k < sizeof(T) * 8; ++k)
      out = T(out << 1 | (a >> k & 1));
    return out;
  }
};
/// The highest bit that is not the sign's (bfind).
template <bool isShift>
struct Bfind {
  template <typename T>
  static uint32_t of(T a) {
    using U = std::make_unsigned_t<T>;
    const U bits = std::is_signed_v<T> && a < 0 ? U(~U(a)) : U(a);
    if (bits == 0)
      return UINT32_MAX;
    const auto zeros = uint32_t(std::countl_zero(bits));
    return isShift ? zeros : uint32_t(sizeof(T) * 8 - 1) - zeros;
  }
};
struct Bfe {
  template <typename T>
  static T of(T a, uint32_t start, uint32_t count) {
    constexpr uint32_t width = sizeof(T) * 8;
    start &= 255;
    count &= 255;
    const bool isNegative =
        std::is_signed_v<T> && count != 0 &&
        (uint64_t(a) >> std::min(start + count - 1, width - 1) & 1);
    const uint64_t ones =
        count >= 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1;
    const auto bits = uint64_t(std::make_unsigned_t<T>(a));
    uint64_t out = start >= width ? 0 : bits >> start & ones;
    const uint32_t have = start >= width ? 0 : std::min(count, width - start);
    if (isNegative && have < width)
      out |= ~uint64_t(0) << have;
    return T(out);
  }
};
/// Bits of `a` put into `b`.
template <typename T>
T inserted(T a, T b, uint32_t start, uint32_t count) {
  start &= 255;
  count &= 255;
  T out = b;
  constexpr uint32_t width = sizeof(T) * 8;
  if (start >= width || count == 0)
    return out;
  count = std::min(count, width - start);
  const T ones = count >= width ? T(~T(0)) : T((T(1) << count) - 1);
  return T((out & ~T(ones << start)) | T((a & ones) << start));
}
template <typename T>
void bfi(Warp &warp, const Instr &i) {
  const auto *a = warp.cells<T>(i.a), *b = warp.cells<T>(i.b);
  const auto *c = warp.cells<uint32_t>(i.c), *n = warp.cells<uint32_t>(i.more);
  T out[lanes];
  for (uint32_t lane = 0; lane < lanes; ++lane)
    out[lane] = inserted(a[lane], b[lane], c[lane], n[lane]);
  keep(warp, i.d, out);
}
template <bool isClamped>
struct Bmsk {
  static uint32_t of(uint32_t start, uint32_t count) {
    if (!isClamped) {
      start &= 31;
      count &= 31;
    }
    if (start >= 32 || count == 0)
      return 0;
    const uint32_t have = std::min(count, 32 - start);
    const uint64_t ones = (uint64_t(1) << have) - 1;
    return uint32_t(ones << start);
  }
};
template <bool isClamped>
struct Szext {
  template <typename T>
  static T of(T a, uint32_t count) {
    if (!isClamped)
      count &= 31;
    if (count == 0)
      return 0;
    if (count >= 32)
      return a;
    const uint32_t shift = 32 - count;
    return T(T(uint32_t(a) << shift) >> shift);
  }
};
/// The position of the n-th bit that is set, from `base` up or down (fns).
struct Fns {
  static uint32_t of(uint32_t bits, uint32_t base, uint32_t offset) {
    const auto n = int32_t(offset);
    if (n == 0)
      return base < 32 && bits >> base & 1 ? base : UINT32_MAX;
    int32_t left = n > 0 ? n : n == INT32_MIN ? INT32_MAX : -n;
    for (auto at = int64_t(base); at >= 0 && at<32; at += n> 0 ? 1 : -1)
      if ((bits >> at & 1) && --left == 0)
        return uint32_t(at);
    return UINT32_MAX;
  }
};

/// Bytes of two words by selectors (prmt); `flags` is the mode.
uint32_t permuted(uint32_t a, uint32_t b, uint32_t c, uint32_t mode) {
  const uint64_t both = uint64_t(b) << 32 | a;
  const uint32_t s = c & 3;
  uint32_t selectors[4];
  for (uint32_t k = 0; k < 4; ++k) {
    switch (mode) {
    case 0:
      selectors[k] = c >> (4 * k) & 15;
      break;
    case 1: // f4e
      selectors[k] = (s + k) & 7;
      break;
    case 2: // b4e
      selectors[k] = (s - k) & 7;
      break;
    case 3: // rc8
      selectors[k] = s;
      break;
    case 4: // ecl
      selectors[k] = std::max(k, s);
      break;
    case 5: // ecr
      selectors[k] = std::min(k, s);
      break;
    default: // rc16
      selectors[k] = (s & 1) * 2 + (k & 1);
    }
  }
  uint32_t out = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    auto byte = uint8_t(both >> (8 * (selectors[k] & 7)));
    if (selectors[k] & 8)
      byte = byte & 0x80 ? 0xff : 0;
    out |= uint32_t(byte) << (8 * k);
  }
  return out;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

template <int operation>
void logicOfPredicates(Warp &warp, const Instr &i) {
  const uint32_t a = warp.predicate(i.a) ^ (i.flags & 1 ? ~0u : 0);
  const uint32_t b = warp.predicate(i.b) ^ (i.flags & 2 ? ~0u : 0);
  warp.setPredicate(i.d, operation == 0   ? a & b
                         : operation == 1 ? a | b
                         : operation == 2 ? a ^ b
                                          : ~a);
}

template <typename Op, int operation>
void decodeLogic(Decoder &d) {
  constexpr bool isNot = operation == 3;
  const Scalar type = d.type();
  if (type == Scalar::Pred) {
    bool isNegatedA = false, isNegatedB = false;
    d.instr.d = d.target(0, type);
    d.instr.a = d.predicate(d.operand(1), isNegatedA);
    if (!isNot)
      d.instr.b = d.predicate(d.operand(2), isNegatedB);
    d.instr.flags = uint32_t(isNegatedA) | uint32_t(isNegatedB) << 1;
    return d.emit(logicOfPredicates<operation>);
  }
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  if constexpr (isNot)
    d.emit(forType<uint16_t, uint32_t, uint64_t>(
        type, []<typename T>() { return one<Op, T>(); }));
  else {
    d.instr.b = d.source(2, type);
    d.emit(forType<uint16_t, uint32_t, uint64_t>(
        type, []<typename T>() { return two<Op, T>(); }));
  }
}

template <typename Op>
void decodeShift(Decoder &d) {
  const Scalar type = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, Scalar::B32);
  d.emit(forType<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>(
      type, []<typename T>() { return two<Op, T, T, uint32_t>(); }));
}

void decodeFunnel(Decoder &d) {
  const bool isLeft = d.oneOf({"l", "r"}, false) == "l";
  const bool wraps = d.oneOf({"wrap", "clamp"}, false) == "wrap";
  const Scalar type = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, type);
  d.instr.c = d.source(3, Scalar::B32);
  if (type != Scalar::B32)
    return d.refuse("its type must be b32");
  using T = uint32_t;
  d.emit(isLeft ? (wraps ? three<Funnel<true, true>, T>()
                         : three<Funnel<true, false>, T>())
                : (wraps ? three<Funnel<false, true>, T>()
                         : three<Funnel<false, false>, T>()));
}

template <typename Op>
void decodeCount(Decoder &d) {
  const Scalar type = d.type();
  d.instr.d = d.target(0, Scalar::U32);
  d.instr.a = d.source(1, type);
  d.emit(forType<uint32_t, uint64_t>(
      type, []<typename T>() { return one<Op, uint32_t, T>(); }));
}

void decodeBfind(Decoder &d) {
  const bool isShift = d.has("shiftamt");
  const Scalar type = d.type();
  d.instr.d = d.target(0, Scalar::U32);
  d.instr.a = d.source(1, type);
  d.emit(forType<uint32_t, int32_t, uint64_t, int64_t>(type, [&]<typename T>() {
    return isShift ? one<Bfind<true>, uint32_t, T>()
                   : one<Bfind<false>, uint32_t, T>();
  }));
}

void decodeBfe(Decoder &d) {
  const Scalar type = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, Scalar::B32);
  d.instr.c = d.source(3, Scalar::B32);
  d.emit(forType<uint32_t, int32_t, uint64_t, int64_t>(type, []<typename T>() {
    return three<Bfe, T, T, uint32_t, uint32_t>();
  }));
}

void decodeBfi(Decoder &d) {
  const Scalar type = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, type);
  d.instr.c = d.source(3, Scalar::B32);
  d.instr.more = d.source(4, Scalar::B32);
  d.emit(type == Scalar::B32   ? bfi<uint32_t>
         : type == Scalar::B64 ? bfi<uint64_t>
                               : nullptr);
}

void decodeLop3(Decoder &d) {
  d.type();
  d.instr.d = d.target(0, Scalar::B32);
  d.instr.a = d.source(1, Scalar::B32);
  d.instr.b = d.source(2, Scalar::B32);
  d.instr.c = d.source(3, Scalar::B32);
  d.instr.flags = uint32_t(d.integer(4)) & 255;
  d.emit(threeWords<tableOf>);
}

void decodePrmt(Decoder &d) {
  d.type();
  if (const auto mode = d.placeOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}))
    d.instr.flags = *mode + 1;
  d.instr.d = d.target(0, Scalar::B32);
  d.instr.a = d.source(1, Scalar::B32);
  d.instr.b = d.source(2, Scalar::B32);
  d.instr.c = d.source(3, Scalar::B32);
  d.emit(threeWords<permuted>);
}

void decodeMasks(Decoder &d, bool isSzext) {
  const bool isClamped = d.oneOf({"clamp", "wrap"}, false) == "clamp";
  const Scalar type = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, Scalar::B32);
  if (isSzext)
    return d.emit(forType<uint32_t, int32_t>(type, [&]<typename T>() {
      return isClamped ? two<Szext<true>, T, T, uint32_t>()
                       : two<Szext<false>, T, T, uint32_t>();
    }));
  d.emit(isClamped ? two<Bmsk<true>, uint32_t>()
                   : two<Bmsk<false>, uint32_t>());
}

void decodeFns(Decoder &d) {
  d.type();
  d.instr.d = d.target(0, Scalar::B32);
  d.instr.a = d.source(1, Scalar::B32);
  d.instr.b = d.source(2, Scalar::B32);
  d.instr.c = d.source(3, Scalar::B32);
  d.emit(three<Fns, uint32_t>());
}

void decodeBrev(Decoder &d) {
  const Scalar type = d.type();
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.emit(forType<uint32_t, uint64_t>(
      type, []<typename T>() { return one<Brev, T>(); }));
}

} // namespace

std::span<const Operation> bitOperations() {
  static const Operation rows[] = {
      {"popc", "9.7.1.14", decodeCount<Popc>},
      {"clz", "9.7.1.15", decodeCount<Clz>},
      {"bfind", "9.7.1.16", decodeBfind},
      {"fns", "9.7.1.17", decodeFns},
      {"brev", "9.7.1.18", decodeBrev},
      {"bfe", "9.7.1.19", decodeBfe},
      {"bfi", "9.7.1.20", decodeBfi},
      {"szext", "9.7.1.21", [](Decoder &d) { decodeMasks(d, true); }},
      {"bmsk", "9.7.1.22", [](Decoder &d) { decodeMasks(d, false); }},
      {"and", "9.7.8.1", decodeLogic<And, 0>},
      {"or", "9.7.8.2", decodeLogic<Or, 1>},
      {"xor", "9.7.8.3", decodeLogic<Xor, 2>},
      {"not", "9.7.8.4", decodeLogic<Not, 3>},
      {"cnot", "9.7.8.5",
       [](Decoder &d) {
         const Scalar type = d.type();
         d.instr.d = d.target(0, type);
         d.instr.a = d.source(1, type);
         d.emit(forType<uint16_t, uint32_t, uint64_t>(
             type, []<typename T>() { return one<CNot, T>(); }));
       }},
      {"lop3", "9.7.8.6", decodeLop3},
      {"shf", "9.7.8.7", decodeFunnel},
      {"shl", "9.7.8.8", decodeShift<Shl>},
      {"shr", "9.7.8.9", decodeShift<Shr>},
      {"prmt", "9.7.9.7", decodePrmt}};
  return rows;
}

} // namespace mgpu::kernels::ptx
