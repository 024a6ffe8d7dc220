#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step as a pipeline over two meshes is the step of one device bit for bit: all numbers
are whole, or multiples of 2^-10, and small enough to be exact."""
import os

from harness import Example, expect_equal, matmul, transposed

example = Example("mpmd")
example.file = os.path.join(example.folder, "training.mlir")
PARTS, B, I, H, O = 4, 8, 16, 24, 4
shapes = {**{f"x{k}": (B, I) for k in range(PARTS)}, **{f"t{k}": (B, O) for k in range(PARTS)},
          "w1": (I, H), "w2": (H, O)}
values, inputs = example.given(shapes, lambda bits: bits % 3 - 1)
w1, w2 = values["w1"], values["w2"]
g1, g2 = [0] * len(w1), [0] * len(w2)
for k in range(PARTS):
    x, t = values[f"x{k}"], values[f"t{k}"]
    h = [max(v, 0) for v in matmul(x, w1, B, I, H)]
    dy = [p - q for p, q in zip(matmul(h, w2, B, H, O), t)]
    dh = matmul(dy, transposed(w2, H, O), B, O, H)
    da = [d if v > 0 else 0 for d, v in zip(dh, h)]
    g2 = [p + q for p, q in zip(g2, matmul(transposed(h, B, H), dy, H, B, O))]
    g1 = [p + q for p, q in zip(g1, matmul(transposed(x, B, I), da, I, B, H))]
assert max(map(abs, g1 + g2)) < 1 << 23, "not exact in f32"

example.check()
out = example.run(inputs, ["w1", "w2"])
expect_equal("w1", out["w1"], [w - 2.0**-10 * g for w, g in zip(w1, g1)], (I, H))
expect_equal("w2", out["w2"], [w - 2.0**-10 * g for w, g in zip(w2, g2)], (H, O))
