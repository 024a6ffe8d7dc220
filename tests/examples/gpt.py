#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step of four blocks on four meshes, in the order 1f1b, is the step of a reference in
double, as near as f32 is."""
import math
import os

from harness import Example, matmul, transposed

B, T, D, STAGES, PARTS = 2, 8, 16, 4, 8
RATE = 2.0**-10

example = Example("mpmd")
example.file = os.path.join(example.folder, "gpt.mlir")
shapes = {**{f"x{k}": (B, T, D) for k in range(PARTS)}, **{f"t{k}": (B, T, D) for k in range(PARTS)},
          **{f"w{k}": (6 * D, D) for k in range(STAGES)}}
values, inputs = example.given(shapes, lambda bits: (bits % 65 - 32) / 128)


def add(a, b):
    return [p + q for p, q in zip(a, b)]


def block(x, w):
    """One sequence: everything that backward work needs, and the result."""
    wq, wk, wv, wo, wl, wb = w
    q, k, v = (matmul(x, m, T, D, D) for m in (wq, wk, wv))
    scores = matmul(q, transposed(k, T, D), T, D, T)
    e = [math.exp(s / 4) if i // T >= i % T else 0 for i, s in enumerate(scores)]
    p = [value / sum(e[i // T * T:i // T * T + T]) for i, value in enumerate(e)]
    o = matmul(p, v, T, T, D)
    a = add(x, matmul(o, wo, T, D, D))
    h = [max(value, 0) for value in matmul(a, wl, T, D, D)]
    return q, k, v, p, o, a, h, add(a, matmul(h, wb, T, D, D))


def product_back(x, m, dy):
    return matmul(dy, transposed(m, D, D), T, D, D), matmul(transposed(x, T, D), dy, D, T, D)


def backward(x, w, dy):
    """The gradients of one sequence and of the weights."""
    wq, wk, wv, wo, wl, wb = w
    q, k, v, p, o, a, h, _ = block(x, w)
    dh, gb = product_back(h, wb, dy)
    da, gl = product_back(a, wl, [d if on > 0 else 0 for d, on in zip(dh, h)])
    da = add(dy, da)
    do, go = product_back(o, wo, da)
    dp = matmul(do, transposed(v, T, D), T, D, T)
    dv = matmul(transposed(p, T, T), do, T, T, D)
    sums = [sum(p[i * T + j] * dp[i * T + j] for j in range(T)) for i in range(T)]
    ds = [value * (dp[i] - sums[i // T]) / 4 for i, value in enumerate(p)]
    dq, dk = matmul(ds, k, T, T, D), matmul(transposed(ds, T, T), q, T, T, D)
    (xq, gq), (xk, gk), (xv, gv) = (product_back(x, m, d) for m, d in ((wq, dq), (wk, dk), (wv, dv)))
    return add(add(da, xq), add(xk, xv)), gq + gk + gv + go + gl + gb


weights = [[values[f"w{s}"][k * D * D:(k + 1) * D * D] for k in range(6)] for s in range(STAGES)]
gradients = [[0] * (6 * D * D) for _ in range(STAGES)]
for part in range(PARTS):
    for b in range(B):
        one = slice(b * T * D, (b + 1) * T * D)
        reached = [values[f"x{part}"][one]]
        for w in weights:
            reached.append(block(reached[-1], w)[-1])
        d = [y - t for y, t in zip(reached[-1], values[f"t{part}"][one])]
        for s in reversed(range(STAGES)):
            d, g = backward(reached[s], weights[s], d)
            gradients[s] = add(gradients[s], g)

out = example.run(inputs, [f"w{s}" for s in range(STAGES)], "--schedule", "1f1b",
                  target="host:8")
for s in range(STAGES):
    found, shape = out[f"w{s}"]
    assert shape == (6 * D, D), shape
    for k, (value, old, g) in enumerate(zip(found, values[f"w{s}"], gradients[s])):
        # What the step adds, not the weight, says whether it is right.
        assert abs((value - old) - -RATE * g) <= 2e-7 + 1e-4 * abs(RATE * g), (s, k, value - old, -RATE * g)
    assert max(abs(g) for g in gradients[s]) > 0.1, "nothing to see"
