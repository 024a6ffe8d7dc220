// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_SUITES_KERNELBASELINES_H
#define MGPU_BENCH_SUITES_KERNELBASELINES_H

// The computations of the host kernel suite in plain C++, each in several
// orders of its loops, compiled at -O3 for this CPU without contraction. Every
// order adds the same numbers in the same sequence to each element, so all
// give the same bits.

#include <cstddef>
#include <vector>

namespace mgpu::bench {

struct Baseline {
  const char *name; ///< the loops, outermost first
  /// Takes the buffers, and the extent where it is not a constant.
  void (*compute)(float *const *, int);
};

/// Rows and columns of the squares; a constant here as in the kernels.
inline constexpr int squareExtent = 256;

/// y[i] = 0.001 x[i] + y[i] for i < n. Buffers: x, y of n.
std::vector<Baseline> saxpyBaselines();
/// c = a b of squares, one product added after the other. Buffers: a, b, c.
std::vector<Baseline> matmulBaselines();
/// v = mean of u's four neighbours, inside the square. Buffers: u, v.
std::vector<Baseline> stencilBaselines();

} // namespace mgpu::bench

#endif // MGPU_BENCH_SUITES_KERNELBASELINES_H
