// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/CudaHelpers.h"

#include "kernels/cuda/MatrixHelpers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

namespace mgpu::kernels::cuda {

namespace {

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

// Each before those that use it.
const Helper table[] = {
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
    {"vec", "", R"(template <class T, int N> struct vec {
  T lane[N];
  __device__ __forceinline__ T &operator[](int k) { return lane[k]; }
  __device__ __forceinline__ const T &operator[](int k) const { return lane[k]; }
};
)"},
    {"loadAligned", "vec",
     R"(// One access of Bytes bytes, which the address must be a multiple of.
template <int Bytes, class T, int N> __device__ __forceinline__ vec<T, N> loadAligned(const T *from) {
  struct __align__(Bytes) wide { vec<T, N> value; };
  return ((const wide *)from)->value;
}
template <int Bytes, class T, int N> __device__ __forceinline__ void storeAligned(T *to, const vec<T, N> &value) {
  struct __align__(Bytes) wide { vec<T, N> value; };
  ((wide *)to)->value = value;
}
)"},
    {"partOf", "",
     R"(// The ids of the thread that follows after `part`, in the same block.
__device__ __forceinline__ MgpuThread partOf(MgpuThread at, int part) {
  at.threadX += part;
  return at;
}
)"},
    {"pieces", "",
     R"(// Elements of a piece in which N neighbours are accessed. Their place is a multiple
// of Divisor or of the power of two in N; that of their buffer, of MGPU_ALIGN bytes.
template <int Divisor, int N, int Bytes> struct pieces {
  static constexpr int ofPlace = (N & -N) < Divisor ? N & -N : Divisor;
  static constexpr int ofBuffer = MGPU_ALIGN > Bytes ? MGPU_ALIGN / Bytes : 1;
  static constexpr int size = ofPlace < ofBuffer ? ofPlace : ofBuffer;
};
)"},
    {"loadParts", "pieces",
     R"(template <int Divisor, class T, int N> __device__ __forceinline__ void loadParts(T (&to)[N], const T *from) {
  constexpr int M = pieces<Divisor, N, sizeof(T)>::size;
  struct __align__(sizeof(T) * M) wide { T parts[M]; };
#pragma unroll
  for (int first = 0; first < N; first += M) {
    const wide all = *(const wide *)(from + first);
#pragma unroll
    for (int k = 0; k < M; ++k)
      to[first + k] = all.parts[k];
  }
}
)"},
    {"storeParts", "pieces",
     R"(template <int Divisor, class T, int N> __device__ __forceinline__ void storeParts(T *to, const T (&from)[N]) {
  constexpr int M = pieces<Divisor, N, sizeof(T)>::size;
  struct __align__(sizeof(T) * M) wide { T parts[M]; };
#pragma unroll
  for (int first = 0; first < N; first += M) {
    wide all;
#pragma unroll
    for (int k = 0; k < M; ++k)
      all.parts[k] = from[first + k];
    *(wide *)(to + first) = all;
  }
}
)"},
    {"streamParts", "loadParts",
     R"(// loadParts() of what nobody reads again: the first cache keeps other things.
template <int Divisor, class T, int N> __device__ __forceinline__ void streamParts(T (&to)[N], const T *from) {
#ifdef __CUDA_ARCH__
  struct __align__(sizeof(T) * N) wide { T parts[N]; };
  constexpr bool isOne = pieces<Divisor, N, sizeof(T)>::size == N;
  if (isOne && sizeof(wide) == 16) {
    unsigned words[4];
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "l"(from));
    memcpy(to, words, sizeof words);
    return;
  }
  if (isOne && sizeof(wide) == 8) {
    unsigned words[2];
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "l"(from));
    memcpy(to, words, sizeof words);
    return;
  }
#endif
  loadParts<Divisor>(to, from);
}
)"},
    {"stageTile", "",
     R"(// The block's threads copy a tile of width x height x depth elements, of which
// those that a buffer of `size` elements has not are left out.
template <int Threads, class T> __device__ __forceinline__ void stageTile(T *tile, const T *from, long long first, long long size, int width, int height, int depth, long long strideY, long long strideZ, int thread) {
  for (int k = thread; k < width * height * depth; k += Threads) {
    const long long at = first + k % width + k / width % height * strideY + k / (width * height) * strideZ;
    if (at >= 0 && at < size)
      tile[k] = from[at];
  }
}
)"},
    {"stageColumns", "stageTile",
     R"(// The same of a tile whose rows are width + 1 elements apart: a column lies in many banks.
template <int Threads, class T> __device__ __forceinline__ void stageColumns(T *tile, const T *from, long long first, long long size, int width, int height, int depth, long long strideY, long long strideZ, int thread) {
  const int count = width * height * depth;
#pragma unroll 4
  for (int begin = 0; begin < count; begin += Threads) {
    const int k = begin + thread;
    const long long at = first + k % width + k / width % height * strideY + k / (width * height) * strideZ;
    if (k < count && at >= 0 && at < size)
      tile[k / width * (width + 1) + k % width] = from[at];
  }
}
)"},
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
    {"lanes", "",
     R"(// The lanes of this subgroup that exist, in a block of `threads`.
__device__ __forceinline__ unsigned laneMask(int thread, int threads) {
  const int rest = threads - thread / 32 * 32;
  return rest >= 32 ? 0xffffffffu : (1u << rest) - 1;
}
)"},
    {"exchange", "",
     R"(// The value of lane `from`; values narrower than 32 bits travel as such.
__device__ __forceinline__ int exchange(unsigned mask, int value, int from) { return __shfl_sync(mask, value, from); }
__device__ __forceinline__ long long exchange(unsigned mask, long long value, int from) { return __shfl_sync(mask, value, from); }
__device__ __forceinline__ float exchange(unsigned mask, float value, int from) { return __shfl_sync(mask, value, from); }
__device__ __forceinline__ double exchange(unsigned mask, double value, int from) { return __shfl_sync(mask, value, from); }
__device__ __forceinline__ short exchange(unsigned mask, short value, int from) { return (short)__shfl_sync(mask, (int)value, from); }
__device__ __forceinline__ signed char exchange(unsigned mask, signed char value, int from) { return (signed char)__shfl_sync(mask, (int)value, from); }
__device__ __forceinline__ bool exchange(unsigned mask, bool value, int from) { return __shfl_sync(mask, (int)value, from); }
template <class T> __device__ __forceinline__ T exchange(unsigned mask, T value, int from) {
  T result;
  result.bits = __shfl_sync(mask, (int)value.bits, from);
  return result;
}
)"},
    {"blockReduce", "lanes exchange",
     R"(// The values of all threads combined, for every thread: neighbours, then pairs, up
// to a subgroup; then the subgroups in their order.
template <int Threads, class T, class Combine> __device__ __forceinline__ T blockReduce(T value, int thread, Combine combine) {
  static __shared__ T partial[32];
  const unsigned mask = laneMask(thread, Threads);
  const int lane = thread % 32;
  for (int step = 1; step < 32; step *= 2) {
    const bool exists = lane + step < 32 && thread + step < Threads;
    const T other = exchange(mask, value, exists ? lane + step : lane);
    if (exists)
      value = combine(value, other);
  }
  if (lane == 0)
    partial[thread / 32] = value;
  __syncthreads();
  value = partial[0];
  for (int k = 1; k < (Threads + 31) / 32; ++k)
    value = combine(value, partial[k]);
  __syncthreads();
  return value;
}
)"},
    {"blockReduceParts", "lanes exchange",
     R"(// The same where one thread is V of the source's, from number `thread` on.
template <int Threads, class T, int V, class Combine> __device__ __forceinline__ T blockReduceParts(T (&parts)[V], int thread, Combine combine) {
  static_assert((V & (V - 1)) == 0 && V <= 32 && Threads % V == 0, "V neighbours are of one subgroup");
  static __shared__ T partial[32];
#pragma unroll
  for (int step = 1; step < V; step *= 2)
#pragma unroll
    for (int k = 0; k + step < V; k += 2 * step)
      parts[k] = combine(parts[k], parts[k + step]);
  T value = parts[0];
  const unsigned mask = laneMask(thread / V, Threads / V);
  const int lane = thread / V % 32;
  for (int step = V; step < 32; step *= 2) {
    const bool exists = thread % 32 + step < 32 && thread + step < Threads;
    const T other = exchange(mask, value, exists ? lane + step / V : lane);
    if (exists)
      value = combine(value, other);
  }
  if (Threads / V == 32) { // one warp: its lanes have the subgroups' numbers
    T all = exchange(mask, value, 0);
    for (int k = 1; k < Threads / 32; ++k)
      all = combine(all, exchange(mask, value, k * (32 / V)));
    __syncwarp(mask);
    return all;
  }
  if (thread % 32 == 0)
    partial[thread / 32] = value;
  __syncthreads();
  value = partial[0];
  for (int k = 1; k < (Threads + 31) / 32; ++k)
    value = combine(value, partial[k]);
  __syncthreads();
  return value;
}
)"},
    {"subgroupReduce", "lanes exchange",
     R"(// The values of Size lanes, Stride apart, combined for each of them: neighbours, then pairs.
template <int Threads, int Size, int Stride, class T, class Combine> __device__ __forceinline__ T subgroupReduce(T value, int thread, Combine combine) {
  const unsigned mask = laneMask(thread, Threads);
  const int lane = thread % 32;
  for (int apart = Stride; apart < Size * Stride; apart *= 2) {
    const bool isUpper = lane & apart;
    const int from = lane ^ apart;
    const bool exists = Threads % 32 == 0 || thread - lane + from < Threads;
    const T other = exchange(mask, value, exists ? from : lane);
    if (exists)
      value = isUpper ? combine(other, value) : combine(value, other);
  }
  // Where lanes are missing the first one alone has all.
  return Threads % 32 == 0 ? value : exchange(mask, value, lane / (Size * Stride) * (Size * Stride) + lane % Stride);
}
)"},
    {"subgroupReduceParts", "exchange",
     R"(// The same of a whole subgroup, where one thread is V of the source's: those of a
// subgroup are 32 / V lanes, and others of the warp need not come.
template <class T, int V, class Combine> __device__ __forceinline__ T subgroupReduceParts(T (&parts)[V], int thread, Combine combine) {
  static_assert((V & (V - 1)) == 0 && V > 1 && V <= 32, "V neighbours are of one subgroup");
#pragma unroll
  for (int step = 1; step < V; step *= 2)
#pragma unroll
    for (int k = 0; k + step < V; k += 2 * step)
      parts[k] = combine(parts[k], parts[k + step]);
  T value = parts[0];
  const int lanes = 32 / V, lane = thread / V % 32;
  const unsigned mask = ((1u << lanes) - 1u) << lane / lanes * lanes;
  for (int apart = 1; apart < lanes; apart *= 2) {
    const T other = exchange(mask, value, lane ^ apart);
    value = lane & apart ? combine(other, value) : combine(value, other);
  }
  return value;
}
)"},
    {"atomicUpdate", "",
     R"(// *at = combine(*at) as one step; returns what was there.
__device__ __forceinline__ unsigned short exchangeIf(unsigned short *at, unsigned short old, unsigned short value) { return atomicCAS(at, old, value); }
__device__ __forceinline__ unsigned exchangeIf(unsigned *at, unsigned old, unsigned value) { return atomicCAS(at, old, value); }
__device__ __forceinline__ unsigned long long exchangeIf(unsigned long long *at, unsigned long long old, unsigned long long value) { return atomicCAS(at, old, value); }
__device__ __forceinline__ unsigned char exchangeIf(unsigned char *at, unsigned char old, unsigned char value) {
  // Within its aligned word, again while the others of it change.
  const int shift = (int)((unsigned long long)at & 3) * 8;
  unsigned *const word = (unsigned *)((unsigned long long)at & ~3ull);
  unsigned now = *(volatile unsigned *)word, seen;
  do {
    seen = now;
    if ((unsigned char)(seen >> shift) != old)
      return (unsigned char)(seen >> shift);
    now = atomicCAS(word, seen, (seen & ~(255u << shift)) | (unsigned)value << shift);
  } while (now != seen);
  return old;
}
template <int Bytes> struct wordOf;
template <> struct wordOf<1> { using type = unsigned char; };
template <> struct wordOf<2> { using type = unsigned short; };
template <> struct wordOf<4> { using type = unsigned; };
template <> struct wordOf<8> { using type = unsigned long long; };
template <class T, class Combine> __device__ __forceinline__ T atomicUpdate(T *at, Combine combine) {
  using word = typename wordOf<sizeof(T)>::type;
  word now = *(volatile word *)at, seen;
  do {
    seen = now;
    T value, next;
    memcpy(&value, &seen, sizeof(T));
    next = combine(value);
    word changed;
    memcpy(&changed, &next, sizeof(T));
    now = exchangeIf((word *)at, seen, changed);
  } while (now != seen);
  T old;
  memcpy(&old, &seen, sizeof(T));
  return old;
}
)"},
};

constexpr size_t numHelpers = std::size(table) + numMatrixHelpers;

const Helper &helperAt(size_t k) {
  return k < std::size(table) ? table[k] : matrixHelpers[k - std::size(table)];
}

} // namespace

/// Adds what the text declares at its outermost level.
static void findDeclared(llvm::StringRef text, llvm::StringSet<> &names) {
  auto lastWord = [](llvm::StringRef before) {
    return before.rtrim().take_back(before.rtrim().size() -
                                    (before.rtrim().find_last_of(" *&") + 1));
  };
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    if (line.empty() || (!llvm::isAlpha(line[0]) && line[0] != '_'))
      continue; // a comment, a directive, or what is inside
    const size_t function = line.find("__forceinline__");
    const size_t type = line.find("struct ");
    if (function != line.npos)
      names.insert(lastWord(line.substr(0, line.find('(', function))));
    else if (type != line.npos)
      names.insert(lastWord(line.substr(0, line.find('{'))));
  }
}

const llvm::StringSet<> &helperNames() {
  static const llvm::StringSet<> names = [] {
    llvm::StringSet<> found;
    for (size_t k = 0; k < numHelpers; ++k)
      findDeclared(helperAt(k).text, found);
    return found;
  }();
  return names;
}

void Helpers::use(llvm::StringRef name) {
  for (size_t k = 0; k < numHelpers; ++k) {
    if (name != helperAt(k).name)
      continue;
    if (used.insert(k).second)
      for (llvm::StringRef other : llvm::split(helperAt(k).uses, ' '))
        if (!other.empty())
          use(other);
    return;
  }
  llvm_unreachable("no such helper");
}

/// Whether only the form for several threads uses it. What is not compiled
/// costs nothing.
static bool isForParts(llvm::StringRef name) {
  return name == "partOf" || name == "pieces" || name == "loadParts" ||
         name == "streamParts" || name == "storeParts" ||
         name == "blockReduceParts" || name == "subgroupReduceParts";
}

std::string Helpers::text() const {
  std::string text;
  bool inParts = false;
  auto enter = [&](bool parts) {
    if (parts != inParts)
      text += parts ? "#if MGPU_VECTOR > 1\n" : "#endif\n";
    inParts = parts;
  };
  for (size_t k : used) {
    text += text.empty() ? "" : "\n";
    enter(isForParts(helperAt(k).name));
    text += helperAt(k).text;
  }
  enter(false);
  return text;
}

} // namespace mgpu::kernels::cuda
