#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the public programs of the gpu dialect, which print, and compares what they print with the table.

    run.py MGPU_TUNE [NAME...]

The programs are `gpu/` of $MGPU_DATA/programs.tar.xz; without it the test is skipped. None of them
comes with what it must print, so the table below has what follows from each program's meaning.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile


def rows(shape, values):
    """The lines that a memref of this shape prints for its values, in row-major order."""
    values = list(values)

    def part(dim):
        if dim == len(shape):
            return f"{values.pop(0):g}" if isinstance(values[0], float) else str(values.pop(0))
        inner = dim + 1 == len(shape)
        between = "," + " " * (len(shape) + 1) if inner else ", \n" + " " * (dim + 1)
        return "[" + between.join(part(dim + 1) for _ in range(shape[dim])) + "]"

    return part(0) + "\n"


def memref(shape, values):
    strides = [1] * len(shape)
    for k in range(len(shape) - 1, 0, -1):
        strides[k - 1] = strides[k] * shape[k]
    return (f"Unranked Memref base@ = ADDRESS rank = {len(shape)} offset = 0 sizes = {list(shape)} "
            f"strides = {strides} data = \n" + rows(shape, values))


def same(shape, value):
    count = 1
    for size in shape:
        count *= size
    return memref(shape, [value] * count)


# Each program's exit code, and what it prints (or, where it fails, a part of the message). `ANY`
# stands for a number that the program leaves open.
EXPECTED = {
    # Zeros, printed first; then 1 and 2 of two regions, added by a third one.
    "async-execute": (0, same([100], 0) + same([100], 3)),
    # Rows and-ed: 0 & ... = 0, and 2, 3, 6, 7, 10, 11 have bit 1 alone in common.
    "gpu-all-reduce-and": (0, memref([2], [0, 2])),
    "gpu-launch-func": (0, same([2, 2, 2], 1.0)),
    # 16 products of 2 and 2 on top of zeros, which are printed first.
    "gpu-mma": (0, same([16, 16], 0.0) + same([16, 16], 64.0)),
    # 16 products of 1 and 2.
    "gpu-tensor-core": (0, same([16, 16], 32.0)),
    # Pairs of i32 as one i64, the first one low; the bits of small integers as denormal floats.
    "vector-bitcast": (0, memref([3], [low + (high << 32) for low, high in [(10, 20), (56, 90), (12, 90)]]) +
                       memref([6], [n * 2.0**-149 for n in (10, 20, 56, 90, 12, 90)]) +
                       memref([6], [10, 20, 56, 90, 12, 90])),
    # The lanes of the mask side by side from element 0, and from row 3, column 1 to the memory's end.
    "vector-compressstore": (0, memref([8], [100, 102, 2, 3, 4, 5, 6, 7]) +
                             memref([4, 4], [*range(13), 500, 502, 503])),
    "vector-constant-mask": (0, "( ( 1, 1, 0 ), ( 1, 1, 0 ), ( 1, 1, 0 ), ( 0, 0, 0 ) )\n"),
    "vector-contract": (0, ""),
    # Two lanes of the last one lie outside the memory.
    "vector-gather": (0, "( 3, 4, 2, 1 )\n( 3, 2331, 2, 2333 )\n( ( 6, 5 ), ( 8, 7 ) )\n"
                      "( ( 4, ANY ), ( 10, ANY ) )\n"),
    "vector-reduction": (1, "expected integer number of results"),  # not a program of MLIR 22
    "vector-shape-cast": (0, "( 1, 2, 3, 4, 5, 6 )\n"),
    "vector-splat": (0, "( 10, 10, 10 )\n"),
    # 16 products of 1 and 2: a subgroup's one product, not one for each of its lanes.
    "vector-to-gpu": (0, same([16, 16], 32.0)),
    "vector-type-cast": (0, "( ( 1, 2, 3, 4 ), ( 5, 6, 7, 8 ) )\n"),
}


def matches(expected, printed):
    """Whether `printed` begins as expected; behind it are the times of the run."""
    pattern = re.escape(expected).replace("ADDRESS", "0x[0-9a-f]+").replace("ANY", r"-?\d+")
    return re.fullmatch(pattern + r"prepare .*", printed, re.DOTALL)


def main():
    tune, chosen = sys.argv[1], sys.argv[2:]
    data = os.path.join(os.environ.get("MGPU_DATA", ""), "programs.tar.xz")
    if not os.path.exists(data):
        print("skipped: MGPU_DATA names no folder with programs.tar.xz")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data) as archive:
            members = [m for m in archive.getmembers() if re.fullmatch(r"(.*/)?gpu/[^/]+\.mlir", m.name)]
            for member in members:
                member.name = os.path.basename(member.name)
                archive.extract(member, folder)
        names = sorted(name[:-5] for name in os.listdir(folder))
        if set(names) != set(EXPECTED):
            print("other programs than the table has:", sorted(set(names) ^ set(EXPECTED)))
            return 1
        for name in chosen or names:
            code, expected = EXPECTED[name]
            done = subprocess.run([tune, "run", name + ".mlir"], cwd=folder, capture_output=True, text=True,
                                  timeout=120)
            good = done.returncode == code and (matches(expected, done.stdout) if code == 0 else
                                                expected in done.stderr)
            if not good:
                wrong += 1
                print(f"{name}: exit code {done.returncode}, expected {code}\n--- expected\n{expected}\n--- got\n"
                      f"{done.stdout}{done.stderr}")
    print(f"{len(chosen or names) - wrong} of {len(chosen or names)} programs do as expected")
    return 1 if wrong else 0


sys.exit(main())
