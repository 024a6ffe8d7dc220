#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tensor that is cut in any way, changed on each device, and moved to another layout is what it was.

Random meshes, splits and sizes of parts. Each device adds the same to its part, so the whole is the
argument plus that, whatever the layouts are.

Usage: layouts.py MGPU_TUNE
"""
import math
import os
import random
import sys
import tempfile

from harness import command, read_npy, write_npy


class Layout:
    def __init__(self, rng, mesh, shape):
        axes = [axis for axis in range(len(mesh)) if rng.random() < 0.8]
        rng.shuffle(axes)
        self.mesh, self.split, self.offsets = mesh, [[] for _ in shape], []
        for axis in axes:
            dim = rng.randrange(len(shape))
            if math.prod(mesh[a] for a in self.split[dim]) * mesh[axis] <= shape[dim]:
                self.split[dim].append(axis)
        for dim, size in enumerate(shape):
            parts = math.prod(mesh[a] for a in self.split[dim])
            inner = sorted(rng.sample(range(1, size), parts - 1))
            self.offsets.append([0, *inner, size] if rng.random() < 0.7 else [])
        # The shape of a part, "?" where parts differ.
        self.sizes = []
        for dim, size in enumerate(shape):
            parts = math.prod(mesh[a] for a in self.split[dim])
            at = self.offsets[dim] or [size // parts * p + min(p, size % parts) for p in range(parts + 1)]
            sizes = {b - a for a, b in zip(at, at[1:])}
            self.sizes.append(str(sizes.pop()) if len(sizes) == 1 else "?")

    def text(self):
        offsets = f", offsets = {self.offsets}" if any(self.offsets) else ""
        return f"<mesh = {self.mesh}, split = {self.split}{offsets}>"

    def type(self):
        return f"tensor<{'x'.join(self.sizes)}xi32>"


def program(rng):
    """(text, shape) of a program that adds 1 under one layout, moves, and adds 1 under another."""
    mesh = rng.choice([[1], [2], [3], [4], [2, 2], [2, 3], [4, 2], [2, 2, 2]])
    shape = [rng.randint(8, 13) for _ in range(rng.choice([1, 2, 3]))]
    a, b = Layout(rng, mesh, shape), Layout(rng, mesh, shape)
    full = f"tensor<{'x'.join(map(str, shape))}xi32>"
    ids = ", ".join(f"d{k}" for k in range(len(shape)))
    same = f"affine_map<({ids}) -> ({ids})>"
    loops = ", ".join(['"parallel"'] * len(shape))

    def more(to, given, layout):
        kind = layout.type()
        return f"""  %{to} = linalg.generic {{indexing_maps = [{same}], iterator_types = [{loops}]}} outs(%{given} : {kind}) {{
  ^bb0(%e: i32):
    %one = arith.constant 1 : i32
    %sum = arith.addi %e, %one : i32
    linalg.yield %sum : i32
  }} -> {kind}
"""

    # A device's part under `b` of an argument that is not read says how large its parts are there.
    return f"""#a = #spmd.layout{a.text()}
#b = #spmd.layout{b.text()}
func.func @main(%x: {full} {{spmd.layout = #a}}, %like: {full} {{spmd.layout = #b}}) -> ({full} {{spmd.layout = #b}}) {{
  %mine = spmd.full_to_shard %x : {full} to {a.type()}
  %place = spmd.full_to_shard %like : {full} to {b.type()}
{more("here", "mine", a)}  %there = spmd.move from #a to #b full = {shape} ins(%here : {a.type()}) outs(%place : {b.type()}) -> {b.type()}
{more("more", "there", b)}  %y = spmd.shard_to_full %more : {b.type()} to {full}
  return %y : {full}
}}
""", shape


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    count = 400 if os.environ.get("MGPU_SWEEPS") == "all" else 8
    with tempfile.TemporaryDirectory() as folder:
        file, given, out = (os.path.join(folder, name) for name in ("p.mlir", "x.npy", "y.npy"))
        for seed in range(count):
            text, shape = program(random.Random(seed))
            values = list(range(math.prod(shape)))
            with open(file, "w") as written:
                written.write(text)
            write_npy(given, values, shape, "<i4")
            command(sys.argv[1], "run", file, "--arg", f"x={given}", "--arg", "like=zeros", "--out", f"r0={out}",
                    about=f"seed {seed}\n{text}")
            got, _ = read_npy(out)
            if got != [value + 2 for value in values]:
                sys.exit(f"seed {seed}: {got}\nof {text}")
    print(f"{count} programs give what they should")


main()
