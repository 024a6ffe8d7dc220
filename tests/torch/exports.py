#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the .pt2 files that PyTorch 2.11 exported of small modules, and compares with what PyTorch computed.

Usage: exports.py MGPU_TUNE EXPORTS.tar.gz
The archive is what tests/gpu/exports.py wrote: of each module torch-NAME.pt2, torch-NAME-core.pt2 (decomposed
to core ATen), torch-NAME-dynamic.pt2 (with an open batch), and torch-NAME.npz with in0, ... and out0, ....
No torch is needed here.
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

# The share of the largest number that sums of up to 72 products in another order, exponentials and erf are
# off by; of bf16 one unit in the last place of what is rounded at other places.
TOLERANCE, NARROW = 2e-6, 2 ** -7
# The user's arguments of each module, in their order.
INPUTS = {"step": ["x", "t"], "words": ["ids"]}


def to_bf16(values):
    """The bits of numbers that are numbers of bf16."""
    return (values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)


def from_bf16(bits):
    return (bits.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)


def run(tune, program, inputs, outputs, words=()):
    """The largest difference of the results, by the largest number in them; or what went wrong."""
    folder, narrow = os.path.dirname(program), "bf16" in program
    words = list(words)
    for name, value in inputs.items():
        path = f"{folder}/{name}.{'bin' if narrow else 'npy'}"
        if narrow:
            to_bf16(value).tofile(path)
            path = f"raw:bf16:{'x'.join(map(str, value.shape))}:{path}"
        else:
            numpy.save(path, value)
        words += ["--arg", f"{name}={path}"]
    for k in range(len(outputs)):
        words += ["--out", f"r{k}={folder}/out{k}.npy"]
    done = subprocess.run([tune, "run", program, *words], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    worst = 0.0
    for k, want in enumerate(outputs):
        found = numpy.load(f"{folder}/out{k}.npy")
        found = from_bf16(found) if narrow else found
        if found.shape != want.shape:
            return f"result {k} has shape {found.shape}, not {want.shape}"
        worst = max(worst, float(numpy.max(numpy.abs(found - want)) / max(numpy.max(numpy.abs(want)), 1e-30)))
    return worst


def main():
    tune, archive = sys.argv[1:]
    wrong = count = 0

    def judge(what, found, bound):
        nonlocal wrong, count
        count += 1
        if isinstance(found, str) or not found <= bound:
            print(f"{what}: {found}")
            wrong += 1

    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as file:
            file.extractall(folder)
        for program in sorted(glob.glob(f"{folder}/*/torch-*.pt2")):
            name = os.path.basename(program)[len("torch-"):-len(".pt2")]
            kind = name.removesuffix("-core").removesuffix("-dynamic")
            values = numpy.load(f"{os.path.dirname(program)}/torch-{kind}.npz")
            inputs = {key: values[f"in{k}"] for k, key in enumerate(INPUTS.get(kind, ["x"]))}
            outputs = [values[key] for key in sorted(values) if key.startswith("out")]
            bound = NARROW if "bf16" in name else TOLERANCE
            if not name.endswith("-dynamic"):
                judge(name, run(tune, program, inputs, outputs), bound)
                continue
            # Its rows do not know of each other, so twice the batch gives each twice.
            twice = lambda all: [numpy.concatenate([each, each]) for each in all]
            for factor, dim in ((1, "batch"), (2, "s77"), (2, "x.0")):
                given = inputs if factor == 1 else dict(zip(inputs, twice(inputs.values())))
                rows = str(given["x"].shape[0])
                judge(f"{name} of {rows}", run(tune, program, given, outputs if factor == 1 else twice(outputs),
                                               ["--dim", f"{dim}={rows}"]), bound)
    print(f"{count - wrong} of {count} runs give what PyTorch computed")
    if wrong or count < 18:
        sys.exit("FAIL")


if __name__ == "__main__":
    main()
