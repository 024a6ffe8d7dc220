#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from harness import Example, expect_equal, write_npy

example = Example("ops")
a = [float((i * 7) % 16 - 5) for i in range(16)]
b = [float(i * i) for i in range(10)]
write_npy(example.path("a.npy"), a, (16,))
write_npy(example.path("b.npy"), b, (10,))
example.check()
names = ["gathered", "maximum", "minimum", "product", "broadcasted", "chained", "uneven"]
out = example.run({"a": example.path("a.npy"), "b": example.path("b.npy")}, names)
columns = [[a[4 * rank + i] for rank in range(4)] for i in range(4)]
expect_equal("gathered", out["gathered"], a, (16,))
expect_equal("maximum", out["maximum"], [max(c) for c in columns], (4,))
expect_equal("minimum", out["minimum"], [min(c) for c in columns], (4,))
expect_equal("product", out["product"], [c[0] * c[1] * c[2] * c[3] for c in columns], (4,))
expect_equal("broadcasted", out["broadcasted"], a[4:8], (4,))
expect_equal("chained", out["chained"], [v + 1 for v in a], (16,))
expect_equal("uneven", out["uneven"], b, (10,))
