#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CPU seconds of `mgpu-tune check` by kind of program and number of operations, start-up taken off: a table.

Usage: times.py OPT MGPU_TUNE...

Beside them stands what OPT (mgpu-opt, or mlir-opt for the kind `matmuls`) takes to parse, verify and print the same
text. Several MGPU_TUNE, as one from before a change, take turns. Each number is the least of three runs, as a busy
machine only adds to them.
"""

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
    opt, *tunes = sys.argv[1:]
    print("| program | operations | parse and verify |" + " check |" * len(tunes))
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in programs.KINDS.items():
            least = {}
            for _ in range(3):
                for count in (8, 1000, 10_000):
                    path = f"{folder}/{kind}-{count}.mlir"
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(make(count))
                    for k, command in enumerate([[opt, path, "-o", "/dev/null"], *([tune, "check", path] for tune in tunes)]):
                        least[count, k] = min(seconds(command), least.get((count, k), 1e9))
            for count in (1000, 10_000):
                cells = [f"{least[count, k] - least[8, k]:.2f}" for k in range(1 + len(tunes))]
                print(f"| {kind} | {count:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
