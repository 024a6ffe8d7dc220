#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the table of docs/gpu-dialect.md: each operation once, no cell empty, and each test names it.

    table.py SOURCE_DIR MGPU_OPT

That an operation is one of MLIR's is asked of mgpu-opt, which knows those of the gpu dialect.
"""

import os
import re
import subprocess
import sys

COUNT = 66  # operations of the gpu dialect in LLVM 22


def main():
    source, opt = sys.argv[1:]
    with open(os.path.join(source, "docs/gpu-dialect.md"), encoding="utf-8") as file:
        rows = [line.strip("|\n ").split(" | ") for line in file if line.startswith("| `")]
    faults = []
    names = [row[0].strip("`") for row in rows]
    if len(names) != COUNT or len(set(names)) != COUNT:
        faults.append(f"{len(names)} rows, {len(set(names))} operations, expected {COUNT}")
    for row, name in zip(rows, names):
        if len(row) != 6 or not all(cell.strip() for cell in row):
            faults.append(f"{name}: a cell is missing or empty")
            continue
        path = os.path.join(source, "tests", row[5])
        text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        refused = row[1].startswith("exit 5")
        if not refused and not re.search(r"gpu\." + name + r"\b", text):
            faults.append(f"{name}: {row[5]} does not have it")
        if refused and not text:
            faults.append(f"{name}: {row[5]} is not there")
    # An operation that MLIR does not know is "unregistered"; others fail otherwise, or parse.
    text = "\n// -----\n".join(f'"gpu.{name}"() : () -> ()' for name in names + ["no_such"])
    done = subprocess.run([opt, "--split-input-file"], input=text, capture_output=True, text=True)
    unknown = set(re.findall(r"unregistered operation 'gpu\.(\w+)'", done.stderr))
    if unknown != {"no_such"}:
        faults.append(f"MLIR has no such operations: {sorted(unknown)} (but for no_such)")
    print("\n".join(faults) or f"{len(names)} operations")
    return 1 if faults else 0


sys.exit(main())
