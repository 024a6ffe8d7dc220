#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs what JAX 0.11 exported of small modules, and compares with what JAX computed.

Usage: exports.py MGPU_TUNE EXPORTS.tar.gz
The archive is what tests/gpu/exports.py wrote: of each module NAME.mlir (StableHLO, with sdy where it is
sharded) and NAME.npz with in0, in1, ... and out0, out1, ...; it also has the forms that are not read yet:
StableHLO and VHLO bytecode, jax.export's own, and .pt2 of PyTorch 2.11.
"""

import glob
import os
import subprocess
import sys
import tarfile
import tempfile

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


def main():
    tune, archive = sys.argv[1:]
    wrong = count = 0
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as file:
            file.extractall(folder)
        for program in sorted(glob.glob(f"{folder}/*/jax-*.mlir")):
            given = program.removesuffix(".lowered.mlir").removesuffix(".mlir") + ".npz"
            if not os.path.exists(given) or "bf16" in given:  # NumPy has no bf16
                continue
            count += 1
            name = os.path.basename(program)
            worst = run(tune, program, numpy.load(given), folder)
            if isinstance(worst, str) or not worst <= TOLERANCE:
                print(f"{name}: {worst}")
                wrong += 1
    print(f"{count - wrong} of {count} exports give what JAX computed")
    if wrong or count < 20:
        sys.exit("FAIL")


if __name__ == "__main__":
    main()
