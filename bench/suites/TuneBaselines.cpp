// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/TuneBaselines.h"

#include <algorithm>

namespace mgpu::bench {

void naiveMlp(const float *x, const float *w1, const float *w2, float *y) {
  constexpr int m = 32, k = 64, n = 128, p = 64;
  static float h[m * n];
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l)
        sum += x[i * k + l] * w1[l * n + j];
      h[i * n + j] = std::max(sum, 0.0f);
    }
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < p; ++j) {
      float sum = 0;
      for (int l = 0; l < n; ++l)
        sum += h[i * n + l] * w2[l * p + j];
      y[i * p + j] = sum;
    }
}

void naiveHeat(float *field) {
  constexpr int n = 64, steps = 20;
  static float next[n * n];
  for (int step = 0; step < steps; ++step) {
    for (int i = 1; i < n - 1; ++i)
      for (int j = 1; j < n - 1; ++j) {
        const float *u = field + i * n + j;
        next[i * n + j] = 0.25f * ((u[-n] + u[n]) + (u[-1] + u[1]));
      }
    for (int i = 1; i < n - 1; ++i)
      for (int j = 1; j < n - 1; ++j)
        field[i * n + j] = next[i * n + j];
  }
}

} // namespace mgpu::bench
