#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small whole numbers: every sum is exact in f32 (below 2^24), whatever its order."""
from harness import Example, expect_equal, random_bits, write_npy

example = Example("mlp")
shapes = {"x": (32, 64), "w1": (64, 128), "w2": (128, 64)}
values = {}
for seed, (name, (rows, columns)) in enumerate(shapes.items()):
    values[name] = [random_bits(seed, i) % 9 - 4 for i in range(rows * columns)]
    write_npy(example.path(name + ".npy"), [float(v) for v in values[name]], (rows, columns))
example.check()
out = example.run({name: example.path(name + ".npy") for name in shapes}, ["y"])


def matmul(a, b, m, k, n):
    return [sum(a[i * k + p] * b[p * n + j] for p in range(k)) for i in range(m) for j in range(n)]


h = [max(v, 0) for v in matmul(values["x"], values["w1"], 32, 64, 128)]
y = matmul(h, values["w2"], 32, 128, 64)
assert 0 < max(map(abs, y)) < 1 << 24
expect_equal("y", out["y"], y, (32, 64))
