#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from harness import Example, expect_equal, write_npy

example = Example("exchange")
x = [[float((i * 13 + j * 5) % 17 - 8) for j in range(8)] for i in range(8)]
write_npy(example.path("x.npy"), sum(x, []), (8, 8))
example.check()
out = example.run({"x": example.path("x.npy")}, ["prefix", "before", "total"])
prefix = [[sum(x[k][j] for k in range(i + 1)) for j in range(8)] for i in range(8)]
expect_equal("prefix", out["prefix"], sum(prefix, []), (8, 8))
expect_equal("before", out["before"], [0.0] * 8 + prefix[1] + prefix[3] + prefix[5], (4, 8))
total = [[sum(x[2 * rank + i][j] for rank in range(4)) for j in range(8)] for i in range(2)]
expect_equal("total", out["total"], sum(total, []), (2, 8))
