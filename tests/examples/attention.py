#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference computes in double from the same floats. Inputs are small, so that no score is far
from the others; f32 then errs by some units of 2^-24 in each of at most 48 terms."""
import math

from harness import Example, random_bits, write_npy

B, T, D = 2, 48, 32
example = Example("attention")
shapes = {"x": (B, T, D), "wq": (D, D), "wk": (D, D), "wv": (D, D)}
values = {}
for seed, (name, shape) in enumerate(shapes.items()):
    values[name] = [(random_bits(seed, i) % 257 - 128) / 256 for i in range(math.prod(shape))]
    write_npy(example.path(name + ".npy"), values[name], shape)
example.check()
out, shape = example.run({name: example.path(name + ".npy") for name in shapes}, ["y"])["y"]
assert tuple(shape) == (B, T, D), shape


def matmul(a, b, m, k, n):
    return [[sum(a[i][p] * b[p][j] for p in range(k)) for j in range(n)] for i in range(m)]


def square(name):
    return [values[name][i * D:(i + 1) * D] for i in range(D)]


worst = 0
for b in range(B):
    x = [values["x"][(b * T + t) * D:(b * T + t + 1) * D] for t in range(T)]
    q, k, v = (matmul(x, square(w), T, D, D) for w in ("wq", "wk", "wv"))
    scores = matmul(q, list(zip(*k)), T, D, T)
    weights = []
    for row in scores:
        powers = [math.exp((s - max(row)) * 0.176776695) for s in row]
        weights.append([p / sum(powers) for p in powers])
    added = matmul(weights, v, T, T, D)
    for t in range(T):
        token = [x[t][d] + added[t][d] for d in range(D)]
        mean = sum(token) / D
        variance = sum((e - mean) ** 2 for e in token) / D
        for d in range(D):
            expected = (token[d] - mean) / math.sqrt(variance + 1e-5)
            worst = max(worst, abs(out[(b * T + t) * D + d] - expected))
# Normalised values are below 6; 64 units of 2^-24 of that.
if not worst < 64 * 6 * 2.0**-24:
    raise SystemExit(f"y: off by {worst}")
