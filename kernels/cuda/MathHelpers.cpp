// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic and functions that CUDA C++ has otherwise, or in two forms.
#include "kernels/cuda/CudaHelpers.h"

namespace mgpu::kernels::cuda {

// Small floats, and numbers rounded to odd.

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

// An inline function, in two forms: accurate, or fast with -DMGPU_FAST_MATH=1.
#define MGPU_TWO_FORMS(name, accurate, fast)                                   \
  {                                                                            \
    name, "",                                                                  \
        "__device__ __forceinline__ float " name "(float x) {\n"               \
        "#if MGPU_FAST_MATH\n"                                                 \
        "  return " fast "(x);\n"                                              \
        "#else\n"                                                              \
        "  return " accurate "(x);\n"                                          \
        "#endif\n"                                                             \
        "}\n"                                                                  \
  }

static const Helper mathTable[] = {
    {"wrap", "",
     R"(// Arithmetic modulo 2^n: signed overflow would be undefined.
__device__ __forceinline__ int wrapAdd(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
__device__ __forceinline__ int wrapSub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
__device__ __forceinline__ int wrapMul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
__device__ __forceinline__ long long wrapAdd(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
__device__ __forceinline__ long long wrapSub(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }
__device__ __forceinline__ long long wrapMul(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }
)"},
    {"floorDiv", "",
     R"(template <class T> __device__ __forceinline__ T floorDiv(T a, T b) {
  const T q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
)"},
    {"ceilDiv", "",
     R"(template <class T> __device__ __forceinline__ T ceilDiv(T a, T b) {
  const T q = a / b;
  return a % b != 0 && (a < 0) == (b < 0) ? q + 1 : q;
}
)"},
    {"integerPower", "wrap",
     R"(template <class T> __device__ __forceinline__ T integerPower(T base, T exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  T result = 1;
  for (; exponent; exponent >>= 1, base = wrapMul(base, base))
    if (exponent & 1)
      result = wrapMul(result, base);
  return result;
}
)"},
    {"floatPower", "",
     R"(template <class T> __device__ __forceinline__ T floatPower(T base, long long exponent) {
  T result = 1;
  for (unsigned long long n = exponent < 0 ? 0 - (unsigned long long)exponent : exponent; n; n >>= 1, base = base * base)
    if (n & 1)
      result = result * base;
  return exponent < 0 ? 1 / result : result;
}
)"},
    {"maximum", "", R"(// IEEE 754-2019: NaN if either is, and +0 above -0.
__device__ __forceinline__ double maximum(double a, double b) {
  return a != a ? a : b != b ? b : a > b ? a : a < b ? b : 1 / a > 1 / b ? a : b;
}
// f16 and bf16 use it too: no conversion changes them.
__device__ __forceinline__ float maximum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a ? a : b != b ? b : a > b ? a : a < b ? b : 1 / a > 1 / b ? a : b;
#endif
}
)"},
    {"minimum", "", R"(// IEEE 754-2019: NaN if either is, and -0 below +0.
__device__ __forceinline__ double minimum(double a, double b) {
  return a != a ? a : b != b ? b : a < b ? a : a > b ? b : 1 / a < 1 / b ? a : b;
}
// f16 and bf16 use it too: no conversion changes them.
__device__ __forceinline__ float minimum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a ? a : b != b ? b : a < b ? a : a > b ? b : 1 / a < 1 / b ? a : b;
#endif
}
)"},
    MGPU_TWO_FORMS("mathExp", "expf", "__expf"),
    MGPU_TWO_FORMS("mathExp2", "exp2f", "exp2f"),
    MGPU_TWO_FORMS("mathLog", "logf", "__logf"),
    MGPU_TWO_FORMS("mathLog2", "log2f", "__log2f"),
    MGPU_TWO_FORMS("mathLog10", "log10f", "__log10f"),
    MGPU_TWO_FORMS("mathSin", "sinf", "__sinf"),
    MGPU_TWO_FORMS("mathCos", "cosf", "__cosf"),
    MGPU_TWO_FORMS("mathTan", "tanf", "__tanf"),
    {"mathPow", "",
     R"(__device__ __forceinline__ float mathPow(float x, float y) {
#if MGPU_FAST_MATH
  return __powf(x, y);
#else
  return powf(x, y);
#endif
}
)"},
    {"mathDivide", "",
     R"(__device__ __forceinline__ float mathDivide(float x, float y) {
#if MGPU_FAST_MATH
  return __fdividef(x, y);
#else
  return x / y;
#endif
}
)"},
    {"divideByZero", "",
     R"(__device__ __forceinline__ double divideByZero(double x, double zero) { return x / zero; }
)"},
};

llvm::ArrayRef<Helper> mathHelpers() { return mathTable; }

} // namespace mgpu::kernels::cuda
