#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the instructions of `mgpu-tune check` grow with a program, start-up taken off.

Usage: growth.py MGPU_TUNE STRIP KIND

From 300 to 1,000 operations they may be 3.6 times as many, which is looked at of the chain and the tree of
products alone; with MGPU_SWEEPS=all, from 1,000 to 10,000, 11 times, of each kind. They are counted by cachegrind, as times
say little on a busy machine, in a copy of the command without symbols: valgrind cannot read all that clang
writes. Without valgrind the test is skipped, and fails with MGPU_REQUIRE_VALGRIND.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import programs

SKIPPED = 77


def instructions(tune, folder, text):
    path = os.path.join(folder, "program.mlir")
    with open(path, "w") as file:
        file.write(text)
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", tune, "check", path],
        capture_output=True, text=True, timeout=1500, check=False)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"FAIL: exit code {done.returncode}\n{done.stdout[:1000]}{done.stderr[-3000:]}")
    return int(found[1].replace(",", ""))


def main():
    tune, strip, kind = sys.argv[1:]
    if not shutil.which("valgrind"):
        if os.environ.get("MGPU_REQUIRE_VALGRIND"):
            sys.exit("FAIL: there is no valgrind")
        print("skipped: there is no valgrind")
        sys.exit(SKIPPED)
    make = programs.KINDS[kind]
    sweeps = os.environ.get("MGPU_SWEEPS") == "all"
    if kind not in ("matmuls", "tree") and not sweeps:
        print("skipped: it takes a minute, and is of make check-all")
        sys.exit(SKIPPED)
    few, many, most = (1000, 10_000, 11.0) if sweeps else (300, 1000, 3.6)
    with tempfile.TemporaryDirectory() as folder:
        bare = os.path.join(folder, "mgpu-tune")
        subprocess.run([strip, "-o", bare, tune], check=True)
        start, at_few, at_many = (instructions(bare, folder, make(count)) for count in (8, few, many))
    growth = (at_many - start) / (at_few - start)
    print(f"{kind}: start-up {start:,}; {few} operations {at_few - start:,}; {many} operations"
          f" {at_many - start:,}: {growth:.2f} times, at most {most}")
    if growth > most:
        sys.exit("FAIL: it grows faster than the program")


if __name__ == "__main__":
    main()
