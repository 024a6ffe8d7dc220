#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Annotated programs give on their grid what they give on one device without annotations: bit for
bit where all numbers are whole and small. Jacobi's method is compared with a reference."""
import os
import re

from harness import Example, expect_close, expect_equal, f32

example = Example("shard")


def plain(name):
    """The file without annotations."""
    with open(os.path.join(example.folder, name + ".mlir")) as file:
        text = file.read()
    text = re.sub(r"(%\w+) = shard\.shard (%\w+) to %\w+ : (\S+)", r"\1 = tensor.cast \2 : \3 to \3", text)
    lines = [line for line in text.splitlines() if "shard.grid" not in line and "shard.sharding" not in line]
    path = example.path(name + "-plain.mlir")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def compare(name, shapes, value, expect, *, outs=("r0",), words=()):
    _, inputs = example.given(shapes, value)
    example.file = plain(name)
    one = example.run(inputs, outs, *words)
    example.file = os.path.join(example.folder, name + ".mlir")
    example.check(*words)
    many = example.run(inputs, outs, *words)
    for out in outs:
        expect(f"{name} {out}", many[out], *one[out])


def close(name, got, values, shape):
    expect_close(name, got, values, 1e-5)


whole = lambda bits: float(bits % 3 - 1)
compare("matmul", {"a": (64, 48), "b": (48, 32)}, whole, expect_equal)
compare("transpose", {"x": (32, 32), "f": (32, 32)}, whole, expect_equal)
compare("training", {"x": (64, 32), "t": (64, 16), "w1": (32, 48), "w2": (48, 16)}, whole, expect_equal,
        outs=("w1", "w2"), words=("--arg", f"rate={2.0**-10}"))
weight = (64, 64)
compare("transformer", {"x": (2, 16, 64), **{w: weight for w in ("wq", "wk", "wv", "wo", "w1", "w2")}},
        lambda bits: (bits % 257 - 128) / 1024, close)

N = 32
example.file = os.path.join(example.folder, "jacobi.mlir")
values, inputs = example.given({"u": (N, N)}, lambda bits: f32(bits % 1000 / 7))
u = values["u"]
at = lambda grid, i, j: grid[i * N + j] if 0 <= i < N and 0 <= j < N else 0.0
for _ in range(10):
    u = [f32(f32(f32(at(u, i - 1, j) + at(u, i + 1, j)) + f32(at(u, i, j - 1) + at(u, i, j + 1))) * 0.25)
         for i in range(N) for j in range(N)]
example.check()
expect_equal("jacobi", example.run(inputs, ["r0"])["r0"], u, (N, N))
