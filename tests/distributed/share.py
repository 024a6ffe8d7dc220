#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bundle and a graph in several processes from Python: rank 0 has the bits of one process. Usage: share.py BUNDLE,
with the target in MGPU_TEST_TARGET."""

import array
import os
import sys

import mgpu

a = array.array("f", [(k * 7) % 11 - 4 for k in range(16)])
b = array.array("f", [k / 4 for k in range(10)])
target = os.environ.get("MGPU_TEST_TARGET", "host")
mine, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
given = mgpu.Ranks("tcp", rank=mine, count=count, address="127.0.0.1", port=int(os.environ["MASTER_PORT"]), deadline=20)

with mgpu.load(sys.argv[1], "host:4") as alone:
    assert (alone.rank, alone.num_ranks) == (0, 1)
    expected = {name: out.tobytes() for name, out in alone(a=a, b=b).items()}
for ranks in (given, mgpu.Ranks(deadline=20)):  # as it is told, and as the environment says
    with mgpu.load(sys.argv[1], target, ranks=ranks) as shared:
        assert (shared.rank, shared.num_ranks) == (mine, count)
        found = {name: out.tobytes() for name, out in shared(a=a, b=b).items()}
        assert found == (expected if mine == 0 else {}), found
        if mine != 0:
            try:
                shared.read("gathered")
                raise AssertionError("rank 0 alone has it")
            except mgpu.UsageError as error:
                assert "is not in the memory of rank" in str(error), error


def built():
    g = mgpu.Graph(devices=4)
    whole, total = g.input("whole", (16,)), g.input("total", (4,), role="output")
    parts = [g.empty((4,), device=d) for d in range(4)]
    for d in range(4):
        g.copy(parts[d], whole[4 * d:4 * d + 4])
    g.all_reduce(parts)
    g.copy(total, parts[3])
    return g


with built().open("host:4") as alone:  # the same of a graph that was built by calls
    expected = {name: out.tobytes() for name, out in alone(whole=a).items()}
with built().open("host:4" if target == "host" else target, ranks=given) as shared:
    assert (shared.rank, shared.num_ranks) == (mine, count)
    found = {name: out.tobytes() for name, out in shared(whole=a).items()}
    assert found == (expected if mine == 0 else {}), found
try:
    mgpu.load(sys.argv[1], ranks=mgpu.Ranks("pigeon"))
    raise AssertionError("pigeons were taken")
except mgpu.UsageError as error:
    assert "do not meet by 'pigeon'" in str(error), error
if mine == 0:
    print("rank 0 has the bits of one process")
