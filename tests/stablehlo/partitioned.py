#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates partitioned StableHLO programs with NumPy, every rank for itself, and compares mgpu with it.

    partitioned.py MGPU_TUNE PROGRAM.mlir [--sizes 8192=32,784=16] [--tolerance T]

The modules of a file (between `// -----`) are taken one by one. `--sizes` replaces sizes of
dimensions in the text, so that large programs become small ones. All ranks go through the program in
step; a value is a list with an array for each of them. Programs that are only annotated with
shardings are what one device computes. PROGRAM may be a name in $MGPU_DATA/programs.tar.xz, which
is skipped without MGPU_SWEEPS.
"""

import argparse
import itertools
import re
import subprocess
import sys
import tempfile

import evaluate
import numpy as np

GROUPS = re.compile(r"replica_groups = dense<(\[\[.*?\]\])>")


class Mesh:
    def __init__(self, text):
        self.axes = [(name, int(size)) for name, size in re.findall(r'"(\w+)"=(\d+)', text)]
        self.size = int(np.prod([size for _, size in self.axes]))

    def position(self, rank, axis):
        index = [name for name, _ in self.axes].index(axis)
        inner = int(np.prod([size for _, size in self.axes[index + 1:]]))
        return rank // inner % self.axes[index][1]


def to_bf16(values):
    """The upper halves of the bits, rounded to even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + ((bits >> 16) & 1) + 0x7FFF) >> 16).astype(np.uint16)


def from_bf16(halves):
    return (halves.astype(np.uint32) << 16).view(np.float32)


def constant(line):
    shape, element = evaluate.parse_type(line.rsplit(":", 1)[1])
    text = re.search(r'dense<"0x(\w*)"> :', line)
    if text and element == "i1":  # a bit for each
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(text.group(1)), np.uint8), bitorder="little")
        return bits[: int(np.prod(shape))].astype(np.bool_).reshape(shape)
    return evaluate.constant(line)


def scatter(operand, indices, updates, line):
    """Where one dimension is indexed, and updates replace what was there."""
    inserted, = evaluate.field(line, "inserted_window_dims")
    result = operand.copy()
    for k, index in enumerate(indices.reshape(-1)):
        if 0 <= index < result.shape[inserted]:
            np.moveaxis(result, inserted, 0)[index] = np.moveaxis(updates, inserted, 0)[k]
    return result


def sharding_of_text(text, rank, ranks):
    """Parts and this rank's part of each dimension, by `{devices=[2,1]<=[2]}`."""
    found = re.fullmatch(r"\{devices=\[([\d,]+)\]<=\[\d+\]( last_tile_dim_replicate)?\}", text)
    if not found:
        return None
    tiles = [int(tile) for tile in found.group(1).split(",")]
    at = np.unravel_index(rank, tiles)
    count = len(tiles) - bool(found.group(2))
    return [(tiles[dim], int(at[dim])) for dim in range(count)]


def cut(whole, parts):
    for dim, (count, at) in enumerate(parts or []):
        size = whole.shape[dim] // count
        whole = np.take(whole, range(at * size, (at + 1) * size), axis=dim)
    return whole


def join(shards, all_parts, shape):
    """The whole of every rank's part."""
    whole = np.empty(shape, dtype=shards[0].dtype)
    for shard, parts in zip(shards, all_parts):
        at = tuple(slice(a * (whole.shape[d] // n), (a + 1) * (whole.shape[d] // n)) for d, (n, a) in enumerate(parts or []))
        whole[at] = shard
    return whole


class Ranks(evaluate.Program):
    """A program on all ranks; values of one are lists."""

    def __init__(self, text):
        super().__init__(text)
        meshes = re.findall(r"sdy\.mesh @\w+ = <\[(.*?)\]>", text)
        self.mesh = Mesh(meshes[0]) if meshes else None
        counts = [int(count) for count in re.findall(r"num_(?:partitions|replicas) = (\d+)", text)]
        tiled = [int(count) for count in re.findall(r"<=\[(\d+)\]\}", text)]
        self.ranks = self.mesh.size if self.mesh else max([int(np.prod(counts or [1])), *tiled])

    def shardings(self, text):
        """For each value and rank: the parts and the rank's part of each dimension."""
        for dims in re.findall(r"<@mesh, \[(.*?)\]>", text):
            axes = [re.findall(r'"(\w+)"', dim) for dim in re.findall(r"\{(.*?)\}", dims)]
            yield [[self.part(rank, each) for each in axes] for rank in range(self.ranks)]

    def part(self, rank, axes):
        sizes = dict(self.mesh.axes)
        at = count = 0
        count = 1
        for axis in axes:
            at = at * sizes[axis] + self.mesh.position(rank, axis)
            count *= sizes[axis]
        return count, at

    def collective(self, name, rest, values, shape, computation):
        groups = eval(GROUPS.search(rest).group(1))  # a list of lists of numbers
        result = [None] * self.ranks
        dim = re.search(r"(?:all_gather_dim|scatter_dimension) = (\d+)", rest)
        for group in groups:
            members = [values[rank] for rank in group]
            if name == "all_gather":
                made = [np.concatenate(members, axis=int(dim.group(1)))] * len(group)
            else:
                whole = members[0]
                for member in members[1:]:
                    whole = evaluate.plain(computation, evaluate.kind_of(whole), whole, member)
                made = [whole] * len(group) if name == "all_reduce" else np.split(whole, len(group), axis=int(dim.group(1)))
            for rank, value in zip(group, made):
                result[rank] = value
        return result

    def run(self, name, values):
        arguments, body = self.functions[name]
        known = {argument: value for (argument, _), value in zip(arguments, values)}
        return self.block(iter(body), known)

    def block(self, lines, known):
        for line in lines:
            if re.match(r"(func\.|sdy\.)?return", line):
                return [known[use] for use in re.findall(r"%\w+", line)]
            result, rest = (part.strip() for part in line.split("=", 1))
            if rest.startswith("sdy.manual_computation"):
                known[result] = self.manual(rest, lines, known)
            else:
                known[result] = self.op(rest, lines, known)
        raise ValueError("no return")

    def manual(self, rest, lines, known):
        ins, outs = (list(self.shardings(part)) for part in re.search(r"in_shardings=\[(.*)\] out_shardings=\[(.*)\] manual_axes", rest).groups())
        uses = re.findall(r"%\w+", rest[: rest.index(")")])
        names = re.findall(r"(%\w+): tensor", rest)
        inner = dict(known)
        for use, argument, parts in zip(uses, names, ins):
            inner[argument] = [cut(value, part) for value, part in zip(known[use], parts)]
        shards = self.block(lines, inner)
        closing = next(lines)
        shape, _ = evaluate.parse_type(re.findall(r"tensor<[^>]*>", closing)[-1])
        return [join(shards[0], outs[0], shape)] * self.ranks

    def op(self, rest, lines, known):
        if "stablehlo.constant" in rest or "sdy.constant" in rest:
            return [constant(rest)] * self.ranks
        computation = None
        head = rest
        if rest.endswith("({"):
            inner = list(itertools.takewhile(lambda line: not line.startswith("})"), lines))
            computation = re.search(r"stablehlo\.(\w+)", inner[1]).group(1)
        args = [known[use] for use in re.findall(r"%\w+", head)]
        callee = re.match(r"(?:func\.)?call @([\w.$]+)", rest)
        if callee:
            return self.run(callee.group(1), args)[0]
        name = re.match(r'"?(?:stablehlo|mhlo|sdy)\.(\w+)', rest).group(1)
        if name in ("custom_call", "copy"):
            return self.custom_call(rest, args[0])
        if name == "scatter":
            return [scatter(*(arg[rank] for arg in args), rest) for rank in range(self.ranks)]
        if name in ("all_gather", "all_reduce", "reduce_scatter"):
            return self.collective(name, rest, args[0], None, computation)
        shape, element = evaluate.parse_type(re.findall(r"tensor<[^>]*>", rest)[-1])
        values = [np.asarray(evaluate.evaluate_op(name, [arg[rank] for arg in args], rest, shape, element))
                  for rank in range(self.ranks)]
        return [from_bf16(to_bf16(value)).astype(np.float64) for value in values] if element == "bf16" else values

    def custom_call(self, rest, values):
        text = re.search(r'mhlo\.sharding = "([^"]*)"', rest).group(1)
        parts = [sharding_of_text(text, rank, self.ranks) for rank in range(self.ranks)]
        if "@Sharding" in rest or "mhlo.copy" in rest:
            self.last = parts
            return values
        if "@SPMDFullToShardShape" in rest:
            return [cut(value, part) for value, part in zip(values, self.last)]
        shape, _ = evaluate.parse_type(re.findall(r"tensor<[^>]*>", rest)[-1])
        return [join(values, parts, shape)] * self.ranks


def argument_of(rng, text):
    """Floats of a normal distribution; integers from 0 on, as positions and tokens are."""
    shape, element = evaluate.parse_type(text)
    if element in ("i32", "i64"):
        return np.arange(int(np.prod(shape)), dtype=evaluate.KINDS[element].dtype).reshape(shape)
    value = evaluate.random_argument(rng, text, 0.05 if element == "bf16" else 0.5)
    return from_bf16(to_bf16(value)) if element == "bf16" else value


def is_partitioned(text):
    return "manual_computation" in text or "SPMDFullToShardShape" in text


def compare(tune, text, tolerance, folder):
    """A line for one module, and whether it is good."""
    name = re.search(r"module @(\w+)", text)
    name = name.group(1) if name else "?"
    path = f"{folder}/program.mlir"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    command = [tune, "run", path]
    program = Ranks(text)
    if not is_partitioned(text):  # annotated alone: one device computes the same
        program.ranks = 1
    rng = np.random.default_rng(7)
    arguments = program.functions["main"][0]
    values = [argument_of(rng, each) for _, each in arguments]
    expected = program.run("main", [[value.astype(evaluate.dtype_of(evaluate.parse_type(each)[1]))] * program.ranks
                                    for value, (_, each) in zip(values, arguments)])
    for k, (value, (_, each)) in enumerate(zip(values, arguments)):
        source = f"{folder}/a{k}.npy"
        if each.endswith("bf16>"):
            to_bf16(value).tofile(source)
            source = f"raw:bf16:{'x'.join(map(str, value.shape))}:{source}"
        else:
            np.save(source, value)
        command += ["--arg", f"{k}={source}"]
    for k in range(len(expected)):
        command += ["--out", f"r{k}={folder}/r{k}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{name}: exit {done.returncode}: {done.stderr[-600:]}", False
    off = 0.0
    for k, want in enumerate(expected):
        have = np.load(f"{folder}/r{k}.npy")
        have = (from_bf16(have.view(np.uint16)) if have.dtype.kind == "V" else have).astype(np.float64)
        off = max(off, float(np.abs(have - want[0]).max() / max(np.abs(want[0]).max(), 1e-30)))
    return f"{name}: {program.ranks} ranks, off by {off:.2e} of the largest element", off <= tolerance


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tune")
    parser.add_argument("program")
    parser.add_argument("--sizes", default="")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    options = parser.parse_args()
    text = evaluate.read(options.program)
    if text is None:
        print(f"skipped: no {options.program}; set MGPU_DATA to a folder with programs.tar.xz, and MGPU_SWEEPS")
        return 77
    sizes = dict(each.split("=") for each in options.sizes.split(",") if each)
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        for module in text.split("// -----"):
            module = "\n".join(line for line in module.splitlines() if not line.strip().startswith("//"))
            if "func.func" not in module:
                continue
            if is_partitioned(module):
                module = re.sub(r"tensor<([\dx]*)", lambda found: "tensor<" + "x".join(
                    sizes.get(size, size) for size in found.group(1).split("x")), module)
            line, good = compare(options.tune, module, options.tolerance, folder)
            print(("" if good else "WRONG ") + line, flush=True)
            status |= not good
    return status


if __name__ == "__main__":
    sys.exit(main())
