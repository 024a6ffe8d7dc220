// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_FUNCTIONS64_H
#define MGPU_KERNELS_HOST_FUNCTIONS64_H

// The functions of f64 that the host target computes itself, as those of f32
// (Functions.h): without branches, with products and sums that round apart.
// Their errors stay below 1.5 units in the last place, so that a result is at
// most one unit from the exact one rounded. log is the form of FDLIBM's.

// The tests' kernels are compiled without paths for headers.
#include "Functions.h"

namespace mgpu::kernels::functions {

template <class F>
F sizeOf64(F x) {
  return floatOf(bitsOf(x) & 0x7fffffffffffffffu);
}
template <class F>
F withSign64(F size, F sign) {
  return floatOf(bitsOf(size) | (bitsOf(sign) & 0x8000000000000000u));
}

/// e^x. A power of 2 is multiplied by in two steps, of which only the second
/// rounds.
template <class F>
F exp64(F x) {
  F in = between(x, -746, 710);
  const double magic = 0x1.8p52; // whole numbers above have no other bits
  F shifted = in * 0x1.71547652b82fep+0 + magic;
  F n = shifted - magic;
  F r = (in - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  F p = polynomial(r, {0x1.p-1, 0x1.555555555555cp-3, 0x1.5555555555558p-5,
                       0x1.111111110e9dep-7, 0x1.6c16c16c15p-10,
                       0x1.a01a01b455d91p-13, 0x1.a01a01ad7d6bp-16,
                       0x1.71ddee3ecd7a3p-19, 0x1.27e4cc1405417p-22,
                       0x1.af6ee586ebd03p-26, 0x1.1f8bd99d1b7c7p-29});
  F power = 1.0 + (r + r * r * p);
  auto sum = bitsOf(shifted) - (0x4338000000000000u - 2046u);
  auto half = sum >> 1u;
  return power * floatOf(half << 52u) * floatOf((sum - half) << 52u);
}

template <class F>
F log64(F x) {
  auto isTiny = bitsOf(x) < 0x10000000000000u;
  const uint64_t low = 0x3fe6a09e667f3bcdu; // sqrt(1/2)
  auto u = bitsOf(choose(isTiny, x * 0x1p54, x)) + (0x3ff0000000000000u - low);
  F e = floatOf((u >> 52u) | 0x4330000000000000u) -
        choose(isTiny, constant(x, 0x1p52 + 1077), constant(x, 0x1p52 + 1023));
  F f = floatOf((u & 0xfffffffffffffu) + low) - 1.0;
  F s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  F r = z * polynomial(z, {0x1.5555555555595p-1, 0x1.999999997f26cp-2,
                           0x1.249249427c47dp-2, 0x1.c71c51a26870dp-3,
                           0x1.746652b1500b2p-3, 0x1.399fd376aebe3p-3,
                           0x1.2f17efa94bb3cp-3});
  F rest = s * (half + r) + e * 0x1.a39ef35793c76p-33;
  F sum = e * 0x1.62e42feep-1 - ((half - rest) - f);
  sum = choose(x < infinity(x), sum, x);
  sum = choose(x < 0.0, notANumber(x), sum);
  return choose(x == 0.0, -infinity(x), sum);
}

template <class F>
F tanh64(F x) {
  F size = between(sizeOf64(x), 0, 22), square = size * size;
  F p = polynomial(square, {-0x1.55555555554fep-2, 0x1.111111110ac32p-3,
                            -0x1.ba1ba1b5030bcp-5, 0x1.664f477aa6417p-6,
                            -0x1.226e162c65bf7p-7, 0x1.d6cf288f4aafep-9,
                            -0x1.7d68ab33f2666p-10, 0x1.3366530fe5f55p-11,
                            -0x1.df57ba17b2b3dp-13, 0x1.43968b39e6283p-14,
                            -0x1.0db207f0fa3fap-16});
  return withSign64(choose(size < 0.625, size + size * (square * p),
                           1.0 - 2.0 / (exp64(2.0 * size) + 1.0)),
                    x);
}

template <class F>
F erf64(F x) {
  F size = sizeOf64(x), square = x * x;
  F near = polynomial(square, {0x1.06eba8214db69p-3, -0x1.812746b037a02p-2,
                               0x1.ce2f21a043b39p-4, -0x1.b82ce312c904p-6,
                               0x1.565bcd17e78b1p-8, -0x1.c02db5bf44215p-11,
                               0x1.f9a35d6154cf9p-14, -0x1.f4d6e39d4c49fp-17,
                               0x1.ba29d078221cbp-20, -0x1.622465af90574p-23,
                               0x1.11289c19070a9p-26, -0x1.fbaaf1883688p-30,
                               0x1.46d476713e659p-32, -0x1.371953252d2fdp-35});
  // erfc(|x|) = e^far
  F far = polynomial(
      between(size, 1, 6) - 1.0,
      {-0x1.d97fbf27aa2a1p+0,  -0x1.51c9b0006c241p+1,  -0x1.afabc11a28c67p-1,
       -0x1.5477f09ce39d9p-5,  0x1.48c9d416a69f5p-7,   -0x1.033f6acc4ac2ap-9,
       0x1.f1b51c67dc8e3p-13,  0x1.b8b3a7f6aac1bp-16,  -0x1.c73e25477dcc7p-16,
       0x1.40ee598ceddffp-17,  -0x1.0c570af539ce6p-19, 0x1.580b39123e66fp-24,
       0x1.3cf2843dffa4dp-23,  -0x1.639bc93408abbp-24, 0x1.fa75363802d86p-26,
       -0x1.182c5ec3822fbp-27, 0x1.f5d1f9b244385p-30,  -0x1.68a436143a239p-32,
       0x1.8ff919bc32905p-35,  -0x1.3f00540d136f6p-38, 0x1.42d3cacea886cp-42,
       -0x1.34f1ba249aedbp-47});
  return choose(size > 1.0, withSign64(1.0 - exp64(far), x), x + near * x);
}

} // namespace mgpu::kernels::functions

#endif // MGPU_KERNELS_HOST_FUNCTIONS64_H
