#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random loops as lax.scan writes them, of whole numbers, against NumPy.

    loops.py MGPU_TUNE [COUNT] [--first SEED]

A loop reads parts of tensors at places that follow from its counter, from a constant row of numbers or from
numbers on the device, some of them out of range; it computes with what it carries and with what no trip
changes, writes parts of what it carries, and may hold another loop.
"""

import argparse
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

SHAPES = [(8, 3, 4), (3, 4), (4, 4), (3,)]
ROWS = {"evens": (0, 2), "backwards": (7, -1), "still": (3, 0), "past": (-2, 3)}


def type_of(shape):
    return f"tensor<{''.join(f'{size}x' for size in shape)}i32>"


class Scope:
    """The lines of a block, and what each line does to the values by name."""

    def __init__(self, loops, values, counters, device):
        """`counters` and `device` are numbers that host code knows, and that lie on the device."""
        self.loops, self.values, self.lines, self.steps = loops, dict(values), [], []
        self.counters, self.device, self.after = counters, device, {}  # what an inner loop made of a value

    def emit(self, text, shape, step):
        name = self.loops.name()
        self.lines.append(f"{name} = {text}")
        self.steps.append((name, step))
        self.values[name] = shape
        return name

    def any(self, shape):
        return self.loops.rng.choice([name for name, own in self.values.items() if own == shape])

    def run(self, env):
        for name, step in self.steps:
            step(env) if name is None else env.__setitem__(name, step(env))


class Loops:
    def __init__(self, seed):
        self.rng, self.numbers, self.count = random.Random(seed), np.random.default_rng(seed), 0
        self.arguments = {f"%a{k}": self.numbers.integers(-9, 9, shape, dtype=np.int32)
                          for k, shape in enumerate(SHAPES + SHAPES + [(), ()])}

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def start(self, scope):
        """A number that says where a part begins."""
        rng = self.rng
        form = rng.choice(["counter", "row", "row", "sum", "device", "constant"])
        if form == "device" or not scope.counters:
            return rng.choice(scope.device)
        counter = rng.choice(scope.counters)
        if form == "counter":
            return counter
        if form == "constant":
            number = rng.randrange(-2, 10)
            return scope.emit(f"stablehlo.constant dense<{number}> : tensor<i32>", (), lambda env: np.int32(number))
        if form == "sum":
            number = rng.randrange(-3, 4)
            other = scope.emit(f"stablehlo.constant dense<{number}> : tensor<i32>", (), lambda env: np.int32(number))
            return scope.emit(f"stablehlo.subtract {other}, {counter} : tensor<i32>", (),
                              lambda env: np.int32(env[other] - env[counter]))
        first, step = ROWS[rng.choice(list(ROWS))]
        values = [first + step * k for k in range(8)]
        row = scope.emit(f"stablehlo.constant dense<{values}> : tensor<8xi32>", (8,),
                         lambda env: np.array(values, np.int32))
        part = scope.emit(f"stablehlo.dynamic_slice {row}, {counter}, sizes = [1] : (tensor<8xi32>, tensor<i32>) -> "
                          "tensor<1xi32>", (1,), lambda env: env[row][[min(max(env[counter], 0), 7)]])
        return scope.emit(f"stablehlo.reshape {part} : (tensor<1xi32>) -> tensor<i32>", (), lambda env: env[part][0])

    def starts(self, scope, shape):
        starts = [self.start(scope)]
        zero = scope.emit("stablehlo.constant dense<0> : tensor<i32>", (), lambda env: np.int32(0))
        while len(starts) < len(shape):
            starts.append(zero if self.rng.random() < 0.8 else self.start(scope))
        return starts

    def cut(self, env, starts, shape, part):
        at = [min(max(int(env[s]), 0), whole - size) for s, whole, size in zip(starts, shape, part)]
        return tuple(slice(a, a + size) for a, size in zip(at, part))

    def slice(self, scope):
        shape = self.rng.choice(SHAPES)
        whole, starts = scope.any(shape), self.starts(scope, shape)
        part = (1,) + tuple(size if self.rng.random() < 0.7 else self.rng.randrange(1, size + 1) for size in shape[1:])
        types = ", ".join([type_of(shape)] + ["tensor<i32>"] * len(shape))
        got = scope.emit(f"stablehlo.dynamic_slice {whole}, {', '.join(starts)}, sizes = {list(part)} : ({types}) -> "
                         f"{type_of(part)}", part, lambda env: env[whole][self.cut(env, starts, shape, part)])
        if part[1:] in SHAPES:
            scope.emit(f"stablehlo.reshape {got} : ({type_of(part)}) -> {type_of(part[1:])}", part[1:],
                       lambda env: env[got].reshape(part[1:]))

    def update(self, scope):
        shape = self.rng.choice(SHAPES)
        whole, starts = scope.any(shape), self.starts(scope, shape)
        fitting = [name for name, own in scope.values.items()
                   if len(own) == len(shape) and all(a <= b for a, b in zip(own, shape))]
        small = self.rng.choice(fitting)
        part = scope.values[small]
        types = ", ".join([type_of(shape), type_of(part)] + ["tensor<i32>"] * len(shape))

        def step(env):
            out = env[whole].copy()
            out[self.cut(env, starts, shape, part)] = env[small]
            return out
        scope.emit(f"stablehlo.dynamic_update_slice {whole}, {small}, {', '.join(starts)} : ({types}) -> "
                   f"{type_of(shape)}", shape, step)

    def elementwise(self, scope):
        shape = self.rng.choice(SHAPES)
        a, b = scope.any(shape), scope.any(shape)
        name, function = self.rng.choice([("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply),
                                          ("maximum", np.maximum)])
        scope.emit(f"stablehlo.{name} {a}, {b} : {type_of(shape)}", shape, lambda env: function(env[a], env[b]))

    def product(self, scope):
        a, b = scope.any((3, 4)), scope.any((4, 4))
        scope.emit(f"stablehlo.dot_general {a}, {b}, contracting_dims = [1] x [0] : "
                   f"({type_of((3, 4))}, {type_of((4, 4))}) -> {type_of((3, 4))}", (3, 4), lambda env: env[a] @ env[b])

    def spread(self, scope):
        a = scope.any((3, 4))
        scope.emit(f"stablehlo.broadcast_in_dim {a}, dims = [1, 2] : ({type_of((3, 4))}) -> {type_of((8, 3, 4))}",
                   (8, 3, 4), lambda env: np.broadcast_to(env[a], (8, 3, 4)))

    def operations(self, scope, depth, count):
        for _ in range(count):
            form = self.rng.choice([self.slice, self.slice, self.update, self.update, self.elementwise,
                                    self.elementwise, self.product, self.spread])
            form(scope)
        if depth < 2 and self.rng.random() < (1 if depth == 0 else 0.3):
            self.loop(scope, depth + 1)

    def loop(self, scope, depth):
        rng = self.rng
        trips = rng.choice([0, 1, 2, 5, 8, 9]) if depth == 1 else rng.choice([1, 2, 3])
        begin = scope.emit("stablehlo.constant dense<0> : tensor<i32>", (), lambda env: np.int32(0))
        inits = [name for name, shape in scope.values.items() if shape in SHAPES or name in scope.counters + scope.device]
        count, inside = self.name(), {name: self.name() for name in inits}
        # Names from around the loop are not used in it: it carries them all, as JAX writes it.
        body = Scope(self, {inside[name]: scope.values[name] for name in inits},
                     [count] + [inside[name] for name in scope.counters], [inside[name] for name in scope.device])
        body.values[count] = ()
        self.operations(body, depth, rng.randrange(2, 7))
        one = body.emit("stablehlo.constant dense<1> : tensor<i32>", (), lambda env: np.int32(1))
        after = body.emit(f"stablehlo.add {count}, {one} : tensor<i32>", (), lambda env: np.int32(env[count] + 1))
        next_of = {name: body.after[inside[name]] if inside[name] in body.after and rng.random() < 0.5
                   else (body.any(scope.values[name]) if rng.random() < 0.4 and scope.values[name] in SHAPES
                   else inside[name]) for name in inits}
        results = self.name()
        head = ", ".join([f"{count} = {begin}"] + [f"{inside[name]} = {name}" for name in inits])
        types = ", ".join(["tensor<i32>"] + [type_of(scope.values[name]) for name in inits])
        limit, test = self.name(), self.name()
        lines = [f"{results}:{len(inits) + 1} = stablehlo.while({head}) : {types} cond {{",
                 f"{limit} = stablehlo.constant dense<{trips}> : tensor<i32>",
                 f"{test} = stablehlo.compare LT, {count}, {limit} : (tensor<i32>, tensor<i32>) -> tensor<i1>",
                 f"stablehlo.return {test} : tensor<i1>", "} do {", *body.lines,
                 f"stablehlo.return {', '.join([after] + [next_of[name] for name in inits])} : {types}", "}"]
        scope.lines += lines

        def step(env):
            state = {inside[name]: env[name] for name in inits}
            for trip in range(trips):
                own_env = {**state, count: np.int32(trip)}
                body.run(own_env)
                state = {inside[name]: own_env[next_of[name]] for name in inits}
            for k, name in enumerate(inits):
                env[f"{results}#{k + 1}"] = state[inside[name]]
        scope.steps.append((None, step))
        for k, name in enumerate(inits):
            if scope.values[name] in SHAPES:
                scope.values[f"{results}#{k + 1}"] = scope.values[name]
                scope.after[name] = f"{results}#{k + 1}"

    def program(self):
        scope = Scope(self, {name: value.shape for name, value in self.arguments.items()}, [], ["%a8", "%a9"])
        self.operations(scope, 0, 3)
        self.operations(scope, 2, 3)
        results = [self.rng.choice(list(name for name, own in scope.values.items() if own == shape))
                   for shape in SHAPES] + [list(scope.values)[-1]]
        arguments = ", ".join(f"{name}: {type_of(value.shape)}" for name, value in self.arguments.items())
        types = ", ".join(type_of(scope.values[name]) for name in results)
        lines = [f"func.func @main({arguments}) -> ({types}) {{", *scope.lines,
                 f"return {', '.join(results)} : {types}", "}"]
        env = dict(self.arguments)
        with np.errstate(all="ignore"):
            scope.run(env)
        return "\n".join(lines) + "\n", [env[name] for name in results]


def fault_of(tune, seed, folder):
    loops = Loops(seed)
    text, wanted = loops.program()
    path = f"{folder}/loop.mlir"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    command = [tune, "run", path]
    for k, value in enumerate(loops.arguments.values()):
        np.save(f"{folder}/a{k}.npy", value)
        command += ["--arg", f"{k}={folder}/a{k}.npy"]
    for k in range(len(wanted)):
        command += ["--out", f"r{k}={folder}/r{k}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    if done.returncode == 5 and "has a form which this version does not read" in done.stderr:
        return "refused"
    if done.returncode or "warning" in done.stderr:
        return f"exit {done.returncode}: {done.stderr[-600:]}"
    for k, want in enumerate(wanted):
        have = np.load(f"{folder}/r{k}.npy").reshape(want.shape)
        if not np.array_equal(have, want):
            return f"result {k} differs in {int((have != want).sum())} of {want.size} numbers"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tune")
    parser.add_argument("count", nargs="?", type=int, default=12)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    faults = refused = 0
    for seed in range(options.first, options.first + options.count):
        with tempfile.TemporaryDirectory() as folder:
            fault = fault_of(options.tune, seed, folder)
        if fault == "refused":  # tensors that change places in loops of loops (docs/limits.md)
            refused += 1
        elif fault:
            faults += 1
            print(f"seed {seed}: {fault}")
    print(f"{options.count} programs, {refused} refused, {faults} faults")
    return 1 if faults or refused > options.count / 20 else 0


if __name__ == "__main__":
    sys.exit(main())
