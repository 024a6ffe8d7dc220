// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

// Functions whose last bits PTX leaves open (ISA 9.0, sections 9.7.3.8 and
// 9.7.3.13 to 9.7.3.22). The exact value is rounded to nearest, or moved by the
// error that the manual allows where the launch asks for that.

namespace mgpu::kernels::ptx {

namespace {

enum class Function1 : uint8_t {
  Rcp,
  Sqrt,
  Rsqrt,
  Sin,
  Cos,
  Lg2,
  Ex2,
  Tanh,
  Div
};

/// The largest error: relative to the result, and absolute.
struct Bound {
  double relative, absolute;
};
constexpr Bound bounds[] = {{0x1p-23, 0}, {0x1p-23, 0}, {0x1p-22 * 1.4142, 0},
                            {0, 0x1p-21}, {0, 0x1p-21}, {0x1p-22, 0x1p-22},
                            {0x1p-22, 0}, {0x1p-11, 0}, {0x1p-22, 0}};

double exact(Function1 function, double a, double b) {
  switch (function) {
  case Function1::Rcp:
    return 1 / a;
  case Function1::Sqrt:
    return std::sqrt(a);
  case Function1::Rsqrt:
    return 1 / std::sqrt(a);
  case Function1::Sin:
    return std::isinf(a) ? NAN : std::sin(a);
  case Function1::Cos:
    return std::isinf(a) ? NAN : std::cos(a);
  case Function1::Lg2:
    return std::log2(a);
  case Function1::Ex2:
    return std::exp2(a);
  case Function1::Tanh:
    return std::tanh(a);
  case Function1::Div:
    return a / b;
  }
  return 0;
}

/// `flags`: the function, then whether subnormal numbers are zeros, then the
/// type: 0 f32, 1 f64, 2 f16, 3 bf16, and 4 more for a pair.
void approximate(Warp &warp, const Instr &i) {
  const auto function = Function1(i.flags & 15);
  const bool flushes = i.flags & 16;
  const uint32_t kind = i.flags >> 5;
  const Bound bound = bounds[size_t(function)];
  const double moved = warp.machine.options.approximation;
  auto value = [&](double a, double b) {
    const double out = exact(function, a, b);
    const double error =
        std::max(bound.relative * std::fabs(out), bound.absolute);
    return std::isfinite(out) && out != 0 ? out + moved * error : out;
  };
  auto flush = [&](float x) {
    return flushes && std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  };
  auto small = [&](uint16_t bits) -> uint32_t {
    if ((kind & 3) == 2)
      return toHalf(float(value(toFloat(Half{bits}), 0))).bits;
    return toBfloat(float(value(toFloat(Bfloat{bits}), 0))).bits;
  };
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    if (kind == 1) {
      // With .ftz those of f64 know 20 bits, and forget the low word; rsqrt
      // without it is one that software makes whole.
      const double out = exact(function, warp.cells<double>(i.a)[lane], 0);
      warp.cells<uint64_t>(i.d)[lane] =
          std::bit_cast<uint64_t>(out) & (flushes ? 0xffffffff00000000 : ~0ull);
    } else if (kind == 0) {
      const float a = flush(warp.cells<float>(i.a)[lane]);
      const float b = flush(warp.cells<float>(i.b)[lane]);
      const float out = flush(float(value(a, b)));
      warp.cells<float>(i.d)[lane] =
          out != out ? std::bit_cast<float>(0x7fffffffu) : out;
    } else {
      const uint32_t a = warp.cells<uint32_t>(i.a)[lane];
      uint32_t out = small(uint16_t(a));
      if (kind & 4)
        out |= small(uint16_t(a >> 16)) << 16;
      warp.cells<uint32_t>(i.d)[lane] = out;
    }
  }
}

void emitApproximate(Decoder &d, Function1 function, Scalar type,
                     bool flushes) {
  const uint32_t kind = type == Scalar::F32      ? 0
                        : type == Scalar::F64    ? 1
                        : type == Scalar::F16    ? 2
                        : type == Scalar::BF16   ? 3
                        : type == Scalar::F16x2  ? 6
                        : type == Scalar::BF16x2 ? 7
                                                 : 8;
  if (kind == 8)
    return d.refuse("its type must be a float's");
  d.instr.flags = uint32_t(function) | uint32_t(flushes) << 4 | kind << 5;
  d.emit(approximate);
}

template <Function1 function>
void decodeFunction1(Decoder &d) {
  constexpr bool hasExact =
      function == Function1::Rcp || function == Function1::Sqrt;
  const bool isApproximate = d.has("approx") || !hasExact;
  if (isApproximate) {
    const bool flushes = d.has("ftz");
    const Scalar type = d.type();
    d.instr.d = d.target(0, type);
    d.instr.a = d.instr.b = d.source(1, type);
    return emitApproximate(d, function, type, flushes);
  }
  decodeFloatArithmetic(
      d, function == Function1::Rcp ? FloatKind::Rcp : FloatKind::Sqrt,
      d.type());
}

} // namespace

void decodeApproximateDivision(Decoder &d) {
  const bool isFull = d.has("full");
  d.oneOf({isFull ? "full" : "approx"});
  const bool flushes = d.has("ftz");
  d.instr.d = d.target(0, Scalar::F32);
  d.instr.a = d.source(1, Scalar::F32);
  d.instr.b = d.source(2, Scalar::F32);
  emitApproximate(d, Function1::Div, Scalar::F32, flushes);
}

std::span<const Operation> functionOperations() {
  static const Operation rows[] = {
      {"rcp", "9.7.3.13", decodeFunction1<Function1::Rcp>},
      {"sqrt", "9.7.3.15", decodeFunction1<Function1::Sqrt>},
      {"rsqrt", "9.7.3.16", decodeFunction1<Function1::Rsqrt>},
      {"sin", "9.7.3.18", decodeFunction1<Function1::Sin>},
      {"cos", "9.7.3.19", decodeFunction1<Function1::Cos>},
      {"lg2", "9.7.3.20", decodeFunction1<Function1::Lg2>},
      {"ex2", "9.7.3.21, 9.7.4.11", decodeFunction1<Function1::Ex2>},
      {"tanh", "9.7.3.22, 9.7.4.10", decodeFunction1<Function1::Tanh>}};
  return rows;
}

} // namespace mgpu::kernels::ptx
