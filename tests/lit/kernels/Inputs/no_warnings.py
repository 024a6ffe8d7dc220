# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists the kernels of every example for sm_80, sm_90 and sm_100; fails where anything is said of them.

Usage: no_warnings.py MGPU_TUNE ROOT
"""

import glob
import json
import subprocess
import sys

tune, root = sys.argv[1:]
PROGRAMS = [
    ["examples/saxpy/saxpy.mlir", "--arg", "a=2"],
    ["examples/digits/digits.mlir", "--arg", "rate=0.5"],
    ["examples/digits/digits.mlir", "--entry", "eval"],
    ["examples/heat/heat.mlir"],
    ["examples/mlp/mlp.mlir"],
    ["examples/mandelbrot/mandelbrot.mlir"],
    ["examples/ops/ops.mlir"],
    ["examples/exchange/exchange.mlir"],
    ["examples/source/source.mlir"],
    ["examples/attention/attention.mlir"],
    ["examples/gpu/dot.mlir"],
    ["examples/tensor/attention.mlir"],
    ["examples/stablehlo/mlp-step.mlir"],
    ["examples/tensor/data-parallel.mlir", "--arg", "rate=0.5"],
    ["examples/tensor/tensor-parallel.mlir", "--arg", "rate=0.5"],
    ["examples/tensor/fully-sharded.mlir", "--arg", "rate=0.5"],
    ["tests/lit/run/dynamic-shared-memory.mlir"],
]
# Kernels of the same forms as above.
FOR_ONE_ARCH = [
    ["examples/tensor/pipeline.mlir"],
    ["examples/mpmd/named.mlir", "--assign", "embed=front", "--assign", "head=back"],
    ["examples/mpmd/training.mlir"],
    ["examples/mpmd/gpt.mlir"],
    ["examples/mpmd/heterogeneous.mlir"],
    ["examples/mpmd/inference.mlir"],
    ["examples/mpmd/offload.mlir"],
    ["examples/shard/jacobi.mlir"],
    ["examples/shard/matmul.mlir"],
    ["examples/shard/training.mlir", "--arg", "rate=0.5"],
    ["examples/shard/transformer.mlir"],
    ["examples/shard/transpose.mlir"],
    ["examples/torch/linalg-mlp.mlir"],
]

missing = set(glob.glob("examples/*/*.mlir", root_dir=root)) - {
    program for program, *_ in PROGRAMS + FOR_ONE_ARCH
}
if missing:
    sys.exit(f"not listed here: {missing}")
runs = kernels = 0
for program, *arguments in PROGRAMS + FOR_ONE_ARCH:
    for arch in ("sm_80", "sm_90", "sm_100") if [program, *arguments] in PROGRAMS else ("sm_90",):
        done = subprocess.run(
            [tune, "kernels", program, "--json", "--arch", arch, *arguments], cwd=root, capture_output=True, text=True
        )
        if done.returncode or done.stderr:
            sys.exit(f"{program} {arch}: exit code {done.returncode}\n{done.stderr}")
        listed = json.loads(done.stdout)["kernels"]
        for kernel in listed:
            if not (kernel["registers"] > 0 and kernel["spill_bytes"] == 0 and 0 < kernel["occupancy"] <= 1):
                sys.exit(f"{program} {arch}: {kernel}")
        runs += 1
        kernels += len(listed)
print(f"{runs} runs, {kernels} kernels")
