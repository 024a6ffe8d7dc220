#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step as JAX exports it is the step computed here, bit for bit: all numbers are whole,
or multiples of 2^-8, and small enough to be exact."""
import os

from harness import Example, expect_equal, matmul, transposed

example = Example("stablehlo")
B, I, H, O = 64, 16, 32, 4
shapes = {"w1": (I, H), "w2": (H, O), "x": (B, I), "t": (B, O)}
values, inputs = example.given(shapes, lambda bits: bits % 3 - 1)
w1, w2, x, t = (values[name] for name in shapes)
a = matmul(x, w1, B, I, H)
h = [max(v, 0) for v in a]
d = [p - q for p, q in zip(matmul(h, w2, B, H, O), t)]
g2 = matmul(transposed(h, B, H), d, H, B, O)
g1 = matmul(transposed(x, B, I), [v if u > 0 else 0 for u, v in zip(a, matmul(d, transposed(w2, H, O), B, O, H))],
            I, B, H)
assert max(map(abs, g1 + g2)) < 1 << 17 and sum(v * v for v in d) < 1 << 24, "not exact in f32"
example.file = os.path.join(example.folder, "mlp-step.mlir")
example.check()
out = example.run(inputs, ["w1", "w2", "r0"])
expect_equal("w1", out["w1"], [w - 2.0**-6 * g for w, g in zip(w1, g1)], (I, H))
expect_equal("w2", out["w2"], [w - 2.0**-6 * g for w, g in zip(w2, g2)], (H, O))
expect_equal("loss", out["r0"], [sum(v * v for v in d) * 2.0**-8], ())
