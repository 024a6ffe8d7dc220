// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
extern "C" __global__ void scale(const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ELEMENTS)
    y[i] = 3 * x[i];
}

extern "C" __global__ void two(const float *x, const float *y, float *z) {}

#ifdef DIM1
// Sums each row of the first operand, and counts it.
extern "C" __global__ void rows(const float *x, float *sums, int *counts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= DIM0)
    return;
  float sum = 0;
  for (int k = 0; k < DIM1; ++k)
    sum += x[i * DIM1 + k];
  sums[i] = sum;
  counts[i] = DIM1;
}
#endif

// Adds to what is there.
extern "C" __global__ void accumulate(const float *, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ELEMENTS)
    y[i] += x[i];
}

extern "C" __global__ void spoils(float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < ELEMENTS)
    x[i] = y[i] = 1;
}
