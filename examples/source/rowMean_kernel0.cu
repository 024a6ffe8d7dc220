#ifndef ITEMS
#define ITEMS 4
#endif
#line 1 "rowmean.cu"
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mean[row] = the mean of x's row, a block for each row. ITEMS elements are
// added by one thread at a time: each ITEMS has another order of sums, all of
// them within what rounding explains (docs/numerics.md).
__device__ float sumOf(const float *from, int count) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < ITEMS; ++k)
    sum += k < count ? from[k] : 0.0f;
  return sum;
}

extern "C" __global__ void __launch_bounds__(128)
    rowMean(const float *x, float *mean, long long columns) {
  __shared__ float sums[128];
  const float *row = x + blockIdx.x * columns;
  float sum = 0;
  for (long long at = threadIdx.x * ITEMS; at < columns;
       at += blockDim.x * ITEMS)
    sum += sumOf(row + at, int(columns - at));
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    mean[blockIdx.x] = sums[0] / float(columns);
}
