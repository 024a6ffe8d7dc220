# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel of CUDA C++, and C++ for the host, whose tunables mgpu chooses for the target.

python3 examples/embed/tuned.py [TARGET [BUDGET]]
"""

import sys

import mgpu

CUDA = """extern "C" __global__ void rowsum(float *y, const float *x, long long columns) {
  __shared__ float parts[THREADS];
  float sum = 0;
  for (long long c = threadIdx.x; c < columns && threadIdx.x < THREADS; c += THREADS)
    sum += x[blockIdx.x * columns + c];
  if (threadIdx.x < THREADS) parts[threadIdx.x] = sum;
  __syncthreads();
  for (int k = 1; k < THREADS && threadIdx.x == 0; ++k) sum += parts[k];
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}"""
HOST = """void rowsum(mgpu_block block, float *y, const float *x, int64_t columns) {
  float parts[THREADS] = {}, sum = 0;
  for (int64_t c = 0; c < columns; ++c) parts[c % THREADS] += x[block.index.x * columns + c];
  for (float part : parts) sum += part;
  y[block.index.x] = sum;
}"""

target, budget = (sys.argv[1:] + ["host", "20s"][len(sys.argv) - 1:])[:2]
g = mgpu.Graph(name="rowsum")
x, y = g.external("x", (64, 1024)), g.output("y", (64,))
sums = g.empty((64,))
rowsum = g.kernel("rowsum", params=("w", "r", "i64"), cuda=CUDA, host=HOST, block=128, tunables={"THREADS": [32, 8, 64, 128]}, rules=["THREADS <= 128"])
rowsum(sums, x, 1024, grid=64)
g.copy(y, sums)
ones = [[1.0] * 1024] * 64
print(g.tune(target, budget, x=ones).text, end="")
program = g.open(target)
print(program.configuration() or "the default", program(x=ones)["y"].tolist()[:4])
