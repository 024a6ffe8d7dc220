#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random annotated programs with equal parts give what upstream's partitioner makes of them.

mlir-opt's `sharding-propagation,shard-partition` makes the program of one device, whose arguments are
put into `spmd.full_to_shard` here; both run on the host with exact numbers, and each bit is compared.
Programs that mlir-opt refuses, or crashes on, are counted. Skipped where mlir-opt is absent.
MGPU_SWEEPS=all runs more of them, MGPU_SHARD_SEED=N one.

Usage: upstream.py MGPU_TUNE
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

from harness import read_npy, write_npy

PIPELINE = "builtin.module(func.func(sharding-propagation,shard-partition),canonicalize)"
ROWS = 16


class Program:
    """Products and absolute values of a batch of rows: arguments with their layouts, and the text."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.grid = self.random.choice([[2], [4], [2, 2], [2, 4]])
        self.arguments = []  # name, shape, split
        self.lines = ["  %c = arith.constant 0.0 : f32"]
        model = len(self.grid) - 1
        rows = self.random.choice([[0], []]) if len(self.grid) > 1 else []
        width = self.random.choice([8, 16, 32])
        value = self.argument("x", [ROWS, width], [rows, []])
        cut = []  # how columns of the value are cut
        for layer in range(self.random.randint(1, 4)):
            columns = self.random.choice([8, 16, 32])
            after = [] if cut else self.random.choice([[model], []])
            weight = self.argument(f"w{layer}", [width, columns], [cut, after])
            value = self.product(layer, value, weight, width, columns)
            width, cut = columns, after
            if self.random.random() < 0.5:
                self.lines.append(f"  %a{layer} = tosa.abs {value} : ({self.type(width)}) -> {self.type(width)}")
                value = f"%a{layer}"
        self.result = ([ROWS, width], [rows, cut])
        self.annotate("r", value, *self.result)

    @staticmethod
    def type(columns, rows=ROWS):
        return f"tensor<{rows}x{columns}xf32>"

    def annotate(self, name, value, shape, split):
        shaped = self.type(shape[1], shape[0])
        self.lines += [f"  %{name}s = shard.sharding @grid split_axes = {split} : !shard.sharding",
                       f"  %{name}0 = shard.shard {value} to %{name}s : {shaped}",
                       f"  %{name}1 = shard.shard %{name}0 to %{name}s annotate_for_users : {shaped}"]
        return f"%{name}1"

    def argument(self, name, shape, split):
        self.arguments.append((name, shape, split))
        return self.annotate(name, f"%{name}", shape, split)

    def product(self, layer, a, b, width, columns):
        out = self.type(columns)
        self.lines += [f"  %e{layer} = tensor.empty() : {out}",
                       f"  %z{layer} = linalg.fill ins(%c : f32) outs(%e{layer} : {out}) -> {out}",
                       f"  %m{layer} = linalg.matmul ins({a}, {b} : {self.type(width)}, {self.type(columns, width)})"
                       f" outs(%z{layer} : {out}) -> {out}"]
        return f"%m{layer}"

    def text(self):
        arguments = ", ".join(f"%{n}: {self.type(s[1], s[0])}" for n, s, _ in self.arguments)
        out = self.type(self.result[0][1])
        return (f"shard.grid @grid(shape = {'x'.join(map(str, self.grid))})\n"
                f"func.func @main({arguments}) -> {out} {{\n" + "\n".join(self.lines) +
                f"\n  return %r1 : {out}\n}}\n")

    def around(self, device):
        """The program of one device, as mlir-opt prints it, on parts of whole arguments."""
        def layout(split):
            return f"{{spmd.layout = #spmd.layout<mesh = {self.grid}, split = {split}>}}"
        head = re.search(r"func\.func @main\((.*)\) -> (tensor<\S+>) \{\n", device)
        arguments, begin = [], ""
        for (name, shape, split), local in zip(self.arguments, head.group(1).split(", ")):
            part, local = local.split(": ")
            whole = self.type(shape[1], shape[0])
            arguments.append(f"%{name}: {whole} {layout(split)}")
            begin += f"    {part} = spmd.full_to_shard %{name} : {whole} to {local}\n"
        shape, split = self.result
        whole = self.type(shape[1])
        end = re.search(r"    return (%\S+) : (tensor<\S+>)\n", device)
        return (device[:head.start()] +
                f"func.func @main({', '.join(arguments)}) -> ({whole} {layout(split)}) {{\n" + begin +
                device[head.end():end.start()] +
                f"    %whole = spmd.shard_to_full {end.group(1)} : {end.group(2)} to {whole}\n"
                f"    return %whole : {whole}\n" + device[end.end():])

    def data(self, folder):
        """Files for the arguments, of -1, 0 and 1: all sums are exact."""
        options = []
        for name, shape, _ in self.arguments:
            path = os.path.join(folder, f"{name}.npy")
            count = shape[0] * shape[1]
            write_npy(path, [float(self.random.randint(-1, 1)) for _ in range(count)], shape)
            options += ["--arg", f"{name}={path}"]
        return options


def run(tune, folder, name, text, options):
    path, out = os.path.join(folder, name + ".mlir"), os.path.join(folder, name + ".npy")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([tune, "run", path, *options, "--out", f"r0={out}"],
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{done.stderr}\n{text}"
    return read_npy(out)


def main():
    tune = sys.argv[1]
    opt = shutil.which("mlir-opt-22")
    if not opt:
        print("skipped: no mlir-opt-22 here")
        return 0
    only = os.environ.get("MGPU_SHARD_SEED")
    seeds = [int(only)] if only else range(300 if os.environ.get("MGPU_SWEEPS") == "all" else 12)
    compared = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            program = Program(seed)
            options = program.data(folder)
            ours = run(tune, folder, "ours", program.text(), options)
            done = subprocess.run([opt, "--pass-pipeline=" + PIPELINE], input=program.text(), capture_output=True,
                                  text=True, check=False, timeout=60)
            if done.returncode:
                refused += 1
                continue
            theirs = run(tune, folder, "theirs", program.around(done.stdout), options)
            if ours != theirs:
                print(f"MGPU_SHARD_SEED={seed}: results differ\n{program.text()}\n{done.stdout}")
                return 1
            compared += 1
    print(f"{compared} programs give what upstream's partitioner makes of them; it refused {refused}")
    return 0 if compared else 1


if __name__ == "__main__":
    sys.exit(main())
