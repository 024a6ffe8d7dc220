#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs what JAX 0.11 exported of small modules through the plugin, each device with its parts of the arguments, and
compares each device's parts of the results with what JAX computed.

Usage: exports.py [--gpus] PJRT_RUN PLUGIN EXPORTS.tar.gz NAME...
With --gpus on one GPU, as several devices of one and on several GPUs: those of tests/rehearsal, or real ones. The archive is that of tests/stablehlo/exports.py; of each module its bytecode is run (NAME.vhlo), and the text beside it
(NAME.mlir) says the shardings. With MGPU_SWEEPS every module of the archive is run.
"""

import glob
import math
import os
import re
import subprocess
import sys
import tarfile
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: there is no NumPy")
    sys.exit(77)

TOLERANCE = 2e-6  # as tests/stablehlo/exports.py
TYPES = {"f32": 11, "bf16": 13, "i32": 4, "ui32": 8, "i1": 1}


def to_bytes(value, element):
    if element == "bf16":
        bits = value.astype(np.float32).view(np.uint32)
        return ((bits + ((bits >> 16) & 1) + 0x7FFF) >> 16).astype(np.uint16).tobytes()
    return value.tobytes()


def from_bytes(data, element, like):
    if element == "bf16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(like.shape)
    return np.frombuffer(data, like.dtype).reshape(like.shape)


class Module:
    """The mesh of a text, and the type and sharding of each argument and result."""

    def __init__(self, text):
        mesh = re.search(r"sdy\.mesh @mesh = <\[(.*?)\]>", text)
        self.axes = [(name, int(size)) for name, size in re.findall(r'"(\w+)"=(\d+)', mesh.group(1))] if mesh else []
        self.devices = int(np.prod([size for _, size in self.axes]))
        line = next(line for line in text.split("\n") if "func.func public @main" in line)
        given, made = line.split(") -> ", 1)
        self.arguments, self.results = self.values(given), self.values(made)

    @staticmethod
    def values(text):
        found = []
        for part in re.split(r"(?=tensor<)", text)[1:]:
            sharding = re.search(r"sdy\.sharding = #sdy\.sharding<@\w+, \[(.*?)\]>", part)
            dims = [re.findall(r'"(\w+)"', dim) for dim in re.findall(r"\{(.*?)\}", sharding.group(1))] if sharding else []
            found.append((re.match(r"tensor<(?:\d+x)*(\w+)>", part).group(1), dims))
        return found

    def part(self, whole, dims, device):
        places = dict(zip([name for name, _ in self.axes], np.unravel_index(device, [size for _, size in self.axes] or [1])))
        sizes, cuts = dict(self.axes), []
        for dim, axes in enumerate(dims):
            count, at = 1, 0
            for axis in axes:
                count, at = count * sizes[axis], at * sizes[axis] + places[axis]
            size = whole.shape[dim] // count
            cuts.append(slice(at * size, (at + 1) * size))
        return whole[tuple(cuts)]


def targets(devices, is_gpus):
    if not is_gpus:
        return [f"host:{devices}"]
    return [f"cuda:0/{devices}"] + ([f"cuda:{','.join(map(str, range(devices)))}"] if devices == 2 else [])


def run(program, plugin, base, folder, is_gpus):
    """The largest difference of the results, by the largest number in them; or what is wrong."""
    with open(base + ".mlir", encoding="utf-8") as file:
        module = Module(file.read())
    values = np.load(base + ".npz")
    with open(os.path.join(folder, "arguments"), "w", encoding="utf-8") as lines:
        for device in range(module.devices):
            for k, (element, dims) in enumerate(module.arguments):
                own = module.part(values[f"in{k}"], dims, device)
                path = os.path.join(folder, f"in.{device}.{k}")
                with open(path, "wb") as file:
                    file.write(to_bytes(own, element))
                print(device, TYPES[element], own.ndim, *own.shape, path, file=lines)
    return max((run_on(target, [program, plugin, base + ".vhlo", str(module.devices), folder, target], module, values, folder)
                for target in targets(module.devices, is_gpus)), key=lambda off: off if isinstance(off, float) else math.inf)


def run_on(target, words, module, values, folder):
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        return f"{target}: exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    worst = 0.0
    for device in range(module.devices):
        for k, (element, dims) in enumerate(module.results):
            want = module.part(values[f"out{k}"], dims, device)
            with open(os.path.join(folder, f"out.{device}.{k}"), "rb") as file:
                found = from_bytes(file.read(), element, want)
            off = float(np.max(np.abs(found - want)) / max(np.max(np.abs(want)), 1e-30))
            worst = max(worst, off / (2 ** 16 if element == "bf16" else 1))
    return worst


def main():
    is_gpus = sys.argv[1] == "--gpus"
    program, plugin, archive, *names = sys.argv[1 + is_gpus:]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as file:
            file.extractall(folder)
        found = {os.path.basename(path)[:-5]: path[:-5] for path in sorted(glob.glob(f"{folder}/*/*.vhlo"))}
        for name in found if os.environ.get("MGPU_SWEEPS") else names:
            off = run(program, plugin, found[name], folder, is_gpus)
            is_wrong = not isinstance(off, float) or not off <= TOLERANCE
            print(f"{name}: {off}{' WRONG' if is_wrong else ''}")
            wrong += is_wrong
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
