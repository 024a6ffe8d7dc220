// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

#include <limits>

// Integer arithmetic (ISA 9.0, sections 9.7.1 and 9.7.2).

namespace mgpu::kernels::ptx {

namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;
/// Wraps around, and is wide enough not to be promoted to int.
template <typename T>
using Arithmetic = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <typename T>
using Twice = std::conditional_t<
    std::is_signed_v<T>,
    std::conditional_t<sizeof(T) == 2, int32_t,
                       std::conditional_t<sizeof(T) == 4, int64_t, __int128>>,
    std::conditional_t<
        sizeof(T) == 2, uint32_t,
        std::conditional_t<sizeof(T) == 4, uint64_t, unsigned __int128>>>;
template <typename T>
constexpr int bitsOf = int(sizeof(T) * 8);

struct Add {
  template <typename T>
  static T of(T a, T b) {
    return T(Arithmetic<T>(a) + Arithmetic<T>(b));
  }
};
struct Sub {
  template <typename T>
  static T of(T a, T b) {
    return T(Arithmetic<T>(a) - Arithmetic<T>(b));
  }
};
struct AddSaturated {
  static int32_t of(int32_t a, int32_t b) {
    const int64_t sum = int64_t(a) + b;
    return int32_t(sum > INT32_MAX   ? INT32_MAX
                   : sum < INT32_MIN ? INT32_MIN
                                     : sum);
  }
};
struct SubSaturated {
  static int32_t of(int32_t a, int32_t b) {
    const int64_t sum = int64_t(a) - b;
    return int32_t(sum > INT32_MAX   ? INT32_MAX
                   : sum < INT32_MIN ? INT32_MIN
                                     : sum);
  }
};
struct MulLow {
  template <typename T>
  static T of(T a, T b) {
    return T(Arithmetic<T>(a) * Arithmetic<T>(b));
  }
};
struct MulHigh {
  template <typename T>
  static T of(T a, T b) {
    return T((Twice<T>(a) * Twice<T>(b)) >> bitsOf<T>);
  }
};
struct MulWide {
  template <typename T>
  static Twice<T> of(T a, T b) {
    return Twice<T>(a) * Twice<T>(b);
  }
};
template <typename Product>
struct Mad {
  template <typename T, typename C>
  static C of(T a, T b, C c) {
    return C(Arithmetic<C>(Product::of(a, b)) + Arithmetic<C>(c));
  }
};
struct MadHighSaturated {
  static int32_t of(int32_t a, int32_t b, int32_t c) {
    return AddSaturated::of(MulHigh::of(a, b), c);
  }
};
/// The result of a division by zero is not defined; here it is all ones.
struct Div {
  template <typename T>
  static T of(T a, T b) {
    if (b == 0)
      return T(~T(0));
    if (std::is_signed_v<T> && b == T(-1))
      return T(Arithmetic<T>(0) - Arithmetic<T>(a));
    return T(a / b);
  }
};
struct Rem {
  template <typename T>
  static T of(T a, T b) {
    if (b == 0)
      return a;
    return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  }
};
struct Min {
  template <typename T>
  static T of(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  static T of(T a, T b) {
    return a < b ? b : a;
  }
};
template <typename Base>
struct Relu {
  template <typename T>
  static T of(T a, T b) {
    return Max::of(Base::of(a, b), T(0));
  }
};
struct Neg {
  template <typename T>
  static T of(T a) {
    return T(Arithmetic<T>(0) - Arithmetic<T>(a));
  }
};
struct Abs {
  template <typename T>
  static T of(T a) {
    return a < 0 ? Neg::of(a) : a;
  }
};
struct Sad {
  template <typename T>
  static T of(T a, T b, T c) {
    const T apart = a < b ? Sub::of(b, a) : Sub::of(a, b);
    return Add::of(c, apart);
  }
};
template <typename Base>
struct Halves {
  template <typename T>
  static Pair<T> of(Pair<T> a, Pair<T> b) {
    return {Base::of(a.low, b.low), Base::of(a.high, b.high)};
  }
};

/// Products of 24 bits (mul24, mad24).
template <typename T, bool isHigh>
struct Mul24 {
  static T of(T a, T b) {
    const auto cut = [](T value) {
      return Twice<T>(T(uint32_t(value) << 8) >> 8);
    };
    const auto product = cut(a) * cut(b);
    return T(isHigh ? product >> 16 : product);
  }
};

/// Sums of products of bytes, and of bytes with halves (dp4a, dp2a).
template <typename A, typename B, int count, bool isHigh>
struct DotProduct {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    for (int k = 0; k < count; ++k) {
      const int first = count == 4 ? 8 * k : 16 * k;
      const int second = 8 * k + (isHigh ? 16 : 0);
      const int64_t x = count == 4            ? int64_t(A(uint8_t(a >> first)))
                        : std::is_signed_v<A> ? int64_t(int16_t(a >> first))
                                              : int64_t(uint16_t(a >> first));
      c += uint32_t(x * int64_t(B(uint8_t(b >> second))));
    }
    return c;
  }
};

template <typename Op>
Run integerTwo(Scalar type) {
  return forType<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>(
      type, []<typename T>() { return two<Op, T>(); });
}
template <typename Op>
Run pairTwo(Scalar type) {
  return forType<Pair<uint16_t>, Pair<int16_t>>(
      type, []<typename T>() { return two<Halves<Op>, T>(); });
}

void operands(Decoder &d, Scalar type, size_t count) {
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  if (count > 1)
    d.instr.b = d.source(2, type);
  if (count > 2)
    d.instr.c = d.source(3, type);
}

//===----------------------------------------------------------------------===//
// Carries (section 9.7.2)
//===----------------------------------------------------------------------===//

/// d = a + b + carry, or a - b - borrow; `more` is the condition code's place.
template <typename T, bool isSub, bool readsCarry, bool writesCarry>
void carried(Warp &warp, const Instr &i) {
  const auto *a = warp.cells<CellOf<T>>(i.a), *b = warp.cells<CellOf<T>>(i.b);
  const uint32_t in = readsCarry ? warp.predicate(i.more) : 0;
  CellOf<T> out[lanes];
  uint32_t carries = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const unsigned __int128 x = T(a[lane]), y = T(b[lane]), c = in >> lane & 1;
    const unsigned __int128 sum = isSub ? x - y - c : x + y + c;
    out[lane] = T(sum);
    carries |= uint32_t(sum >> bitsOf<T> & 1) << lane;
  }
  keep(warp, i.d, out);
  if (writesCarry)
    warp.setPredicate(i.more, carries);
}

template <typename T, bool isSub>
Run carriedRun(bool reads, bool writes) {
  return reads ? (writes ? carried<T, isSub, true, true>
                         : carried<T, isSub, true, false>)
               : carried<T, isSub, false, true>;
}

void decodeCarried(Decoder &d, bool isSub, bool reads) {
  const bool writes = d.has("cc");
  const Scalar type = d.type();
  operands(d, type, 2);
  d.instr.more = d.carryPlace();
  const bool isWide = bytesOf(type) == 8;
  if (bytesOf(type) < 4 || isFloat(type))
    return d.refuse("its type must be of 32 or 64 bits");
  d.emit(isSub ? (isWide ? carriedRun<uint64_t, true>(reads, writes)
                         : carriedRun<uint32_t, true>(reads, writes))
               : (isWide ? carriedRun<uint64_t, false>(reads, writes)
                         : carriedRun<uint32_t, false>(reads, writes)));
}

/// mad.cc and madc: the product to a register nobody knows, then a sum.
void decodeMadCarried(Decoder &d, bool reads) {
  const bool writes = d.has("cc");
  const bool isHigh = d.oneOf({"lo", "hi"}, false) == "hi";
  const Scalar type = d.type();
  const Instr guarded = d.instr;
  const Operand sink{Operand::Kind::Sink, false, {}, 0, 0, 0, {}};
  const uint32_t product = d.instr.d = d.targetOf(&sink, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, type);
  d.emit(isHigh ? integerTwo<MulHigh>(type) : integerTwo<MulLow>(type));
  d.instr = guarded;
  d.instr.d = d.target(0, type);
  d.instr.a = product;
  d.instr.b = d.source(3, type);
  d.instr.more = d.carryPlace();
  d.emit(bytesOf(type) == 8 ? carriedRun<uint64_t, false>(reads, writes)
                            : carriedRun<uint32_t, false>(reads, writes));
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

template <typename Op, typename Saturated>
void decodeSum(Decoder &d, FloatKind kind, bool isSub) {
  if (d.hasAnother("cc"))
    return decodeCarried(d, isSub, false);
  const Scalar type = d.type();
  if (isFloat(type) || type == Scalar::F16x2 || type == Scalar::BF16x2 ||
      type == Scalar::F32x2)
    return decodeFloatArithmetic(d, kind, type);
  const bool isSaturated = d.has("sat");
  operands(d, type, 2);
  if (isSaturated)
    return d.emit(type == Scalar::S32 ? two<Saturated, int32_t>() : nullptr);
  const Run run = integerTwo<Op>(type);
  d.emit(run ? run : pairTwo<Op>(type));
}

/// The type of a product of two numbers of 16 or 32 bits.
static Scalar twiceAsWide(Scalar type) {
  using S = Scalar;
  return type == S::U16   ? S::U32
         : type == S::S16 ? S::S32
         : type == S::U32 ? S::U64
                          : S::S64;
}

void decodeMul(Decoder &d) {
  const Scalar type = d.type();
  if (isFloat(type) || type == Scalar::F16x2 || type == Scalar::BF16x2 ||
      type == Scalar::F32x2)
    return decodeFloatArithmetic(d, FloatKind::Mul, type);
  const std::string_view part = d.oneOf({"lo", "hi", "wide"}, false);
  if (part != "wide") {
    operands(d, type, 2);
    return d.emit(part == "lo" ? integerTwo<MulLow>(type)
                               : integerTwo<MulHigh>(type));
  }
  d.instr.d = d.target(0, twiceAsWide(type));
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, type);
  d.emit(forType<uint16_t, int16_t, uint32_t, int32_t>(
      type, []<typename T>() { return two<MulWide, Twice<T>, T>(); }));
}

void decodeMad(Decoder &d) {
  if (d.hasAnother("cc"))
    return decodeMadCarried(d, false);
  const Scalar type = d.type();
  if (isFloat(type))
    return decodeFloatArithmetic(d, FloatKind::Fma, type);
  const std::string_view part = d.oneOf({"lo", "hi", "wide"}, false);
  if (part == "wide") {
    const Scalar result = twiceAsWide(type);
    d.instr.d = d.target(0, result);
    d.instr.a = d.source(1, type);
    d.instr.b = d.source(2, type);
    d.instr.c = d.source(3, result);
    return d.emit(
        forType<uint16_t, int16_t, uint32_t, int32_t>(type, []<typename T>() {
          return three<Mad<MulWide>, Twice<T>, T, T, Twice<T>>();
        }));
  }
  const bool isSaturated = d.has("sat");
  operands(d, type, 3);
  if (isSaturated)
    return d.emit(part == "hi" && type == Scalar::S32
                      ? three<MadHighSaturated, int32_t>()
                      : nullptr);
  d.emit(forType<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>(
      type, [&]<typename T>() {
        return part == "lo" ? three<Mad<MulLow>, T>()
                            : three<Mad<MulHigh>, T>();
      }));
}

template <bool isMad>
void decodeMul24(Decoder &d) {
  const bool isHigh = d.oneOf({"lo", "hi"}, false) == "hi";
  const Scalar type = d.type();
  operands(d, type, isMad ? 3 : 2);
  d.emit(forType<uint32_t, int32_t>(type, [&]<typename T>() {
    if constexpr (isMad)
      return isHigh ? three<Mad<Mul24<T, true>>, T>()
                    : three<Mad<Mul24<T, false>>, T>();
    else
      return isHigh ? two<Mul24<T, true>, T>() : two<Mul24<T, false>, T>();
  }));
}

template <typename Op>
void decodeDivision(Decoder &d) {
  const Scalar type = d.type();
  if (isFloat(type))
    return std::is_same_v<Op, Div>
               ? decodeFloatArithmetic(d, FloatKind::Div, type)
               : d.refuse("its type must be an integer's");
  operands(d, type, 2);
  d.emit(integerTwo<Op>(type));
}

template <typename Op>
void decodeExtreme(Decoder &d, FloatKind kind) {
  const Scalar type = d.type();
  if (isFloat(type) || type == Scalar::F16x2 || type == Scalar::BF16x2)
    return decodeFloatArithmetic(d, kind, type);
  const bool isRelu = d.has("relu");
  operands(d, type, 2);
  if (isRelu)
    return d.emit(type == Scalar::S32 ? two<Relu<Op>, int32_t>()
                  : type == Scalar::S16x2
                      ? two<Halves<Relu<Op>>, Pair<int16_t>>()
                      : nullptr);
  const Run run = integerTwo<Op>(type);
  d.emit(run ? run : pairTwo<Op>(type));
}

template <typename Op>
void decodeSign(Decoder &d, FloatKind kind) {
  const bool isFlushed = d.hasAnother("ftz");
  const Scalar type = d.type();
  if (isFloat(type) || isFlushed || type == Scalar::F16x2 ||
      type == Scalar::BF16x2)
    return decodeFloatArithmetic(d, kind, type);
  operands(d, type, 1);
  d.emit(forType<int16_t, int32_t, int64_t>(
      type, []<typename T>() { return one<Op, T>(); }));
}

template <int count>
void decodeDot(Decoder &d) {
  const bool isHigh = count == 2 && d.oneOf({"lo", "hi"}, false) == "hi";
  const Scalar a = d.type(), b = d.type();
  const bool isSignedA = isSigned(a), isSignedB = isSigned(b);
  const Scalar sum = isSignedA || isSignedB ? Scalar::S32 : Scalar::U32;
  d.instr.d = d.target(0, sum);
  d.instr.a = d.source(1, Scalar::B32);
  d.instr.b = d.source(2, Scalar::B32);
  d.instr.c = d.source(3, sum);
  if (bytesOf(a) != 4 || bytesOf(b) != 4 || isFloat(a) || isFloat(b))
    return d.refuse("its types must be u32 or s32");
  auto run = [&]<typename A, typename B>() {
    return isHigh ? three<DotProduct<A, B, count, true>, uint32_t>()
                  : three<DotProduct<A, B, count, false>, uint32_t>();
  };
  d.emit(isSignedA ? (isSignedB ? run.template operator()<int8_t, int8_t>()
                                : run.template operator()<int8_t, uint8_t>())
                   : (isSignedB ? run.template operator()<uint8_t, int8_t>()
                                : run.template operator()<uint8_t, uint8_t>()));
}

} // namespace

std::span<const Operation> integerOperations() {
  static const Operation rows[] = {
      {"add", "9.7.1.1, 9.7.3.3",
       [](Decoder &d) {
         decodeSum<Add, AddSaturated>(d, FloatKind::Add, false);
       }},
      {"sub", "9.7.1.2, 9.7.3.4",
       [](Decoder &d) {
         decodeSum<Sub, SubSaturated>(d, FloatKind::Sub, true);
       }},
      {"mul", "9.7.1.3, 9.7.3.5", decodeMul},
      {"mad", "9.7.1.4, 9.7.3.7", decodeMad},
      {"mul24", "9.7.1.5", decodeMul24<false>},
      {"mad24", "9.7.1.6", decodeMul24<true>},
      {"sad", "9.7.1.7",
       [](Decoder &d) {
         const Scalar type = d.type();
         operands(d, type, 3);
         d.emit(
             forType<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>(
                 type, []<typename T>() { return three<Sad, T>(); }));
       }},
      {"div", "9.7.1.8, 9.7.3.8", decodeDivision<Div>},
      {"rem", "9.7.1.9", decodeDivision<Rem>},
      {"abs", "9.7.1.10, 9.7.3.9",
       [](Decoder &d) { decodeSign<Abs>(d, FloatKind::Abs); }},
      {"neg", "9.7.1.11, 9.7.3.10",
       [](Decoder &d) { decodeSign<Neg>(d, FloatKind::Neg); }},
      {"min", "9.7.1.12, 9.7.3.11",
       [](Decoder &d) { decodeExtreme<Min>(d, FloatKind::Min); }},
      {"max", "9.7.1.13, 9.7.3.12",
       [](Decoder &d) { decodeExtreme<Max>(d, FloatKind::Max); }},
      {"dp4a", "9.7.1.23", decodeDot<4>},
      {"dp2a", "9.7.1.24", decodeDot<2>},
      {"addc", "9.7.2.2", [](Decoder &d) { decodeCarried(d, false, true); }},
      {"subc", "9.7.2.4", [](Decoder &d) { decodeCarried(d, true, true); }},
      {"madc", "9.7.2.6", [](Decoder &d) { decodeMadCarried(d, true); }}};
  return rows;
}

} // namespace mgpu::kernels::ptx
