#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step, written for devices that share the batch, the weights, or both, is the step of
one device bit for bit: all numbers are whole, or multiples of 2^-10, and small enough to be exact.
The attention layers are compared with a reference in double."""
import math
import os

from harness import Example, expect_close, expect_equal, matmul, transposed

example = Example("tensor")
B, I, H, O = 64, 32, 48, 16
shapes = {"x": (B, I), "t": (B, O), "w1": (I, H), "w2": (H, O)}
values, inputs = example.given(shapes, lambda bits: bits % 3 - 1)
x, t, w1, w2 = (values[name] for name in shapes)
a = matmul(x, w1, B, I, H)
h = [max(v, 0) for v in a]
y = matmul(h, w2, B, H, O)
dy = [p - q for p, q in zip(y, t)]
dw2 = matmul(transposed(h, B, H), dy, H, B, O)
dh = matmul(dy, transposed(w2, H, O), B, O, H)
da = [d if v > 0 else 0 for d, v in zip(dh, a)]
dw1 = matmul(transposed(x, B, I), da, I, B, H)
assert max(map(abs, dw1 + dw2)) < 1 << 23, "not exact in f32"
new1 = [w - 2.0**-10 * d for w, d in zip(w1, dw1)]
new2 = [w - 2.0**-10 * d for w, d in zip(w2, dw2)]
for kind in ("data-parallel", "tensor-parallel", "fully-sharded"):
    example.file = os.path.join(example.folder, kind + ".mlir")
    example.check("--arg", f"rate={2.0**-10}")
    out = example.run({**inputs, "rate": 2.0**-10}, ["w1", "w2"])
    expect_equal(f"{kind} w1", out["w1"], new1, (I, H))
    expect_equal(f"{kind} w2", out["w2"], new2, (H, O))

# A pipeline: the halves of the batch are arguments of their own.
half = B // 2
example.file = os.path.join(example.folder, "pipeline.mlir")
example.check()
parts = {f"x{k}": example.write(f"x{k}", x[k * half * I:(k + 1) * half * I], (half, I)) for k in (0, 1)}
out = example.run({**parts, "w1": inputs["w1"], "w2": inputs["w2"]}, ["r0", "r1"])
for k in (0, 1):
    expect_equal(f"pipeline r{k}", out[f"r{k}"], y[k * half * O:(k + 1) * half * O], (half, O))

T, D, HEADS, W = 32, 64, 8, 8
shapes = {"x": (T, D), "wq": (D, D), "wk": (D, D), "wv": (D, D), "wo": (D, D)}
values, inputs = example.given(shapes, lambda bits: (bits % 257 - 128) / 1024)


def layer(x):
    q, k, v = (matmul(x, values[w], T, D, D) for w in ("wq", "wk", "wv"))
    o = [0.0] * (T * D)
    for head in range(HEADS):
        for i in range(T):
            scores = [sum(q[i * D + head * W + e] * k[j * D + head * W + e] for e in range(W)) * 0.353553391
                      for j in range(T)]
            powers = [math.exp(s - max(scores)) for s in scores]
            for e in range(W):
                o[i * D + head * W + e] = sum(p * v[j * D + head * W + e] for j, p in enumerate(powers)) / sum(powers)
    return [p + q for p, q in zip(x, matmul(o, values["wo"], T, D, D))]


example.file = os.path.join(example.folder, "attention.mlir")
example.check()
out = example.run(inputs, ["r0"])
expect_close("attention", out["r0"], layer(layer(values["x"])), 2e-6)
