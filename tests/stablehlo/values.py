#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs small programs whose head says what goes in and what comes out, bit for bit.

    values.py MGPU_TUNE FOLDER [LIBRARIES]

LIBRARIES are doubles of CUDA's libraries. The head of a program has lines of these forms:

    // argument NAME: 2x3xf32 = 1 2 3 4 5 6
    // expected r0: 2xi32 = 1 -1     the elements; each NaN is like another
    // permutation r0: 2xi32 = 1 -1  the same elements, in any order
    // exit 1: WORDS                 it is refused with WORDS
    // options: --repeat 2           more options of the command
    // doubles                       it runs over the doubles, too

A program that compares its own results (check.expect_...) needs no line. None may be warned of.
"""

import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

# Integers of 4 bits lie in bytes.
TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i1": np.uint8, "i4": np.int8, "i8": np.int8,
         "i16": np.int16, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui32": np.uint32, "ui64": np.uint64}
LINE = re.compile(r"(?m)^// (argument|expected|permutation) (\w+): ([\w]+) =(.*)$")


def array(type_, numbers):
    *shape, element = type_.split("x")
    kind = TYPES[element]
    parse = float if issubclass(kind, np.floating) else int
    return np.array([parse(number) for number in numbers.split()], dtype=kind).reshape([int(size) for size in shape])


def bits(value, sort):
    """Its bytes, where each NaN is one number."""
    flat = value.reshape(-1).copy()
    if np.issubdtype(flat.dtype, np.floating):
        flat[np.isnan(flat)] = np.nan
    return (np.sort(flat) if sort else flat).tobytes()


def fault_of(tune, path, folder, libraries=""):
    """What is wrong with the program at `path`, over the doubles if there are; empty where nothing is."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    command, results, environment = [tune, "run", path], [], dict(os.environ, MGPU_DB=f"{folder}/db")
    if libraries:
        command += ["--target", "cuda:0"]
        environment.update(LD_LIBRARY_PATH=libraries, MGPU_REHEARSAL=folder)
    for options in re.findall(r"(?m)^// options: (.*)$", text):
        command += options.split()
    for what, name, type_, numbers in LINE.findall(text):
        value, at = array(type_, numbers), f"{folder}/{what}-{name}.npy"
        if what == "argument":
            np.save(at, value)
            command += ["--arg", f"{name}={at}"]
        else:
            results.append((name, at, value, what == "permutation"))
            command += ["--out", f"{name}={at}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    refused = re.search(r"(?m)^// exit (\d+): (.*)$", text)
    if refused:
        good = done.returncode == int(refused.group(1)) and refused.group(2) in done.stderr
        return "" if good else f"exit {done.returncode}: {done.stderr[-800:]}"
    if done.returncode or "warning" in done.stderr:
        return f"exit {done.returncode}: {done.stderr[-800:]}"
    for name, at, want, sort in results:
        have = np.load(at)
        have = have.view(want.dtype) if have.dtype.itemsize == want.dtype.itemsize else have
        if have.shape != want.shape or bits(have, sort) != bits(want, sort):
            return f"{name} is {have.tolist()}, not {want.tolist()}"
    return "" if results or "@check.expect_" in text else "its head expects nothing"


def main():
    tune, folder, *libraries = sys.argv[1:]
    names = sorted(name for name in os.listdir(folder) if name.endswith(".mlir"))
    runs, faults = [(name, "") for name in names], 0
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            if re.search(r"(?m)^// doubles$", file.read()):
                runs += [(name, doubles) for doubles in libraries]
    for name, doubles in runs:
        with tempfile.TemporaryDirectory() as inputs:
            fault = fault_of(tune, os.path.join(folder, name), inputs, doubles)
        if fault:
            print(f"{name}{' over doubles' if doubles else ''}: {fault}")
        faults += bool(fault)
    print(f"{len(runs) - faults} of {len(runs)} runs give what they should")
    return 1 if faults or not names else 0


if __name__ == "__main__":
    sys.exit(main())
