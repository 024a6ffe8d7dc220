#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU seconds of `mgpu-tune check` by kind of program and number of operations, start-up taken off: a table.

Usage: times.py [--operations N,...] [--runs N] OPT MGPU_TUNE...

Beside them stands what OPT (mgpu-opt, or mlir-opt for the kind `matmuls`) takes to parse, verify and print the same
text. Several MGPU_TUNE, as one from before a change, take turns. Each number is the least of its runs, as a busy
machine only adds to them.
"""

import argparse
import resource
import subprocess
import sys
import tempfile

import programs


def seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--operations", default="1000,10000")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("opt")
    parser.add_argument("tunes", nargs="+")
    given = parser.parse_args()
    counts = [int(count) for count in given.operations.split(",")]
    print("| program | operations | parse and verify |" + " check |" * len(given.tunes))
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in programs.KINDS.items():
            least = {}
            for _ in range(given.runs):
                for count in (8, *counts):
                    path = f"{folder}/{kind}-{count}.mlir"
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(make(count))
                    commands = [[given.opt, path, "-o", "/dev/null"], *([tune, "check", path] for tune in given.tunes)]
                    for k, command in enumerate(commands):
                        least[count, k] = min(seconds(command), least.get((count, k), 1e9))
            for count in counts:
                cells = [f"{least[count, k] - least[8, k]:.2f}" for k in range(1 + len(given.tunes))]
                print(f"| {kind} | {count:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
