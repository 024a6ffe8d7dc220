// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_SUITES_TUNEBASELINES_H
#define MGPU_BENCH_SUITES_TUNEBASELINES_H

// The examples mlp and heat as one would write them first in C++: loops in the
// order of the formula, compiled with -O3 and nothing else.

namespace mgpu::bench {

/// y = relu(x * w1) * w2 with x 32x64, w1 64x128, w2 128x64, y 32x64.
void naiveMlp(const float *x, const float *w1, const float *w2, float *y);
/// Twenty Jacobi steps on 64x64 whose rim stays, in place.
void naiveHeat(float *field);

} // namespace mgpu::bench

#endif // MGPU_BENCH_SUITES_TUNEBASELINES_H
