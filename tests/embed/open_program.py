#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mgpu.open() of each kind of file, its errors, and `python -m mgpu`.

Usage: open_program.py SOURCE_FOLDER, with MGPU_TUNE, MGPU_LIBRARY and PYTHONPATH
"""

import os
import subprocess
import sys
import tempfile

import mgpu
from mgpu import _commands

EXAMPLES = f"{sys.argv[1]}/examples"
failed = []


def expect(what, ok):
    if not ok:
        failed.append(what)


def refused(kind, words, *how):
    try:
        mgpu.open(*how)
        expect(f"{how} is opened", False)
    except kind as error:
        expect(f"{how}: {error}", words in str(error))


def module(*words):
    done = subprocess.run([sys.executable, "-m", "mgpu", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


step = mgpu.open(f"{EXAMPLES}/stablehlo/mlp-step.mlir", "host:1")
given = {"w1": [[0.5] * 32] * 16, "w2": [[0.25] * 4] * 32, "x": [[1.0] * 16] * 64, "t": [[0.0] * 4] * 64}
# Each of the 16 sums of products is 8, each of the 32 is 64, and the loss the mean of its squares.
expect("the loss", step(**given)["r0"].tolist() == 64.0 ** 2)
four = mgpu.open(f"{EXAMPLES}/stablehlo/mlp-step.mlir", "host:4", "--mesh", "data=4", "--shard", "x=data", "--shard", "t=data")
expect("the loss of four devices", four(**given)["r0"].tolist() == 64.0 ** 2)
expect("weights", list(mgpu.open(f"{EXAMPLES}/torch/mlp.pt2", "host", "--dim", "batch=8").arguments)[0] == "first.weight")
with tempfile.TemporaryDirectory() as folder:
    _commands.run(["bundle", f"{EXAMPLES}/stablehlo/mlp-step.mlir", "-o", f"{folder}/step.mgpu", *_commands.host_level("host")])
    expect("a bundle", mgpu.open(f"{folder}/step.mgpu", threads=1)(**given)["r0"].tolist() == 64.0 ** 2)
    refused(mgpu.UsageError, "takes no --dim", f"{folder}/step.mgpu", "host", "--dim", "n=1")
refused(mgpu.UsageError, "No such file", "nothere.mlir")
refused(mgpu.UsageError, "give --dim", f"{EXAMPLES}/torch/mlp.pt2")
refused(mgpu.UsageError, "there is no option --frob", f"{EXAMPLES}/torch/mlp.pt2", "host", "--frob")
refused(mgpu.InvalidError, "README.md", f"{sys.argv[1]}/README.md")
code, said = module("check", f"{EXAMPLES}/stablehlo/mlp-step.mlir")
expect(said, code == 0 and "ok: 1 device" in said)
expect("an exit code", module("check", "nothere.mlir")[0] == 2)
os.environ["MGPU_TUNE"] = "/nothere"
code, said = module("check", "nothere.mlir")
expect(said, code == 3 and "name it in MGPU_TUNE" in said)
print("\n".join(failed) or "programs are opened, refused and passed on")
sys.exit(1 if failed else 0)
