// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelBaselines.h"

#include <algorithm>

namespace mgpu::bench {

std::vector<Baseline> saxpyBaselines() {
  return {{"i", [](float *const *buffers, int n) {
             const float *__restrict x = buffers[0];
             float *__restrict y = buffers[1];
             for (int i = 0; i < n; ++i)
               y[i] = 1e-3f * x[i] + y[i];
           }}};
}

namespace {

/// The loops over i, j and k (0, 1, 2) in the order P, Q, R.
template <int P, int Q, int R>
void matmul(float *const *buffers, int) {
  constexpr int n = squareExtent;
  const float *__restrict a = buffers[0], *__restrict b = buffers[1];
  float *__restrict c = buffers[2];
  std::fill(c, c + n * n, 0.0f);
  for (int p = 0; p < n; ++p)
    for (int q = 0; q < n; ++q)
      for (int r = 0; r < n; ++r) {
        int i = P == 0 ? p : Q == 0 ? q : r;
        int j = P == 1 ? p : Q == 1 ? q : r;
        int k = P == 2 ? p : Q == 2 ? q : r;
        c[i * n + j] += a[i * n + k] * b[k * n + j];
      }
}

/// i, then j in tiles of `Tile` (a divisor of n), k, and j within the tile,
/// whose sums a compiler can keep in registers.
template <int Tile>
void matmulTiled(float *const *buffers, int) {
  constexpr int n = squareExtent;
  static_assert(n % Tile == 0);
  const float *__restrict a = buffers[0], *__restrict b = buffers[1];
  float *__restrict c = buffers[2];
  for (int i = 0; i < n; ++i)
    for (int first = 0; first < n; first += Tile) {
      float sums[Tile] = {};
      for (int k = 0; k < n; ++k)
        for (int j = 0; j < Tile; ++j)
          sums[j] += a[i * n + k] * b[k * n + first + j];
      std::copy(sums, sums + Tile, c + i * n + first);
    }
}

} // namespace

std::vector<Baseline> matmulBaselines() {
  return {{"ijk", matmul<0, 1, 2>},        {"ikj", matmul<0, 2, 1>},
          {"jik", matmul<1, 0, 2>},        {"jki", matmul<1, 2, 0>},
          {"kij", matmul<2, 0, 1>},        {"kji", matmul<2, 1, 0>},
          {"i-j32-k-j", matmulTiled<32>},  {"i-j64-k-j", matmulTiled<64>},
          {"i-j128-k-j", matmulTiled<128>}};
}

std::vector<Baseline> stencilBaselines() {
  return {{"yx",
           [](float *const *buffers, int) {
             constexpr int n = squareExtent;
             const float *__restrict u = buffers[0];
             float *__restrict v = buffers[1];
             for (int y = 1; y < n - 1; ++y)
               for (int x = 1; x < n - 1; ++x) {
                 const float *at = u + y * n + x;
                 v[y * n + x] = 0.25f * (((at[-1] + at[1]) + at[-n]) + at[n]);
               }
           }},
          {"xy", [](float *const *buffers, int) {
             constexpr int n = squareExtent;
             const float *__restrict u = buffers[0];
             float *__restrict v = buffers[1];
             for (int x = 1; x < n - 1; ++x)
               for (int y = 1; y < n - 1; ++y) {
                 const float *at = u + y * n + x;
                 v[y * n + x] = 0.25f * (((at[-1] + at[1]) + at[-n]) + at[n]);
               }
           }}};
}

} // namespace mgpu::bench
