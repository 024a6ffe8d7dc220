#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each collective and index operation of the shard dialect gives what its definition says.

A program gives every device its own tensor, applies each operation to it, and returns what all
devices have. What the dialect leaves undefined is not compared. MGPU_SWEEPS=all takes all grids,
and of each all lists of axes.

Usage: operations.py MGPU_TUNE
"""
import itertools
import math
import os
import random
import struct
import sys
import tempfile

from harness import command, pairs, read_npy, write_npy

ROWS, COLUMNS = 24, 4  # of each device's tensor; all groups divide ROWS
TYPES = {"i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "f16": "<f2", "bf16": "<V2", "f32": "<f4", "f64": "<f8"}
WIDER = {"i8": "i32", "i16": "i32", "i32": "i64", "f16": "f32", "bf16": "f32", "f32": "f64", "i64": "i64", "f64": "f64"}


class Grid:
    """Devices of a grid, row-major, and the groups that differ along some axes alone."""

    def __init__(self, shape):
        self.shape = shape
        self.places = list(itertools.product(*map(range, shape)))

    def rank(self, device, axes):
        rank = 0
        for axis in axes:
            rank = rank * self.shape[axis] + self.places[device][axis]
        return rank

    def group(self, device, axes):
        here = self.places[device]
        same = [d for d, place in enumerate(self.places)
                if all(a in axes or place[a] == here[a] for a in range(len(here)))]
        return sorted(same, key=lambda d: self.rank(d, axes))


def is_float(element):
    return element[0] != "i"


def to_file(value, element):
    """A number as the file has it: of two bytes, the bits."""
    if element == "f16":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    if element == "bf16":
        return struct.unpack("<I", struct.pack("<f", value))[0] >> 16
    return float(value) if is_float(element) else value


def from_file(value, element):
    if element == "f16":
        return struct.unpack("<e", struct.pack("<H", value))[0]
    if element == "bf16":
        return struct.unpack("<f", struct.pack("<I", value << 16))[0]
    return value


def rows(tensor, start, count):
    return tensor[start:start + count]


def columns(tensor, start, count):
    return [row[start:start + count] for row in tensor]


def part(tensor, axis, rank, parts):
    size = (len(tensor) if axis == 0 else len(tensor[0])) // parts
    return (rows if axis == 0 else columns)(tensor, rank * size, size)


def concat(tensors, axis):
    if axis == 0:
        return [row for tensor in tensors for row in tensor]
    return [sum(same, []) for same in zip(*tensors)]


def combine(tensors, kind):
    return [[kind(values) for values in zip(*same)] for same in zip(*tensors)]


REDUCTIONS = {"sum": sum, "max": max, "min": min, "product": math.prod,
              "average": lambda v: sum(v) / len(v),
              "average of integers": lambda v: sum(v) // len(v),
              "bitwise_and": lambda v: v[0] if len(v) == 1 else v[0] & REDUCTIONS["bitwise_and"](v[1:]),
              "bitwise_or": lambda v: v[0] if len(v) == 1 else v[0] | REDUCTIONS["bitwise_or"](v[1:]),
              "bitwise_xor": lambda v: v[0] if len(v) == 1 else v[0] ^ REDUCTIONS["bitwise_xor"](v[1:])}


class Program:
    """The text of a program, and what each of its results is on each device."""

    def __init__(self, grid, element, seed, axes=None):
        """`axes` are those of all collectives, or else drawn for each."""
        self.grid, self.element, self.random, self.all_axes = grid, element, random.Random(seed), axes
        self.lines, self.results = [], []
        self.count = len(grid.places)
        self.inputs = [[[self.random.randint(1, 2) for _ in range(COLUMNS)]
                        for _ in range(ROWS)] for _ in range(self.count)]

    def type(self, shape, element=None):
        return f"tensor<{'x'.join(map(str, shape))}x{element or self.element}>"

    def add(self, text, shape, expected, element=None):
        """`expected` is the tensor of a device, or None where it is undefined."""
        name = f"%r{len(self.results)}"
        self.lines.append(f"{name} = {text}")
        self.results.append((name, shape, element or self.element, [expected(d) for d in range(self.count)], text))

    def axes(self):
        if self.all_axes:
            return list(self.all_axes)
        axes = list(range(len(self.grid.shape)))
        self.random.shuffle(axes)
        return axes[:self.random.randint(1, len(axes))]

    def places(self, index):
        """A multi-index as the operation has it, and the types of its operands; some depend on the program's scalar."""
        if self.random.random() < 0.5:
            return index, ""
        names = [f"%at{len(self.lines)}_{k}" for k in range(len(index))]
        for name, place in zip(names, index):
            self.lines.append(f"{name}c = arith.constant {place} : index")
            self.lines.append(f"{name} = arith.addi {name}c, %zero : index")
        return "[" + ", ".join(names) + "]", ", index" * len(names)

    def add_collective(self, kind):
        grid, axes, own = self.grid, self.axes(), self.inputs
        size = math.prod(grid.shape[a] for a in axes)
        where = f"on @grid grid_axes = {axes}"
        here = self.type((ROWS, COLUMNS))
        group = lambda d: [own[m] for m in grid.group(d, axes)]
        root = [self.random.randrange(grid.shape[a]) for a in axes]
        root_rank = 0
        for a, place in zip(axes, root):
            root_rank = root_rank * grid.shape[a] + place
        is_root = lambda d: grid.rank(d, axes) == root_rank
        reduction = self.random.choice(
            ["sum", "max", "min", "product"] +
            (["average"] if is_float(self.element) and size & (size - 1) == 0
             else [] if is_float(self.element) else ["average", "bitwise_and", "bitwise_or", "bitwise_xor"]))
        to = self.random.choice([self.element, WIDER[self.element]])
        if reduction == "product" and self.element == "i8" and size > 6:
            reduction = "sum"  # 2 to the 8th is no i8
        is_whole = reduction == "average" and not is_float(self.element)
        reduce = REDUCTIONS["average of integers" if is_whole else reduction]
        at, more = self.places(root)
        axis = self.random.randrange(2)
        if kind == "all_gather":
            shape = (ROWS * size, COLUMNS) if axis == 0 else (ROWS, COLUMNS * size)
            self.add(f"shard.all_gather %x {where} gather_axis = {axis} : {here} -> {self.type(shape)}",
                     shape, lambda d: concat(group(d), axis))
        elif kind == "gather":
            shape = (ROWS * size, COLUMNS)
            self.add(f"shard.gather %x {where} gather_axis = 0 root = {at} : ({here}{more}) -> {self.type(shape)}",
                     shape, lambda d: concat(group(d), 0) if is_root(d) else None)
        elif kind == "all_reduce":
            self.add(f"shard.all_reduce %x {where} reduction = {reduction} : {here} -> {self.type((ROWS, COLUMNS), to)}",
                     (ROWS, COLUMNS), lambda d: combine(group(d), reduce), to)
        elif kind == "reduce":
            self.add(f"shard.reduce %x {where} reduction = {reduction} root = {at} : ({here}{more}) -> {self.type((ROWS, COLUMNS), to)}",
                     (ROWS, COLUMNS), lambda d: combine(group(d), reduce) if is_root(d) else None, to)
        elif kind == "reduce_scatter":
            shape = (ROWS // size, COLUMNS)
            self.add(f"shard.reduce_scatter %x {where} reduction = {reduction} scatter_axis = 0 : {here} -> {self.type(shape, to)}",
                     shape, lambda d: part(combine(group(d), reduce), 0, grid.rank(d, axes), size), to)
        elif kind == "all_slice":
            shape = (ROWS // size, COLUMNS)
            self.add(f"shard.all_slice %x {where} slice_axis = 0 : {here} -> {self.type(shape)}",
                     shape, lambda d: part(own[d], 0, grid.rank(d, axes), size))
        elif kind == "scatter":
            shape = (ROWS // size, COLUMNS)
            self.add(f"shard.scatter %x {where} scatter_axis = 0 root = {at} : ({here}{more}) -> {self.type(shape)}",
                     shape, lambda d: part(group(d)[root_rank], 0, grid.rank(d, axes), size))
        elif kind == "all_to_all":
            shape = (ROWS, COLUMNS) if axis == 0 else (ROWS // size, COLUMNS * size)
            self.add(f"shard.all_to_all %x {where} split_axis = 0 concat_axis = {axis} : {here} -> {self.type(shape)}",
                     shape, lambda d: concat([part(m, 0, grid.rank(d, axes), size) for m in group(d)], axis))
        elif kind == "broadcast":
            self.add(f"shard.broadcast %x {where} root = {at} : ({here}{more}) -> {here}",
                     (ROWS, COLUMNS), lambda d: group(d)[root_rank])
        elif kind == "shift":
            along = self.random.choice(axes)
            length = grid.shape[along]
            offset, rotates = self.random.randint(-length, length), self.random.random() < 0.5

            def shifted(d):
                members, place = grid.group(d, [along]), grid.places[d][along] - offset
                if rotates:
                    return own[members[place % length]]
                return own[members[place]] if 0 <= place < length else None
            self.add(f"shard.shift %x {where} shift_axis = {along} offset = {offset}{' rotate' if rotates else ''} : {here} -> {here}",
                     (ROWS, COLUMNS), shifted)
        elif kind == "send":
            source = [self.random.randrange(grid.shape[a]) for a in axes]
            rank = 0
            for a, place in zip(axes, source):
                rank = rank * grid.shape[a] + place
            self.lines.append(f"%s{len(self.results)} = shard.send %x {where} destination = {at} : ({here}{more}) -> {here}")
            at, more = self.places(source)
            self.add(f"shard.recv %x {where} source = {at} : ({here}{more}) -> {here}",
                     (ROWS, COLUMNS), lambda d: group(d)[rank] if is_root(d) else None)

    def add_halo(self):
        grid, axis = self.grid, self.random.randrange(len(self.grid.shape))
        low, high = self.random.randint(0, 3), self.random.randint(0, 3)
        length = grid.shape[axis]

        def updated(d):
            tensor, members = list(self.inputs[d]), grid.group(d, [axis])
            place = grid.places[d][axis]
            if place > 0 and low:
                tensor[:low] = self.inputs[members[place - 1]][ROWS - high - low:ROWS - high]
            if place < length - 1 and high:
                tensor[ROWS - high:] = self.inputs[members[place + 1]][low:low + high]
            return tensor
        self.add(f"shard.update_halo %x on @grid split_axes = [[{axis}]] halo_sizes = [{low}, {high}] : {self.type((ROWS, COLUMNS))}",
                 (ROWS, COLUMNS), updated)

    def add_indices(self):
        """Index operations, as a tensor of one element."""
        grid, rank = self.grid, len(self.grid.shape)
        n = len(self.results)
        names = [f"%i{n}_{a}" for a in range(rank)]
        self.lines.append(f"{', '.join(names)} = shard.process_multi_index on @grid : {', '.join(['index'] * rank)}")
        self.lines.append(f"%l{n} = shard.process_linear_index on @grid : index")
        axis = self.random.randrange(rank)
        self.lines.append(f"%d{n}, %u{n} = shard.neighbors_linear_indices on @grid[{', '.join(names)}] split_axes = [{axis}] : index, index")
        self.lines.append(f"%g{n} = shard.grid_shape @grid axes = [{axis}] : index")

        def neighbor(d, step):
            place = grid.places[d][axis] + step
            return grid.group(d, [axis])[place] if 0 <= place < grid.shape[axis] else -1
        wanted = [(name, lambda d, a=a: grid.places[d][a]) for a, name in enumerate(names)]
        wanted += [(f"%l{n}", lambda d: d), (f"%d{n}", lambda d: neighbor(d, -1)),
                   (f"%u{n}", lambda d: neighbor(d, 1)), (f"%g{n}", lambda d: grid.shape[axis])]
        wanted += self.shard_shapes(n, axis, names)
        for name, value in wanted:
            self.lines.append(f"{name}_c = arith.index_cast {name} : index to i64")
            self.add(f"tensor.splat {name}_c : tensor<1x1xi64>", (1, 1), lambda d, value=value: [[value(d)]], "i64")

    def shard_shapes(self, n, axis, names):
        """Sizes of the device's part of 3 more elements than devices: as equal as can be, with halos, as listed."""
        count = self.grid.shape[axis]
        size = count + 3
        bounds = [0] + sorted(self.random.sample(range(1, size), count - 1)) + [size]
        equal = [size // count * k + min(k, size % count) for k in range(count + 1)]
        cases = [("", equal, 0), (" halo_sizes = [1, 2]", equal, 3), (f" sharded_dims_offsets = {bounds}", bounds, 0)]
        for k, (words, at, more) in enumerate(cases):
            self.lines.append(f"%s{n}_{k} = shard.sharding @grid split_axes = [[{axis}]]{words} : !shard.sharding")
            self.lines.append(f"%p{n}_{k} = shard.shard_shape dims = [{size}] sharding = %s{n}_{k} device = [{', '.join(names)}] : index")
            yield (f"%p{n}_{k}", lambda d, at=at, more=more:
                   at[self.grid.places[d][axis] + 1] - at[self.grid.places[d][axis]] + more)

    def text(self):
        rank, count = len(self.grid.shape), self.count
        layout = f"#spmd.layout<mesh = {list(self.grid.shape)}, split = [{list(range(rank))}, []]>"
        whole = lambda shape, element: self.type((shape[0] * count, shape[1]), element)
        out = [f"#stack = {layout}", f"shard.grid @grid(shape = {'x'.join(map(str, self.grid.shape))})"]
        types = ", ".join(f"{whole(s, e)} {{spmd.layout = #stack}}" for _, s, e, _, _ in self.results)
        given = self.type((ROWS * count, COLUMNS))
        out.append(f"func.func @main(%all: {given} {{spmd.layout = #stack}}, %zero: index) -> ({types}) {{")
        out.append(f"  %x = spmd.full_to_shard %all : {given} to {self.type((ROWS, COLUMNS))}")
        out += ["  " + line for line in self.lines]
        for name, shape, element, _, _ in self.results:
            out.append(f"  {name}_w = spmd.shard_to_full {name} : {self.type(shape, element)} to {whole(shape, element)}")
        out.append(f"  return {', '.join(r[0] + '_w' for r in self.results)} : {', '.join(whole(s, e) for _, s, e, _, _ in self.results)}")
        return "\n".join(out) + "\n}\n"


def run(tune, folder, grid, element, seed, axes=None):
    program = Program(Grid(grid), element, seed, axes)
    for kind in ("all_gather", "gather", "all_reduce", "all_reduce", "reduce", "reduce_scatter", "all_slice",
                 "scatter", "all_to_all", "broadcast", "shift", "shift", "send"):
        program.add_collective(kind)
    program.add_halo()
    program.add_indices()
    file, given = os.path.join(folder, "p.mlir"), os.path.join(folder, "x.npy")
    with open(file, "w") as out:
        out.write(program.text())
    flat = [value for tensor in program.inputs for row in tensor for value in row]
    write_npy(given, [to_file(v, element) for v in flat], (ROWS * program.count, COLUMNS), TYPES[element])
    what = f"grid {grid}, {element}, seed {seed}" + (f", axes {axes}" if axes else "")
    outs = pairs("--out", [f"r{k}={os.path.join(folder, f'r{k}.npy')}" for k in range(len(program.results))])
    command(tune, "run", file, "--arg", f"all={given}", "--arg", "zero=0", *outs, about=f"{what}\n{program.text()}")
    compared = 0
    for k, (name, shape, kind, expected, text) in enumerate(program.results):
        got = [from_file(value, kind) for value in read_npy(os.path.join(folder, f"r{k}.npy"))[0]]
        size = shape[0] * shape[1]
        for device, tensor in enumerate(expected):
            if tensor is None:
                continue
            here = got[device * size:(device + 1) * size]
            flat = [value for row in tensor for value in row]
            if here != flat:
                sys.exit(f"{what}, device {device}: {here}, expected {flat}\nof {text}")
            compared += 1
    print(f"{what}: {compared} tensors equal")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = [((4,), "i32", 1), ((2, 3), "f32", 2), ((2, 2, 2), "i64", 3), ((3, 2), "f64", 4), ((2, 4), "i32", 5), ((2, 2), "i8", 6),
             ((6,), "i16", 7), ((2, 2), "f16", 8), ((4,), "bf16", 9)]
    if os.environ.get("MGPU_SWEEPS") == "all":
        grids = [(1,), (2,), (3,), (6,), (8,), (2, 2), (3, 2), (4, 2), (1, 4), (2, 2, 2), (2, 1, 3)]
        cases = [(grid, element, seed) for grid in grids for element in TYPES for seed in range(5)]
        cases += [(grid, element, seed, axes) for grid in grids for element in TYPES for seed, axes in enumerate(
            axes for length in range(1, len(grid) + 1) for axes in itertools.permutations(range(len(grid)), length))]
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            run(sys.argv[1], folder, *case)


main()
