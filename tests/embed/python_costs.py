#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a replay of the small graph of embed_bare costs from Python: medians of five rounds.

Usage: python_costs.py COUNT
"""

import array
import statistics
import sys
import time

import mgpu


def microseconds(count, call):
    start = time.perf_counter()
    call(count)
    return (time.perf_counter() - start) * 1e6 / count


def main():
    count = int(sys.argv[1])
    g = mgpu.Graph()
    x, y, a = g.input("x", (4,)), g.output("y", (4,)), g.empty((4,))
    g.copy(a, x)
    g.kernel("bump", params=("rw",), host="void bump(mgpu_block, float *y) { y[0] += 1; }")(a)
    g.copy(y, a)
    given = array.array("f", [1, 2, 3, 4])
    with g.open() as program:
        assert program(x=given)["y"].tolist() == [2, 2, 3, 4]

        def one_by_one(times):
            for _ in range(times):
                program.replay()

        def with_arrays(times):
            for _ in range(times):
                program(x=given)
        ways = {"replay(COUNT)": (program.replay, count), "replay()": (one_by_one, count), "program(x=array)": (with_arrays, max(count // 20, 1))}
        rounds = {name: [] for name in ways}
        for _ in range(5):
            for name, (call, times) in ways.items():
                rounds[name].append(microseconds(times, call))
    print(", ".join(f"{name} {statistics.median(taken):.2f} us" for name, taken in rounds.items()))


if __name__ == "__main__":
    main()
