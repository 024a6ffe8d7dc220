#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs over several meshes give what the same program on one device gives, bit for bit:
all numbers are small whole ones. Half of them are made of named computations, with --assign, and
half of fragments whose values are sharded; some plans are shuffled. MGPU_SWEEPS makes it hundreds."""
import os
import random
import sys
import tempfile

from harness import command, pairs, write_npy

tune = sys.argv[1]
COUNT = 400 if os.environ.get("MGPU_SWEEPS") else 12
N = 8  # every tensor is N x N
T = f"tensor<{N}x{N}xi32>"


def layer(rng, names, out):
    """Lines of a body that computes `out` of the values `names`, all within -3..3."""
    lines = [f"%lo = stablehlo.constant dense<-3> : {T}", f"%hi = stablehlo.constant dense<3> : {T}"]
    value = names[0]
    for k, other in enumerate(names[1:] + [names[0]]):
        op = rng.choice(["add", "subtract", "maximum", "dot", "transpose"])
        if op == "dot":
            lines.append(f"%v{k} = stablehlo.dot {value}, {other} : ({T}, {T}) -> {T}")
        elif op == "transpose":
            lines.append(f"%u{k} = stablehlo.transpose {other}, dims = [1, 0] : ({T}) -> {T}")
            lines.append(f"%v{k} = stablehlo.add {value}, %u{k} : {T}")
        else:
            lines.append(f"%v{k} = stablehlo.{op} {value}, {other} : {T}")
        value = f"%v{k}"
    lines.append(f"{out} = stablehlo.clamp %lo, {value}, %hi : {T}")
    return lines


class Program:
    """One random program in two forms: over meshes, and plain."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.meshes = {f"m{k}": rng.choice([[1], [2], [4], [2, 2]]) for k in range(rng.randint(2, 4))}
        self.named = seed % 2 == 0
        self.shardings = {}
        self.mesh_lines, self.functions, self.assign = [], [], []
        self.plain_lines, self.types = [], {}
        self.values = [f"%a{k}" for k in range(rng.randint(2, 4))]
        self.arguments = list(self.values)
        if not self.named:
            for value in self.values:
                self.types[value] = self.type_on(rng.choice(list(self.meshes)))
        for k in range(rng.randint(2, 6)):
            self.add_layer(k)
        self.results = rng.sample(self.values, min(2, len(self.values)))

    def type_on(self, mesh):
        axes = [f'"{mesh}{k}"' for k in range(len(self.meshes[mesh]))]
        self.rng.shuffle(axes)
        dims = ["{}", "{}"]
        for axis in axes[: self.rng.randint(0, len(axes))]:
            dim = self.rng.randrange(2)
            dims[dim] = "{" + axis + "}" if dims[dim] == "{}" else dims[dim][:-1] + ", " + axis + "}"
        return f'!mpmd.mesh_tensor<"{mesh}", {T}, sharding=<@{mesh}, [{dims[0]}, {dims[1]}]>>'

    def on_mesh(self, value, mesh):
        have = self.types[value]
        want = self.type_on(mesh)
        if have == want:
            return value, want
        moved = f"%t{len(self.mesh_lines)}"
        self.mesh_lines.append(f"{moved} = mpmd.transfer {value} : ({have}) -> {want}")
        return moved, want

    def add_layer(self, k):
        rng = self.rng
        used = rng.sample(self.values, rng.randint(1, min(3, len(self.values))))
        mesh, out = rng.choice(list(self.meshes)), f"%r{k}"
        names = [f"%x{i}" for i in range(len(used))]
        body = layer(rng, names, "%y")
        arguments = ", ".join(f"{name}: {T}" for name in names)
        types = ", ".join([T] * len(used))
        self.functions.append(
            f"func.func private @f{k}({arguments}) -> {T} {{\n  " + "\n  ".join(body) + f"\n  return %y : {T}\n}}")
        self.plain_lines.append(f"{out} = func.call @f{k}({', '.join(used)}) : ({types}) -> {T}")
        if self.named and rng.random() < 0.25 and len(self.values) > 1:
            pair = rng.sample(self.values, 2)
            self.mesh_lines.append(f"{out} = mpmd.reduce<max> {pair[0]}, {pair[1]} : ({T}, {T}) -> {T}")
            self.plain_lines[-1] = f"{out} = stablehlo.maximum {pair[0]}, {pair[1]} : {T}"
        elif self.named:
            self.assign += ["--assign", f"f{k}={mesh}"]
            self.mesh_lines.append(f'{out} = mpmd.named_computation<"f{k}"> ({", ".join(used)}) ({arguments}) {{')
            self.mesh_lines += body + [f"mpmd.return %y : {T}", f"}} : ({types}) -> {T}"]
        else:
            inputs = [self.on_mesh(value, mesh) for value in used]
            self.types[out] = self.type_on(mesh)
            self.mesh_lines.append(f'{out} = mpmd.fragment<mesh="{mesh}", origin=["f{k}"]> '
                                   f'({", ".join(name for name, _ in inputs)}) ({arguments}) {{')
            self.mesh_lines += body + [f"mpmd.return %y : {T}",
                                       f"}} : ({', '.join(t for _, t in inputs)}) -> {self.types[out]}"]
        self.values.append(out)

    def text(self, over_meshes):
        types = self.types if over_meshes and not self.named else {}
        lines = self.mesh_lines if over_meshes else self.plain_lines
        arguments = ", ".join(f"{a}: {types.get(a, T)}" for a in self.arguments)
        results = [types.get(r, T) for r in self.results]
        meshes = ", ".join(
            f'<"{name}" : <[' + ", ".join(f'"{name}{k}"={size}' for k, size in enumerate(sizes)) + "]>>"
            for name, sizes in self.meshes.items())
        attributes = f" attributes {{topology = #mpmd.topology<{meshes}>}}" if over_meshes else ""
        return "\n".join(
            ([] if over_meshes else self.functions)
            + [f"func.func @main({arguments}) -> ({', '.join(results)}){attributes} {{"]
            + lines + [f"return {', '.join(self.results)} : {', '.join(results)}", "}", ""])


def run(folder, program, seed, over_meshes, *options):
    path = os.path.join(folder, "program.mlir")
    with open(path, "w") as file:
        file.write(program.text(over_meshes))
    outs = [os.path.join(folder, f"r{k}.npy") for k in range(len(program.results))]
    command(tune, "run", path, *options,
            *pairs("--arg", [f"{k}={folder}/a{k}.npy" for k in range(len(program.arguments))]),
            *pairs("--out", [f"r{k}={out}" for k, out in enumerate(outs)]),
            about=f"seed {seed}\n{program.text(over_meshes)}", timeout=120)
    results = []
    for out in outs:
        with open(out, "rb") as file:
            results.append(file.read())
        os.remove(out)
    return results


for seed in range(COUNT):
    program = Program(seed)
    with tempfile.TemporaryDirectory() as folder:
        for k in range(len(program.arguments)):
            values = [program.rng.randint(-3, 3) for _ in range(N * N)]
            write_npy(os.path.join(folder, f"a{k}.npy"), values, (N, N), "<i4")
        plain = run(folder, program, seed, False)
        shuffled = ["--scheduler", "shuffled", "--seed", str(seed)] if seed % 3 == 0 else []
        if run(folder, program, seed, True, *program.assign, *shuffled) != plain:
            sys.exit(f"seed {seed}: results differ\n{program.text(True)}")
print(f"{COUNT} programs over several meshes equal the plain ones bit for bit")
