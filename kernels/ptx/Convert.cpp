// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"

// Conversions (ISA 9.0, sections 9.7.9.21 to 9.7.9.23).

namespace mgpu::kernels::ptx {

namespace {

constexpr uint32_t saturates = 1, flushes = 2, relu = 4;

/// How a value of a type is read and written. `flags` of a conversion are the
/// three above, then its Round from bit 4, whether it rounds to an integer (bit
/// 8), and the two types from bits 12 and 18. A wider register than a type gets
/// the sign or zeros (bit 9: the register is of 64 bits).
Scalar toType(const Instr &i) { return Scalar(i.flags >> 12 & 63); }
Scalar fromType(const Instr &i) { return Scalar(i.flags >> 18 & 63); }

double roundedWhole(double value, Round round) {
  switch (round) {
  case Round::Zero:
    return std::trunc(value);
  case Round::Down:
    return std::floor(value);
  case Round::Up:
    return std::ceil(value);
  default: {
    const double whole = std::floor(value);
    const double rest = value - whole;
    const bool isUp = rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) != 0);
    return std::copysign(whole + isUp, value);
  }
  }
}

double floatOf(Scalar type, uint64_t bits, uint32_t flags) {
  switch (type) {
  case Scalar::F16:
    return toFloat(Half{uint16_t(bits)});
  case Scalar::BF16:
    return toFloat(Bfloat{uint16_t(bits)});
  case Scalar::F32: {
    const auto value = std::bit_cast<float>(uint32_t(bits));
    return (flags & flushes) && std::fabs(value) < 0x1p-126f
               ? std::copysign(0.0, value)
               : value;
  }
  default:
    return std::bit_cast<double>(bits);
  }
}

uint64_t bitsOfFloat(Scalar type, double value, Round round, uint32_t flags) {
  if (flags & saturates)
    value = value > 0 ? std::min(value, 1.0) : 0;
  if ((flags & relu) && !(value > 0) && !std::isnan(value))
    value = 0;
  switch (type) {
  case Scalar::F16:
    return encode(value, halfFormat, round);
  case Scalar::BF16:
    return encode(value, bfloatFormat, round);
  case Scalar::F32: {
    const auto bits = uint32_t(encode(value, floatFormat, round));
    return (flags & flushes) && !(bits & 0x7f800000) ? bits & 0x80000000 : bits;
  }
  default:
    return std::bit_cast<uint64_t>(value);
  }
}

/// Integers that a float cannot be are clamped; NaN is 0.
uint64_t wholeOf(Scalar type, double value) {
  const int width = int(bytesOf(type) * 8);
  if (std::isnan(value)) // of 64 bits the highest bit (section 9.7.9.21)
    return width == 64 ? uint64_t(1) << 63 : 0;
  if (isSigned(type)) {
    const double edge = std::scalbn(1.0, width - 1);
    if (value >= edge)
      return (uint64_t(1) << (width - 1)) - 1;
    return uint64_t(int64_t(std::max(value, -edge)));
  }
  if (value >= std::scalbn(1.0, width))
    return width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
  return value > 0 ? uint64_t(value) : 0;
}

uint64_t extended(Scalar type, uint64_t bits) {
  const int unused = 64 - int(bytesOf(type) * 8);
  return isSigned(type) ? uint64_t(int64_t(bits << unused) >> unused)
                        : bits << unused >> unused;
}

/// An integer to a float, rounded once: its low bits go into an odd one.
double oddOfInteger(Scalar type, uint64_t bits) {
  const bool isNegative = isSigned(type) && int64_t(bits) < 0;
  uint64_t size = isNegative ? 0 - bits : bits;
  if (size >> 53) {
    const uint64_t low = size & 2047;
    size = (size & ~uint64_t(2047)) | (low ? 2048 : 0);
  }
  return isNegative ? -double(size) : double(size);
}

uint64_t clampedInteger(Scalar to, Scalar from, uint64_t bits) {
  const int width = int(bytesOf(to) * 8);
  __int128 value = isSigned(from) ? __int128(int64_t(bits)) : __int128(bits);
  const __int128 most = (__int128(1) << (width - isSigned(to))) - 1;
  const __int128 least = isSigned(to) ? -most - 1 : 0;
  value = value > most ? most : value < least ? least : value;
  return uint64_t(value);
}

uint64_t converted(const Instr &i, uint64_t bits) {
  const Scalar to = toType(i), from = fromType(i);
  const auto round = Round(i.flags >> 4 & 15);
  if (isFloat(from)) {
    double value = floatOf(from, bits, i.flags);
    if (i.flags & 256)
      value = roundedWhole(value, round);
    return isFloat(to) ? bitsOfFloat(to, value, round, i.flags)
                       : wholeOf(to, value);
  }
  bits = extended(from, bits);
  if (!isFloat(to))
    return i.flags & saturates ? clampedInteger(to, from, bits) : bits;
  if (to == Scalar::F64 && round == Round::Nearest)
    return std::bit_cast<uint64_t>(isSigned(from) ? double(int64_t(bits))
                                                  : double(bits));
  if (to == Scalar::F64) { // the odd one is right or next to it
    const auto whole =
        isSigned(from) ? __int128(int64_t(bits)) : __int128(bits);
    double value = double(int64_t(bits));
    if (!isSigned(from))
      value = double(bits);
    const __int128 apart = __int128(value) - whole;
    if (apart > 0 &&
        (round == Round::Down || (round == Round::Zero && value > 0)))
      value = std::nextafter(value, -INFINITY);
    if (apart < 0 &&
        (round == Round::Up || (round == Round::Zero && value < 0)))
      value = std::nextafter(value, INFINITY);
    return std::bit_cast<uint64_t>(value);
  }
  return bitsOfFloat(to, oddOfInteger(from, bits), round, i.flags);
}

void convert(Warp &warp, const Instr &i) {
  const bool isWideSource = cellBytes(fromType(i)) == 8;
  const bool isWideTarget = i.flags & 512;
  const Scalar to = toType(i);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    uint64_t out = converted(i, warp.value(i.a, lane, isWideSource));
    if (!isFloat(to))
      out = extended(to, out);
    if (isWideTarget)
      warp.cells<uint64_t>(i.d)[lane] = out;
    else
      warp.cells<uint32_t>(i.d)[lane] =
          i.bytes == 2 ? uint16_t(out) : uint32_t(out);
  }
}

//===----------------------------------------------------------------------===//
// The frequent ones
//===----------------------------------------------------------------------===//

struct Cast {
  template <typename D>
  struct To {
    template <typename A>
    static D of(A a) {
      if constexpr (std::is_same_v<D, Half> || std::is_same_v<D, Bfloat>)
        return fromFloat<D>(a);
      else if constexpr (std::is_same_v<A, Half> || std::is_same_v<A, Bfloat>) {
        const float value = toFloat(a);
        return value != value ? std::bit_cast<float>(0x7fffffffu) : value;
      } else
        return D(a);
    }
  };
};

template <typename D, typename A>
Run cast() {
  return one<Cast::To<D>, D, A>();
}

/// Where no rounding, saturation or flush is asked for but the usual one.
Run simpleCast(Scalar to, Scalar from) {
  using S = Scalar;
  if (to == S::F16 && from == S::F32)
    return cast<Half, float>();
  if (to == S::BF16 && from == S::F32)
    return cast<Bfloat, float>();
  if (to == S::F32 && from == S::F16)
    return cast<float, Half>();
  if (to == S::F32 && from == S::BF16)
    return cast<float, Bfloat>();
  if (to == S::F32)
    return forType<int32_t, uint32_t>(
        from, []<typename A>() { return cast<float, A>(); });
  if (isFloat(to) || isFloat(from))
    return nullptr;
  if (bytesOf(to) == 8)
    return forType<int32_t, uint32_t, int16_t, uint16_t>(
        from, [&]<typename A>() { return cast<uint64_t, A>(); });
  if (bytesOf(to) == 4)
    return forType<int32_t, uint32_t, int64_t, uint64_t, int16_t, uint16_t>(
        from, [&]<typename A>() { return cast<uint32_t, A>(); });
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Two floats to one register, and 8 bits (section 9.7.9.22)
//===----------------------------------------------------------------------===//

/// `more`: the Scalar of the result; `flags` as above, and the source's.
void convertPair(Warp &warp, const Instr &i) {
  const auto to = Scalar(i.more);
  const auto from = fromType(i);
  const auto round = Round(i.flags >> 4 & 15);
  auto pack = [&](double value) -> uint32_t {
    if ((i.flags & relu) && !(value > 0) && !std::isnan(value))
      value = 0;
    const bool clamps = i.flags & saturates;
    const FloatFormat &format = to == Scalar::F16x2    ? halfFormat
                                : to == Scalar::BF16x2 ? bfloatFormat
                                : to == Scalar::E4M3x2 ? e4m3Format
                                                       : e5m2Format;
    return uint32_t(encode(value, format, round, clamps));
  };
  const bool isByte = to == Scalar::E4M3x2 || to == Scalar::E5M2x2;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    if (!(warp.mask >> lane & 1))
      continue;
    const uint32_t a = warp.cells<uint32_t>(i.a)[lane];
    double high, low;
    if (from == Scalar::F32) { // the first operand is the upper half
      high = std::bit_cast<float>(a);
      low = std::bit_cast<float>(warp.cells<uint32_t>(i.b)[lane]);
    } else if (from == Scalar::F16x2) {
      high = toFloat(Half{uint16_t(a >> 16)});
      low = toFloat(Half{uint16_t(a)});
    } else {
      const FloatFormat &format =
          from == Scalar::E4M3x2 ? e4m3Format : e5m2Format;
      high = decodeFloat(a >> 8 & 255, format);
      low = decodeFloat(a & 255, format);
    }
    warp.cells<uint32_t>(i.d)[lane] =
        pack(high) << (isByte ? 8 : 16) | pack(low);
  }
}

/// f32 to tf32: 13 bits of the mantissa are dropped.
void convertTf32(Warp &warp, const Instr &i) {
  const auto round = Round(i.flags >> 4 & 15);
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (warp.mask >> lane & 1) {
      double value = warp.cells<float>(i.a)[lane];
      if ((i.flags & relu) && !(value > 0) && !std::isnan(value))
        value = 0;
      warp.cells<uint32_t>(i.d)[lane] =
          uint32_t(encode(value, tf32Format, round, i.flags & saturates)) << 13;
    }
}

Round takeRound(Decoder &d, bool toInteger, Round usual) {
  constexpr std::pair<std::string_view, Round> whole[] = {
      {"rni", Round::Nearest},
      {"rzi", Round::Zero},
      {"rmi", Round::Down},
      {"rpi", Round::Up}};
  constexpr std::pair<std::string_view, Round> modes[] = {
      {"rn", Round::Nearest},
      {"rna", Round::NearestAway},
      {"rz", Round::Zero},
      {"rm", Round::Down},
      {"rp", Round::Up}};
  for (const auto &[name, round] : whole)
    if (d.has(name)) {
      d.instr.flags |= 256;
      return round;
    }
  for (const auto &[name, round] : modes)
    if (d.has(name))
      return round;
  if (toInteger)
    d.instr.flags |= 256;
  return usual;
}

void decodePairs(Decoder &d, Scalar to, Scalar from, Round round) {
  d.instr.flags |= uint32_t(round) << 4 | uint32_t(from) << 18;
  if (to == Scalar::TF32) {
    d.instr.d = d.target(0, Scalar::B32);
    d.instr.a = d.source(1, Scalar::F32);
    return d.emit(convertTf32);
  }
  const bool hasTwo = from == Scalar::F32;
  if (!hasTwo && from != Scalar::F16x2 && from != Scalar::E4M3x2 &&
      from != Scalar::E5M2x2)
    return d.emit(nullptr);
  d.instr.more = uint32_t(to);
  d.instr.d = d.target(0, bytesOf(to) == 2 ? Scalar::B16 : Scalar::B32);
  d.instr.a = d.source(1, hasTwo               ? Scalar::F32
                          : bytesOf(from) == 2 ? Scalar::B16
                                               : Scalar::B32);
  if (hasTwo)
    d.instr.b = d.source(2, Scalar::F32);
  d.emit(convertPair);
}

void decodeCvt(Decoder &d) {
  const bool isSaturated = d.has("sat") || d.has("satfinite");
  d.instr.flags = (isSaturated ? saturates : 0) | (d.has("ftz") ? flushes : 0) |
                  (d.has("relu") ? relu : 0);
  const Scalar to = d.type(), from = d.type();
  const Round round = takeRound(d, isFloat(from) && !isFloat(to),
                                isFloat(to) ? Round::Nearest : Round::Zero);
  if (to == Scalar::TF32 || bytesOf(to) == 16 ||
      (!isFloat(to) && (to == Scalar::F16x2 || to == Scalar::BF16x2 ||
                        to == Scalar::E4M3x2 || to == Scalar::E5M2x2)))
    return decodePairs(d, to, from, round);
  Scalar target = to, source = from;
  d.instr.d = d.wide(d.operand(0), to, target, true);
  d.instr.a = d.wide(d.operand(1), from, source, false);
  if (d.isWrong())
    return;
  if (bytesOf(target) < bytesOf(to) || target == Scalar::Pred ||
      source == Scalar::Pred || bytesOf(source) < bytesOf(from))
    return d.refuse("a register is narrower than its type");
  // A source of more bits than its type is cut, which is done by its type.
  const bool cutsWide = cellBytes(source) != cellBytes(from);
  if (cutsWide) {
    const Instr kept = d.instr;
    const Operand sink{Operand::Kind::Sink, false, {}, 0, 0, 0, {}};
    d.instr.flags = 0;
    const uint32_t low = d.instr.d = d.targetOf(&sink, Scalar::U32);
    d.emit(cast<uint32_t, uint64_t>());
    d.instr = kept;
    d.instr.a = low;
  }
  const bool isPlain = (d.instr.flags & ~256u) == 0 &&
                       (d.instr.flags == 0 || !isFloat(to)) &&
                       (!isFloat(to) || round == Round::Nearest);
  const bool fits = cellBytes(target) == cellBytes(to) && bytesOf(target) >= 4;
  if (isPlain && (fits || (isFloat(to) && bytesOf(to) == 2)))
    if (const Run run = simpleCast(to, from))
      return d.emit(run);
  d.instr.bytes = uint8_t(bytesOf(target));
  d.instr.flags |= uint32_t(round) << 4 | uint32_t(to) << 12 |
                   uint32_t(from) << 18 | (cellBytes(target) == 8 ? 512 : 0);
  d.emit(convert);
}

} // namespace

std::span<const Operation> conversions() {
  static const Operation rows[] = {{"cvt", "9.7.9.21", decodeCvt}};
  return rows;
}

} // namespace mgpu::kernels::ptx
