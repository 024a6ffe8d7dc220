#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random StableHLO programs with Shardy's annotations give the bits of the same programs without them.

Shardings are on arguments, results and operations, and in constraints: axes and parts of axes, open
and closed dimensions, priorities, axes that must not be used; values are in sharding groups. Numbers
are small integers, so sums are exact. MGPU_SWEEPS=all takes many more programs.

Usage: shardy.py MGPU_TUNE [SEED]
"""
import os
import random
import sys
import tempfile

from harness import command, write_npy

MESHES = [{"a": 2}, {"a": 4}, {"a": 2, "b": 2}, {"a": 2, "b": 4}, {"b": 8}, {"a": 2, "b": 2, "c": 2}, {"a": 3, "b": 2}]
MOST = 1 << 22  # floats stay below it, so that all are exact
SIZES = [4, 6, 8, 12, 16]


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.mesh = self.random.choice(MESHES)
        self.element = self.random.choice(["i32", "f32"])
        self.plain, self.sharded, self.values = [], [], []
        self.groups = {}

    def type(self, shape):
        return f"tensor<{'x'.join(map(str, list(shape) + [self.element]))}>"

    def both(self, text):
        self.plain.append(text)
        self.sharded.append(text)

    def pieces(self):
        """Axes, some of them as their parts, in any order."""
        out = []
        for name, size in self.mesh.items():
            if size % 4 == 0 and self.random.random() < 0.5:
                out += [(f'"{name}":(1)2', 2), (f'"{name}":(2){size // 2}', size // 2)]
            else:
                out.append((f'"{name}"', size))
        self.random.shuffle(out)
        return out

    def sharding(self, shape, has_priorities=True):
        dims = [[] for _ in shape]
        left = list(shape)
        unused = []
        for name, size in self.pieces():
            dim = self.random.randrange(len(shape) + 1)
            if dim == len(shape) or left[dim] < size:
                unused.append(name)
                continue
            before = dims[dim][-1] if dims[dim] else ""
            if before.split(":")[0] == name.split(":")[0]:  # parts of an axis that could be one
                unused.append(name)
                continue
            left[dim] //= size
            dims[dim].append(name)
        texts = []
        for names in dims:
            is_open = self.random.random() < 0.5
            text = ", ".join(names + ["?"] * is_open)
            priority = f"p{self.random.randint(0, 2)}" if has_priorities and text and self.random.random() < 0.3 else ""
            texts.append("{" + text + "}" + priority)
        whole = [name for name in unused if ":" not in name]
        replicated = f", replicated={{{whole[0]}}}" if whole and self.random.random() < 0.2 else ""
        return f"<@mesh, [{', '.join(texts)}]{replicated}>"

    def keep(self, name, shape, most):
        if self.random.random() < 0.25:
            self.plain.append(f"%{name}c = stablehlo.optimization_barrier %{name} : {self.type(shape)}")
            self.sharded.append(f"%{name}c = sdy.sharding_constraint %{name} {self.sharding(shape)} : {self.type(shape)}")
            name += "c"
        if self.random.random() < 0.15:
            group = self.groups.setdefault(tuple(shape), len(self.groups))
            self.sharded.append(f"sdy.sharding_group %{name} group_id={group} : {self.type(shape)}")
        self.values.append((name, tuple(shape), most))

    def add(self, operation, types, shape, most, attributes=""):
        """`operation` of a text, with a sharding at times."""
        name = f"v{len(self.plain)}"
        own = attributes[1:-1] if attributes else ""
        self.plain.append(f"%{name} = {operation} {attributes}: {types}")
        if self.random.random() < 0.3:
            own += (", " if own else "") + f"sdy.sharding = #sdy.sharding_per_value<[{self.sharding(shape)}]>"
        self.sharded.append(f"%{name} = {operation} " + (f"{{{own}}} " if own else "") + f": {types}")
        self.keep(name, shape, most)

    def pick(self, fits=lambda shape: True):
        found = [value for value in self.values if fits(value[1])]
        return self.random.choice(found) if found else None

    def add_binary(self):
        a, shape, most = self.pick()
        b, _, other = self.pick(lambda s: s == shape)
        if most + other <= MOST:
            kind = self.random.choice(["add", "subtract", "maximum"])
            self.add(f"stablehlo.{kind} %{a}, %{b}", self.type(shape), shape, most + other)

    def add_dot(self):
        a, shape, most = self.pick(lambda s: len(s) == 2)
        found = self.pick(lambda s: len(s) == 2 and shape[1] in s)
        if not found or most * found[2] * shape[1] > MOST:
            return
        b, other, more = found
        k = other.index(shape[1])
        out = (shape[0], other[1 - k])
        self.add(f"stablehlo.dot_general %{a}, %{b}, contracting_dims = [1] x [{k}]",
                 f"({self.type(shape)}, {self.type(other)}) -> {self.type(out)}", out, most * more * shape[1])

    def add_batch_dot(self):
        found = self.pick(lambda s: len(s) == 3)
        if not found or found[2] ** 2 * found[1][2] > MOST:
            return
        a, shape, most = found
        out = (shape[0], shape[1], shape[1])
        self.add(f"stablehlo.dot_general %{a}, %{a}, batching_dims = [0] x [0], contracting_dims = [2] x [2]",
                 f"({self.type(shape)}, {self.type(shape)}) -> {self.type(out)}", out, most ** 2 * shape[2])

    def add_transpose(self):
        a, shape, most = self.pick()
        order = list(range(len(shape)))
        self.random.shuffle(order)
        out = [shape[k] for k in order]
        self.add(f"stablehlo.transpose %{a}, dims = {order}", f"({self.type(shape)}) -> {self.type(out)}", out, most)

    def add_reduce(self):
        a, shape, most = self.pick(lambda s: len(s) > 1) or (None, (), 0)
        if not a:
            return
        dim = self.random.randrange(len(shape))
        kind = self.random.choice(["add", "maximum"])
        most = most * shape[dim] if kind == "add" else max(most, 1000)
        if most > MOST:
            return
        out = [size for k, size in enumerate(shape) if k != dim]
        start = f"i{len(self.plain)}"
        value = "0" if kind == "add" else "-1000"
        self.both(f"%{start} = stablehlo.constant dense<{value}{'.0' if self.element == 'f32' else ''}> : tensor<{self.element}>")
        name = f"v{len(self.plain)}"
        self.both(f"%{name} = stablehlo.reduce(%{a} init: %{start}) applies stablehlo.{kind} across dimensions = [{dim}] : "
                  f"({self.type(shape)}, tensor<{self.element}>) -> {self.type(out)}")
        self.keep(name, out, most)

    def add_broadcast(self):
        a, shape, most = self.pick(lambda s: len(s) < 3)
        at = self.random.randrange(len(shape) + 1)
        out = list(shape)
        out.insert(at, self.random.choice(SIZES[:3]))
        dims = [k for k in range(len(out)) if k != at]
        self.add(f"stablehlo.broadcast_in_dim %{a}, dims = {dims}", f"({self.type(shape)}) -> {self.type(out)}", out, most)

    def add_reshape(self):
        a, shape, most = self.pick()
        if len(shape) > 1 and self.random.random() < 0.5:
            out = [shape[0] * shape[1], *shape[2:]]
        elif shape[0] % 2 == 0 and len(shape) < 3 and shape[0] > 2:
            out = [2, shape[0] // 2, *shape[1:]]
        else:
            return
        self.add(f"stablehlo.reshape %{a}", f"({self.type(shape)}) -> {self.type(out)}", out, most)

    def add_slice(self):
        a, shape, most = self.pick()
        dim = self.random.randrange(len(shape))
        if shape[dim] < 4:
            return
        size = self.random.randint(shape[dim] // 2, shape[dim])
        first = self.random.randint(0, shape[dim] - size)
        out = [size if k == dim else s for k, s in enumerate(shape)]
        ranges = ", ".join(f"{first if k == dim else 0}:{first + size if k == dim else s}" for k, s in enumerate(shape))
        self.add(f"stablehlo.slice %{a} [{ranges}]", f"({self.type(shape)}) -> {self.type(out)}", out, most)

    def add_concatenate(self):
        a, shape, most = self.pick()
        b, _, other = self.pick(lambda s: s == shape)
        dim = self.random.randrange(len(shape))
        out = [2 * s if k == dim else s for k, s in enumerate(shape)]
        if out[dim] <= 64:
            self.add(f"stablehlo.concatenate %{a}, %{b}, dim = {dim}",
                     f"({self.type(shape)}, {self.type(shape)}) -> {self.type(out)}", out, max(most, other))

    def write(self):
        arguments, shapes = [], []
        for k in range(3):
            shape = [self.random.choice(SIZES) for _ in range(2)] if k else [12, 8]
            sharding = f" {{sdy.sharding = #sdy.sharding{self.sharding(shape)}}}" if self.random.random() < 0.6 else ""
            arguments.append((f"%a{k}: {self.type(shape)}", sharding))
            shapes.append(shape)
            self.values.append((f"a{k}", tuple(shape), 3))
        adds = [self.add_binary, self.add_dot, self.add_dot, self.add_batch_dot, self.add_transpose, self.add_reduce,
                self.add_broadcast, self.add_reshape, self.add_slice, self.add_concatenate]
        for _ in range(9):
            self.random.choice(adds)()
        name, shape, _ = self.values[-1]
        result = f" {{sdy.sharding = #sdy.sharding{self.sharding(shape)}}}" if self.random.random() < 0.5 else ""
        out = []
        for is_sharded, lines in ((False, self.plain), (True, self.sharded)):
            given = ", ".join(text + sharding * is_sharded for text, sharding in arguments)
            mesh = "sdy.mesh @mesh = <[" + ", ".join(f'"{n}"={s}' for n, s in self.mesh.items()) + "]>\n"
            out.append(mesh * is_sharded + f"func.func @main({given}) -> ({self.type(shape)}{result * is_sharded}) {{\n" +
                       "".join(f"  {line}\n" for line in lines) + f"  return %{name} : {self.type(shape)}\n}}\n")
        return out, shapes


def run(tune, folder, seed):
    program = Program(seed)
    (plain, sharded), shapes = program.write()
    outs, given = [], []
    for k, shape in enumerate(shapes):
        path = os.path.join(folder, f"a{k}.npy")
        values = [program.random.randint(-3, 3) for _ in range(shape[0] * shape[1])]
        write_npy(path, values, shape, "<i4" if program.element == "i32" else "<f4")
        given += ["--arg", f"{k}={path}"]
    for name, text in (("plain", plain), ("sharded", sharded)):
        path, out = os.path.join(folder, name + ".mlir"), os.path.join(folder, name + ".npy")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        command(tune, "run", path, *given, "--out", f"r0={out}", about=f"seed {seed}\n{text}")
        with open(out, "rb") as file:
            outs.append(file.read())
    if outs[0] != outs[1]:
        sys.exit(f"seed {seed}: the results differ\n{plain}\n{sharded}")


def main():
    tune = sys.argv[1]
    seeds = range(800 if os.environ.get("MGPU_SWEEPS") == "all" else 25)
    if len(sys.argv) > 2:
        seeds = [int(sys.argv[2])]
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            run(tune, folder, seed)
    print(f"{len(seeds)} programs give the same bits with annotations and without")


main()
