// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_FUNCTIONS_H
#define MGPU_KERNELS_HOST_FUNCTIONS_H

// The mathematical functions of f32 as the host target computes them, without
// branches, so that loops that call them become vectors. They are written once
// for numbers of the processor and for values of MLIR (VectorFunctions.cpp),
// which have the same operations and so the same bits on every processor.
//
// The functions that programs use most are computed in f32, with fma; the
// others in f64, where a product and a sum round apart. docs/numerics.md has
// their errors. bench/suites/fit_functions.py fits the polynomials. Reductions
// of arguments are those of Cody and Waite, *Software Manual for the Elementary
// Functions*, 1980, and of Payne and Hanek, "Radian Reduction for Trigonometric
// Functions", 1983.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mgpu::kernels::functions {

// ---- operations of numbers

template <class To, class From>
To sameBits(From from) {
  To to;
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&to, &from, sizeof(to));
  return to;
}
inline uint32_t bitsOf(float x) { return sameBits<uint32_t>(x); }
inline uint64_t bitsOf(double x) { return sameBits<uint64_t>(x); }
inline float floatOf(uint32_t x) { return sameBits<float>(x); }
inline double floatOf(uint64_t x) { return sameBits<double>(x); }
inline double wide(float x) { return x; }
inline uint64_t wide(uint32_t x) { return x; }
inline float narrow(double x) { return float(x); }
inline float constant(float, double value) { return float(value); }
inline double constant(double, double value) { return value; }
inline bool isFalse(bool x) { return !x; }
inline bool both(bool x, bool y) { return x && y; }
inline bool either(bool x, bool y) { return x || y; }
inline float squareRoot(float x) { return std::sqrt(x); }
inline double squareRoot(double x) { return std::sqrt(x); }
inline float fused(float x, float y, float z) { return std::fma(x, y, z); }
/// A step of a polynomial.
inline float step(float x, float y, float z) { return std::fma(x, y, z); }
inline double step(double x, double y, double z) { return x * y + z; }
template <class T>
T choose(bool condition, T yes, T no) {
  return condition ? yes : no;
}

// ---- parts of functions

/// The sum of c[k] x^k.
template <class F, size_t N>
F polynomial(F x, const double (&c)[N]) {
  F sum = constant(x, c[N - 1]);
  for (size_t k = N - 1; k-- > 0;)
    sum = step(sum, x, constant(x, c[k]));
  return sum;
}

/// `x`, but no less than `low` and no more than `high`. NaN stays.
template <class F>
F between(F x, double low, double high) {
  x = choose(x < low, constant(x, low), x);
  return choose(x > high, constant(x, high), x);
}

template <class F>
F infinity(F x) {
  return constant(x, HUGE_VAL);
}
template <class F>
F notANumber(F x) {
  return constant(x, NAN);
}
/// The absolute value of an f32.
template <class F>
F sizeOfFloat(F x) {
  return floatOf(bitsOf(x) & 0x7fffffffu);
}
/// An f32 of a size, with the sign of `sign`.
template <class F>
F withSign(F size, F sign) {
  return floatOf(bitsOf(size) | (bitsOf(sign) & 0x80000000u));
}

/// x = n ln(2) + r with a whole n: what makes e^x of an f32.
template <class F>
struct Power {
  F shifted;  ///< its low bits are those of n
  F whole, r; ///< n; r from -0.35 to 0.35
};

template <class F>
Power<F> powerOf(F x) {
  const double magic = 0x1.8p23; // whole numbers above have no other bits
  F shifted = fused(x, constant(x, 0x1.715476p0), constant(x, magic));
  F n = shifted - magic;
  F r = fused(n, constant(x, -0x1.62ep-1), x);
  return {shifted, n, fused(n, constant(x, -0x1.0bfbe8p-15), r)};
}

/// e^r - 1.
template <class F>
F expMinusOneNear(F r) {
  F p = polynomial(r, {0x1.p-1, 0x1.55548ap-3, 0x1.5554e4p-5, 0x1.123e4cp-7,
                       0x1.6d5168p-10});
  return fused(r * r, p, r);
}

/// 2^r.
template <class F>
F powerNear(F r) {
  return polynomial(r, {1, 0x1.62e43p-1, 0x1.ebfbep-3, 0x1.c6af7p-5,
                        0x1.3b2a48p-7, 0x1.5f0f3ep-10, 0x1.4424e2p-13});
}

/// p 2^n, with n from -252 to 254 in the low bits of `shifted`: in two steps,
/// of which only the second rounds.
template <class F>
F scaled(F p, F shifted) {
  auto sum = bitsOf(shifted) - (0x4b400000u - 254u);
  auto half = sum >> 1;
  return p * floatOf(half << 23) * floatOf((sum - half) << 23);
}

/// e^x - 1 of an f64 from -700 to 700, as s - 1 + s p with a power s of 2.
template <class F>
struct WidePower {
  F s, p;
};

template <class F>
WidePower<F> widePowerOf(F x) {
  const double magic = 0x1.8p52;
  F shifted = x * 0x1.71547652b82fep+0 + magic;
  F n = shifted - magic;
  F r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  F p = polynomial(r, {0x1.fffffffff70a4p-2, 0x1.555555745a84dp-3,
                       0x1.5555557459366p-5, 0x1.1110b06ff9093p-7,
                       0x1.6c164d7bf3227p-10, 0x1.a171ecaddd95fp-13,
                       0x1.a15af605bc2a5p-16});
  F s = floatOf((bitsOf(shifted) - (0x4338000000000000u - 1023u)) << 52);
  return {s, r + r * r * p};
}
template <class F>
F wideExp(F x) {
  auto [s, p] = widePowerOf(x);
  return s + s * p;
}
template <class F>
F wideExpMinusOne(F x) {
  auto [s, p] = widePowerOf(x);
  return s * p + (s - 1.0);
}

/// x = m 2^e, with m from sqrt(1/2) to sqrt(2), of a positive normal f64.
template <class F>
struct WideParts {
  F e, log; ///< log: that of m to base e
};

template <class F>
WideParts<F> widePartsOf(F x) {
  const uint64_t low = 0x3fe6a09e667f3bcdu; // sqrt(1/2)
  auto u = bitsOf(x) + (0x3ff0000000000000u - low);
  F e = floatOf((u >> 52) | 0x4330000000000000u) - (0x1p52 + 1023);
  F m = floatOf((u & 0xfffffffffffffu) + low);
  F s = (m - 1.0) / (m + 1.0), z = s * s;
  F p = polynomial(z, {0x1.555555562433fp-1, 0x1.9999969c33a83p-2,
                       0x1.249416c16f1ep-2, 0x1.c6299f55c160ap-3,
                       0x1.912975ceb2baap-3});
  return {e, s * (2.0 + z * p)};
}
template <class F>
F wideLog(F x) {
  auto [e, log] = widePartsOf(x);
  return e * 0x1.62e42fefa39efp-1 + log;
}
template <class F>
F wideLog2(F x) {
  auto [e, log] = widePartsOf(x);
  return e + log * 0x1.71547652b82fep+0;
}
/// log(1 + x) of an f64 above -1: what 1 + x lost is nearly its share.
template <class F>
F wideLogPlusOne(F x) {
  F u = 1.0 + x;
  return wideLog(u) + (x - (u - 1.0));
}

/// The angle of (x, y) in f64, neither negative, at most 1e300.
template <class F>
F wideAngle(F y, F x) {
  auto isSteep = y > x;
  F least = choose(isSteep, x, y), most = choose(isSteep, y, x);
  auto isWide = least > most * 0x1.a827999fcef32p-2; // tan(pi / 8)
  F above = choose(isWide, least - most, least);
  F below = choose(isWide, least + most, most);
  F s = above / choose(below == 0.0, constant(below, 1), below), z = s * s;
  F p = polynomial(z, {-0x1.55555555084fcp-2, 0x1.9999992840b45p-3,
                       -0x1.24922c61709f4p-3, 0x1.c715551c38e86p-4,
                       -0x1.73df680b8bb1dp-4, 0x1.35f240e41721cp-4,
                       -0x1.e2273bfcd7896p-5, 0x1.f8e0a60b7dc7fp-6});
  F angle = s + s * z * p;
  angle = choose(isWide, angle + 0x1.921fb54442d18p-1, angle);
  return choose(isSteep, 0x1.921fb54442d18p+0 - angle, angle);
}

/// An angle in f64.
template <class F, class Condition>
struct Arcsine {
  F angle;
  Condition isSteep;
};

/// Gives asin(x) of an f32 x, no less than 0, up to 1 / 2, and beyond that,
/// where it is steep, asin(sqrt((1 - x) / 2)). The root is that of f32 and a
/// step of Newton's.
template <class F>
auto wideArcsine(F x) {
  auto isSteep = x > 0.5f;
  F half = (1.0f - x) * 0.5f, near = squareRoot(half);
  auto square = wide(half), root = wide(near);
  F rest = narrow(square - root * root) / (2.0f * near + 0x1p-100f);
  root = root + wide(rest);
  auto y = wide(x);
  auto s = choose(isSteep, root, y), z = choose(isSteep, square, y * y);
  auto p = polynomial(z, {0x1.55555555417e3p-3, 0x1.333333508d883p-4,
                          0x1.6db6cc596ee27p-5, 0x1.f1caf10b0f639p-6,
                          0x1.6e445e8b12b7cp-6, 0x1.1f7ceddccefebp-6,
                          0x1.9bb598927c2cbp-7, 0x1.250f690a35ee2p-6,
                          -0x1.db6ca67e4cf2ep-8, 0x1.01c800b67066dp-5});
  auto angle = s + s * z * p;
  return Arcsine<decltype(angle), decltype(isSteep)>{angle, isSteep};
}

/// |x| = r + k pi / 2 of an f32: r from -0.8 to 0.8 in f64, k in the two last
/// bits.
template <class F, class I>
struct Quarter {
  F r;
  I k;
};

/// Reduces |x| by 2 / pi in three parts. The products with the first two, of 29
/// bits, are exact, and so is what is left of them beside whole numbers. For
/// large |x| the bits of 2 / pi are dropped that only make multiples of 4.
template <class F>
auto quarterOf(F size) {
  auto x = wide(size);
  auto part = [&](double near, double next, double third, double far) {
    auto above = choose(x < 0x1p103, constant(x, third), constant(x, far));
    above = choose(x < 0x1p77, constant(x, next), above);
    return choose(x < 0x1p51, constant(x, near), above);
  };
  auto first = x * part(0x1.45f306dp-1, 0x1.727220ap-27, 0x1.4a7f09cp-54,
                        0x1.abe8fa9p-79);
  auto second = x * part(0x1.9391054p-30, 0x1.29fc275p-56, 0x1.5f47d4dp-82,
                         0x1.4ddc0dbp-108);
  auto last = x * part(0x1.4fe13abe8fa9ap-59, 0x1.f47d4d377036cp-86,
                       0x1.bb81b6c52b324p-113, 0x1.8a5664f10e41p-138);
  const double magic = 0x1.8p52;
  auto n = first + magic;
  auto left = first - (n - magic);
  auto m = (second + left) + magic;
  auto r = ((left + (second - (m - magic))) + last) * 0x1.921fb54442d18p+0;
  auto k = bitsOf(n) + bitsOf(m);
  return Quarter<decltype(r), decltype(k)>{r, k};
}

constexpr double sineTerms[] = {-0x1.555555555220bp-3, 0x1.1111110c86dddp-7,
                                -0x1.a019f939f4d2p-13, 0x1.71d76d5ca9efap-19,
                                -0x1.a961a57a3622ep-26};
constexpr double cosineTerms[] = {-0x1.ffffffffeb313p-2, 0x1.55555546993f8p-5,
                                  -0x1.6c16b3ca843f4p-10, 0x1.a00ef7bb5514fp-16,
                                  -0x1.23d3ad3553123p-22};

/// sin(r + k pi / 2) in f32, of which one polynomial with the sine's or the
/// cosine's coefficients is taken.
template <class F, class I>
auto turnedSine(F r, I k) {
  auto isOdd = (k & 1u) == 1u;
  F z = r * r;
  auto of = [&](double cosine, double sine) {
    return choose(isOdd, constant(r, cosine), constant(r, sine));
  };
  F p = of(cosineTerms[4], sineTerms[4]);
  for (int term = 4; term-- > 0;)
    p = step(p, z, of(cosineTerms[term], sineTerms[term]));
  F first = choose(isOdd, constant(r, 1), r);
  F value = first + first * z * p;
  return narrow(floatOf(bitsOf(value) ^ ((k & 2u) << 62u)));
}

// ---- the functions, by MLIR's names

template <class F>
F exp(F x) {
  F in = between(x, -104, 89);
  Power<F> power = powerOf(in);
  return scaled(1.0f + expMinusOneNear(power.r), power.shifted);
}

template <class F>
F exp2(F x) {
  F in = between(x, -151, 129);
  F shifted = in + 0x1.8p23f;
  return scaled(powerNear(in - (shifted - 0x1.8p23f)), shifted);
}

template <class F>
F expm1(F x) {
  return choose(x == 0.0f, x,
                narrow(wideExpMinusOne(between(wide(x), -104, 104))));
}

template <class F>
F log(F x) {
  auto isTiny = bitsOf(x) < 0x800000u;
  F normal = choose(isTiny, x * 0x1p23f, x);
  auto u = bitsOf(normal) + (0x3f800000u - 0x3f3504f3u);
  F e = floatOf((u >> 23) | 0x4b000000u) -
        choose(isTiny, constant(x, 0x1p23 + 150), constant(x, 0x1p23 + 127));
  F r = floatOf((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  F p = polynomial(r, {0x1.555564p-2, -0x1.00023cp-2, 0x1.99986p-3,
                       -0x1.54679p-3, 0x1.236438p-3, -0x1.0e6826p-3,
                       0x1.025beap-3, -0x1.2d3636p-4});
  F s = r * r;
  F low = fused(p * r, s, e * 0x1.0bfbe8p-15f);
  F sum =
      fused(e, constant(x, 0x1.62ep-1), r + fused(s, constant(x, -0.5), low));
  sum = choose(x < infinity(x), sum, x);
  sum = choose(x < 0.0f, notANumber(x), sum);
  return choose(x == 0.0f, -infinity(x), sum);
}

/// `f` of the f64 of a positive x, and its limits where x is 0 or infinite.
template <class F, class Wide>
F ofPositive(F x, Wide f) {
  F value = choose(x < infinity(x), narrow(f(wide(x))), x);
  value = choose(x < 0.0f, notANumber(x), value);
  return choose(x == 0.0f, -infinity(x), value);
}
template <class F>
F log2(F x) {
  return ofPositive(x, [](auto y) { return wideLog2(y); });
}
template <class F>
F log10(F x) {
  return ofPositive(x,
                    [](auto y) { return wideLog(y) * 0x1.bcb7b1526e50ep-2; });
}
template <class F>
F log1p(F x) {
  F value = choose(x < infinity(x), narrow(wideLogPlusOne(wide(x))), x);
  value = choose(x < -1.0f, notANumber(x), value);
  value = choose(x == -1.0f, -infinity(x), value);
  return choose(x == 0.0f, x, value);
}

template <class F>
F tanh(F x) {
  F size = between(sizeOfFloat(x), 0, 10), square = size * size;
  F p = polynomial(square, {-0x1.55554ep-2, 0x1.110eecp-3, -0x1.b9ad08p-5,
                            0x1.610d68p-6, -0x1.00ebe4p-7, 0x1.e8f6eep-10});
  Power<F> power = powerOf(2.0f * size);
  F s = floatOf((bitsOf(power.shifted) - (0x4b400000u - 127u)) << 23);
  F t = fused(s, expMinusOneNear(power.r), s - 1.0f);
  return withSign(choose(size < 0x1.6p-1f, fused(square * size, p, size),
                         1.0f - 2.0f / (t + 2.0f)),
                  x);
}
template <class F>
F sinh(F x) {
  auto t = wideExpMinusOne(between(wide(sizeOfFloat(x)), 0, 100));
  return withSign(narrow((t + t / (t + 1.0)) * 0.5), x);
}
template <class F>
F cosh(F x) {
  auto e = wideExp(between(wide(sizeOfFloat(x)), 0, 100));
  return narrow((e + 1.0 / e) * 0.5);
}

template <class F>
F asinh(F x) {
  F size = sizeOfFloat(x);
  auto y = wide(size), z = y * y;
  F value = narrow(wideLogPlusOne(y + z / (1.0 + squareRoot(z + 1.0))));
  return withSign(choose(size < infinity(x), value, size), x);
}
template <class F>
F acosh(F x) {
  auto t = wide(x) - 1.0;
  F value = narrow(wideLogPlusOne(t + squareRoot(t * (t + 2.0))));
  value = choose(x < infinity(x), value, x);
  return choose(x < 1.0f, notANumber(x), value);
}
template <class F>
F atanh(F x) {
  F size = sizeOfFloat(x);
  auto y = wide(size);
  F value = narrow(wideLogPlusOne(2.0 * y / (1.0 - y)) * 0.5);
  value = choose(size == 1.0f, infinity(x), value);
  return withSign(choose(size > 1.0f, notANumber(x), value), x);
}

template <class F>
F sin(F x) {
  auto [r, k] = quarterOf(sizeOfFloat(x));
  F value = turnedSine(r, k);
  return floatOf(bitsOf(value) ^ (bitsOf(x) & 0x80000000u));
}
template <class F>
F cos(F x) {
  auto [r, k] = quarterOf(sizeOfFloat(x));
  return turnedSine(r, k + 1u);
}
template <class F>
F tan(F x) {
  auto [r, k] = quarterOf(sizeOfFloat(x));
  auto z = r * r;
  auto sine = r + r * z * polynomial(z, sineTerms);
  auto cosine = 1.0 + z * polynomial(z, cosineTerms);
  auto isOdd = (k & 1u) == 1u;
  F value = narrow(choose(isOdd, -cosine, sine) / choose(isOdd, sine, cosine));
  return floatOf(bitsOf(value) ^ (bitsOf(x) & 0x80000000u));
}

template <class F>
F asin(F x) {
  auto [angle, isSteep] = wideArcsine(sizeOfFloat(x));
  auto steep = 0x1.921fb54442d18p+0 - 2.0 * angle;
  return withSign(narrow(choose(isSteep, steep, angle)), x);
}
template <class F>
F acos(F x) {
  auto [angle, isSteep] = wideArcsine(sizeOfFloat(x));
  auto isLeft = x < 0.0f;
  auto steep = 2.0 * angle;
  steep = choose(isLeft, 0x1.921fb54442d18p+1 - steep, steep);
  auto flat = 0x1.921fb54442d18p+0 - choose(isLeft, -angle, angle);
  return narrow(choose(isSteep, steep, flat));
}
template <class F>
F atan2(F y, F x) {
  auto of = [](F z) { return between(wide(sizeOfFloat(z)), 0, 1e300); };
  auto angle = wideAngle(of(y), of(x));
  auto isLeft = bitsOf(x) > 0x7fffffffu;
  F value = narrow(choose(isLeft, 0x1.921fb54442d18p+1 - angle, angle));
  value = withSign(value, y);
  return choose(both(x == x, y == y), value, x + y);
}
template <class F>
F atan(F x) {
  return choose(x == x, atan2(x, constant(x, 1)), x);
}

template <class F>
F erf(F x) {
  F size = sizeOfFloat(x), square = x * x;
  F near = polynomial(square, {0x1.06eba8p-3, -0x1.81274p-2, 0x1.ce2d5p-4,
                               -0x1.b7fe8ep-6, 0x1.542deep-8, -0x1.a5099ep-11,
                               0x1.4c2f4cp-14});
  // erfc(|x|) = 2^far; whole powers of 2 are added to the exponent.
  F far = polynomial(choose(size < 4.0f, size, constant(x, 4)) - 1.0f,
                     {-0x1.558eaep+1, -0x1.e75318p+1, -0x1.376414p+0,
                      -0x1.ea4452p-5, 0x1.d26142p-7, -0x1.563d2ep-9,
                      0x1.130428p-12});
  F shifted = far + 0x1.8p23f;
  F power = powerNear(far - (shifted - 0x1.8p23f));
  F rest = floatOf(bitsOf(power) + (bitsOf(shifted) << 23));
  F beyond = withSign(1.0f - rest, x);
  return choose(size > 1.0f, beyond, fused(near, x, x));
}
template <class F>
F erfc(F x) {
  auto y = between(wide(sizeOfFloat(x)), 0, 11), t = 2.0 / (2.0 + y);
  auto p = polynomial(
      t - 0.5,
      {-0x1.57f564e958d2ap-1, 0x1.5864b14eb8daap+0, 0x1.83d61c63e7cfp-3,
       -0x1.802b2e6d66f04p-2, -0x1.43822f76eaeaap-3, 0x1.212a3b9b11bf6p-2,
       0x1.cd23e02224854p-4, -0x1.332a5cd1a9fa5p-2, -0x1.36437b3bf47e1p-5,
       0x1.5cd20d63b2bb2p-2, -0x1.686da63550f18p-4, -0x1.4e065c2042ef8p-2,
       0x1.c0a9c9c928b6p-3, 0x1.5876776ae478dp-3, -0x1.631589f465f2cp-3});
  auto value = t * wideExp(p - y * y);
  return narrow(choose(x < 0.0f, 2.0 - value, value));
}

template <class F>
F cbrt(F x) {
  F size = sizeOfFloat(x);
  auto third = wideLog2(wide(size)) * (1.0 / 3.0);
  F value = narrow(wideExp(third * 0x1.62e42fefa39efp-1));
  auto isUsual = both(size > 0.0f, size < infinity(x));
  return choose(isUsual, withSign(value, x), x);
}

/// Whether a positive f32 is whole.
template <class F>
auto isWhole(F size) {
  return either(size >= 0x1p23f, (size + 0x1p23f) - 0x1p23f == size);
}

template <class F>
F powf(F x, F y) {
  F base = sizeOfFloat(x), size = sizeOfFloat(y);
  auto log = wideLog2(wide(base));
  log = choose(base == 0.0f, constant(log, -1e300), log);
  log = choose(base == infinity(x), constant(log, 1e300), log);
  auto power = between(log * wide(y), -400, 400) * 0x1.62e42fefa39efp-1;
  F value = narrow(wideExp(power));
  value = choose(base == 1.0f, constant(x, 1), value);
  auto whole = isWhole(size);
  auto isOdd = both(whole, isFalse(isWhole(size * 0.5f)));
  value = choose(isOdd, withSign(value, x), value);
  auto isNone = both(both(x < 0.0f, base < infinity(x)), isFalse(whole));
  value = choose(isNone, notANumber(x), value);
  value = choose(both(x == x, y == y), value, x + y);
  return choose(either(x == 1.0f, y == 0.0f), constant(x, 1), value);
}

} // namespace mgpu::kernels::functions

#endif // MGPU_KERNELS_HOST_FUNCTIONS_H
