// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic and functions that CUDA C++ has otherwise, or in two forms.
#include "kernels/cuda/HelperTables.h"

namespace mgpu::kernels::cuda {

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
