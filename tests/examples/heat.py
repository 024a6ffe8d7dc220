#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from harness import Example, expect_equal, f32, random_f32

N, STEPS = 64, 20
example = Example("heat")
example.check()
out = example.run({"field": "random:3"}, ["field"])
u = random_f32(3, N * N)
for _ in range(STEPS):
    v = u[:]
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            k = i * N + j
            v[k] = f32(0.25 * f32(f32(u[k - N] + u[k + N]) + f32(u[k - 1] + u[k + 1])))
    u = v
expect_equal("field", out["field"], u, (N, N))
