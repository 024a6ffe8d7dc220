#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from harness import Example, expect_equal, f32, random_f32

example = Example("saxpy")
example.check("--arg", "a=1.7")
out = example.run({"a": 1.7, "x": "random:7", "y": "iota"}, ["y"])
a, x = f32(1.7), random_f32(7, 1024)
expect_equal("y", out["y"], [f32(f32(a * x[i]) + i) for i in range(1024)], (1024,))
