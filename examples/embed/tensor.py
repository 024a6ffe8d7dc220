# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A torch tensor in and out: the kernel works on the tensor's own memory, on a GPU where there is one.

python3 examples/embed/tensor.py
"""

import mgpu
import torch

CUDA = """extern "C" __global__ void scale(float *y, const float *x, float a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i];
}"""
HOST = """void scale(mgpu_block block, float *y, const float *x, float a) {
  for (uint32_t t = 0; t < block.size.x; ++t)
    y[block.index.x * block.size.x + t] = a * x[block.index.x * block.size.x + t];
}"""

device = "cuda" if torch.cuda.is_available() else "cpu"
g = mgpu.Graph(name="scale")
x, y = g.external("x", (1024,)), g.external("y", (1024,))
scale = g.kernel("scale", params=("w", "r", "f32"), cuda=CUDA, host=HOST, block=128)
scale(y, x, 3.0, grid=8)
program = g.open("cuda:0" if device == "cuda" else "host")

numbers, result = torch.ones(1024, device=device), torch.zeros(1024, device=device)
as_mgpu = (lambda t: t) if device == "cuda" else (lambda t: t.numpy())  # the host's arrays have the buffer protocol
program(x=as_mgpu(numbers), y=as_mgpu(result))
print(result[:4].tolist())
