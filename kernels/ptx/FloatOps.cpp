// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

#include <cfenv>

// Arithmetic of floats (ISA 9.0, sections 9.7.3 to 9.7.5). A NaN of 32 bits and
// less is the canonical one; of 64 bits it is what the processor makes.

namespace mgpu::kernels::ptx {

bool hasWideVectors() {
#if defined(__x86_64__)
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
  return has;
#else
  return true;
#endif
}

namespace {

template <typename T>
MGPU_PTX_INLINE T canonical(T value) {
  if constexpr (std::is_same_v<T, float>)
    return value != value ? std::bit_cast<float>(0x7fffffffu) : value;
  else
    return value;
}
MGPU_PTX_INLINE float flushed(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(bits & 0x7f800000 ? bits : bits & 0x80000000);
}
template <typename T>
MGPU_PTX_INLINE T clamped(T value) {
  return value > T(0) ? (value < T(1) ? value : T(1)) : T(0);
}

template <FloatKind kind, typename T>
MGPU_PTX_INLINE T compute(T a, T b, T c) {
  switch (kind) {
  case FloatKind::Add:
    return a + b;
  case FloatKind::Sub:
    return a - b;
  case FloatKind::Mul:
    return a * b;
  case FloatKind::Div:
    return a / b;
  case FloatKind::Sqrt:
    return std::sqrt(a);
  case FloatKind::Rcp:
    return T(1) / a;
  default:
    if constexpr (std::is_same_v<T, float>)
      return __builtin_fmaf(a, b, c);
    else
      return __builtin_fma(a, b, c);
  }
}

/// Rounded to nearest; of f32 and f64.
template <FloatKind kind, bool flushes, bool saturates>
struct Rounded {
  template <typename T>
  static MGPU_PTX_INLINE T of(T a, T b = 0, T c = 0) {
    if constexpr (flushes)
      a = flushed(a), b = flushed(b), c = flushed(c);
    T out = compute<kind>(a, b, c);
    if constexpr (flushes)
      out = flushed(out);
    if constexpr (saturates)
      return clamped(out);
    return canonical(out);
  }
};

/// Arithmetic of f16, bf16 and pairs; `relu` makes what is negative, and NaN,
/// zero.
template <FloatKind kind, bool saturates, bool relu>
struct Small {
  template <typename T>
  static T of(T a, T b, T c = {}) {
    T out;
    if constexpr (kind == FloatKind::Fma)
      out = {uint16_t(encode(oddFma(toFloat(a), toFloat(b), toFloat(c)),
                             formatOf<T>, Round::Nearest))};
    else
      out = fromFloat<T>(compute<kind>(toFloat(a), toFloat(b), 0.0f));
    if constexpr (saturates)
      return fromFloat<T>(clamped(toFloat(out)));
    if constexpr (relu)
      return toFloat(out) > 0
                 ? out
                 : T{uint16_t(std::isnan(toFloat(out)) ? out.bits : 0)};
    return out;
  }
  template <typename T>
  static Pair<T> of(Pair<T> a, Pair<T> b, Pair<T> c = {}) {
    return {of(a.low, b.low, c.low), of(a.high, b.high, c.high)};
  }
};
template <FloatKind kind, bool flushes>
struct FloatPair {
  using P = Pair<float>;
  static P of(P a, P b, P c = {}) {
    using R = Rounded<kind, flushes, false>;
    return {R::of(a.low, b.low, c.low), R::of(a.high, b.high, c.high)};
  }
};

/// A number beats a NaN unless `keepsNan`; -0 is less than +0.
template <bool isMax, bool keepsNan, bool flushes>
struct Extreme {
  template <typename T>
  static MGPU_PTX_INLINE T of(T x, T y) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
      return fromFloat<T>(of(toFloat(x), toFloat(y)));
    } else {
      if constexpr (flushes)
        x = flushed(x), y = flushed(y);
      const bool takesX = isMax ? x > y || (x == y && !std::signbit(x))
                                : x < y || (x == y && std::signbit(x));
      const T best = takesX || (y != y && !keepsNan) ? x : y;
      return canonical(keepsNan && x != x ? x : best);
    }
  }
  template <typename T>
  static Pair<T> of(Pair<T> a, Pair<T> b) {
    return {of(a.low, b.low), of(a.high, b.high)};
  }
};

/// Abs and neg change the sign alone.
template <bool isAbs, bool flushes>
struct Sign {
  template <typename T>
  static T of(T a) {
    if constexpr (flushes)
      a = T(flushed(a));
    auto bits = std::bit_cast<std::conditional_t<
        sizeof(T) == 8, uint64_t,
        std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>>(a);
    using B = decltype(bits);
    B sign = B(B(1) << (sizeof(T) * 8 - 1));
    if constexpr (std::is_same_v<T, Pair<Half>> ||
                  std::is_same_v<T, Pair<Bfloat>>)
      sign = 0x80008000;
    return std::bit_cast<T>(B(isAbs ? bits & ~sign : bits ^ sign));
  }
};

//===----------------------------------------------------------------------===//
// Other roundings: one handler, as they are rare
//===----------------------------------------------------------------------===//

constexpr uint32_t flushesFlag = 256, saturatesFlag = 512, doubleFlag = 1024;

double oddOf(FloatKind kind, double a, double b, double c) {
  switch (kind) {
  case FloatKind::Add:
    return oddSum(a, b);
  case FloatKind::Sub:
    return oddSum(a, -b);
  case FloatKind::Mul:
    return a * b;
  case FloatKind::Div:
    return oddQuotient(a, b);
  case FloatKind::Sqrt:
    return oddRoot(a);
  case FloatKind::Rcp:
    return oddQuotient(1, a);
  default:
    return oddFma(a, b, c);
  }
}

double inMode(FloatKind kind, Round round, double a, double b, double c) {
  volatile double x = a, y = b, z = c, out;
  const int before = std::fegetround();
  std::fesetround(round == Round::Zero   ? FE_TOWARDZERO
                  : round == Round::Down ? FE_DOWNWARD
                                         : FE_UPWARD);
  switch (kind) {
  case FloatKind::Add:
    out = x + y;
    break;
  case FloatKind::Sub:
    out = x - y;
    break;
  case FloatKind::Mul:
    out = x * y;
    break;
  case FloatKind::Div:
    out = x / y;
    break;
  case FloatKind::Sqrt:
    out = std::sqrt(x);
    break;
  case FloatKind::Rcp:
    out = 1.0 / x;
    break;
  default:
    out = std::fma(x, y, z);
  }
  std::fesetround(before);
  return out;
}

void directed(Warp &warp, const Instr &i) {
  const auto kind = FloatKind(i.flags & 15);
  const auto round = Round(i.flags >> 4 & 15);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    if (i.flags & doubleFlag) {
      auto at = [&](uint32_t place) { return warp.cells<double>(place)[lane]; };
      warp.cells<double>(i.d)[lane] =
          inMode(kind, round, at(i.a), at(i.b), at(i.c));
      continue;
    }
    auto at = [&](uint32_t place) {
      const float value = warp.cells<float>(place)[lane];
      return i.flags & flushesFlag ? flushed(value) : value;
    };
    const double odd = oddOf(kind, at(i.a), at(i.b), at(i.c));
    auto out = std::bit_cast<float>(uint32_t(encode(odd, floatFormat, round)));
    // An exact difference is -0 where it is rounded down (IEEE 754, 6.3).
    if (odd == 0 && round == Round::Down && kind != FloatKind::Mul &&
        (at(i.a) != 0 || (kind == FloatKind::Fma && at(i.c) != 0)) &&
        (kind == FloatKind::Add || kind == FloatKind::Sub ||
         kind == FloatKind::Fma))
      out = -0.0f;
    if (i.flags & flushesFlag)
      out = flushed(out);
    warp.cells<float>(i.d)[lane] =
        i.flags & saturatesFlag ? clamped(out) : canonical(out);
  }
}

template <FloatKind kind>
constexpr int arity = kind == FloatKind::Fma                              ? 3
                      : kind == FloatKind::Sqrt || kind == FloatKind::Rcp ? 1
                                                                          : 2;

template <FloatKind kind, typename Op, typename T>
Run byArity() {
  if constexpr (arity<kind> == 3)
    return three<Op, T>();
  else if constexpr (arity<kind> == 2)
    return two<Op, T>();
  else
    return one<Op, T>();
}

template <FloatKind kind>
Run smallRun(Scalar type, bool saturates, bool relu) {
  if constexpr (arity<kind> == 1 || kind == FloatKind::Div)
    return nullptr;
  else
    return forType<Half, Bfloat, Pair<Half>, Pair<Bfloat>>(
        type, [&]<typename T>() {
          return saturates ? byArity<kind, Small<kind, true, false>, T>()
                 : relu    ? byArity<kind, Small<kind, false, true>, T>()
                           : byArity<kind, Small<kind, false, false>, T>();
        });
}

template <FloatKind kind>
void decodeRounded(Decoder &d, Scalar type) {
  const std::string_view mode = d.oneOf({"rn", "rz", "rm", "rp"});
  const bool flushes = d.has("ftz"), saturates = d.has("sat"),
             relu = d.has("relu");
  d.instr.d = d.target(0, type);
  d.instr.b = d.instr.c = d.instr.a = d.source(1, type);
  if (arity < kind >> 1)
    d.instr.b = d.source(2, type);
  if (arity < kind >> 2)
    d.instr.c = d.source(3, type);
  if (relu && bytesOf(type) == 4 && type == Scalar::F32)
    return d.refuse("f32 has no relu");
  if (type == Scalar::F32x2) {
    if constexpr (arity < kind >> 1 && kind != FloatKind::Div)
      return d.emit(mode != "rn" ? nullptr
                    : flushes
                        ? byArity<kind, FloatPair<kind, true>, Pair<float>>()
                        : byArity<kind, FloatPair<kind, false>, Pair<float>>());
    return d.emit(nullptr);
  }
  if (type != Scalar::F32 && type != Scalar::F64)
    return d.emit(mode == "rn" ? smallRun<kind>(type, saturates, relu)
                               : nullptr);
  if (mode != "rn") {
    const Round round = mode == "rz"   ? Round::Zero
                        : mode == "rm" ? Round::Down
                                       : Round::Up;
    d.instr.flags = uint32_t(kind) | uint32_t(round) << 4 |
                    (flushes ? flushesFlag : 0) |
                    (saturates ? saturatesFlag : 0) |
                    (type == Scalar::F64 ? doubleFlag : 0);
    return d.emit(directed);
  }
  if (type == Scalar::F64)
    return d.emit(byArity<kind, Rounded<kind, false, false>, double>());
  d.emit(flushes
             ? (saturates ? byArity<kind, Rounded<kind, true, true>, float>()
                          : byArity<kind, Rounded<kind, true, false>, float>())
             : (saturates
                    ? byArity<kind, Rounded<kind, false, true>, float>()
                    : byArity<kind, Rounded<kind, false, false>, float>()));
}

template <bool isMax>
void decodeExtreme(Decoder &d, Scalar type) {
  const bool flushes = d.has("ftz"), keepsNan = d.has("NaN");
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  d.instr.b = d.source(2, type);
  if (type == Scalar::F32 && flushes)
    return d.emit(keepsNan ? two<Extreme<isMax, true, true>, float>()
                           : two<Extreme<isMax, false, true>, float>());
  d.emit(forType<float, double, Half, Bfloat, Pair<Half>, Pair<Bfloat>>(
      type, [&]<typename T>() {
        return keepsNan ? two<Extreme<isMax, true, false>, T>()
                        : two<Extreme<isMax, false, false>, T>();
      }));
}

template <bool isAbs>
void decodeSign(Decoder &d, Scalar type) {
  const bool flushes = d.has("ftz");
  d.instr.d = d.target(0, type);
  d.instr.a = d.source(1, type);
  if (flushes && type == Scalar::F32)
    return d.emit(one<Sign<isAbs, true>, float>());
  d.emit(forType<float, double, Half, Bfloat, Pair<Half>, Pair<Bfloat>>(
      type, []<typename T>() { return one<Sign<isAbs, false>, T>(); }));
}

} // namespace

/// Errors of `approx` and `full` are in Functions.cpp.
void decodeFloatArithmetic(Decoder &d, FloatKind kind, Scalar type) {
  switch (kind) {
  case FloatKind::Add:
    return decodeRounded<FloatKind::Add>(d, type);
  case FloatKind::Sub:
    return decodeRounded<FloatKind::Sub>(d, type);
  case FloatKind::Mul:
    return decodeRounded<FloatKind::Mul>(d, type);
  case FloatKind::Fma:
    return decodeRounded<FloatKind::Fma>(d, type);
  case FloatKind::Sqrt:
    return decodeRounded<FloatKind::Sqrt>(d, type);
  case FloatKind::Rcp:
    return decodeRounded<FloatKind::Rcp>(d, type);
  case FloatKind::Div:
    if (d.hasAnother("approx") || d.hasAnother("full"))
      return decodeApproximateDivision(d);
    return decodeRounded<FloatKind::Div>(d, type);
  case FloatKind::Min:
    return decodeExtreme<false>(d, type);
  case FloatKind::Max:
    return decodeExtreme<true>(d, type);
  case FloatKind::Abs:
    return decodeSign<true>(d, type);
  case FloatKind::Neg:
    return decodeSign<false>(d, type);
  }
}

std::span<const Operation> floatOperations() {
  static const Operation rows[] = {
      {"fma", "9.7.3.6, 9.7.4.4",
       [](Decoder &d) { decodeFloatArithmetic(d, FloatKind::Fma, d.type()); }},
      {"copysign", "9.7.3.2", [](Decoder &d) {
         struct Copysign {
           // The first operand has the sign.
           static float of(float a, float b) { return std::copysign(b, a); }
           static double of(double a, double b) { return std::copysign(b, a); }
         };
         const Scalar type = d.type();
         d.instr.d = d.target(0, type);
         d.instr.a = d.source(1, type);
         d.instr.b = d.source(2, type);
         d.emit(type == Scalar::F32   ? two<Copysign, float>()
                : type == Scalar::F64 ? two<Copysign, double>()
                                      : nullptr);
       }}};
  return rows;
}

} // namespace mgpu::kernels::ptx
