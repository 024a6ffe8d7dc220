# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of random programs: those of chlo, with sizes as operands, of tuples and calls, of batches, and solvers."""

import functools

import numpy as np

import evaluate
from draw import ALL, FLOATS, INTEGERS, WIDE_INTEGERS, near, same, type_of
from evaluate import KINDS
from operations import BOUNDS, DRAWN, MATH, draws, gather_form, numbers, padding_of, slice_form

SINGLE_AND_DOUBLE = ["f32", "f64"]


#
# Functions and forms of chlo.
#

@draws
def square(p):
    kind, shape = p.rng.choice(FLOATS), p.shape()
    p.exactly("chlo.square", [p.operand(kind, shape)], kind, shape, lambda x: evaluate.plain("square", KINDS[kind], x))


@draws
def copy(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    p.exactly("mhlo.copy", [p.operand(kind, shape)], kind, shape, lambda x: x)


def is_infinite(p, name, test):
    kind, shape = p.rng.choice(FLOATS), p.shape()
    p.exactly(f"chlo.{name}", [p.operand(kind, shape)], "i1", shape, test)


for each, test in {"is_inf": np.isinf, "is_pos_inf": np.isposinf, "is_neg_inf": np.isneginf}.items():
    DRAWN.append(functools.partial(is_infinite, name=each, test=test))


@draws
def next_after(p):
    kind, shape = p.rng.choice(["f64", "f32", "f16", "bf16"]), p.shape()
    args = [p.operand(kind, shape), p.operand(kind, shape)]
    p.exactly("chlo.next_after", args, kind, shape, lambda x, y: evaluate.next_after(x, y, KINDS[kind]))


@draws
def top_k(p):
    kind, shape = p.rng.choice(WIDE_INTEGERS + FLOATS), p.shape(1)
    count = p.rng.randint(0, shape[-1])
    out = (*shape[:-1], count)

    def judge(have, a, k):
        order = np.argsort(-evaluate.whole(a[0]), axis=-1, kind="stable")[..., :count]
        return same(have, np.take_along_axis(a[0], order, -1) if k == 0 else order, zeros=True)
    p.op("chlo.top_k", [p.operand(kind, shape, True)], [(kind, out), ("i32", out)], judge, f"k = {count} : i64")


def shapes_that_meet(p, count):
    """A shape, and others that broadcast to it."""
    out = p.shape(0, 3)
    return out, [tuple(size if p.rng.random() < 0.7 else 1 for size in out[p.rng.randint(0, len(out)):])
                 for _ in range(count - 1)] + [out]


def broadcast_binary(p, name, kinds):
    kind = p.rng.choice(kinds)
    out, sides = shapes_that_meet(p, 2)
    p.rng.shuffle(sides)
    args = [p.operand(kind, side) for side in sides]

    def judge(have, a, k):
        a = [np.array(x) for x in np.broadcast_arrays(*a)]
        want = evaluate.plain(name, KINDS[kind], *a)
        if name in evaluate.FUNCTIONS and KINDS[kind].is_float:
            return near(have, want, KINDS[kind], max(1, BOUNDS[MATH[name]][kind == "f64"]))
        return same(have, want)
    p.op(f"chlo.broadcast_{name}", args, [(kind, out)], judge)


for names, kinds in [("add multiply maximum minimum", ALL), ("subtract divide remainder", INTEGERS + FLOATS),
                     ("and or xor", INTEGERS + ["i1"]), ("shift_left", INTEGERS), ("atan2", FLOATS),
                     ("power", INTEGERS + FLOATS), ("next_after", ["f64", "f32", "f16", "bf16"]),
                     ("shift_right_logical shift_right_arithmetic", WIDE_INTEGERS)]:
    DRAWN.extend(functools.partial(broadcast_binary, name=each, kinds=kinds) for each in names.split())


@draws
def broadcast_compare(p):
    kind, direction = p.rng.choice(ALL), p.rng.choice(sorted(evaluate.COMPARE))
    out, sides = shapes_that_meet(p, 2)
    p.exactly("chlo.broadcast_compare", [p.operand(kind, side) for side in sides], "i1", out,
              lambda a, b: evaluate.compare(direction, "", a, b),
              f"comparison_direction = #chlo<comparison_direction {direction}>")


@draws
def broadcast_select(p):
    kind = p.rng.choice(ALL)
    out, sides = shapes_that_meet(p, 3)
    args = [p.operand("i1", sides[0]), p.operand(kind, sides[1]), p.operand(kind, sides[2])]
    p.exactly("chlo.broadcast_select", args, kind, out, np.where)


#
# Forms whose sizes are operands, which are constants here.
#

@draws
def dynamic_iota(p):
    kind, shape = p.rng.choice(INTEGERS + FLOATS), p.shape(1)
    dimension = p.rng.randrange(len(shape))

    def compute():
        line = evaluate.convert(np.arange(shape[dimension]), KINDS["i64"], KINDS[kind])
        return np.broadcast_to(np.expand_dims(line, [k for k in range(len(shape)) if k != dimension]), shape)
    p.exactly("dynamic_iota", [p.constant(shape)], kind, shape, lambda *_: compute(),
              f"iota_dimension = {dimension} : i64")


@draws
def dynamic_reshape(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    out = (1, *p.rng.sample(shape, len(shape)))
    p.exactly("dynamic_reshape", [p.operand(kind, shape), p.constant(out)], kind, out, lambda x, _: x.reshape(out))


@draws
def dynamic_broadcast_in_dim(p):
    kind, out = p.rng.choice(ALL), p.shape()
    dims = sorted(p.rng.sample(range(len(out)), p.rng.randint(0, len(out))))
    shape = [out[k] if p.rng.random() < 0.7 else 1 for k in dims]
    p.exactly("dynamic_broadcast_in_dim", [p.operand(kind, shape), p.constant(out)], kind, out,
              lambda x, _: evaluate.broadcast(x, dims, out), f"broadcast_dimensions = {numbers(dims)}")


@draws
def dynamic_pad(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    low, high, inner, out = padding_of(p, shape)
    args = [p.operand(kind, shape), p.operand(kind, ()), *map(p.constant, (low, high, inner))]
    p.exactly("dynamic_pad", args, kind, out, lambda x, fill, *_: evaluate.pad(x, fill, low, high, inner))


@draws
def real_dynamic_slice(p):
    kind, shape = p.rng.choice(ALL), p.shape()
    starts, limits, strides, cut, out = slice_form(p, shape)
    args = [p.operand(kind, shape), *map(p.constant, (starts, limits, strides))]
    p.exactly("real_dynamic_slice", args, kind, out, lambda x, *_: x[cut])


@draws
def dynamic_gather(p):
    kind, index, form = p.rng.choice(ALL), p.rng.choice(WIDE_INTEGERS), gather_form(p)
    args = [p.operand(kind, form.shape), p.operand(index, form.indices), p.constant(form.sizes)]
    p.exactly("dynamic_gather", args, kind, form.out,
              lambda x, i, _: evaluate.gather(x, i, form.spec, form.sizes), form.attributes)


@draws
def torch_index_select(p):
    kind, shape = p.rng.choice(ALL), tuple(max(size, 1) for size in p.shape(1))
    dimension = p.rng.randrange(len(shape))
    batch = p.rng.randint(0, dimension)
    own = p.shape(0, 2)
    where = p.argument("i32", shape[:batch] + own, p.numbers.integers(0, shape[dimension], shape[:batch] + own))
    out = shape[:dimension] + own + shape[dimension + 1:]

    def compute(x, i):
        made = np.empty(out, x.dtype)
        for at in np.ndindex(*shape[:batch]):
            made[at] = np.take(x[at], i[at], axis=dimension - batch)
        return made
    p.exactly("torch_index_select", [p.operand(kind, shape), where], kind, out, compute,
              f"dim = {dimension} : i64, batch_dims = {batch} : i64")


#
# Tuples and calls.
#

@draws
def tuple_(p):
    values = [p.operand(kind, p.shape()) for kind in p.rng.choices(ALL, k=p.rng.randint(1, 3))]
    name, type_ = p.fresh(), f"tuple<{', '.join(value.type() for value in values)}>"
    p.lines.append(f'{name} = "stablehlo.tuple"({", ".join(v.name for v in values)}) : '
                   f'({", ".join(v.type() for v in values)}) -> {type_}')
    p.names.append("tuple")
    k = p.rng.randrange(len(values))
    made = p.exactly("get_tuple_element", [values[k]], values[k].kind, values[k].shape, lambda x: x,
                     f"index = {k} : i32")
    p.lines[-1] = f'{made.name} = "stablehlo.get_tuple_element"({name}) <{{index = {k} : i32}}> : ({type_}) -> {made.type()}'


def function_of(p, kind, shape, name):
    """A function of the module that applies an operation to its two arguments."""
    type_ = type_of(shape, kind)
    p.functions.append(f"func.func private @f{len(p.functions)}(%x: {type_}, %y: {type_}) -> {type_} {{\n"
                       f"  %z = stablehlo.{name} %x, %y : {type_}\n  return %z : {type_}\n}}\n")
    return f"@f{len(p.functions) - 1}"


@draws
def composite(p):
    kind, shape, name = p.rng.choice(ALL), p.shape(), p.rng.choice(["add", "multiply", "maximum", "minimum"])
    args = [p.operand(kind, shape), p.operand(kind, shape)]
    p.exactly("composite", args, kind, shape, lambda a, b: evaluate.plain(name, KINDS[kind], a, b),
              f'name = "test.{name}", decomposition = {function_of(p, kind, shape, name)}, composite_attributes = {{}}, '
              "version = 0 : i32")


@draws
def call(p):
    kind, shape, name = p.rng.choice(ALL), p.shape(), p.rng.choice(["add", "multiply", "maximum", "minimum"])
    args = [p.operand(kind, shape), p.operand(kind, shape)]
    p.exactly("func.call", args, kind, shape, lambda a, b: evaluate.plain(name, KINDS[kind], a, b),
              f"callee = {function_of(p, kind, shape, name)}")


#
# Norms of batches.
#

def batch_norm(p):
    """The element type, the shape, which dimension has features, and epsilon."""
    kind, shape = p.rng.choice(SINGLE_AND_DOUBLE), p.shape(1)
    return kind, shape, p.rng.randrange(len(shape)), p.rng.choice([0.125, 0.5, 1.0])


def within(have, want, size, kind):
    """Empty where each number is as near as a few sums and products of numbers of that size are."""
    have, want = np.asarray(have, np.longdouble), np.asarray(want, np.longdouble)
    good = (np.abs(have - want) <= 64 * 2.0 ** -KINDS[kind].mantissa * size) | (np.isnan(have) & np.isnan(want)) | (have == want)
    return "" if good.all() else f"is {have.tolist()}, not {want.tolist()}"


def norm_parts(x, feature, *of_features):
    """Wide numbers, those of features spread over the tensor, and which dimensions the others are."""
    others = tuple(k for k in range(x.ndim) if k != feature)
    return x.astype(np.longdouble), [np.expand_dims(each.astype(np.longdouble), others) for each in of_features], others


def drawn_features(p, kind, count, positive=False):
    array = p.numbers.integers(0 if positive else -3, 4, count)
    return p.argument(kind, (count,), array)


@draws
def batch_norm_inference(p):
    kind, shape, feature, epsilon = batch_norm(p)
    args = [p.operand(kind, shape, True)] + [drawn_features(p, kind, shape[feature], k == 3) for k in range(4)]

    def judge(have, a, k):
        x, (scale, offset, mean, variance), _ = norm_parts(a[0], feature, *a[1:])
        want = scale * (x - mean) / np.sqrt(variance + epsilon) + offset
        return within(have, want, 1 + np.abs(want) + np.abs(offset), kind)
    p.op("batch_norm_inference", args, [(kind, shape)], judge, f"epsilon = {epsilon} : f32, feature_index = {feature} : i64")


@draws
def batch_norm_training(p):
    kind, shape, feature, epsilon = batch_norm(p)
    args = [p.operand(kind, shape, True)] + [drawn_features(p, kind, shape[feature]) for _ in range(2)]

    def judge(have, a, k):
        x, (scale, offset), others = norm_parts(a[0], feature, *a[1:])
        count = np.longdouble(x.size) / max(x.shape[feature], 1)
        mean = x.sum(others, keepdims=True) / count
        variance = ((x - mean) ** 2).sum(others, keepdims=True) / count
        want = [scale * (x - mean) / np.sqrt(variance + epsilon) + offset, mean.reshape(-1), variance.reshape(-1)][k]
        return within(have, want, 16 + np.abs(want), kind)
    of_features = (kind, (shape[feature],))
    p.op("batch_norm_training", args, [(kind, shape), of_features, of_features], judge,
         f"epsilon = {epsilon} : f32, feature_index = {feature} : i64")


@draws
def batch_norm_grad(p):
    kind, shape, feature, epsilon = batch_norm(p)
    args = [p.operand(kind, shape, True)] + [drawn_features(p, kind, shape[feature], k == 2) for k in range(3)]
    args.append(p.operand(kind, shape, True))

    def judge(have, a, k):
        x, (scale, mean, variance), others = norm_parts(a[0], feature, *a[1:4])
        gradient, count = a[4].astype(np.longdouble), x.size / max(x.shape[feature], 1)
        deviation, total = np.sqrt(variance + epsilon), lambda y: y.sum(others, keepdims=True)
        rest = gradient * count - total(gradient) - total(gradient * (x - mean)) * (x - mean) / (variance + epsilon)
        of_scale = total(gradient * (x - mean) / deviation).reshape(-1)
        want = [scale / deviation / count * rest if x.size else x, of_scale, total(gradient).reshape(-1)][k]
        return within(have, want, 64 * (1 + count), kind)
    of_features = (kind, (shape[feature],))
    p.op("batch_norm_grad", args, [(kind, shape), of_features, of_features], judge,
         f"epsilon = {epsilon} : f32, feature_index = {feature} : i64")


#
# Solvers: whole numbers make every step exact.
#

def triangle(p, batch, size, lower, diagonal):
    array = p.numbers.integers(-2, 3, (*batch, size, size))
    array[..., range(size), range(size)] = p.numbers.choice(diagonal, (*batch, size))
    return np.tril(array) if lower else np.triu(array)


@draws
def cholesky(p):
    kind, batch, size, lower = p.rng.choice(SINGLE_AND_DOUBLE), p.shape(0, 2), p.size(), p.rng.random() < 0.5
    factor = triangle(p, batch, size, lower, [1, 2, 3])
    turned = np.swapaxes(factor, -1, -2)
    given = factor @ turned if lower else turned @ factor
    outside = np.triu(np.ones((size, size)), 1) if lower else np.tril(np.ones((size, size)), -1)
    given = given + 50 * outside  # is not read
    p.exactly("cholesky", [p.argument(kind, given.shape, given)], kind, given.shape, lambda _: factor.astype(KINDS[kind].dtype),
              f"lower = {str(lower).lower()}", zeros=True)


@draws
def triangular_solve(p):
    kind, batch, size, other = p.rng.choice(SINGLE_AND_DOUBLE), p.shape(0, 1), p.size(), p.size()
    left, lower, unit = (p.rng.random() < 0.5 for _ in range(3))
    turn = p.rng.choice(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
    a = triangle(p, batch, size, lower, [1] if unit else [1, -1])
    x = p.numbers.integers(-2, 3, (*batch, size, other) if left else (*batch, other, size))
    of = a if turn == "NO_TRANSPOSE" else np.swapaxes(a, -1, -2)
    b = of @ x if left else x @ of
    given = a + 9 * (np.triu(np.ones((size, size)), 1) if lower else np.tril(np.ones((size, size)), -1))
    given += 5 * np.eye(size) if unit else 0  # what is not read
    args = [p.argument(kind, given.shape, given), p.argument(kind, b.shape, b)]
    p.exactly("triangular_solve", args, kind, b.shape, lambda *_: x.astype(KINDS[kind].dtype),
              f"left_side = {str(left).lower()}, lower = {str(lower).lower()}, transpose_a = #stablehlo<transpose {turn}>, "
              f"unit_diagonal = {str(unit).lower()}", zeros=True)
