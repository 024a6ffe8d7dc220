// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA's built-ins on a processor, for tests alone: emitted kernels include
// this first and are compiled as C++. The threads of a block are contexts that
// take turns; a barrier or shuffle waits for the others.
#include "../../../kernels/host/Functions64.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __shared__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

// As PTX's max and min: a number where one is NaN, and +0 above -0, which C
// leaves open.
template <class T>
inline T shimMax(T a, T b) {
  if (a != a || b != b)
    return a != a ? b : a;
  return a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}
template <class T>
inline T shimMin(T a, T b) {
  if (a != a || b != b)
    return a != a ? b : a;
  return a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}
#define fmaxf shimMax<float>
#define fmax shimMax<double>
#define fminf shimMin<float>
#define fmin shimMin<double>

struct ShimIndex {
  unsigned x, y, z;
};
static ShimIndex threadIdx, blockIdx, blockDim, gridDim;

#define MGPU_F16
struct f16 {
  unsigned short bits;
  f16() = default;
  explicit f16(float x) { set(_Float16(x)); }
  explicit f16(double x) { set(_Float16(x)); }
  operator float() const {
    _Float16 h;
    memcpy(&h, &bits, 2);
    return float(h);
  }

private:
  void set(_Float16 h) { memcpy(&bits, &h, 2); }
};

template <class To, class From>
static To shimBits(From from) {
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __int_as_float(int x) { return shimBits<float>(x); }
static inline int __float_as_int(float x) { return shimBits<int>(x); }
static inline double __longlong_as_double(long long x) {
  return shimBits<double>(x);
}
static inline long long __double_as_longlong(double x) {
  return shimBits<long long>(x);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
static inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline long long __mul64hi(long long x, long long y) {
  return (long long)(__int128(x) * y >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long x,
                                            unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
template <int Mode>
static float shimFma(float a, float b, float c) {
  volatile float x = a, y = b, z = c; // or the compiler rounds to nearest
  fesetround(Mode);
  volatile float result = fmaf(x, y, z);
  fesetround(FE_TONEAREST);
  return result;
}
#define __fmaf_rz shimFma<FE_TOWARDZERO>
#define __fmaf_rd shimFma<FE_DOWNWARD>
#define __fmaf_ru shimFma<FE_UPWARD>
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / std::sqrt(x); }
// The host's, so that both targets have equal bits.
#define acosf mgpu::kernels::functions::acos<float>
#define acoshf mgpu::kernels::functions::acosh<float>
#define asinf mgpu::kernels::functions::asin<float>
#define asinhf mgpu::kernels::functions::asinh<float>
#define atanf mgpu::kernels::functions::atan<float>
#define atan2f mgpu::kernels::functions::atan2<float>
#define atanhf mgpu::kernels::functions::atanh<float>
#define cbrtf mgpu::kernels::functions::cbrt<float>
#define cosf mgpu::kernels::functions::cos<float>
#define coshf mgpu::kernels::functions::cosh<float>
#define erff mgpu::kernels::functions::erf<float>
#define erfcf mgpu::kernels::functions::erfc<float>
#define expf mgpu::kernels::functions::exp<float>
#define exp2f mgpu::kernels::functions::exp2<float>
#define expm1f mgpu::kernels::functions::expm1<float>
#define logf mgpu::kernels::functions::log<float>
#define log10f mgpu::kernels::functions::log10<float>
#define log1pf mgpu::kernels::functions::log1p<float>
#define log2f mgpu::kernels::functions::log2<float>
#define powf mgpu::kernels::functions::powf<float>
#define sinf mgpu::kernels::functions::sin<float>
#define sinhf mgpu::kernels::functions::sinh<float>
#define tanf mgpu::kernels::functions::tan<float>
#define tanhf mgpu::kernels::functions::tanh<float>
#define erf(x) mgpu::kernels::functions::erf64<double>(x)
#define exp(x) mgpu::kernels::functions::exp64<double>(x)
#define log(x) mgpu::kernels::functions::log64<double>(x)
#define tanh(x) mgpu::kernels::functions::tanh64<double>(x)
#define __expf expf
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __powf powf
static inline float __fdividef(float x, float y) { return x / y; }
static inline void __trap() { abort(); }

// Threads take turns, so a plain read and write is atomic.
template <class T, class Change>
static T shimAtomic(T *at, Change change) {
  T old = *at;
  *at = change(old);
  return old;
}
template <class T>
static T atomicAdd(T *at, T v) {
  return shimAtomic(at, [&](T o) { return T(o + v); });
}
template <class T>
static T atomicAnd(T *at, T v) {
  return shimAtomic(at, [&](T o) { return T(o & v); });
}
template <class T>
static T atomicOr(T *at, T v) {
  return shimAtomic(at, [&](T o) { return T(o | v); });
}
template <class T>
static T atomicXor(T *at, T v) {
  return shimAtomic(at, [&](T o) { return T(o ^ v); });
}
template <class T>
static T atomicMax(T *at, T v) {
  return shimAtomic(at, [&](T o) { return std::max(o, v); });
}
template <class T>
static T atomicMin(T *at, T v) {
  return shimAtomic(at, [&](T o) { return std::min(o, v); });
}
template <class T>
static T atomicCAS(T *at, T old, T v) {
  return shimAtomic(at, [&](T o) { return o == old ? v : o; });
}

struct ShimThread {
  ucontext_t context;
  ShimIndex index;
  bool done;
  unsigned long barriers; // passed or waiting at
  unsigned long exchanges;
  unsigned long long value;
  char *stack;
};
static std::vector<ShimThread> shimThreads;
static ucontext_t shimScheduler;
static size_t shimNow;
static void (*shimBody)();

static void shimYield() {
  swapcontext(&shimThreads[shimNow].context, &shimScheduler);
}

static unsigned long shimPassed; // barriers that all threads have come to

static void __syncthreads() {
  const unsigned long mine = ++shimThreads[shimNow].barriers;
  while (shimPassed < mine) {
    // The next thread is the likeliest to be late.
    const size_t count = shimThreads.size();
    size_t k = 1;
    for (; k < count; ++k)
      if (const ShimThread &other = shimThreads[(shimNow + k) % count];
          !other.done && other.barriers < mine)
        break;
    if (k < count)
      shimYield();
    else
      shimPassed = mine;
  }
}

// Two meetings: when all lanes of the mask have written, and when all have
// read.
static void shimMeet(unsigned mask) {
  const size_t first = shimNow / 32 * 32;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1 && first + lane >= shimThreads.size()) {
      fprintf(stderr, "shim: lane %u of the mask does not exist\n", lane);
      abort();
    }
  const unsigned long mine = ++shimThreads[shimNow].exchanges;
  auto isAnyLate = [&] {
    for (unsigned k = 1; k < 32; ++k) { // the next is the likeliest
      const unsigned lane = unsigned(shimNow + k) % 32;
      if (mask >> lane & 1 && shimThreads[first + lane].exchanges < mine)
        return true;
    }
    return false;
  };
  while (isAnyLate())
    shimYield();
}

template <class T>
static T __shfl_sync(unsigned mask, T value, int lane) {
  shimThreads[shimNow].value = 0;
  memcpy(&shimThreads[shimNow].value, &value, sizeof value);
  shimMeet(mask);
  T result;
  memset(&result, 0xff, sizeof result); // a lane that is not there may give any
  if (mask >> (lane & 31) & 1)
    memcpy(&result, &shimThreads[shimNow / 32 * 32 + size_t(lane & 31)].value,
           sizeof result);
  shimMeet(mask);
  return result;
}

static void __syncwarp(unsigned mask) { shimMeet(mask); }

#include "CudaShimMatrix.inc"

// Dynamic shared memory of the block, of which nothing is known when it begins.
static unsigned char *shimShared;
static size_t shimSharedBytes;
static void shimForgetShared() {
  if (shimShared)
    memset(shimShared, 0xff, shimSharedBytes);
}

// griddepcontrol, whose wait is the first thing that a kernel does: at the
// first thread to come what the kernel follows is run, on this stack, perhaps
// by this very code; later ones find it done.
#define MGPU_AWAIT_GRIDS
static void (*shimOnAwait)(); // null: it follows nothing
static bool shimHasAwaited;
static const uint64_t *shimArguments;
static unsigned shimGrid[12];

static void mgpuAwaitGrids() {
  if (shimHasAwaited || !shimOnAwait)
    return;
  std::vector<ShimThread> threads;
  threads.swap(shimThreads); // which stay where they are
  const ShimIndex thread = threadIdx, block = blockIdx, size = blockDim,
                  blocks = gridDim;
  const ucontext_t scheduler = shimScheduler;
  const size_t now = shimNow;
  const unsigned long passed = shimPassed;
  void (*const body)() = shimBody, (*const onAwait)() = shimOnAwait;
  const uint64_t *const arguments = shimArguments;
  unsigned grid[12];
  memcpy(grid, shimGrid, sizeof grid);
  unsigned char *const shared = shimShared;
  const size_t sharedBytes = shimSharedBytes;
  onAwait();
  shimThreads.swap(threads);
  threadIdx = thread;
  blockIdx = block;
  blockDim = size;
  gridDim = blocks;
  shimScheduler = scheduler;
  shimNow = now;
  shimPassed = passed;
  shimBody = body;
  shimOnAwait = onAwait;
  shimArguments = arguments;
  memcpy(shimGrid, grid, sizeof grid);
  shimShared = shared;
  shimSharedBytes = sharedBytes;
  // What was done with shared memory before is lost: nothing may have been.
  shimForgetShared();
  shimCopies[shimNow] = {};
  shimHasAwaited = true;
}

static void shimStart() {
  shimCopies[shimNow] = {};
  shimBody();
  shimThreads[shimNow].done = true;
  shimYield();
}

/// Runs `body` for every thread of every block of a launch.
static void shimLaunch(ShimIndex grid, ShimIndex block, void (*body)()) {
  constexpr size_t stackBytes = 64 * 1024;
  size_t count = size_t(block.x) * block.y * block.z;
  shimBody = body;
  blockDim = block;
  gridDim = grid;
  shimThreads.assign(count, {});
  char *const stacks = static_cast<char *>(malloc(count * stackBytes));
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        shimPassed = 0;
        shimForgetShared();
        for (size_t t = 0; t < count; ++t) {
          ShimThread &thread = shimThreads[t];
          thread = {};
          thread.index = {unsigned(t % block.x),
                          unsigned(t / block.x % block.y),
                          unsigned(t / block.x / block.y)};
          getcontext(&thread.context);
          thread.context.uc_stack.ss_sp = &stacks[t * stackBytes];
          thread.context.uc_stack.ss_size = stackBytes;
          thread.context.uc_link = &shimScheduler;
          makecontext(&thread.context, shimStart, 0);
        }
        // Whose turn it is after a switch: the scheduler sets the ids.
        for (size_t running = count; running > 0;) {
          running = 0;
          for (size_t t = 0; t < count; ++t) {
            if (shimThreads[t].done)
              continue;
            shimNow = t;
            threadIdx = shimThreads[t].index;
            swapcontext(&shimScheduler, &shimThreads[t].context);
            running += !shimThreads[t].done;
          }
        }
      }
  free(stacks);
}
