// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small floats, and numbers rounded to odd.
#include "kernels/cuda/HelperTables.h"

namespace mgpu::kernels::cuda {

static const Helper numberTable[] = {
    {"f16", "",
     R"(// IEEE half precision: every operation is computed in float and rounded.
#ifndef MGPU_F16
struct f16 {
  unsigned short bits;
  f16() = default;
  __device__ __forceinline__ explicit f16(float x) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  }
  __device__ __forceinline__ explicit f16(double x) {
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x));
  }
  __device__ __forceinline__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
#endif
)"},
    {"bf16", "",
     R"(// The upper half of a float: every operation is computed in float and rounded.
struct bf16 {
  unsigned short bits;
  bf16() = default;
  __device__ __forceinline__ explicit bf16(float x) {
#if __CUDA_ARCH__ >= 800
    unsigned pair; // F2FP; a conversion of one number is an F2F
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
    bits = (unsigned short)pair;
#else
    unsigned b = __float_as_int(x);
    bits = x != x ? b >> 16 | 64 : (b + 0x7fff + (b >> 16 & 1)) >> 16;
#endif
  }
  __device__ __forceinline__ operator float() const {
    return __int_as_float((unsigned)bits << 16);
  }
};
)"},
    {"toOdd", "",
     R"(// What a float between two neighbours of x keeps of it: the last bit is set.
__device__ __forceinline__ float toOdd(double x) {
  const float nearest = (float)x;
  if (nearest == x || x != x)
    return nearest;
  const bool away = fabs((double)nearest) > fabs(x);
  return __int_as_float((__float_as_int(nearest) - away) | 1);
}
)"},
    {"fmaToOdd", "",
     R"(// The exact a * b + c, or where no float is that, the one of its two neighbours
// whose last bit is set: rounding it to fewer bits is as rounding once.
__device__ __forceinline__ float fmaToOdd(float a, float b, float c) {
  const float inner = __fmaf_rz(a, b, c);
  const bool exact = inner != inner || __fmaf_rd(a, b, c) == __fmaf_ru(a, b, c);
  return exact ? inner : __int_as_float(__float_as_int(inner) | 1);
}
)"},
    {"f8", "",
     R"(// An 8-bit float as a float: its exponent moves to the float's, a subnormal is
// scaled.
__device__ __forceinline__ float fromF8(unsigned bits, int mantissa, int bias) {
  const unsigned magnitude = bits & 127;
  const float scale = __int_as_float((127 - bias - mantissa + 1) << 23);
  const float value = magnitude >> mantissa
      ? __int_as_float((magnitude << (23 - mantissa)) + ((127 - bias) << 23))
      : (float)magnitude * scale;
  return bits & 128 ? -value : value;
}
// To nearest, ties to even, beyond `most` to `over`.
__device__ __forceinline__ unsigned char toF8(float x, int mantissa, int bias, unsigned most, unsigned over, unsigned nan) {
  const unsigned b = __float_as_int(x), sign = b >> 24 & 128, magnitude = b & 0x7fffffff;
  if (x != x)
    return sign | nan;
  unsigned result;
  if (magnitude < (unsigned)(128 - bias) << 23) { // subnormal: round at a fixed place
    const float step = __int_as_float((127 + 23 - bias - mantissa + 1) << 23);
    result = __float_as_int(__int_as_float(magnitude) + step) - __float_as_int(step);
  } else {
    const int drop = 23 - mantissa;
    const unsigned moved = magnitude - ((unsigned)(127 - bias) << 23);
    result = (moved + (1u << (drop - 1)) - 1 + (moved >> drop & 1)) >> drop;
  }
  return sign | (result > most ? over : result);
}
)"},
    {"f8e4m3", "f8",
     R"(struct f8e4m3 { // f8E4M3FN: no infinities; what is too large is NaN
  unsigned char bits;
  f8e4m3() = default;
  __device__ __forceinline__ explicit f8e4m3(float x) : bits(toF8(x, 3, 7, 126, 127, 127)) {}
  __device__ __forceinline__ operator float() const {
    return (bits & 127) == 127 ? __int_as_float(0x7fffffff) : fromF8(bits, 3, 7);
  }
};
)"},
    {"f8e5m2", "f8",
     R"(struct f8e5m2 { // f8E5M2: as IEEE's half, with two bits of mantissa
  unsigned char bits;
  f8e5m2() = default;
  __device__ __forceinline__ explicit f8e5m2(float x) : bits(toF8(x, 2, 15, 123, 124, 126)) {}
  __device__ __forceinline__ operator float() const {
    const unsigned magnitude = bits & 127;
    if (magnitude >= 124)
      return __int_as_float((bits & 128u) << 24 | (magnitude == 124 ? 0x7f800000 : 0x7fffffff));
    return fromF8(bits, 2, 15);
  }
};
)"},
};

llvm::ArrayRef<Helper> numberHelpers() { return numberTable; }

} // namespace mgpu::kernels::cuda
