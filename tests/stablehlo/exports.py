#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs what JAX 0.11 exported of small modules, and compares with what JAX computed.

Usage: exports.py MGPU_TUNE EXPORTS.tar.gz [MUTANTS]
The archive is what tests/gpu/exports.py wrote: of each module NAME.mlir (StableHLO, with sdy where it is
sharded), NAME.vhlo (its bytecode with a version), NAME.jax_export (jax.export's file), NAME.mlirbc (its
bytecode without a version, which is refused) and NAME.npz with in0, in1, ... and out0, out1, ... MUTANTS files
with some bytes changed, or cut, must end in a sentence or a program, within 10 seconds each.
"""

import glob
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time

try:
    import numpy
except ImportError:
    print("skipped: there is no NumPy")
    sys.exit(77)

# The share of the largest number that a sum of 48 products in another order, or an exponential, is off by.
TOLERANCE = 2e-6


def run(tune, program, values, folder):
    """The largest difference of the results, by the largest number in them."""
    words = []
    for k in range(sum(key.startswith("in") for key in values)):
        path = os.path.join(folder, f"in{k}.npy")
        numpy.save(path, values[f"in{k}"])
        words += ["--arg", f"{k}={path}"]
    outs = [key for key in values if key.startswith("out")]
    for key in outs:
        words += ["--out", f"r{key[3:]}={folder}/{key}.npy"]
    done = subprocess.run([tune, "run", program, *words], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    worst = 0.0
    for key in outs:
        found, want = numpy.load(f"{folder}/{key}.npy"), values[key]
        if found.shape != want.shape:
            return f"{key} has shape {found.shape}, not {want.shape}"
        worst = max(worst, float(numpy.max(numpy.abs(found - want)) / max(numpy.max(numpy.abs(want)), 1e-30)))
    return worst


def program_of(base, form):
    return base + (".lowered.mlir" if form == "lowered" else "." + form)


def compare(tune, folder):
    """How many exports were run, and how many of them are wrong."""
    wrong = count = 0
    for given in sorted(glob.glob(f"{folder}/*/jax-*.npz")):
        if "bf16" in given:  # NumPy has no bf16
            continue
        for form in ("mlir", "lowered", "vhlo", "jax_export"):
            program = program_of(given.removesuffix(".npz"), form)
            if not os.path.exists(program):
                continue
            count += 1
            worst = run(tune, program, numpy.load(given), folder)
            if isinstance(worst, str) or not worst <= TOLERANCE:
                print(f"{os.path.basename(program)}: {worst}")
                wrong += 1
    print(f"{count - wrong} of {count} exports give what JAX computed")
    return count, wrong


def refuse(tune, folder):
    """How many files without a version are not refused as they must be."""
    wrong = 0
    for program in sorted(glob.glob(f"{folder}/*/*.mlirbc")):
        done = subprocess.run([tune, "check", program], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 5 or "which has no version" not in done.stderr:
            print(f"{program}: exit code {done.returncode}: {done.stderr[-300:]}")
            wrong += 1
    return wrong


def mutant(data, random_):
    data = bytearray(data)
    if random_.random() < 0.1:
        return data[: random_.randrange(len(data))]
    for _ in range(random_.choice((1, 1, 2, 4))):
        at = random_.randrange(len(data))
        data[at] = random_.choice((0, 1, 127, 128, 255, data[at] ^ 1 << random_.randrange(8), random_.randrange(256)))
    return data


def mutate(tune, folder, count):
    """How many mutants end in another way than with a sentence or a program."""
    files = sorted(glob.glob(f"{folder}/*/*.vhlo") + glob.glob(f"{folder}/*/*.jax_export"))
    random_ = random.Random(1)
    ends, wrong = {}, 0
    path = f"{folder}/mutant"
    for number in range(count):
        with open(random_.choice(files), "rb") as file:
            data = mutant(file.read(), random_)
        with open(path, "wb") as file:
            file.write(data)
        start = time.monotonic()
        done = subprocess.run([tune, "check", path], capture_output=True, text=True, errors="replace", timeout=120,
                              check=False)
        seconds = time.monotonic() - start
        crashed = "it is damaged; MLIR's reader" in done.stderr
        end = "the reader died" if crashed else done.returncode
        ends[end] = ends.get(end, 0) + 1
        if done.returncode not in (0, 1, 5) or (done.returncode and "error: " not in done.stderr) or seconds > 60:
            print(f"mutant {number}: exit code {done.returncode} after {seconds:.1f} s: {done.stderr[-300:]}")
            wrong += 1
    print(f"{count} mutants end with {ends}")
    return wrong


def main():
    tune, archive = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as file:
            file.extractall(folder)
        if len(sys.argv) > 3:
            times = 100 if os.environ.get("MGPU_SWEEPS") else 1
            wrong, count = mutate(tune, folder, times * int(sys.argv[3])), 40
        else:
            count, wrong = compare(tune, folder)
            wrong += refuse(tune, folder)
    if wrong or count < 40:
        sys.exit("FAIL")


if __name__ == "__main__":
    main()
