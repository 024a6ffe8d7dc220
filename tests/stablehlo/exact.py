# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What StableHLO operations give, element by element, as the specification says, in NumPy.

evaluate.py computes exported models in f64; here each operation has the widths and the rounding of its
element type. What the specification leaves open (division by zero, NaN to an integer) is as docs/numerics.md
says. A value is an array of the type's `dtype`: floats that NumPy lacks lie in f32, integers of 4 bits in
8 bits. Nothing here knows how mgpu computes.
"""

import itertools

import numpy as np


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
    Kind("i1", np.bool_, 1), Kind("i4", np.int8, 4), Kind("ui4", np.uint8, 4),
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
# Functions that are right within a few units in the last place.
FUNCTIONS = {
    "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p,
    "tanh": np.tanh, "sine": np.sin, "cosine": np.cos, "tan": np.tan, "cbrt": np.cbrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "logistic": lambda x: 1 / (1 + np.exp(-x)), "atan2": np.arctan2}


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
    "sign": lambda x: np.where(np.isnan(x) | (x == 0), x, np.sign(x))}


def plain(name, kind, *args):
    """An operation of one or two operands of a type; exact but for FUNCTIONS."""
    with np.errstate(all="ignore"):
        if kind.is_bool:
            return BOOLEANS[name](*args)
        if not kind.is_float:
            return elementwise(lambda *each: INTEGERS[name](*each, kind), kind, *args)
        wide = [np.asarray(arg, dtype=np.float64) for arg in args]
        return rounded((FLOATS.get(name) or FUNCTIONS[name])(*wide), kind)


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
