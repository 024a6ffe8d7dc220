#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates a StableHLO program with NumPy, operation by operation, and compares mgpu with it.

    evaluate.py MGPU_TUNE PROGRAM.mlir [--scale S] [--tolerance T]

PROGRAM may be the name of a model in $MGPU_DATA/programs.tar.xz, which takes a while and so is
skipped without MGPU_SWEEPS.

Reads the pretty text of the operations that exported transformers use, computes in f64 where
floats are concerned, and knows nothing of mgpu. Arguments are random: floats of a normal
distribution times S, integers 0 and 1. `mgpu-tune run` gets the same ones.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i1": np.bool_, "i8": np.int8, "i16": np.int16,
         "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64}
UNARY = {"abs": np.abs, "negate": np.negative, "exponential": np.exp, "log": np.log, "tanh": np.tanh, "sqrt": np.sqrt,
         "rsqrt": lambda x: 1 / np.sqrt(x), "cosine": np.cos, "sine": np.sin, "not": np.invert, "floor": np.floor,
         "logistic": lambda x: 1 / (1 + np.exp(-x)), "optimization_barrier": lambda x: x}
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "divide": np.divide,
          "minimum": np.minimum, "power": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
COMPARE = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
           "GE": np.greater_equal}
REDUCE = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum, "or": np.logical_or, "and": np.logical_and,
          "multiply": np.multiply}


def parse_type(text):
    """The shape and the element type of `tensor<2x3xf32>`."""
    *shape, element = re.fullmatch(r"tensor<(.*)>", text.strip()).group(1).split("x")
    return tuple(map(int, shape)), element


def dtype_of(element):
    """What the element type is computed in: floats in f64."""
    kind = TYPES[element]
    return np.float64 if issubclass(kind, np.floating) else kind


def numbers(text):
    return [int(number) for number in re.findall(r"-?\d+", text)]


def field(line, name):
    """The numbers of `name = [1, 2]` or `name = array<i64: 1, 2>`; none where it is absent."""
    found = re.search(r"\b" + name + r" = (?:\[|array<i64: ?)([-\d, ]*)", line)
    return numbers(found.group(1)) if found else []


def constant(line):
    shape, element = parse_type(line.rsplit(":", 1)[1])
    text = re.search(r"dense<(.*)> :", line).group(1)
    kind = TYPES[element]
    if text.startswith('"'):
        value = np.frombuffer(bytes.fromhex(text.strip('"')[2:]), dtype=kind)
    else:
        items = re.findall(r"true|false|0x[0-9A-Fa-f]+|[-+\w.]+", text)
        value = np.array([number(item, kind) for item in items], dtype=kind)
    if value.size == 1:
        value = np.full(shape, value.reshape(())[()], dtype=kind)
    return value.reshape(shape).astype(dtype_of(element))


def number(text, kind):
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("0x"):  # the bits of a float
        return np.frombuffer(int(text, 16).to_bytes(np.dtype(kind).itemsize, "little"), dtype=kind)[0]
    return float(text) if issubclass(kind, np.floating) else int(text)


def gather(operand, indices, line, shape):
    sizes, starts = field(line, "slice_sizes"), field(line, "start_index_map")
    offsets, collapsed = field(line, "offset_dims"), field(line, "collapsed_slice_dims")
    axis = int(re.search(r"index_vector_dim = (\d+)", line).group(1)) if "index_vector_dim" in line else 0
    out = np.empty(shape, dtype=operand.dtype)
    kept = [k for k in range(operand.ndim) if k not in collapsed]
    for place in np.ndindex(*shape):
        batch = [i for k, i in enumerate(place) if k not in offsets]
        at = [0] * operand.ndim
        for k, dimension in enumerate(starts):
            where = batch[:axis] + [k] + batch[axis:] if axis < indices.ndim else batch
            at[dimension] = min(max(int(indices[tuple(where)]), 0), operand.shape[dimension] - sizes[dimension])
        for k, dimension in zip(offsets, kept):
            at[dimension] += place[k]
        out[place] = operand[tuple(at)]
    return out


def dot_general(lhs, rhs, line):
    def pair(name):
        found = re.search(name + r"_dims = \[([\d, ]*)\] x \[([\d, ]*)\]", line)
        return (numbers(found.group(1)), numbers(found.group(2))) if found else ([], [])
    (lhs_batch, rhs_batch), (lhs_sum, rhs_sum) = pair("batching"), pair("contracting")
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left, right = [next(letters) for _ in range(lhs.ndim)], [None] * rhs.ndim
    for x, y in [*zip(lhs_batch, rhs_batch), *zip(lhs_sum, rhs_sum)]:
        right[y] = left[x]
    right = [letter or next(letters) for letter in right]
    out = [left[k] for k in lhs_batch]
    out += [left[k] for k in range(lhs.ndim) if k not in lhs_batch + lhs_sum]
    out += [right[k] for k in range(rhs.ndim) if k not in rhs_batch + rhs_sum]
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", lhs, rhs, optimize=True)


def broadcast(value, dims, shape):
    wide = [1] * len(shape)
    for k, dimension in enumerate(dims):
        wide[dimension] = value.shape[k]
    return np.broadcast_to(value.reshape(wide), shape)


def evaluate_op(name, args, line, shape, element):
    if name in UNARY:
        return UNARY[name](args[0])
    if name in BINARY:
        if name == "divide" and not issubclass(args[0].dtype.type, np.floating):
            return np.trunc(args[0] / args[1]).astype(args[0].dtype)
        return BINARY[name](*args)
    if name == "compare":
        return COMPARE[re.search(r"compare\s+(\w\w)", line).group(1)](*args)
    if name == "select":
        return np.where(*args)
    if name == "clamp":
        return np.clip(args[1], args[0], args[2])
    if name == "convert":
        return args[0].astype(dtype_of(element))
    if name == "broadcast_in_dim":
        return broadcast(args[0], field(line, "dims"), shape)
    if name == "reshape":
        return args[0].reshape(shape)
    if name == "transpose":
        return np.transpose(args[0], field(line, "dims"))
    if name == "concatenate":
        return np.concatenate(args, axis=int(re.search(r"dim = (\d+)", line).group(1)))
    if name == "iota":
        dimension = int(re.search(r"dim = (\d+)", line).group(1))
        return broadcast(np.arange(shape[dimension]).astype(dtype_of(element)), [dimension], shape)
    if name == "slice":
        ranges = re.search(r"\[([\d:, ]*)\]", line).group(1).split(",")
        return args[0][tuple(slice(*map(int, each.split(":"))) for each in ranges)]
    if name == "dot_general":
        return dot_general(*args, line)
    if name == "gather":
        return gather(*args, line, shape)
    if name == "reduce":
        how = re.search(r"applies stablehlo\.(\w+)", line).group(1)
        return REDUCE[how].reduce(args[0], axis=tuple(field(line, "dimensions")), initial=args[1].reshape(())[()])
    raise NotImplementedError(f"evaluate.py does not know '{name}': {line[:120]}")


class Program:
    def __init__(self, text):
        self.functions = {}
        for part in re.split(r"(?m)^\s*func\.func ", text)[1:]:
            head, *body = part.splitlines()
            name = re.search(r"@([\w.$]+)\(", head).group(1)
            arguments = re.findall(r"(%\w+): (tensor<[^>]*>)", head)
            self.functions[name] = (arguments, [line.strip() for line in body if line.strip()])

    def call(self, name, values):
        arguments, body = self.functions[name]
        known = {argument: value for (argument, _), value in zip(arguments, values)}
        for line in body:
            if line.startswith(("return", "func.return")):
                return [known[use] for use in re.findall(r"%\w+", line)]
            result, rest = (part.strip() for part in line.split("=", 1))
            result = result.split(":")[0]
            if "constant" in rest:
                known[result] = constant(rest)
                continue
            args = [known[use] for use in re.findall(r"%\w+", rest)]
            callee = re.match(r"(?:func\.)?call @([\w.$]+)", rest)
            if callee:
                known[result] = self.call(callee.group(1), args)[0]
                continue
            op = re.match(r'"?(?:stablehlo|mhlo)\.(\w+)', rest).group(1)
            shape, element = parse_type(re.findall(r"tensor<[^>]*>", rest)[-1])
            value = np.asarray(evaluate_op(op, args, rest, shape, element))
            if value.shape != shape:
                raise ValueError(f"{value.shape} is not {shape}: {line[:120]}")
            known[result] = value.astype(dtype_of(element), copy=False)
        raise ValueError(f"@{name} does not return")


def random_argument(rng, text, scale):
    shape, element = parse_type(text)
    kind = TYPES[element]
    if issubclass(kind, np.floating):
        return (rng.standard_normal(shape) * scale).astype(kind)
    return rng.integers(0, 2, shape).astype(kind)


def read(name):
    """The text of a file, or of a model of the public programs; none where it is not there."""
    if name.endswith(".mlir"):
        with open(name, encoding="utf-8") as file:
            return file.read()
    archive = os.path.join(os.environ.get("MGPU_DATA", ""), "programs.tar.xz")
    if not os.environ.get("MGPU_SWEEPS") or not os.path.exists(archive):
        return None
    with tarfile.open(archive) as file:
        for member in file:
            if member.name.endswith(f"/{name}.mlir"):
                return file.extractfile(member).read().decode()
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tune")
    parser.add_argument("program")
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of the largest element of a result")
    options = parser.parse_args()
    text = read(options.program)
    if text is None:
        print(f"skipped: no {options.program}; set MGPU_DATA to a folder with programs.tar.xz, and MGPU_SWEEPS")
        return 77
    program = Program(text)
    rng = np.random.default_rng(7)
    arguments = program.functions["main"][0]
    values = [random_argument(rng, text, options.scale) for _, text in arguments]
    expected = program.call("main", [value.astype(dtype_of(parse_type(text)[1]))
                                     for value, (_, text) in zip(values, arguments)])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/program.mlir"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        command = [options.tune, "run", path]
        for k, value in enumerate(values):
            np.save(f"{folder}/a{k}.npy", value)
            command += ["--arg", f"{k}={folder}/a{k}.npy"]
        for k in range(len(expected)):
            command += ["--out", f"r{k}={folder}/r{k}.npy"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr[-2000:])
            return 1
        print(done.stdout, end="")
        found = [np.load(f"{folder}/r{k}.npy") for k in range(len(expected))]
    status = 0
    for k, (have, want) in enumerate(zip(found, expected)):
        off = np.abs(have.astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-30)
        good = bool(off <= options.tolerance)
        print(f"result {k}: {have.shape}, off by {off:.2e} of its largest element{'' if good else ': WRONG'}")
        status |= not good
    return status


if __name__ == "__main__":
    sys.exit(main())
