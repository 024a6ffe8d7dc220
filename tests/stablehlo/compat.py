#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the compatibility files of StableHLO, bytecode of each version with the text that it was made of.

Usage: compat.py MGPU_OPT MGPU_TUNE TABLE [--update]

MGPU_STABLEHLO names a checkout of https://github.com/openxla/stablehlo; without it the test is skipped (77). What is decoded equals
the text beside it, operation by operation, but for defaults that the text spells out. TABLE has, for each file, its operations and
the hash of what was decoded, so that a change of the reader shows.
"""

import glob
import hashlib
import os
import re
import subprocess
import sys

# The text may spell out what an operation has anyway.
DEFAULTS = (re.compile(r"api_version = 1 : i32, "),
            re.compile(r" <\{result_accuracy = #stablehlo\.result_accuracy<[^{}]*result_accuracy_mode<DEFAULT>>\}>"))


def printed(opt, path, *options):
    """What mgpu-opt prints in the generic form, as lines."""
    done = subprocess.run([opt, path, "--mlir-print-op-generic", "--mlir-very-unsafe-disable-verifier-on-parsing", *options],
                          capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr[:500]}")
    text = done.stdout
    for default in DEFAULTS:
        text = default.sub("", text)
    return text.splitlines()


def check_future(tune, folder):
    """A file of a version that is not known is refused by its version."""
    done = subprocess.run([tune, "check", f"{folder}/invalid_vhlo_future.mlir.bc"], capture_output=True, text=True, timeout=60)
    if done.returncode != 5 or "2.0.0" not in done.stderr:
        sys.exit(f"a file of version 2.0.0 ends with {done.returncode}: {done.stderr}")


def main():
    opt, tune, table = sys.argv[1:4]
    snapshot = os.environ.get("MGPU_STABLEHLO")
    if not snapshot:
        print("skipped: MGPU_STABLEHLO names no checkout of StableHLO")
        sys.exit(77)
    folder = f"{snapshot}/stablehlo/tests/vhlo"
    files = sorted(glob.glob(f"{folder}/stablehlo_legalize_to_vhlo.*.mlir.bc"))
    if not files:
        sys.exit(f"{folder} has no compatibility files")
    found = []
    for path in files:
        decoded = printed(opt, path, "--convert-vhlo-to-stablehlo")
        written = printed(opt, path.removesuffix(".bc"))
        for line, (ours, theirs) in enumerate(zip(decoded, written, strict=False), 1):
            if ours != theirs:
                sys.exit(f"{path}: line {line} is decoded as\n{ours}\nand written\n{theirs}")
        if len(decoded) != len(written):
            sys.exit(f"{path}: {len(decoded)} lines are decoded, {len(written)} are written")
        operations = sum(bool(re.match(r'\s*(%\S+(:\d+)? = )?"', line)) for line in decoded)
        name = os.path.basename(path).removesuffix(".mlir.bc").removeprefix("stablehlo_legalize_to_vhlo.")
        found.append(f"{name} {operations} {hashlib.sha256(chr(10).join(decoded).encode()).hexdigest()}")
    check_future(tune, folder)
    if "--update" in sys.argv:
        with open(table, "w", encoding="utf-8") as file:
            file.write("# version, operations, SHA-256 of the decoded text; compat.py --update\n" + "\n".join(found) + "\n")
    with open(table, encoding="utf-8") as file:
        known = [line for line in file.read().splitlines() if not line.startswith("#")]
    for line in known:
        if line not in found:
            sys.exit(f"not decoded as before: {line}")
    print(f"{len(files)} of {len(files)} files equal their texts, {sum(int(line.split()[1]) for line in found)} operations")


if __name__ == "__main__":
    main()
