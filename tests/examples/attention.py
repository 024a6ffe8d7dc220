#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference computes in double from the same floats. Inputs are small, so that no score is far
from the others; f32 then errs by some units of 2^-24 in each of at most 48 terms."""
import math

from harness import Example, matmul, transposed

B, T, D = 2, 48, 32
example = Example("attention")
shapes = {"x": (B, T, D), "wq": (D, D), "wk": (D, D), "wv": (D, D)}
values, inputs = example.given(shapes, lambda bits: (bits % 257 - 128) / 256)
example.check()
out, shape = example.run(inputs, ["y"])["y"]
assert tuple(shape) == (B, T, D), shape
worst = 0
for b in range(B):
    x = values["x"][b * T * D:(b + 1) * T * D]
    q, k, v = (matmul(x, values[w], T, D, D) for w in ("wq", "wk", "wv"))
    scores = matmul(q, transposed(k, T, D), T, D, T)
    weights = []
    for t in range(T):
        row = scores[t * T:(t + 1) * T]
        powers = [math.exp((s - max(row)) * 0.176776695) for s in row]
        weights += [p / sum(powers) for p in powers]
    added = matmul(weights, v, T, T, D)
    for t in range(T):
        token = [x[t * D + d] + added[t * D + d] for d in range(D)]
        mean = sum(token) / D
        variance = sum((e - mean) ** 2 for e in token) / D
        for d in range(D):
            expected = (token[d] - mean) / math.sqrt(variance + 1e-5)
            worst = max(worst, abs(out[(b * T + t) * D + d] - expected))
# Normalised values are below 6; 64 units of 2^-24 of that.
if not worst < 64 * 6 * 2.0**-24:
    raise SystemExit(f"y: off by {worst}")
