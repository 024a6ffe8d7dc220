#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What StableHLO operations give, as the specification says, in NumPy; and whole programs that are made of them.

    evaluate.py MGPU_TUNE PROGRAM.mlir [--scale S] [--tolerance T]

An operation has the widths and the rounding of its element type. What the specification leaves open (division by
zero, NaN to an integer) is as docs/numerics.md says. A value is an array of the type's `dtype`: floats that NumPy
lacks lie in f32, integers of 2 and 4 bits in 8 bits. Nothing here knows how mgpu computes.

As a command it reads the pretty text of the operations that exported transformers use, computes floats in f64, and
compares mgpu with that. PROGRAM may be the name of a model in $MGPU_DATA/programs.tar.xz, which takes a while and so
is skipped without MGPU_SWEEPS. Arguments are random: floats of a normal distribution times S, integers 0 and 1.
"""

import argparse
import itertools
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
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)


class Kind:
    """An element type. A float has bits of a mantissa, a least exponent, a largest number, and maybe infinities."""

    def __init__(self, name, dtype, bits, mantissa=0, least=0, largest=0.0, infinite=True):
        self.name, self.dtype, self.bits, self.mantissa = name, dtype, bits, mantissa
        self.least, self.largest, self.infinite = least, largest, infinite
        self.is_float, self.is_bool = mantissa > 0, name == "i1"
        self.is_unsigned = name.startswith("ui") or self.is_bool
        self.is_integer = not self.is_float and not self.is_bool

    def low(self):
        return 0 if self.is_unsigned else -(1 << (self.bits - 1))

    def high(self):
        return (1 << self.bits) - 1 if self.is_unsigned else (1 << (self.bits - 1)) - 1


KINDS = {kind.name: kind for kind in [
    Kind("i1", np.bool_, 1), Kind("i2", np.int8, 2), Kind("ui2", np.uint8, 2), Kind("i4", np.int8, 4), Kind("ui4", np.uint8, 4),
    Kind("i8", np.int8, 8), Kind("i16", np.int16, 16), Kind("i32", np.int32, 32), Kind("i64", np.int64, 64),
    Kind("ui8", np.uint8, 8), Kind("ui16", np.uint16, 16), Kind("ui32", np.uint32, 32), Kind("ui64", np.uint64, 64),
    Kind("f64", np.float64, 64, 52, -1022, np.finfo(np.float64).max),
    Kind("f32", np.float32, 32, 23, -126, float(np.finfo(np.float32).max)),
    Kind("f16", np.float16, 16, 10, -14, 65504.0), Kind("bf16", np.float32, 16, 7, -126, 3.3895313892515355e38),
    Kind("f8E4M3FN", np.float32, 8, 3, -6, 448.0, False), Kind("f8E5M2", np.float32, 8, 2, -14, 57344.0)]}


def rounded(value, kind):
    """f64 or long double to the nearest number of a float type, ties to even."""
    if kind.name == "f64":
        return np.asarray(value).astype(np.float64)
    wide = np.asarray(value, dtype=np.longdouble)
    with np.errstate(all="ignore"):
        size = np.abs(wide)
        exponent = np.where((size > 0) & np.isfinite(size), np.frexp(size)[1] - 1, kind.least)
        step = np.ldexp(np.longdouble(1), np.maximum(exponent, kind.least) - kind.mantissa)
        near = np.where(np.isfinite(wide), np.rint(wide / step) * step, wide)
        over = np.abs(near) > kind.largest
        near = np.where(over, np.copysign(np.inf if kind.infinite else np.nan, wide), near)
        return near.astype(kind.dtype)


def wrapped(value, kind):
    """Python's or NumPy's integers modulo the type's width."""
    array = np.asarray(value)
    sign = 0 if kind.is_unsigned else 1 << (kind.bits - 1)
    flat = [((int(number) + sign) & ((1 << kind.bits) - 1)) - sign for number in array.reshape(-1).tolist()]
    return np.array(flat, dtype=object).astype(kind.dtype).reshape(array.shape)


def whole(value):
    """The numbers of an array as Python's."""
    return np.asarray(value).astype(object)


def elementwise(function, kind, *args):
    """A function of Python's integers, wrapped to the type."""
    args = np.broadcast_arrays(*[whole(arg) for arg in args])
    flat = [function(*each) for each in zip(*(arg.reshape(-1) for arg in args))]
    return wrapped(np.array(flat, dtype=object).reshape(args[0].shape), kind)


def quotient(a, b, kind):
    if b == 0:
        return -1
    return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b, kind):
    return a if b == 0 else (abs(a) % abs(b)) * (-1 if a < 0 else 1)


def power(a, b, kind):
    if b >= 0:
        return pow(int(a), int(b), 1 << kind.bits)
    return 1 if a == 1 else (-1 if b % 2 else 1) if a == -1 else 0


def arithmetic_shift(a, b, kind):
    """By the bits, whose highest is a sign in unsigned types, too."""
    a -= (a >> (kind.bits - 1) << kind.bits) if kind.is_unsigned else 0
    return a >> min(b % (1 << kind.bits), kind.bits - 1)


INTEGERS = {
    "add": lambda a, b, k: a + b, "subtract": lambda a, b, k: a - b, "multiply": lambda a, b, k: a * b,
    "divide": quotient, "remainder": remainder, "power": power, "maximum": lambda a, b, k: max(a, b),
    "minimum": lambda a, b, k: min(a, b), "and": lambda a, b, k: a & b, "or": lambda a, b, k: a | b,
    "xor": lambda a, b, k: a ^ b, "shift_left": lambda a, b, k: a << b if 0 <= b < k.bits else 0,
    "shift_right_logical": lambda a, b, k: (a & k.high() if k.is_unsigned else a % (1 << k.bits)) >> b
    if 0 <= b < k.bits else 0,
    "shift_right_arithmetic": arithmetic_shift, "negate": lambda a, k: -a, "abs": lambda a, k: abs(a),
    "sign": lambda a, k: (a > 0) - (a < 0), "not": lambda a, k: ~a,
    "popcnt": lambda a, k: bin(a % (1 << k.bits)).count("1"),
    "count_leading_zeros": lambda a, k: k.bits - (a % (1 << k.bits)).bit_length()}
BOOLEANS = {"add": np.logical_or, "multiply": np.logical_and, "maximum": np.logical_or, "minimum": np.logical_and,
            "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not}
COMPARE = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
           "GE": np.greater_equal}


def digamma(x):
    """By the recurrence psi(x) = psi(x + 1) - 1 / x up to 20, and Stirling's series from there on."""
    if not x < np.inf or x <= 0 and x == np.floor(x):
        return x if x == np.inf else np.nan
    if x < 0:
        turned = np.longdouble(x) - np.floor(x)  # keeps the tangent of a large number
        return digamma(1 - x) - PI / np.tan(PI * turned)
    found = np.longdouble(0)
    while x < 20:
        found, x = found - 1 / np.longdouble(x), x + np.longdouble(1)
    square = 1 / (np.longdouble(x) * x)
    series = [(1, 12), (-1, 120), (1, 252), (-1, 240), (1, 132), (-691, 32760)]
    return found + np.log(np.longdouble(x)) - 1 / (2 * np.longdouble(x)) - sum(
        np.longdouble(a) / b * square ** (k + 1) for k, (a, b) in enumerate(series))


def erf_inv(x):
    """By bisection of the error function, or of its complement where that is near 0."""
    if not abs(x) < 1:
        return x * np.inf if abs(x) == 1 else np.nan
    low, high, size = 0.0, 6.0, abs(x)
    for _ in range(70):
        at = (low + high) / 2
        is_below = math.erf(at) < size if size < 0.5 else math.erfc(at) > 1 - size
        low, high = (at, high) if is_below else (low, at)
    return math.copysign(low if size > 1e-8 else size * math.sqrt(math.pi) / 2, x)


def log_gamma(x):
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):  # beyond the largest number, or at a pole
        return np.inf


def each(function):
    return lambda x: np.array([function(float(e)) for e in x.reshape(-1)], dtype=np.longdouble).reshape(x.shape)


PI = 4 * np.arctan(np.longdouble(1))
# Functions that are right within some units in the last place, in long double.
FUNCTIONS = {
    "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p,
    "tanh": np.tanh, "sine": np.sin, "cosine": np.cos, "tan": np.tan, "cbrt": np.cbrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "logistic": lambda x: 1 / (1 + np.exp(-x)), "atan2": np.arctan2, "power": np.power,
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cosh": np.cosh, "sinh": np.sinh, "erf": each(math.erf), "erfc": each(math.erfc),
    "erf_inv": each(erf_inv), "lgamma": each(log_gamma), "digamma": each(digamma)}


def extreme(a, b, larger):
    """NaN where one is; the zero with the sign that is meant."""
    found = np.maximum(a, b) if larger else np.minimum(a, b)
    zeros = (a == 0) & (b == 0)
    sign = np.signbit(a) & np.signbit(b) if larger else np.signbit(a) | np.signbit(b)
    return np.where(zeros, np.where(sign, -0.0, 0.0), found)


def half_away(x):
    whole_part = np.trunc(x)
    return np.copysign(whole_part + np.where(np.abs(x - whole_part) >= 0.5, np.copysign(1, x), 0), x)


FLOATS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "remainder": np.fmod,
    "maximum": lambda a, b: extreme(a, b, True), "minimum": lambda a, b: extreme(a, b, False),
    "negate": np.negative, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt,
    "round_nearest_even": np.rint, "round_nearest_afz": half_away,
    "sign": lambda x: np.where(np.isnan(x) | (x == 0), x, np.sign(x)), "square": lambda x: x * x}


def plain(name, kind, *args):
    """An operation of one or two operands of a type; exact but for FUNCTIONS."""
    with np.errstate(all="ignore"):
        if kind.is_bool:
            return BOOLEANS[name](*args)
        if not kind.is_float:
            return elementwise(lambda *each: INTEGERS[name](*each, kind), kind, *args)
        if name == "next_after":
            return next_after(*args, kind)
        width = np.float64 if name in FLOATS else np.longdouble
        return rounded((FLOATS.get(name) or FUNCTIONS[name])(*[np.asarray(arg, dtype=width) for arg in args]), kind)


def convert(value, source, target):
    with np.errstate(all="ignore"):
        if target.is_bool:
            return np.asarray(value) != 0
        if target.is_float:
            return rounded(np.asarray(value).astype(np.longdouble), target)
        if not source.is_float:
            return wrapped(whole(np.asarray(value).astype(np.uint8) if source.is_bool else value), target)
        flat = [0 if np.isnan(x) else target.high() if x >= target.high() else target.low() if x <= target.low()
                else int(x) for x in np.asarray(value, dtype=np.float64).reshape(-1)]
        return np.array(flat, dtype=object).reshape(np.shape(value)).astype(target.dtype)


def compare(direction, order, a, b):
    if order == "TOTALORDER":
        def key(x):
            bits = np.asarray(x, dtype=np.float64).view(np.int64)
            return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)
        a, b = key(a), key(b)
    return COMPARE[direction](a, b)


def pad(value, fill, low, high, interior):
    shape = [max(0, (size - 1) * (inner + 1) + 1 if size else 0) + one + other
             for size, one, other, inner in zip(value.shape, low, high, interior)]
    out = np.full([max(size, 0) for size in shape], fill, dtype=value.dtype)
    for at in np.ndindex(*value.shape):
        to = tuple(one + i * (inner + 1) for i, one, inner in zip(at, low, interior))
        if all(0 <= i < size for i, size in zip(to, out.shape)):
            out[to] = value[at]
    return out


def gather(operand, indices, spec, sizes):
    batch_dims = [k for k in range(spec["rank"]) if k not in spec["offset_dims"]]
    kept = [k for k in range(operand.ndim) if k not in spec["collapsed"] and k not in spec["operand_batching"]]
    axis, shape = spec["index_vector_dim"], spec["shape"]
    out = np.empty(shape, dtype=operand.dtype)
    for at in np.ndindex(*shape):
        batch = [at[k] for k in batch_dims]
        start = [0] * operand.ndim
        for k, dimension in enumerate(spec["index_map"]):
            where = batch[:axis] + [k] + batch[axis:] if axis < indices.ndim else batch
            start[dimension] = min(max(int(indices[tuple(where)]), 0), operand.shape[dimension] - sizes[dimension])
        for own, of in zip(spec["operand_batching"], spec["indices_batching"]):
            start[own] = batch[of - (of > axis)]
        for k, dimension in zip(spec["offset_dims"], kept):
            start[dimension] += at[k]
        out[at] = operand[tuple(start)]
    return out


def scatter(operands, indices, updates, spec, combine):
    """Updates one after the other; `combine` gives the elements for those there and those of the update."""
    outs, axis = [each.copy() for each in operands], spec["index_vector_dim"]
    shape, rank = updates[0].shape, operands[0].ndim
    scatter_dims = [k for k in range(len(shape)) if k not in spec["window_dims"]]
    kept = [k for k in range(rank) if k not in spec["inserted"] and k not in spec["input_batching"]]
    for at in np.ndindex(*shape):
        batch = [at[k] for k in scatter_dims]
        to = [0] * rank
        for k, dimension in enumerate(spec["index_map"]):
            where = batch[:axis] + [k] + batch[axis:] if axis < indices.ndim else batch
            to[dimension] = int(indices[tuple(where)])
        for own, of in zip(spec["input_batching"], spec["indices_batching"]):
            to[own] += batch[of - (of > axis)]
        for k, dimension in zip(spec["window_dims"], kept):
            to[dimension] += at[k]
        if all(0 <= i < size for i, size in zip(to, operands[0].shape)):
            made = combine([out[tuple(to)] for out in outs], [update[at] for update in updates])
            for out, number in zip(outs, made):
                out[tuple(to)] = number
    return outs


def windows(value, fill, spec):
    """The elements of each window, in order: an array of the result's shape and the windows' elements."""
    padded = pad(value, fill, spec["low"], spec["high"], [dilation - 1 for dilation in spec["base"]])
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(spec["sizes"], spec["window"])]
    shape = [0 if size < far or size == 0 else (size - far) // stride + 1
             for size, far, stride in zip(padded.shape, reach, spec["strides"])]
    places = list(itertools.product(*[range(size) for size in spec["sizes"]]))
    out = np.empty((*shape, len(places)), dtype=value.dtype)
    for at in np.ndindex(*shape):
        for k, place in enumerate(places):
            out[(*at, k)] = padded[tuple(i * stride + j * dilation for i, stride, j, dilation in
                                         zip(at, spec["strides"], place, spec["window"]))]
    return out


#
# How narrow types lie in memory.
#

# Types that NumPy's files do not have pass as these, by a bitcast or, where they are narrow, a conversion.
STORED = {"bf16": "ui16", "f8E4M3FN": "ui8", "f8E5M2": "ui8", "i2": "i8", "ui2": "ui8", "i4": "i8", "ui4": "ui8"}


def table_of(kind):
    """The number of each byte of a float of 8 bits."""
    bits = np.arange(256)
    width = 7 - kind.mantissa
    exponent, fraction = (bits & 127) >> kind.mantissa, bits & ((1 << kind.mantissa) - 1)
    size = np.where(exponent == 0, np.ldexp(fraction * 1.0, kind.least - kind.mantissa),
                    np.ldexp(1 + fraction / (1 << kind.mantissa), exponent - 1 + kind.least))
    if kind.infinite:
        top = exponent == (1 << width) - 1
        size = np.where(top, np.where(fraction == 0, np.inf, np.nan), size)
    else:
        size = np.where((bits & 127) == 127, np.nan, size)
    return np.where(bits >= 128, -size, size).astype(np.float32)


def encoded(array, kind):
    """An array of a type as its stored type has it."""
    if kind == "bf16":
        return (array.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if not kind.startswith("f8"):
        return array
    table = table_of(KINDS[kind])
    codes = {(float(x), bool(np.signbit(x))): k for k, x in reversed(list(enumerate(table))) if x == x}
    nans = {bool(np.signbit(x)): k for k, x in reversed(list(enumerate(table))) if x != x}
    flat = [codes[(float(x), bool(np.signbit(x)))] if x == x else nans.get(bool(np.signbit(x)), min(nans.values(), default=0))
            for x in array.reshape(-1)]
    return np.array(flat, dtype=np.uint8).reshape(array.shape)


def decoded(array, kind, stored):
    if kind == "bf16":
        return (array.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(array.shape)
    if kind.startswith("f8"):
        return table_of(KINDS[kind])[array.view(np.uint8)]
    if kind == "i1":
        return array.view(np.uint8) != 0
    return array.view(KINDS[stored].dtype).astype(KINDS[kind].dtype)


def next_after(x, y, kind):
    """By the bits, which grow with the size of a float."""
    toward = np.where(x == 0, np.where(np.signbit(y), np.copysign(0.0, -1), 0.0), x)
    bits = encoded(np.array(toward, dtype=kind.dtype, order="C"), kind.name)
    bits = bits.view(f"u{bits.itemsize}")
    grows = (x == 0) | ((x < y) == (x > 0))
    one = bits.dtype.type(1)
    moved = np.array(np.where(grows, bits + one, bits - one), dtype=bits.dtype, order="C")
    stored = STORED.get(kind.name, kind.name)
    moved = decoded(moved.view(KINDS[stored].dtype), kind.name, stored)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x == y, y, moved)).astype(kind.dtype)


#
# Whole programs.
#

# Reducers of whole programs.
REDUCE = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum, "or": np.logical_or, "and": np.logical_and,
          "multiply": np.multiply}


def parse_type(text):
    """The shape and the element type of `tensor<2x3xf32>`."""
    *shape, element = re.fullmatch(r"tensor<(.*)>", text.strip()).group(1).split("x")
    return tuple(map(int, shape)), element


def dtype_of(element):
    """What a program's values of the element type lie in: floats in f64."""
    return np.float64 if KINDS[element].is_float else KINDS[element].dtype


def kind_of(value):
    """The element type of a program's value."""
    return KINDS["i1"] if value.dtype == np.bool_ else next(
        kind for kind in KINDS.values() if kind.dtype == value.dtype and kind.bits == 8 * value.itemsize)


def numbers(text):
    return [int(number) for number in re.findall(r"-?\d+", text)]


def field(line, name):
    """The numbers of `name = [1, 2]` or `name = array<i64: 1, 2>`; none where it is absent."""
    found = re.search(r"\b" + name + r" = (?:\[|array<i64: ?)([-\d, ]*)", line)
    return numbers(found.group(1)) if found else []


def constant(line):
    shape, element = parse_type(line.rsplit(":", 1)[1])
    text = re.search(r"dense<(.*)> :", line).group(1)
    kind = KINDS[element].dtype
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


def gather_of(operand, indices, line, shape):
    axis = re.search(r"index_vector_dim = (\d+)", line)
    spec = {"rank": len(shape), "shape": shape, "index_vector_dim": int(axis.group(1)) if axis else 0,
            "offset_dims": field(line, "offset_dims"), "collapsed": field(line, "collapsed_slice_dims"),
            "operand_batching": field(line, "operand_batching_dims"), "index_map": field(line, "start_index_map"),
            "indices_batching": field(line, "start_indices_batching_dims")}
    return gather(operand, indices, spec, field(line, "slice_sizes"))


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
    if name in FLOATS or name in FUNCTIONS or name in INTEGERS:
        return plain(name, kind_of(args[0]), *args)
    if name == "optimization_barrier":
        return args[0]
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
        return gather_of(*args, line, shape)
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
    kind = KINDS[element].dtype
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
