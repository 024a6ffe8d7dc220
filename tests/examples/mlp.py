#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small whole numbers: every sum is exact in f32 (below 2^24), whatever its order."""
from harness import Example, expect_equal, matmul

example = Example("mlp")
shapes = {"x": (32, 64), "w1": (64, 128), "w2": (128, 64)}
values, inputs = example.given(shapes, lambda bits: bits % 9 - 4)
example.check()
out = example.run(inputs, ["y"])
h = [max(v, 0) for v in matmul(values["x"], values["w1"], 32, 64, 128)]
y = matmul(h, values["w2"], 32, 128, 64)
assert 0 < max(map(abs, y)) < 1 << 24
expect_equal("y", out["y"], y, (32, 64))
