# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two devices add their halves of x and y, then both add up what they have.

python3 examples/embed/step.py
"""

import mgpu

CUDA = """extern "C" __global__ void add(float *a, const float *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] += b[i];
}"""
HOST = """void add(mgpu_block block, float *a, const float *b) {
  for (uint32_t t = 0; t < block.size.x; ++t)
    a[block.index.x * block.size.x + t] += b[block.index.x * block.size.x + t];
}"""

g = mgpu.Graph(devices=2, name="step")
x, y, total = g.input("x", (16,)), g.input("y", (16,)), g.output("sum", (8,))
add = g.kernel("add", params=("rw", "r"), cuda=CUDA, host=HOST, block=4)
parts = []
for device in range(2):
    a, b = g.empty((8,), device=device), g.empty((8,), device=device)
    g.copy(a, x[8 * device:8 * device + 8])
    g.copy(b, y[8 * device:8 * device + 8])
    add(a, b, grid=2)
    parts.append(a)
g.all_reduce(parts)
g.copy(total, parts[0])

program = g.open("host:2")
print(program(x=range(16), y=[1] * 16)["sum"].tolist())
