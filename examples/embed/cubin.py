# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel that another compiler has made, as Triton's compiled.asm["cubin"]: its entry is compiled.metadata.name, its block
32 * compiled.metadata.num_warps threads, and it takes (float *y, const float *x, int n).

python3 examples/embed/cubin.py FILE.cubin ARCH ENTRY THREADS [TARGET]     e.g. add_one.cubin sm_90 add_one 128 cuda:0
"""

import sys

import mgpu

path, arch, entry, threads = sys.argv[1:5]
with open(path, "rb") as file:
    cubin = file.read()

g = mgpu.Graph(name=entry)
x, y = g.input("x", (1024,)), g.output("y", (1024,))
a, b = g.empty((1024,)), g.empty((1024,))
kernel = g.kernel(entry, params=("w", "r", "i32"), cubins={arch: cubin}, block=int(threads))
g.copy(a, x)
kernel(b, a, 1024, grid=1024 // int(threads))
g.copy(y, b)

program = g.open(sys.argv[5] if len(sys.argv) > 5 else "cuda:0")
print(program(x=range(1024))["y"].tolist()[:4])
