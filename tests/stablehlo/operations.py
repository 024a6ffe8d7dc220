# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How each operation of random programs is drawn; DRAWN lists them all."""

import dataclasses
import functools
import os
import re

import numpy as np

import evaluate
from draw import ALL, FLOATS, INTEGERS, WIDE_INTEGERS, combiner, near, points, region, same, type_of
from evaluate import KINDS

DRAWN = []
# Reducers whose result does not depend on the order.
REDUCERS = {"i1": ["and", "or", "maximum"], "float": ["add", "maximum", "minimum"],
            "integer": ["add", "multiply", "maximum", "minimum", "and", "or", "xor"]}
# The names that docs/numerics.md has for functions, and units in the last place of those that it does not name.
MATH = {"exponential": "exp", "exponential_minus_one": "expm1", "log": "log", "log_plus_one": "log1p", "sine": "sin",
        "cosine": "cos", "power": "powf", "chlo.tan": "tan"} | {name: name.removeprefix("chlo.") for name in (
            "tanh tan cbrt rsqrt atan2 chlo.acos chlo.acosh chlo.asin chlo.asinh chlo.atan chlo.atanh chlo.cosh chlo.sinh "
            "chlo.erf chlo.erfc").split()}
UNITS = {"logistic": 6, "chlo.erf_inv": 8, "chlo.lgamma": 16, "chlo.digamma": 16}


def bounds():
    """Units in the last place by function, of f32 and of f64, on the host."""
    path = os.path.join(os.path.dirname(__file__), "../../docs/numerics.md")
    with open(path, encoding="utf-8") as file:
        rows = re.findall(r"(?m)^\| `(\w+)` \| (\d+) \| (\d+) \| \d+ \| \d+ \|$", file.read())
    return {name: (int(single), int(double)) for name, single, double in rows}


BOUNDS = bounds()


def draws(function):
    DRAWN.append(function)
    return function


def numbers(values):
    return f"array<i64{': ' if len(values) else ''}{', '.join(map(str, values))}>"


def reducers(kind):
    return REDUCERS.get(kind) or REDUCERS["float" if KINDS[kind].is_float else "integer"]


def elementwise(name, kinds, count):
    def draw(p):
        kind, shape = p.rng.choice(kinds), p.shape()
        args = [p.operand(kind, shape) for _ in range(count)]
        p.exactly(name, args, kind, shape, lambda *a: evaluate.plain(name, KINDS[kind], *a))
    DRAWN.append(draw)


for each in ("add", "multiply", "maximum", "minimum"):
    elementwise(each, ALL, 2)
for each in ("subtract", "divide", "remainder"):
    elementwise(each, INTEGERS + FLOATS, 2)
for each in ("and", "or", "xor"):
    elementwise(each, INTEGERS + ["i1"], 2)
for each in ("power", "shift_left"):
    elementwise(each, INTEGERS, 2)
for each in ("shift_right_logical", "shift_right_arithmetic"):
    elementwise(each, WIDE_INTEGERS, 2)
elementwise("not", INTEGERS + ["i1"], 1)
for each in ("popcnt", "count_leading_zeros"):
    elementwise(each, WIDE_INTEGERS, 1)
for each in ("negate",):
    elementwise(each, INTEGERS + FLOATS, 1)
for each in ("abs", "sign"):
    elementwise(each, [kind for kind in INTEGERS if not KINDS[kind].is_unsigned] + FLOATS, 1)
for each in ("floor", "ceil", "round_nearest_even", "round_nearest_afz"):
    elementwise(each, FLOATS, 1)


@draws
def square_root(p):
    kind, shape = p.rng.choice(FLOATS), p.shape()
    p.exactly("sqrt", [p.operand(kind, shape)], kind, shape, lambda x: evaluate.plain("sqrt", KINDS[kind], x))


def function(p, name):
    kind, shape = p.rng.choice(FLOATS), p.shape()
    args = [p.operand(kind, shape) for _ in range(2 if name in ("atan2", "power") else 1)]
    # A double rounding makes a unit of what is exact but for a few arguments.
    units = UNITS[name] if name in UNITS else max(1, BOUNDS[MATH[name]][kind == "f64"])

    def judge(have, a, k):
        want = evaluate.plain(name.removeprefix("chlo."), KINDS[kind], *a)
        if name in ("chlo.lgamma", "chlo.digamma"):  # they cancel near their zeros
            have, want = (np.where(np.abs(x) < 1, x + np.copysign(1, want), x) for x in (have, want))
        if name == "logistic" and KINDS[kind].least <= -126:  # the power may overflow before the result is 0
            have, want = (np.where(np.abs(x) < 2.0 ** KINDS[kind].least, 0, x) for x in (have, want))
        return near(have, want, KINDS[kind], units)
    p.op(name, args, [(kind, shape)], judge)


DRAWN.extend(functools.partial(function, name=name) for name in sorted(MATH | UNITS))


@draws
def compare(p):
    kind, shape, direction = p.rng.choice(ALL), p.shape(), p.rng.choice(sorted(evaluate.COMPARE))
    order = p.rng.choice(["FLOAT", "TOTALORDER"]) if KINDS[kind].is_float else \
        "UNSIGNED" if KINDS[kind].is_unsigned else "SIGNED"
    args = [p.operand(kind, shape), p.operand(kind, shape)]
    p.exactly("compare", args, "i1", shape, lambda a, b: evaluate.compare(direction, order, a, b),
              f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
              f"compare_type = #stablehlo<comparison_type {order}>")


@draws
def select(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    args = [p.operand("i1", shape), p.operand(kind, shape), p.operand(kind, shape)]
    p.exactly("select", args, kind, shape, np.where)


@draws
def clamp(p):
    kind, shape = p.rng.choice(INTEGERS + FLOATS), p.shape()
    args = [p.operand(kind, shape) for _ in range(3)]
    p.exactly("clamp", args, kind, shape, lambda low, x, high: evaluate.plain(
        "minimum", KINDS[kind], evaluate.plain("maximum", KINDS[kind], low, x), high))


@draws
def is_finite(p):
    kind, shape = p.rng.choice(FLOATS), p.shape()
    p.exactly("is_finite", [p.operand(kind, shape)], "i1", shape, np.isfinite)


@draws
def convert(p):
    source, target, shape = p.rng.choice(ALL), p.rng.choice(ALL), p.shape()
    p.exactly("convert", [p.operand(source, shape)], target, shape,
              lambda x: evaluate.convert(x, KINDS[source], KINDS[target]))


@draws
def constant(p):
    """Numbers in the text, and one that stands for all."""
    kind, shape = p.rng.choice([kind for kind in ALL if kind not in ("bf16", "f8E4M3FN", "f8E5M2")]), p.shape()
    array = p.drawn(kind, () if p.rng.random() < 0.5 else shape)
    if KINDS[kind].is_float:
        bits = array.reshape(-1).view(f"u{array.itemsize}")
        words = [f"0x{bit:0{2 * array.itemsize}X}" for bit in bits]
    else:
        words = [str(x).lower() for x in array.reshape(-1).tolist()]

    def nested(words, dims):
        if not dims:
            return words.pop(0)
        return f"[{', '.join(nested(words, dims[1:]) for _ in range(dims[0]))}]"
    text = nested(words, array.shape) if array.size else ""
    p.exactly("constant", [], kind, shape, lambda: np.broadcast_to(array, shape),
              f"value = dense<{text}> : {type_of(shape, kind)}")


@draws
def optimization_barrier(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    p.exactly("optimization_barrier", [p.operand(kind, shape)], kind, shape, lambda x: x)


@draws
def broadcast(p):
    kind, shape, more = p.rng.choice(ALL), p.shape(), p.shape(0, 2)
    p.exactly("broadcast", [p.operand(kind, shape)], kind, more + shape, lambda x: np.broadcast_to(x, more + shape),
              f"broadcast_sizes = {numbers(more)}")


@draws
def if_(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    args = [p.operand(kind, shape) for _ in range(2)]
    flag = p.operand("i1", ())
    regions = ", ".join(f'{{\n      "stablehlo.return"({value.name}) : ({value.type()}) -> ()\n  }}' for value in args)
    made = p.op("if", [flag], [(kind, shape)], lambda have, a, k: "", "", f" ({regions})")[0]
    p.judged[-1] = ("if", [flag.name, *(v.name for v in args)], made.name,
                    lambda have, a, values: same(have, a[1] if a[0] else a[2]))


@draws
def iota(p):
    kind, shape = p.rng.choice(INTEGERS + FLOATS), p.shape(1)
    dimension = p.rng.randrange(len(shape))
    if p.rng.random() < 0.2:
        shape, dimension = (300,), 0

    def compute():
        wide = [1] * len(shape)
        wide[dimension] = shape[dimension]
        line = np.arange(shape[dimension], dtype=np.int64)
        line = evaluate.convert(line, KINDS["i64"], KINDS[kind])
        return np.broadcast_to(line.reshape(wide), shape)
    p.exactly("iota", [], kind, shape, compute, f"iota_dimension = {dimension} : i64")


@draws
def broadcast_in_dim(p):
    kind, out = p.rng.choice(ALL), p.shape()
    dims = sorted(p.rng.sample(range(len(out)), p.rng.randint(0, len(out))))
    shape = [out[k] if p.rng.random() < 0.7 else 1 for k in dims]

    p.exactly("broadcast_in_dim", [p.operand(kind, shape)], kind, out, lambda x: evaluate.broadcast(x, dims, out),
              f"broadcast_dimensions = {numbers(dims)}")


@draws
def reshape(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    out = list(shape)
    p.rng.shuffle(out)
    out.insert(p.rng.randint(0, len(out)), 1)
    p.exactly("reshape", [p.operand(kind, shape)], kind, out, lambda x: x.reshape(out))


@draws
def transpose(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    order = p.rng.sample(range(len(shape)), len(shape))
    p.exactly("transpose", [p.operand(kind, shape)], kind, [shape[k] for k in order],
              lambda x: np.transpose(x, order), f"permutation = {numbers(order)}")


def slice_form(p, shape):
    starts = [p.rng.randint(0, size) for size in shape]
    limits = [p.rng.randint(start, size) for start, size in zip(starts, shape)]
    strides = [p.rng.choice([1, 1, 2, 3]) for _ in shape]
    cut = tuple(slice(*each) for each in zip(starts, limits, strides))
    return starts, limits, strides, cut, [len(range(*each)) for each in zip(starts, limits, strides)]


@draws
def slice_(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    starts, limits, strides, cut, out = slice_form(p, shape)
    p.exactly("slice", [p.operand(kind, shape)], kind, out, lambda x: x[cut],
              f"start_indices = {numbers(starts)}, limit_indices = {numbers(limits)}, strides = {numbers(strides)}")


def padding_of(p, shape):
    inner = [p.rng.choice([0, 0, 1, 2]) for _ in shape]
    spread = [(size - 1) * (each + 1) + 1 if size else 0 for size, each in zip(shape, inner)]
    low = [p.rng.randint(-2, 2) for _ in shape]
    high = [max(p.rng.randint(-2, 2), -size - one) for size, one in zip(spread, low)]
    return low, high, inner, [size + one + other for size, one, other in zip(spread, low, high)]


@draws
def pad(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    low, high, inner, out = padding_of(p, shape)
    args = [p.operand(kind, shape), p.operand(kind, ())]
    p.exactly("pad", args, kind, out, lambda x, fill: evaluate.pad(x, fill, low, high, inner),
              f"edge_padding_low = {numbers(low)}, edge_padding_high = {numbers(high)}, "
              f"interior_padding = {numbers(inner)}")


@draws
def concatenate(p):
    kind, shape = p.rng.choice(ALL), p.shape(1)
    axis = p.rng.randrange(len(shape))
    args = [p.operand(kind, shape[:axis] + (p.size(),) + shape[axis + 1:]) for _ in range(p.rng.randint(1, 3))]
    if p.rng.random() < 0.2:
        args[-1] = args[0]
    out = shape[:axis] + (sum(v.shape[axis] for v in args),) + shape[axis + 1:]
    p.exactly("concatenate", args, kind, out, lambda *a: np.concatenate(a, axis=axis), f"dimension = {axis} : i64")


@draws
def reverse(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    dims = sorted(p.rng.sample(range(len(shape)), p.rng.randint(0, len(shape))))
    p.exactly("reverse", [p.operand(kind, shape)], kind, shape, lambda x: np.flip(x, tuple(dims)),
              f"dimensions = {numbers(dims)}")


def clamped(starts, shape, sizes):
    return [min(max(int(start), 0), whole - size) for start, whole, size in zip(starts, shape, sizes)]


@draws
def dynamic_slice(p):
    kind, index, shape = p.rng.choice(ALL), p.rng.choice(WIDE_INTEGERS), p.shape()
    sizes = [p.rng.randint(0, size) for size in shape]
    args = [p.operand(kind, shape)] + [p.operand(index, ()) for _ in shape]

    def compute(x, *starts):
        return x[tuple(slice(at, at + size) for at, size in zip(clamped(starts, shape, sizes), sizes))]
    p.exactly("dynamic_slice", args, kind, sizes, compute, f"slice_sizes = {numbers(sizes)}")


@draws
def dynamic_update_slice(p):
    kind, index, shape = p.rng.choice(ALL), p.rng.choice(WIDE_INTEGERS), p.shape()
    sizes = [p.rng.randint(0, size) for size in shape]
    args = [p.operand(kind, shape), p.operand(kind, sizes)] + [p.operand(index, ()) for _ in shape]

    def compute(x, update, *starts):
        out = x.copy()
        out[tuple(slice(at, at + size) for at, size in zip(clamped(starts, shape, sizes), sizes))] = update
        return out
    p.exactly("dynamic_update_slice", args, kind, shape, compute)


def indexing(p, shape):
    """Which dimensions of a tensor go by indices, and how."""
    dims = list(range(len(shape)))
    indexed = p.rng.sample(dims, p.rng.randint(0 if p.rng.random() < 0.2 else min(1, len(dims)), len(dims)))
    batch = tuple(p.size() for _ in range(p.rng.choice([0, 1, 1, 2, 2, 3])))
    batching, of_indices = [], []
    free = [k for k in dims if k not in indexed]
    if free and batch and p.rng.random() < 0.3:
        batching, of_indices = [p.rng.choice(free)], [p.rng.randrange(len(batch))]
    gone = [k for k in indexed if p.rng.random() < 0.5]
    axis = p.rng.randint(0, len(batch))
    has_vector = len(indexed) != 1 or p.rng.random() < 0.6
    if not has_vector:
        axis = len(batch)
    indices = batch[:axis] + ((len(indexed),) if has_vector else ()) + batch[axis:]
    of = [k + (has_vector and k >= axis) for k in of_indices]
    return indexed, batch, batching, of, of_indices, sorted(gone), axis, indices


@dataclasses.dataclass
class GatherForm:
    shape: tuple
    indices: tuple
    sizes: list
    out: list
    spec: dict
    attributes: str


def gather_form(p):
    shape = p.shape(1)
    indexed, batch, batching, of, own, gone, axis, indices = indexing(p, shape)
    if batching:
        shape = tuple(batch[own[0]] if k == batching[0] else size for k, size in enumerate(shape))
    gone = [k for k in gone if shape[k] > 0]
    sizes = [min(1, shape[k]) if k in batching else 1 if k in gone else p.rng.randint(0, size)
             for k, size in enumerate(shape)]
    kept = [k for k in range(len(shape)) if k not in gone and k not in batching]
    rank = len(batch) + len(kept)
    offset = sorted(p.rng.sample(range(rank), len(kept)))
    rest, part = iter(batch), iter(sizes[k] for k in kept)
    out = [next(part) if k in offset else next(rest) for k in range(rank)]
    spec = {"rank": rank, "offset_dims": offset, "collapsed": gone, "operand_batching": batching,
            "indices_batching": of, "index_map": indexed, "index_vector_dim": axis, "shape": out}
    return GatherForm(
        shape, indices, sizes, out, spec,
        f"dimension_numbers = #stablehlo.gather<offset_dims = {offset}, collapsed_slice_dims = {gone}, "
        f"operand_batching_dims = {batching}, start_indices_batching_dims = {of}, start_index_map = {indexed}, "
        f"index_vector_dim = {axis}>")


@draws
def gather(p):
    kind, index, form = p.rng.choice(ALL), p.rng.choice(WIDE_INTEGERS), gather_form(p)
    args = [p.operand(kind, form.shape), p.operand(index, form.indices)]
    p.exactly("gather", args, kind, form.out, lambda x, i: evaluate.gather(x, i, form.spec, form.sizes),
              f"{form.attributes}, slice_sizes = {numbers(form.sizes)}")


@draws
def scatter(p):
    count = p.rng.choice([1, 1, 2])
    kinds, index = [p.rng.choice(ALL) for _ in range(count)], p.rng.choice(WIDE_INTEGERS)
    shape = p.shape(1)
    indexed, batch, batching, of, own, gone, axis, indices = indexing(p, shape)
    if batching:
        shape = tuple(batch[own[0]] if k == batching[0] else size for k, size in enumerate(shape))
    kept = [k for k in range(len(shape)) if k not in gone and k not in batching]
    rank = len(batch) + len(kept)
    window = sorted(p.rng.sample(range(rank), len(kept)))
    rest, part = iter(batch), iter(p.rng.randint(0, shape[k]) for k in kept)
    updates = [next(part) if k in window else next(rest) for k in range(rank)]
    spec = {"window_dims": window, "inserted": gone, "input_batching": batching, "indices_batching": of,
            "index_map": indexed, "index_vector_dim": axis}
    names = [p.rng.choice(reducers(kind) + ["replace"]) for kind in kinds]
    unused = [p.rng.randrange(2)] if count == 2 and p.rng.random() < 0.5 else []
    scatter_of(p, kinds, names, p.operand(index, indices), shape, updates, spec, unused=unused)


def scatter_of(p, kinds, names, indices, shape, updates, spec, unused=(), unique=False, operands=None):
    """A scatter of tensors of `shape`, each updated by the operation of its name."""
    count = len(kinds)
    args = (operands or [p.operand(kind, shape, True) for kind in kinds]) + [indices] + \
        [p.operand(kind, updates, True) for kind in kinds]
    lines = [f'      %y{k} = "stablehlo.{name}"(%x{k}, %x{count + k}) : (tensor<{kind}>, tensor<{kind}>) -> '
             f'tensor<{kind}>\n' for k, (name, kind) in enumerate(zip(names, kinds)) if name != "replace"]
    gives = ", ".join(f"%y{k}" if name != "replace" else f"%x{count + k}" for k, name in enumerate(names))
    body = region(kinds + kinds, "".join(lines) + f'      "stablehlo.return"({gives}) : '
                  f'({", ".join(f"tensor<{kind}>" for kind in kinds)}) -> ()\n', 2 * count)

    def judge(have, a, k):
        def combine(old, new):
            return [new[j] if name == "replace" else evaluate.plain(name, KINDS[kind], old[j], new[j])
                    for j, (name, kind) in enumerate(zip(names, kinds))]
        return same(have, evaluate.scatter(a[:count], a[count], a[count + 1:], spec, combine)[k], zeros=True)
    return p.op("scatter", args, [(kind, shape) for kind in kinds], judge,
                f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {spec['window_dims']}, "
                f"inserted_window_dims = {spec['inserted']}, input_batching_dims = {spec['input_batching']}, "
                f"scatter_indices_batching_dims = {spec['indices_batching']}, scatter_dims_to_operand_dims = "
                f"{spec['index_map']}, index_vector_dim = {spec['index_vector_dim']}>, "
                f"unique_indices = {str(unique).lower()}", body, unused)


def folded(name, kind, start, values):
    """The numbers along the last dimension, combined from a first one."""
    out = np.broadcast_to(start, values.shape[:-1]).astype(values.dtype)
    for k in range(values.shape[-1]):
        out = evaluate.plain(name, KINDS[kind], out, values[..., k]).astype(values.dtype)
    return out


@draws
def reduce(p):
    count, shape = p.rng.choice([1, 1, 2]), p.shape()
    kinds = [p.rng.choice(ALL) for _ in range(count)]
    dims = sorted(p.rng.sample(range(len(shape)), p.rng.randint(0, len(shape))))
    names = [p.rng.choice(reducers(kind)) for kind in kinds]
    args = [p.operand(kind, shape, True) for kind in kinds] + [p.operand(kind, (), True) for kind in kinds]
    out = [size for k, size in enumerate(shape) if k not in dims]
    lines = "".join(f'      %y{k} = "stablehlo.{name}"(%x{k}, %x{count + k}) : (tensor<{kind}>, tensor<{kind}>) -> '
                    f'tensor<{kind}>\n' for k, (name, kind) in enumerate(zip(names, kinds)))
    lines += f'      "stablehlo.return"({", ".join(f"%y{k}" for k in range(count))}) : ' \
             f'({", ".join(f"tensor<{kind}>" for kind in kinds)}) -> ()\n'

    def judge(have, a, k):
        rest = [i for i in range(len(shape)) if i not in dims]
        flat = np.transpose(a[k], rest + dims).reshape(out + [-1 if np.prod(out) else int(np.prod(
            [shape[i] for i in dims]))])
        return same(have, folded(names[k], kinds[k], a[count + k], flat), zeros=True)
    unused = [p.rng.randrange(2)] if count == 2 and p.rng.random() < 0.5 else []
    p.op("reduce", args, [(kind, out) for kind in kinds], judge, f"dimensions = {numbers(dims)}",
         region(kinds + kinds, lines, 2 * count), unused)


def window(p, shape, dilate=True):
    pick = lambda most: [p.rng.choice([1, 1, 2, most]) for _ in shape]
    spec = {"sizes": [p.rng.choice([1, 2, 3, 5]) for _ in shape], "strides": pick(3),
            "base": pick(2) if dilate else [1] * len(shape), "window": pick(2) if dilate else [1] * len(shape),
            "low": [p.rng.choice([0, 0, 1, 2, -1]) for _ in shape], "high": [p.rng.choice([0, 0, 1, 2]) for _ in shape]}
    for k, size in enumerate(shape):  # no padding takes more than there is
        wide = (size - 1) * spec["base"][k] + 1 if size else 0
        spec["low"][k] = max(spec["low"][k], -wide)
    return spec


def padding(spec):
    rows = [f"[{low}, {high}]" for low, high in zip(spec["low"], spec["high"])]
    return f"padding = dense<{'[' + ', '.join(rows) + ']' if rows else ''}> : tensor<{len(rows)}x2xi64>"


@draws
def reduce_window(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    spec, name = window(p, shape), p.rng.choice(reducers(kind))
    out = evaluate.windows(np.zeros(shape, KINDS[kind].dtype), 0, spec).shape[:-1]
    args = [p.operand(kind, shape, True), p.operand(kind, (), True)]

    def compute(x, start):
        return folded(name, kind, start, evaluate.windows(x, start, spec))
    p.exactly("reduce_window", args, kind, out, compute,
              f"window_dimensions = {numbers(spec['sizes'])}, window_strides = {numbers(spec['strides'])}, "
              f"base_dilations = {numbers(spec['base'])}, window_dilations = {numbers(spec['window'])}, {padding(spec)}",
              combiner(name, kind), zeros=True)


@draws
def sort(p):
    kind, shape = p.rng.choice(INTEGERS + FLOATS), p.shape(1)
    if p.rng.random() < 0.3:
        shape = (p.rng.randint(6, 40),)
    axis, direction = p.rng.randrange(len(shape)), p.rng.choice(["LT", "GT", "LE", "GE"])
    order = p.rng.choice(["FLOAT", "TOTALORDER"]) if KINDS[kind].is_float else \
        "UNSIGNED" if KINDS[kind].is_unsigned else "SIGNED"
    line = np.broadcast_to(np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape)
    args = [p.operand(kind, shape), p.argument("i32", shape, line)]
    body = region([kind, kind, "i32", "i32"],
                  f'      %out = "stablehlo.compare"(%x0, %x1) <{{comparison_direction = #stablehlo<comparison_direction '
                  f'{direction}>, compare_type = #stablehlo<comparison_type {order}>}}> : (tensor<{kind}>, tensor<{kind}>)'
                  f' -> tensor<i1>\n      "stablehlo.return"(%out) : (tensor<i1>) -> ()\n', 4)
    strict = direction in ("LT", "GT")

    def key(x):
        """What orders: NaN last where the comparison says nothing of it."""
        if order == "TOTALORDER":
            bits = x.astype(np.float64).view(np.int64)
            whole = [int(b) if b >= 0 else int(b ^ np.int64(0x7FFFFFFFFFFFFFFF)) for b in bits]
            return [w if direction in ("LT", "LE") else -w for w in whole]
        flat = [float(e) if KINDS[kind].is_float else int(e) for e in x]
        return [(e != e, 0 if e != e else e if direction in ("LT", "LE") else -e) for e in flat]

    def judge(have, a, k):
        values, places = np.moveaxis(a[0], axis, -1), np.moveaxis(have, axis, -1)
        for at in points(values.shape[:-1]):
            want = sorted(range(shape[axis]), key=key(values[at]).__getitem__)
            if k == 1 and strict and list(places[at]) != want:
                return f"row {at} has places {list(places[at])}, not {want}"
            if k == 1 and sorted(places[at]) != list(range(shape[axis])):
                return f"row {at} has places {list(places[at])}, no permutation"
            words = same(places[at], values[at][want]) if k == 0 and strict else ""
            if words:
                return f"row {at}: {words}"
        return ""
    unused = [0] if p.rng.random() < 0.2 else []
    p.op("sort", args, [(kind, shape), ("i32", shape)], judge,
         f"dimension = {axis} : i64, is_stable = true", body, unused)


@draws
def dot_general(p):
    kind = p.rng.choice(ALL)
    batch, free, other, summed = (p.shape(0, 1) for _ in range(4))
    sides = []
    for own in (free, other):
        dims = [("b", k, s) for k, s in enumerate(batch)] + [("f", k, s) for k, s in enumerate(own)] + \
            [("k", k, s) for k, s in enumerate(summed)]
        p.rng.shuffle(dims)
        sides.append(dims)
    args = [p.operand(kind, [s for *_, s in dims], True) for dims in sides]
    place = [{(what, k): at for at, (what, k, _) in enumerate(dims)} for dims in sides]
    lists = [[side["b", k] for k in range(len(batch))] for side in place] + \
        [[side["k", k] for k in range(len(summed))] for side in place]
    out = list(batch) + list(free) + list(other)

    def compute(a, b):
        a = np.transpose(evaluate.whole(a), lists[0] + [place[0]["f", k] for k in range(len(free))] + lists[2])
        b = np.transpose(evaluate.whole(b), lists[1] + [place[1]["f", k] for k in range(len(other))] + lists[3])
        made = np.zeros(out, dtype=object)
        for at in points(out):
            x, y = at[:len(batch)] + at[len(batch):len(batch) + len(free)], at[:len(batch)] + at[len(batch) + len(free):]
            total = sum((a[x + k] * b[y + k] for k in points(summed)), 0)
            made[at] = total
        if KINDS[kind].is_float:
            return evaluate.rounded(made.astype(np.float64), KINDS[kind])
        return made != 0 if KINDS[kind].is_bool else evaluate.wrapped(made, KINDS[kind])
    p.exactly("dot_general", args, kind, out, compute,
              f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {lists[0]}, rhs_batching_dimensions = "
              f"{lists[1]}, lhs_contracting_dimensions = {lists[2]}, rhs_contracting_dimensions = {lists[3]}>",
              zeros=True)


@draws
def dot(p):
    """Products of vectors and matrices."""
    kind, summed = p.rng.choice(ALL), p.size()
    left, right = p.shape(0, 1), p.shape(0, 1)
    args = [p.operand(kind, left + (summed,), True), p.operand(kind, (summed,) + right, True)]

    def compute(a, b):
        made = np.zeros(left + right, dtype=object)
        for at in points(left + right):
            x, y = at[:len(left)], at[len(left):]
            made[at] = sum((evaluate.whole(a)[x + (k,)] * evaluate.whole(b)[(k,) + y] for k in range(summed)), 0)
        if KINDS[kind].is_float:
            return evaluate.rounded(made.astype(np.float64), KINDS[kind])
        return made != 0 if KINDS[kind].is_bool else evaluate.wrapped(made, KINDS[kind])
    p.exactly("dot", args, kind, left + right, compute, zeros=True)


@draws
def get_dimension_size(p):
    kind, shape = p.rng.choice(ALL), p.shape(1)
    dimension = p.rng.randrange(len(shape))
    p.exactly("get_dimension_size", [p.operand(kind, shape)], "i32", (), lambda x: np.array(shape[dimension]),
              f"dimension = {dimension} : i64")


@draws
def convolution(p):
    kind = p.rng.choice(WIDE_INTEGERS + FLOATS)
    n, f, o = (p.rng.choice([0, 1, 2]) if p.rng.random() < 0.2 else p.rng.choice([1, 2, 3]) for _ in range(3))
    f, o = max(f, 1), max(o, 1)
    spatial = p.shape(1, 2)
    spec = window(p, spatial)
    args = [p.operand(kind, (n, *spatial, f), True), p.operand(kind, (*spec["sizes"], f, o), True)]
    names = [str(k) for k in range(len(spatial))]
    out = evaluate.windows(np.zeros(spatial), 0, spec).shape[:-1]

    def compute(x, w):
        made = np.zeros((n, *out, o), dtype=object)
        flat = evaluate.whole(w).reshape(-1, f, o)
        for b in range(n):
            parts = [evaluate.windows(evaluate.whole(x[b, ..., c]), 0, spec) for c in range(f)]
            for at in points(out):
                for to in range(o):
                    made[(b, *at, to)] = sum((parts[c][(*at, k)] * flat[k, c, to] for c in range(f)
                                              for k in range(flat.shape[0])), 0)
        return evaluate.rounded(made.astype(np.float64), KINDS[kind]) if KINDS[kind].is_float else \
            evaluate.wrapped(made, KINDS[kind])
    dims = f"[b, {', '.join(names)}, f]x[{', '.join(names)}, i, o]->[b, {', '.join(names)}, f]"
    p.exactly("convolution", args, kind, (n, *out, o), compute,
              f"dimension_numbers = #stablehlo.conv<{dims}>, window_strides = {numbers(spec['strides'])}, {padding(spec)}, "
              f"lhs_dilation = {numbers(spec['base'])}, rhs_dilation = {numbers(spec['window'])}, "
              "batch_group_count = 1 : i64, feature_group_count = 1 : i64", zeros=True)


@draws
def select_and_scatter(p):
    kind, shape = p.rng.choice(WIDE_INTEGERS + FLOATS), p.shape()
    spec = window(p, shape, dilate=False)
    spec["low"], spec["high"] = [0] * len(shape), [0] * len(shape)
    out = evaluate.windows(np.zeros(shape), 0, spec).shape[:-1]
    args = [p.operand(kind, shape, True), p.operand(kind, out, True), p.operand(kind, (), True)]
    greater = f'      %out = "stablehlo.compare"(%x0, %x1) <{{comparison_direction = #stablehlo<comparison_direction GE>' \
              f'}}> : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>\n      "stablehlo.return"(%out) : (tensor<i1>) -> ()\n'

    def compute(x, source, start):
        made = np.full(shape, start, dtype=x.dtype)
        for at in points(out):
            best = None
            for place in points(spec["sizes"]):
                here = tuple(i * stride + j for i, stride, j in zip(at, spec["strides"], place))
                best = here if best is None or not x[best] >= x[here] else best
            made[best] = evaluate.plain("add", KINDS[kind], made[best], source[at])
        return made
    both = region(kind, greater)[:-1] + "," + combiner("add", kind)[2:]
    p.exactly("select_and_scatter", args, kind, shape, compute,
              f"window_dimensions = {numbers(spec['sizes'])}, window_strides = {numbers(spec['strides'])}, {padding(spec)}",
              both, zeros=True)


@draws
def map_(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    name = p.rng.choice(reducers(kind))
    args = [p.operand(kind, shape), p.operand(kind, shape)]
    p.exactly("map", args, kind, shape, lambda a, b: evaluate.plain(name, KINDS[kind], a, b),
              f"dimensions = {numbers(range(len(shape)))}", combiner(name, kind))


@draws
def case(p):
    kind, shape, count = p.rng.choice(INTEGERS + FLOATS), p.shape(), p.rng.randint(1, 3)
    args = [p.operand(kind, shape) for _ in range(count)]
    index = p.operand("i32", ())
    regions = ", ".join(f'{{\n      "stablehlo.return"({value.name}) : ({value.type()}) -> ()\n  }}' for value in args)
    made = p.op("case", [index], [(kind, shape)], lambda have, a, k: "", "", f" ({regions})")[0]
    p.judged[-1] = ("case", [index.name, *(v.name for v in args)], made.name, lambda have, a, values: same(
        have, a[1 + (int(a[0]) if 0 <= int(a[0]) < count else count - 1)]))


def count_to(start, limit, step, kind):
    """Where a counter ends; None where it takes many trips."""
    at, trips = start, 0
    while at < limit:
        at, trips = int(evaluate.wrapped(at + step, kind)), trips + 1
        if trips > 60:
            return None
    return at, trips


@draws
def while_(p):
    counter, carried = p.rng.choice(INTEGERS), p.rng.choice(INTEGERS)
    kind = KINDS[counter]
    found = None
    while found is None:
        start, limit, step = (int(p.drawn(counter, ())) for _ in range(3))
        found = count_to(start, limit, step, kind)
    end, trips = found
    shape, of = p.shape(), p.rng.choice(INTEGERS)
    number, grows = int(p.drawn(carried, ())), int(p.drawn(carried, ()))
    tensor = p.operand(of, shape)
    names = [p.fresh() for _ in range(5)]
    for name, value, type_ in zip(names, [start, limit, step, number, grows],
                                  [counter, counter, counter, carried, carried]):
        p.lines.append(f'{name} = "stablehlo.constant"() <{{value = dense<{value}> : tensor<{type_}>}}> : () -> '
                       f'tensor<{type_}>')
    order = "UNSIGNED" if kind.is_unsigned else "SIGNED"
    types = f"tensor<{counter}>, tensor<{carried}>, {tensor.type()}"
    arguments = f"%i: tensor<{counter}>, %n: tensor<{carried}>, %t: {tensor.type()}"
    made = [p.fresh() for _ in range(3)]
    p.lines.append(f'{", ".join(made)} = "stablehlo.while"({names[0]}, {names[3]}, {tensor.name}) ({{\n'
                   f'    ^bb0({arguments}):\n      %go = "stablehlo.compare"(%i, {names[1]}) <{{comparison_direction = '
                   f'#stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type {order}>}}> : '
                   f'(tensor<{counter}>, tensor<{counter}>) -> tensor<i1>\n      "stablehlo.return"(%go) : (tensor<i1>) -> '
                   f'()\n  }}, {{\n    ^bb0({arguments}):\n      %j = "stablehlo.add"(%i, {names[2]}) : (tensor<{counter}>, '
                   f'tensor<{counter}>) -> tensor<{counter}>\n      %m = "stablehlo.add"(%n, {names[4]}) : '
                   f'(tensor<{carried}>, tensor<{carried}>) -> tensor<{carried}>\n      %u = "stablehlo.add"(%t, %t) : '
                   f'({tensor.type()}, {tensor.type()}) -> {tensor.type()}\n      "stablehlo.return"(%j, %m, %u) : '
                   f'({types}) -> ()\n  }}) : ({types}) -> ({types})')
    from draw import Value
    last = evaluate.wrapped(number + trips * grows, KINDS[carried])
    for k, (name, type_, dims) in enumerate(zip(made, [counter, carried, of], [(), (), shape])):
        if k and p.rng.random() < 0.3:
            continue
        p.values.append(Value(name, type_, dims))
        p.judged.append(("while", [tensor.name], name, lambda have, a, values, k=k: same(
            have, [np.array(end), np.array(int(last)), evaluate.wrapped(evaluate.whole(a[0]) * 2 ** trips, KINDS[of])][k])))
    p.names.append("while")


@draws
def bitcast_convert(p):
    pairs = [("f32", "i32"), ("i32", "f32"), ("f64", "ui64"), ("ui16", "f16"), ("i16", "bf16"), ("ui8", "f8E5M2")]
    source, target = p.rng.choice(pairs)
    shape = p.shape()
    small = p.operand(source, shape, True)

    def bits(x, kind):
        return evaluate.encoded(x, kind).view(np.dtype(f"u{KINDS[kind].bits // 8}"))
    p.op("bitcast_convert", [small], [(target, shape)], lambda have, a, k: same(
        np.where(np.isnan(have), 0, bits(have, target)) if KINDS[target].is_float else bits(have, target),
        np.where(np.isnan(have), 0, bits(a[0], source)) if KINDS[target].is_float else bits(a[0], source)))


@draws
def reduce_precision(p):
    source = p.rng.choice(["f32", "f64", "f16", "bf16"])
    target = p.rng.choice(["f16", "bf16", "f32", "f8E5M2"])
    exponent = {"f16": 5, "bf16": 8, "f32": 8, "f8E5M2": 5}[target]
    kind = evaluate.Kind("", np.float64, 0, KINDS[target].mantissa, KINDS[target].least, KINDS[target].largest)

    def compute(x):
        """With fewer bits of exponent, numbers below the least normal one become zeros."""
        kept = evaluate.rounded(x.astype(np.float64), kind)
        tiny = (np.abs(kept) < 2.0 ** kind.least) & (kind.least > KINDS[source].least)
        made = np.where(tiny, np.copysign(0, x), kept)
        return evaluate.rounded(made.astype(np.float64), KINDS[source])
    if KINDS[source].mantissa < kind.mantissa or KINDS[source].least > kind.least:
        return reduce_precision(p)
    shape = p.shape()
    return p.exactly("reduce_precision", [p.operand(source, shape)], source, shape, compute,
                     f"exponent_bits = {exponent} : i32, mantissa_bits = {kind.mantissa} : i32")
