# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What random_programs.py draws: programs of random operations, and who judges each of their results."""

import itertools

import numpy as np

import evaluate
from evaluate import KINDS, STORED

INTEGERS = [name for name, kind in KINDS.items() if kind.is_integer]
WIDE_INTEGERS = [name for name in INTEGERS if KINDS[name].bits >= 8]
FLOATS = [name for name, kind in KINDS.items() if kind.is_float]
ALL = list(KINDS)


def type_of(shape, kind):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{kind}>"


def same(have, want, zeros=False):
    """Empty where each number is the same, bit for bit but for NaN; `zeros`: of both signs alike."""
    have, want = np.asarray(have), np.asarray(want)
    if have.shape != want.shape:
        return f"has shape {have.shape}, not {want.shape}"
    good = (have == want) | ((have != have) & (want != want))
    if np.issubdtype(have.dtype, np.floating) and not zeros:
        good &= (np.signbit(have) == np.signbit(want)) | (have != have)
    if good.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~good)[0])
    return f"at {at} is {have[at]!r}, not {want[at]!r}"


def near(have, want, kind, ulps):
    """Empty where each number is within some units in the last place."""
    have, want = np.asarray(have, dtype=np.float64), np.asarray(want, dtype=np.float64)
    exponent = np.where((want != 0) & np.isfinite(want), np.frexp(want)[1] - 1, kind.least)
    unit = np.ldexp(1.0, np.maximum(exponent, kind.least) - kind.mantissa)
    both = (have == want) | (np.isnan(have) & np.isnan(want)) | (np.abs(have - want) <= ulps * unit)
    if both.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~both)[0])
    return f"at {at} is {have[at]!r}, not {want[at]!r}"


class Value:
    def __init__(self, name, kind, shape):
        self.name, self.kind, self.shape = name, kind, tuple(shape)

    def type(self):
        return type_of(self.shape, self.kind)


class Program:
    def __init__(self, rng, numbers, draws, donates=True, shards=False):
        """With `shards`, arguments are split over devices, which changes no number."""
        self.rng, self.numbers, self.shards = rng, numbers, shards
        self.lines, self.arguments, self.given = [], {}, {}
        self.values, self.results, self.judged, self.names = [], [], [], []
        self.types, self.next, self.donated = {}, 0, None
        self.functions, self.devices = [], 0
        for draw in draws:
            draw(self)
        if donates and rng.random() < 0.2:
            self.donate()
        for value in self.values:
            self.give(value)

    # Values.

    def fresh(self):
        self.next += 1
        return f"%v{self.next}"

    def size(self):
        return self.rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5]) if self.rng.random() < 0.5 else self.rng.choice([1, 2, 3])

    def shape(self, least=0, most=3):
        return tuple(self.size() for _ in range(self.rng.randint(least, most)))

    def drawn(self, kind, shape, small=False):
        """Numbers of a type: small whole ones, or any, with those at its ends."""
        numbers, count = self.numbers, int(np.prod(shape))
        kind = KINDS[kind]
        if kind.is_bool:
            flat = numbers.integers(0, 2, count).astype(bool)
        elif kind.is_integer:
            low, high = (max(kind.low(), -3), min(kind.high(), 3)) if small else (kind.low(), kind.high())
            ends = {kind.low(), kind.high(), 0, 1, kind.high() - 1, kind.low() + 1}
            pick = [int(numbers.integers(max(low, -9), min(high, 9) + 1)) for _ in range(count)]
            flat = np.array([int(self.rng.choice(sorted(ends))) if not small and self.rng.random() < 0.3 else
                             self.rng.randint(low, high) if self.rng.random() < 0.2 else number for number in pick],
                            dtype=object).astype(kind.dtype)
        elif small:
            flat = numbers.integers(-2, 3, count).astype(kind.dtype)
        else:
            ends = [0.0, -0.0, np.nan, np.inf, -np.inf, kind.largest, -kind.largest, 2.0 ** kind.least,
                    2.0 ** (kind.least - 1), 1.0, -1.0, 0.5, 1.5, 2.5, -2.5]
            flat = evaluate.rounded(numbers.standard_normal(count) * self.rng.choice([1, 3, 30]), kind)
            flat = np.array([self.rng.choice(ends) if self.rng.random() < 0.2 else x for x in flat], dtype=np.float64)
            flat = evaluate.rounded(flat, kind)
        return flat.reshape(shape)

    def argument(self, kind, shape, array=None, small=False):
        """A new argument of the program."""
        array = self.drawn(kind, shape, small) if array is None else np.asarray(array, dtype=KINDS[kind].dtype)
        array = np.array(array, order="C")
        name = f"a{len(self.arguments)}"
        stored = STORED.get(kind, kind)
        self.arguments[name], self.types[name] = evaluate.encoded(array, kind), type_of(shape, stored)
        value = Value(f"%{name}", kind, shape)
        if stored != kind:
            value = Value(self.fresh(), kind, shape)
            how = "convert" if KINDS[kind].is_integer else "bitcast_convert"
            self.lines.append(f'{value.name} = "stablehlo.{how}"(%{name}) : ({type_of(shape, stored)}) -> {value.type()}')
        if kind.startswith("f8"):  # which may have one NaN alone
            array = evaluate.decoded(self.arguments[name], kind, stored)
        self.given[value.name] = (kind, array)
        return value

    def operand(self, kind, shape, small=False):
        """A value that is there, or a new one."""
        fits = [v for v in self.values if v.kind == kind and v.shape == tuple(shape)]
        if fits and not small and self.rng.random() < 0.6:
            return self.rng.choice(fits)
        return self.argument(kind, shape, small=small)

    def op(self, name, operands, results, judge, attributes="", region="", unused=()):
        """Adds an operation; `judge(have, operands' arrays, k)` says what is wrong with its k-th result."""
        made = [Value(self.fresh(), kind, shape) for kind, shape in results]
        left = made[0].name if len(made) == 1 else ", ".join(value.name for value in made)
        types = f"({', '.join(v.type() for v in operands)}) -> "
        types += made[0].type() if len(made) == 1 else f"({', '.join(v.type() for v in made)})"
        attributes = f" <{{{attributes}}}>" if attributes else ""
        full = name if "." in name else f"stablehlo.{name}"
        self.lines.append(f'{left} = "{full}"({", ".join(v.name for v in operands)}){attributes}{region} : {types}')
        for k, value in enumerate(made):
            if k in unused:
                continue
            self.values.append(value)
            self.judged.append((name, [v.name for v in operands], value.name,
                                lambda have, args, values, k=k: judge(have, args, k)))
        self.names.append(name)
        return made

    def exactly(self, name, operands, kind, shape, compute, attributes="", region="", zeros=False):
        return self.op(name, operands, [(kind, shape)],
                       lambda have, args, k: same(have, compute(*args), zeros), attributes, region)[0]

    def constant(self, numbers):
        """A vector of i64 in the text."""
        name = self.fresh()
        type_ = type_of((len(numbers),), "i64")
        self.lines.append(f'{name} = "stablehlo.constant"() <{{value = dense<{list(numbers) if len(numbers) else ""}> : '
                          f'{type_}}}> : () -> {type_}')
        return Value(name, "i64", (len(numbers),))

    def mesh(self):
        """How many devices the program has, from now on more than one."""
        self.devices = self.devices or self.rng.choice([2, 2, 3, 4])
        return self.devices

    # The program.

    def sharding(self, shape):
        """A split of the dimensions along the mesh, or none."""
        fits = [k for k, size in enumerate(shape) if size and size % self.devices == 0]
        at = self.rng.choice([*fits, -1])
        dims = ", ".join('{"x"}' if k == at else "{}" for k in range(len(shape)))
        return f"sdy.sharding = #sdy.sharding<@mesh, [{dims}]>"

    def donate(self):
        """An argument whose place a result takes."""
        shape = self.shape(0, 2)
        value = self.argument("i32", shape)
        made = self.exactly("add", [value, value], "i32", shape, lambda a, b: evaluate.plain("add", KINDS["i32"], a, b))
        self.donated = (value.name[1:], made.name)

    def give(self, value):
        """Makes `value` a result."""
        stored = STORED.get(value.kind, value.kind)
        given = Value(value.name, value.kind, value.shape)
        if stored != value.kind:
            how = "convert" if KINDS[value.kind].is_integer else "bitcast_convert"
            name = self.fresh()
            self.lines.append(f'{name} = "stablehlo.{how}"({value.name}) : ({value.type()}) -> '
                              f'{type_of(value.shape, stored)}')
            given.stored = name
        else:
            given.stored = value.name
        self.results.append((given, stored))

    def text(self):
        at = {given.name: k for k, (given, _) in enumerate(self.results)}
        if self.shards:
            self.mesh()
        arguments = []
        for name, type_ in self.types.items():
            notes = [self.sharding(self.arguments[name].shape)] if self.shards else []
            if self.donated and self.donated[0] == name:
                notes.append(f"tf.aliasing_output = {at[self.donated[1]]} : i32")
            arguments.append(f"%{name}: {type_}" + (f" {{{', '.join(notes)}}}" if notes else ""))
        types = ", ".join(type_of(given.shape, stored) for given, stored in self.results)
        names = ", ".join(given.stored for given, _ in self.results)
        body = "\n".join("  " + line for line in self.lines)
        mesh = f'sdy.mesh @mesh = <["x"={self.devices}]>\n' if self.devices else ""
        return f"{mesh}{''.join(self.functions)}func.func @main({', '.join(arguments)}) -> ({types}) {{\n{body}\n  " \
               f"return {names} : {types}\n}}\n"


def region(kind, body, count=2):
    """A region of numbers of one type, `count` of them; `body` makes %out of %x0, %x1 ..."""
    kinds = [kind] * count if isinstance(kind, str) else kind
    arguments = ", ".join(f"%x{k}: tensor<{each}>" for k, each in enumerate(kinds))
    return f" ({{\n    ^bb0({arguments}):\n{body}  }})"


def combiner(name, kind):
    """A region that applies an operation to its two numbers."""
    return region(kind, f'      %out = "stablehlo.{name}"(%x0, %x1) : (tensor<{kind}>, tensor<{kind}>) -> tensor<{kind}>\n'
                        f'      "stablehlo.return"(%out) : (tensor<{kind}>) -> ()\n')


def points(shape):
    return itertools.product(*[range(size) for size in shape])
