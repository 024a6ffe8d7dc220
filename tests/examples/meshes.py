#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The smaller examples over several meshes give what a reference gives, bit for bit where all numbers
are small enough to be exact."""
import json
import os

from harness import Example, expect_close, expect_equal, matmul, transposed

example = Example("mpmd")
folder = example.folder


def given(name, shapes):
    example.file = os.path.join(folder, name)
    return example.given(shapes, lambda bits: bits % 3 - 1)


# Two steps with an optimizer's state that stays on the hosts.
B, I, H, O = 8, 16, 24, 4
values, inputs = given("offload.mlir", {"x": (B, I), "t": (B, O), "w1": (I, H), "w2": (H, O),
                                        "s1": (I, H), "s2": (H, O)})
x, t, w1, w2, s1, s2 = (values[name] for name in ("x", "t", "w1", "w2", "s1", "s2"))
example.check()
for step in (1, 2):
    h = [max(v, 0) for v in matmul(x, w1, B, I, H)]
    dy = [p - q for p, q in zip(matmul(h, w2, B, H, O), t)]
    dh = matmul(dy, transposed(w2, H, O), B, O, H)
    da = [d if v > 0 else 0 for d, v in zip(dh, h)]
    g1, g2 = matmul(transposed(x, B, I), da, I, B, H), matmul(transposed(h, B, H), dy, H, B, O)
    s1 = [s / 2 + g for s, g in zip(s1, g1)]
    s2 = [s / 2 + g for s, g in zip(s2, g2)]
    w1 = [w - 2.0**-10 * s for w, s in zip(w1, s1)]
    w2 = [w - 2.0**-10 * s for w, s in zip(w2, s2)]
    out = example.run(inputs, ["w1", "w2", "s1", "s2"], "--repeat", str(step))
    for name, expected, shape in [("w1", w1, (I, H)), ("w2", w2, (H, O)), ("s1", s1, (I, H)), ("s2", s2, (H, O))]:
        if step == 1:  # the second one is not exact in f32
            expect_equal(name, out[name], expected, shape)
        else:
            expect_close(name, out[name], expected, 1e-3)
# The state comes and goes in each replay, and the batch comes: no device keeps it.
plan = json.loads(example.command("plan", example.file, "--json"))
assert plan["pipeline"]["host_bytes"] == 4 * (2 * (I * H + H * O) + B * (I + O)), plan["pipeline"]

# Meshes of several forms.
values, inputs = given("heterogeneous.mlir", {"x": (8, 16), "w": (16, 32), "v": (32, 4)})
n = [min(max(v, -2), 2) for v in matmul(values["x"], values["w"], 8, 16, 32)]
example.check()
out = example.run(inputs, ["r0", "r1"], target="host:10")
expect_equal("y", out["r0"], matmul(n, values["v"], 8, 32, 4), (8, 4))
expect_equal("n", out["r1"], n, (8, 32))

# Inference, in the program's own order and as GPipe.
values, inputs = given("inference.mlir", {"x": (24, 8), "w0": (8, 8), "w1": (8, 8), "w2": (8, 8)})
y = values["x"]
for name in ("w0", "w1", "w2"):
    y = matmul(y, values[name], 24, 8, 8)
for order in ([], ["--schedule", "gpipe"], ["--schedule", "auto"]):
    out = example.run(inputs, ["r0"], *order)
    expect_equal("y", out["r0"], y, (24, 8))
