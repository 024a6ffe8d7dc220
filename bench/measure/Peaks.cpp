// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Peaks.h"

#include "support/Clock.h"

#include <algorithm>
#include <cstddef>

namespace mgpu::bench {

namespace {

volatile float sink;

// Twelve chains hide the latency of two units of four to six cycles. Each width
// has this text, as a function is compiled for one.
#define MGPU_MULTIPLY_ADDS(NAME, TARGET, WIDTH)                                \
  TARGET double NAME(uint64_t trips) {                                         \
    typedef float Vector __attribute__((vector_size(WIDTH)));                  \
    constexpr int chains = 12;                                                 \
    const Vector factor = Vector{} + 0.999f, term = Vector{} + 0.001f;         \
    Vector values[chains];                                                     \
    for (int k = 0; k < chains; ++k)                                           \
      values[k] = Vector{} + float(k);                                         \
    for (uint64_t trip = 0; trip < trips; ++trip) {                            \
      _Pragma("GCC unroll 12") for (int k = 0; k < chains; ++k) values[k] =    \
          values[k] * factor + term;                                           \
    }                                                                          \
    for (int k = 1; k < chains; ++k)                                           \
      values[0] += values[k];                                                  \
    sink = values[0][0];                                                       \
    return double(trips) * chains * 2 * (WIDTH / sizeof(float));               \
  }
#define MGPU_TRIAD(NAME, TARGET, WIDTH)                                        \
  TARGET void NAME(float *a, const float *b, const float *c, size_t count) {   \
    typedef float Vector                                                       \
        __attribute__((vector_size(WIDTH), aligned(4), may_alias));            \
    constexpr size_t lanes = WIDTH / sizeof(float);                            \
    const Vector scale = Vector{} + 3.0f;                                      \
    for (size_t k = 0; k + lanes <= count; k += lanes)                         \
      *(Vector *)(a + k) =                                                     \
          *(const Vector *)(b + k) + scale * *(const Vector *)(c + k);         \
  }

#if defined(__x86_64__)
#define MGPU_V4 __attribute__((target("avx512f")))
#define MGPU_V3 __attribute__((target("avx2,fma")))
MGPU_MULTIPLY_ADDS(multiplyAdds4, MGPU_V4, 64)
MGPU_MULTIPLY_ADDS(multiplyAdds3, MGPU_V3, 32)
MGPU_TRIAD(triad4, MGPU_V4, 64)
MGPU_TRIAD(triad3, MGPU_V3, 32)
#endif
MGPU_MULTIPLY_ADDS(multiplyAdds2, , 16)
MGPU_TRIAD(triad2, , 16)

double multiplyAdds(uint64_t trips) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return multiplyAdds4(trips);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return multiplyAdds3(trips);
#endif
  return multiplyAdds2(trips);
}

void triad(float *a, const float *b, const float *c, size_t count) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return triad4(a, b, c, count);
  if (__builtin_cpu_supports("avx2"))
    return triad3(a, b, c, count);
#endif
  triad2(a, b, c, count);
}

constexpr int tries = 5;
constexpr double usPerTry = 3000;

/// The most work in a microsecond; `work` does so many rounds of it and says
/// how much that was.
template <typename Work>
double bestRate(Work work) {
  uint64_t rounds = 1;
  for (;; rounds *= 2) { // as many as fill a try
    auto start = Clock::now();
    work(rounds);
    if (microsecondsSince(start) > usPerTry / 2)
      break;
  }
  double best = 0;
  for (int k = 0; k < tries; ++k) {
    auto start = Clock::now();
    const double done = work(rounds);
    best = std::max(best, done / microsecondsSince(start));
  }
  return best;
}

} // namespace

double Peaks::bytesPerUs(double touched) const {
  double rate = memory.empty() ? 0 : memory.front().bytesPerUs;
  for (const Roof &roof : memory)
    if (double(roof.bytes) <= touched)
      rate = roof.bytesPerUs;
  return rate;
}

Peaks measurePeaks() {
  Peaks peaks;
  peaks.flopsPerUs =
      bestRate([](uint64_t rounds) { return multiplyAdds(rounds * 1000); });
  constexpr uint64_t most = uint64_t(64) << 20;
  std::vector<float> floats(most / sizeof(float), 1.0f);
  for (uint64_t bytes = 16 << 10; bytes <= most; bytes *= 4) {
    const size_t count = bytes / sizeof(float) / 3;
    float *a = floats.data();
    double rate = bestRate([&](uint64_t rounds) {
      for (uint64_t round = 0; round < rounds; ++round)
        triad(a, a + count, a + 2 * count, count);
      return double(rounds) * double(count) * 3 * sizeof(float);
    });
    // Noise alone lets more bytes be faster than fewer.
    for (Peaks::Roof &smaller : peaks.memory)
      smaller.bytesPerUs = std::max(smaller.bytesPerUs, rate);
    peaks.memory.push_back({bytes, rate});
  }
  return peaks;
}

} // namespace mgpu::bench
