#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each collective of the spmd dialect, which becomes one of the mgpu dialect, gives what its definition says.

Every device has a tensor of its own. A program applies each collective to it along each axis, or pair of
axes, and returns what all devices have. Numbers are small and whole, so that every type adds them exactly.
MGPU_SWEEPS=all takes every element type with every group shape and every rank from 1 to 3.

Usage: operations.py MGPU_TUNE
"""
import itertools
import math
import os
import random
import struct
import sys
import tempfile

from harness import command, pairs

# dtype of .npy files, bytes, and whether its numbers are floats.
TYPES = {"i1": ("|b1", 1, False), "i8": ("|i1", 1, False), "i16": ("<i2", 2, False), "i32": ("<i4", 4, False),
         "i64": ("<i8", 8, False), "index": ("<i8", 8, False), "f16": ("<f2", 2, True), "bf16": ("|V2", 2, True),
         "f32": ("<f4", 4, True), "f64": ("<f8", 8, True), "f8E4M3FN": ("|V1", 1, True), "f8E5M2": ("|V1", 1, True)}
# By the number of devices: the groups, whose order gives ranks. Some are no rows or columns of a mesh.
SHAPES = [(1, [[0]]), (2, [[0, 1]]), (3, [[2, 0, 1]]), (4, [[0, 1], [2, 3]]), (4, [[0, 2], [3, 1]]),
          (4, [[0], [1], [2], [3]]), (4, [[3, 1, 0, 2]]), (5, [[0, 1, 2, 3, 4]]), (6, [[0, 2, 4], [5, 3, 1]]),
          (6, [[0, 3], [1, 4], [2, 5]]), (7, [[6, 5, 4, 3, 2, 1, 0]]), (8, [[0, 1, 2, 3], [4, 5, 6, 7]]),
          (8, [[0, 4], [1, 5], [2, 6], [3, 7]]), (8, [[1, 6, 3, 4, 0, 2, 7, 5]])]
FLOAT8 = {"f8E4M3FN": (4, 3), "f8E5M2": (5, 2)}


def encode8(value, exponent_bits, mantissa_bits):
    if value == 0:
        return 0
    mantissa, exponent = math.frexp(value)  # value = (2 mantissa) 2^(exponent - 1)
    bias = (1 << exponent_bits - 1) - 1
    fraction = (2 * mantissa - 1) * (1 << mantissa_bits)
    assert fraction == int(fraction), value
    return exponent - 1 + bias << mantissa_bits | int(fraction)


def encode(values, element):
    """The bytes of numbers, none of them negative if they are of eight bits."""
    if element in FLOAT8:
        return bytes(encode8(v, *FLOAT8[element]) for v in values)
    if element == "bf16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    code = {"f16": "e", "f32": "f", "f64": "d", "i1": "?", "i8": "b", "i16": "h", "i32": "i"}.get(element, "q")
    return struct.pack(f"<{len(values)}{code}", *values)


def wrapped(value, element):
    """A whole number as the type keeps it."""
    if element == "i1":
        return bool(value)
    if TYPES[element][2]:
        return value
    bits = 8 * TYPES[element][1]
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


class Tensor:
    """Numbers by place."""

    def __init__(self, shape, at):
        self.shape = tuple(shape)
        self.values = {place: at(place) for place in itertools.product(*map(range, self.shape))}

    def flat(self):
        return list(self.values.values())

    def part(self, axis, rank, parts):
        size = self.shape[axis] // parts
        shape = self.shape[:axis] + (size,) + self.shape[axis + 1:]
        return Tensor(shape, lambda p: self.values[p[:axis] + (p[axis] + rank * size,) + p[axis + 1:]])


def concat(tensors, axis):
    size = tensors[0].shape[axis]
    shape = tensors[0].shape[:axis] + (size * len(tensors),) + tensors[0].shape[axis + 1:]
    return Tensor(shape, lambda p: tensors[p[axis] // size].values[p[:axis] + (p[axis] % size,) + p[axis + 1:]])


def reductions(element):
    if element == "i1":  # where min is "and", max is "or"
        return {"min": min, "max": max}
    return {"sum": sum, "prod": math.prod, "min": min, "max": max}


class Program:
    """The text of a program, and what each of its results is on each device."""

    def __init__(self, devices, groups, element, rank):
        self.devices, self.groups, self.element = devices, groups, element
        self.random = random.Random(f"{groups} {element} {rank}")
        self.size = len(groups[0])
        self.shape = tuple(self.size * self.random.choice([1, 2]) if k < 2 else self.size for k in range(rank))
        most = 1 if element == "i1" or self.size > 4 else 2
        self.inputs = [Tensor(self.shape, lambda _: self.random.randint(0, most)) for _ in range(devices)]
        self.lines, self.results = [], []
        self.group_of = {d: group for group in groups for d in group}

    def type(self, shape):
        return f"tensor<{'x'.join(map(str, shape))}x{self.element}>"

    def members(self, device):
        return [self.inputs[d] for d in self.group_of[device]]

    def reduced(self, device, kind):
        combine = reductions(self.element)[kind]
        tensors = self.members(device)
        return Tensor(self.shape, lambda p: wrapped(combine(t.values[p] for t in tensors), self.element))

    def rank(self, device):
        return self.group_of[device].index(device)

    def add(self, operation, attributes, expected, groups=True):
        name, found = f"%r{len(self.results)}", [expected(d) for d in range(self.devices)]
        shape, given = found[0].shape, self.type(self.shape)
        self.lines.append(f"{name}_e = tensor.empty() : {self.type(shape)}")
        attributes += f" groups {self.groups}" if groups else ""
        text = f"spmd.{operation} ins(%x : {given}) outs({name}_e : {self.type(shape)}) {attributes} -> {self.type(shape)}"
        self.lines.append(f"{name} = {text}")
        self.results.append((name, found, text))

    def add_all(self):
        axes = range(len(self.shape))
        for kind in reductions(self.element):
            self.add(f"all_reduce {kind}", "", lambda d: self.reduced(d, kind))
        for axis in axes:
            self.add("all_gather", f"axis = {axis}", lambda d: concat(self.members(d), axis))
            for kind in reductions(self.element):
                self.add(f"reduce_scatter {kind}", f"axis = {axis}",
                         lambda d: self.reduced(d, kind).part(axis, self.rank(d), self.size))
        for split, join in itertools.product(axes, axes):
            self.add("all_to_all", f"split = {split} concat = {join}",
                     lambda d: concat([t.part(split, self.rank(d), self.size) for t in self.members(d)], join))
        root = self.random.randrange(self.size)
        self.add("broadcast", f"root = {root}", lambda d: self.members(d)[root])
        devices = list(range(self.devices))
        for count in sorted({0, self.devices // 2, self.devices}):
            sources, targets = self.random.sample(devices, count), self.random.sample(devices, count)
            source = dict(zip(targets, sources))
            zeros = Tensor(self.shape, lambda _: 0)
            self.add("permute", f"pairs {[list(pair) for pair in zip(sources, targets)]}",
                     lambda d: self.inputs[source[d]] if d in source else zeros, groups=False)

    def stacked(self, shape):
        return (shape[0] * self.devices,) + tuple(shape[1:])

    def text(self):
        layout = f"#spmd.layout<mesh = [{self.devices}], split = [[0]{', []' * (len(self.shape) - 1)}]>"
        shapes = [found[0].shape for _, found, _ in self.results]
        given = self.type(self.stacked(self.shape))
        types = ", ".join(f"{self.type(self.stacked(s))} {{spmd.layout = #stack}}" for s in shapes)
        out = [f"#stack = {layout}", f"func.func @main(%all: {given} {{spmd.layout = #stack}}) -> ({types}) {{",
               f"  %x = spmd.full_to_shard %all : {given} to {self.type(self.shape)}"]
        out += ["  " + line for line in self.lines]
        for (name, _, _), shape in zip(self.results, shapes):
            out.append(f"  {name}_w = spmd.shard_to_full {name} : {self.type(shape)} to {self.type(self.stacked(shape))}")
        names = ", ".join(name + "_w" for name, _, _ in self.results)
        out.append(f"  return {names} : {', '.join(self.type(self.stacked(s)) for s in shapes)}")
        return "\n".join(out) + "\n}\n"


def write_npy(path, data, shape, descr):
    header = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def read_npy(path):
    """The bytes of the elements."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack_from("<H", data, 8)
    return data[10 + length:]


def run(tune, folder, devices, groups, element, rank):
    program = Program(devices, groups, element, rank)
    program.add_all()
    file, given = os.path.join(folder, "p.mlir"), os.path.join(folder, "x.npy")
    with open(file, "w") as out:
        out.write(program.text())
    descr, width, _ = TYPES[element]
    data = b"".join(encode(tensor.flat(), element) for tensor in program.inputs)
    write_npy(given, data, program.stacked(program.shape), descr)
    what = f"groups {groups}, {element}, shape {program.shape}"
    outs = pairs("--out", [f"r{k}={os.path.join(folder, f'r{k}.npy')}" for k in range(len(program.results))])
    command(tune, "run", file, "--arg", f"all={given}", *outs, about=f"{what}\n{program.text()}")
    for k, (_, expected, text) in enumerate(program.results):
        got = read_npy(os.path.join(folder, f"r{k}.npy"))
        wanted = [encode(tensor.flat(), element) for tensor in expected]
        if got != b"".join(wanted):
            size = len(wanted[0])
            wrong = [d for d in range(devices) if got[d * size:(d + 1) * size] != wanted[d]]
            sys.exit(f"{what}: devices {wrong} have another result\nof {text}")
    print(f"{what}: {len(program.results)} operations give what they should on {devices} devices")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    types = list(TYPES)
    cases = [(*SHAPES[k % len(SHAPES)], types[k % len(types)], k % 3 + 1) for k in range(36)]
    if os.environ.get("MGPU_SWEEPS") == "all":
        cases = [(*shape, element, rank) for shape in SHAPES for element in TYPES for rank in (1, 2, 3)]
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            run(sys.argv[1], folder, *case)


main()
