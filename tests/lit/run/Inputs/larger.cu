// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
extern "C" __global__ void larger(const float *x, float *first, float *all, signed char *narrow) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= ELEMENTS)
    return;
  if (i == 0)
    *first = *x;
  if (i < 8)
    narrow[i] = 15;
  all[i] = i;
}
