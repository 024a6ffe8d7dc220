#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random attentions in StableHLO, and programs that are nearly such, against NumPy in f64 and --exact.

    attention.py MGPU_TUNE [--count N] [--seed S] [--cuda LIBRARIES]

Dimensions lie in any order, heads share key heads, the softmax is spelled in several ways, and masks are causal,
added, of a cache's length, or none. Results must be within the bound of docs/numerics.md; a near miss must give
the bits of --exact. --seed S with the number that a fault names draws that program again. With --cuda they run
on cuda:0, over the doubles of CUDA's libraries in that folder, which execute their PTX; each program of f16 then
has sizes that tensor cores take, in half of the cases.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

MISSES = ["mask_after", "scale_of_max", "scores_returned", "weights_returned", "other_max", "part_of_sum"]
MASKS = ["none", "causal", "large", "added", "padding", "length", "empty_rows"]


class Text:
    """A program, operation by operation."""

    def __init__(self):
        self.lines, self.count = [], 0

    def op(self, kind, result, text):
        self.count += 1
        name = f"%{self.count}"
        self.lines.append(f"    {name} = {kind} {text}" + (f" : {result}" if result else ""))
        return name

    def splat(self, value, shape, element):
        kind = type_of(shape, element)
        return self.op("stablehlo.constant", kind, f"dense<{value}>")

    def broadcast(self, value, from_shape, dims, shape, element):
        types = f"({type_of(from_shape, element)}) -> {type_of(shape, element)}"
        return self.op("stablehlo.broadcast_in_dim", types, f"{value}, dims = {list(dims)}")

    def binary(self, kind, x, y, shape, element):
        return self.op(f"stablehlo.{kind}", type_of(shape, element), f"{x}, {y}")

    def transpose(self, value, shape, dims, element):
        after = [shape[d] for d in dims]
        return self.op("stablehlo.transpose", f"({type_of(shape, element)}) -> {type_of(after, element)}",
                       f"{value}, dims = {list(dims)}")

    def reshape(self, value, shape, after, element):
        return self.op("stablehlo.reshape", f"({type_of(shape, element)}) -> {type_of(after, element)}", value)

    def reduce(self, kind, value, start, shape, element):
        init = self.splat(start, [], element)
        types = f"({type_of(shape, element)}, tensor<{element}>) -> {type_of(shape[:-1], element)}"
        return self.op("stablehlo.reduce", types,
                       f"({value} init: {init}) applies stablehlo.{kind} across dimensions = [{len(shape) - 1}]")


def type_of(shape, element):
    return "tensor<" + "".join(f"{n}x" for n in shape) + element + ">"


LOWEST = {"f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}


class Program:
    """The program of a seed: its text, its arguments, and the result in f64 with its bound."""

    def __init__(self, seed, on_gpu=False):
        draw = self.draw = random.Random(seed)
        self.b, self.h, self.g = draw.choice([1, 2, 3]), draw.choice([1, 2, 3]), draw.choice([1, 1, 2, 4])
        self.s = draw.choice([1, 2, 7, 16, 17, 33, 40])
        self.t = draw.choice([2, 5, 16, 63, 64, 65, 130])
        self.d, self.v = draw.choice([2, 8, 16, 33]), draw.choice([2, 5, 8, 16])
        self.element = draw.choice(["f32", "f32", "f32", "f16"])
        self.on_gpu = on_gpu
        if on_gpu and draw.random() < 0.5:
            self.element = "f16"
            self.d, self.v = draw.choice([16, 32, 48, 64, 128]), draw.choice([16, 32, 48, 64, 128])
        self.mask = draw.choice(MASKS)
        self.miss = draw.choice(MISSES) if draw.random() < 0.25 else "one_query" if self.s * self.g == 1 else ""
        self.spelling = draw.choice(["jax", "flat"])
        self.late = draw.random() < 0.3 and self.miss not in ("mask_after", "weights_returned")
        self.scaled = draw.choice(["none", "multiply", "divide"])
        self.arguments, self.text = {}, Text()
        rng = np.random.default_rng(seed)
        kind = np.float16 if self.element == "f16" else np.float32
        heads = self.h * self.g
        order = {name: draw.sample(range(4), 4) for name in "qkv"}
        shapes = {"q": [self.b, heads, self.s, self.d], "k": [self.b, self.h, self.t, self.d],
                  "v": [self.b, self.h, self.t, self.v]}
        self.values = {name: rng.standard_normal(shape).astype(kind) for name, shape in shapes.items()}
        for name, value in self.values.items():
            self.arguments[name] = np.ascontiguousarray(value.transpose(order[name]))
        self.bias = rng.standard_normal([self.s, self.t]).astype(kind)
        self.pad = np.where(rng.random([self.b, self.t]) < 0.3, -np.inf, 0).astype(kind)
        self.pad[:, 0] = 0
        self.length = np.array(draw.choice([0, 1, self.t - 1, self.t, self.t + 3]), np.int32)
        if self.mask == "added":
            self.arguments["bias"] = self.bias
        if self.mask in ("padding", "empty_rows"):
            if self.mask == "empty_rows":
                self.pad[0] = -np.inf
            self.arguments["pad"] = self.pad
        if self.mask == "length":
            self.arguments["length"] = self.length
        self.write(order, shapes)

    def write(self, order, shapes):
        text, e = self.text, self.element
        given = {}
        for name in "qkv":
            back = [order[name].index(k) for k in range(4)]
            given[name] = text.transpose(f"%{name}", list(self.arguments[name].shape), back, e)
        heads = self.h * self.g
        full = [self.b, heads, self.s, self.t]
        for name in "kv":  # each key head stands for a group
            shape = shapes[name]
            five = [self.b, self.h, self.g] + shape[2:]
            one = text.broadcast(given[name], shape, [0, 1, 3, 4], five, e)
            given[name] = text.reshape(one, five, [self.b, heads] + shape[2:], e)
        def product(x, y, xs, ys, contract, out):
            if self.spelling == "flat":
                flat = lambda value, shape: text.reshape(value, shape, [self.b * heads] + shape[2:], e)
                x, y = flat(x, xs), flat(y, ys)
                fx, fy = [self.b * heads] + xs[2:], [self.b * heads] + ys[2:]
                fo = [self.b * heads] + out[2:]
                made = text.op("stablehlo.dot_general",
                               f"({type_of(fx, e)}, {type_of(fy, e)}) -> {type_of(fo, e)}",
                               f"{x}, {y}, batching_dims = [0] x [0], contracting_dims = [2] x [{contract - 1}]")
                return text.reshape(made, fo, out, e)
            return text.op("stablehlo.dot_general", f"({type_of(xs, e)}, {type_of(ys, e)}) -> {type_of(out, e)}",
                           f"{x}, {y}, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [{contract}]")
        qs, ks, vs = [self.b, heads, self.s, self.d], [self.b, heads, self.t, self.d], [self.b, heads, self.t, self.v]
        product_scores = score = product(given["q"], given["k"], qs, ks, 3, full)
        if self.scaled != "none":
            score = text.binary(self.scaled, score, text.splat("0.25" if self.scaled == "multiply" else "4.0", full, e),
                                full, e)
        score = self.masked(score, full) if self.miss != "mask_after" else score
        largest_of = score
        if self.miss == "scale_of_max":
            largest_of = text.binary("multiply", score, text.splat("2.0", full, e), full, e)
        if self.miss == "other_max":
            largest_of = text.op("stablehlo.abs", type_of(full, e), score)
        most = text.reduce("maximum", largest_of, LOWEST[e], full, e)
        if self.draw.random() < 0.5:
            most = text.binary("maximum", text.splat(LOWEST[e], full[:3], e), most, full[:3], e)
        most = text.broadcast(most, full[:3], [0, 1, 2], full, e)
        power = text.op("stablehlo.exponential", type_of(full, e), text.binary("subtract", score, most, full, e))
        total = text.reduce("add", power, "1.0" if self.miss == "part_of_sum" else "0.0", full, e)
        weights = power
        if not self.late:
            weights = text.binary("divide", power, text.broadcast(total, full[:3], [0, 1, 2], full, e), full, e)
        if self.miss == "mask_after":
            weights = self.masked(weights, full, "0.0")
        out = [self.b, heads, self.s, self.v]
        result = product(weights, given["v"], full, vs, 2, out)
        if self.late:
            result = text.binary("divide", result, text.broadcast(total, full[:3], [0, 1, 2], out, e), out, e)
        self.results = [(result, out)]
        if self.miss == "scores_returned":
            self.results.append((product_scores, full))
        if self.miss == "weights_returned":
            self.results.append((weights, full))

    def masked(self, score, full, other=None):
        text, e, mask = self.text, self.element, self.mask
        other = other or LOWEST[e]
        if mask == "none" and self.miss == "mask_after":
            mask = "causal"
        if mask in ("causal", "large"):
            i = text.op("stablehlo.iota", type_of(full, "i32"), "dim = 2")
            j = text.op("stablehlo.iota", type_of(full, "i32"), "dim = 3")
            types = f"({type_of(full, 'i32')}, {type_of(full, 'i32')}) -> {type_of(full, 'i1')}"
            seen = text.op("stablehlo.compare", types, f"GE, {i}, {j}")
            fill = text.splat("-30000.0" if mask == "large" and other != "0.0" else other, full, e)
            return text.op("stablehlo.select", f"{type_of(full, 'i1')}, {type_of(full, e)}", f"{seen}, {score}, {fill}")
        if mask == "length":
            j = text.op("stablehlo.iota", type_of(full, "i32"), "dim = 3")
            n = text.broadcast("%length", [], [], full, "i32")
            types = f"({type_of(full, 'i32')}, {type_of(full, 'i32')}) -> {type_of(full, 'i1')}"
            seen = text.op("stablehlo.compare", types, f"LT, {j}, {n}")
            return text.op("stablehlo.select", f"{type_of(full, 'i1')}, {type_of(full, e)}",
                           f"{seen}, {score}, {text.splat(other, full, e)}")
        if mask == "added":
            return text.binary("add", score, text.broadcast("%bias", full[2:], [2, 3], full, e), full, e)
        if mask in ("padding", "empty_rows"):
            return text.binary("add", score, text.broadcast("%pad", [self.b, self.t], [0, 3], full, e), full, e)
        return score

    def source(self):
        kinds = {"q": self.element, "k": self.element, "v": self.element, "bias": self.element, "pad": self.element,
                 "length": "i32"}
        arguments = ", ".join(f"%{name}: {type_of(value.shape, kinds[name])}" for name, value in self.arguments.items())
        types = ", ".join(type_of(shape, self.element) for _, shape in self.results)
        values = ", ".join(value for value, _ in self.results)
        body = "\n".join(self.text.lines)
        return (f"module {{\n  func.func @main({arguments}) -> ({types}) {{\n{body}\n    return {values} : {types}\n"
                "  }\n}\n")

    def expected(self):
        """The attention in f64, and the bound of each element (docs/numerics.md)."""
        q, k, v = (self.values[name].astype(np.float64) for name in "qkv")
        k, v = np.repeat(k, self.g, axis=1), np.repeat(v, self.g, axis=1)
        scale = 1.0 if self.scaled == "none" else 0.25
        score = scale * np.einsum("bhsd,bhtd->bhst", q, k)
        size = scale * np.einsum("bhsd,bhtd->bhst", abs(q), abs(k))
        if self.mask in ("causal", "large"):
            seen = np.arange(self.s)[:, None] >= np.arange(self.t)
            score = np.where(seen, score, -np.inf if self.mask == "causal" else -30000.0)
        if self.mask == "length":
            score = np.where(np.arange(self.t) < self.length, score, -np.inf)
        if self.mask == "added":
            score = score + self.bias.astype(np.float64)
            size = size + abs(self.bias.astype(np.float64))
        if self.mask in ("padding", "empty_rows"):
            score = score + self.pad.astype(np.float64)[:, None, None, :]
        most = score.max(axis=-1, keepdims=True)
        power = np.exp(score - np.where(np.isinf(most), 0, most))
        total = power.sum(axis=-1, keepdims=True)
        weights = np.divide(power, total, out=np.zeros_like(power), where=total != 0)
        unit = 2.0**-11 if self.element == "f16" else 2.0**-24
        result, share = weights @ v, weights @ abs(v)
        relative = 4 * 2.0**-24 * (self.t + 8) + 2 * (unit * 3 + self.d * 2.0**-24) * (
            size.max(axis=-1, keepdims=True) + abs(np.where(np.isinf(score), 0, score)).max(axis=-1, keepdims=True))
        bound = relative * share + unit * abs(result) + 1e-30
        if self.on_gpu and self.element == "f16" and self.d % 16 == 0 and self.v % 16 == 0:
            # On tensor cores powers are rounded to f16.
            bound += unit * share + self.t * 2.0**-25 * abs(v).max(axis=-2, keepdims=True)
        return result, bound


def run(tune, folder, program, *options):
    path = f"{folder}/program.mlir"
    with open(path, "w", encoding="utf-8") as file:
        file.write(program.source())
    command = [tune, "run", path, *options]
    for name, value in program.arguments.items():
        np.save(f"{folder}/{name}.npy", value)
        command += ["--arg", f"{name}={folder}/{name}.npy"]
    for k in range(len(program.results)):
        command += ["--out", f"r{k}={folder}/r{k}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return done.stderr or f"exit {done.returncode}", []
    return "", [np.load(f"{folder}/r{k}.npy") for k in range(len(program.results))]


def fault_of(tune, folder, seed, counts, target=()):
    program = Program(seed, bool(target))
    words, mine = run(tune, folder, program, *target)
    if words:
        return words
    exact_words, exact = run(tune, folder, program, "--exact", *target)
    if exact_words:
        return exact_words
    same = all(x.tobytes() == y.tobytes() for x, y in zip(mine, exact))
    counts[program.miss or ("same" if same else "attention")] = counts.get(program.miss or (
        "same" if same else "attention"), 0) + 1
    if program.miss:
        return "" if same else f"a near miss ({program.miss}) has other bits than --exact"
    wanted, bound = program.expected()
    far = abs(mine[0].astype(np.float64) - wanted) > bound
    if far.any() or not np.isfinite(mine[0]).all():
        at = tuple(np.argwhere(far | ~np.isfinite(mine[0]))[0])
        return f"element {at} is {mine[0][at]}, not {wanted[at]} within {bound[at]} (--exact: {exact[0][at]})"
    return ""


def main():
    options = argparse.ArgumentParser()
    options.add_argument("tune")
    options.add_argument("--count", type=int, default=12)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--cuda")
    given = options.parse_args()
    target = ("--target", "cuda:0") if given.cuda else ()
    if os.environ.get("MGPU_SWEEPS"):
        given.count = max(given.count, 400)
    faults, counts = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MGPU_DB"] = f"{folder}/attention.db"
        if given.cuda:
            os.environ.update({"LD_LIBRARY_PATH": given.cuda, "MGPU_REHEARSAL": folder})
        for seed in range(given.seed, given.seed + given.count):
            if fault := fault_of(given.tune, folder, seed, counts, target):
                program = Program(seed, bool(target))
                faults += 1
                print(f"seed {seed} ({program.element} {program.spelling} {program.mask} {program.miss}): {fault}")
        if os.path.exists(f"{folder}/violations"):
            with open(f"{folder}/violations", encoding="utf-8") as file:
                print(file.read())
            faults += 1
    print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    # Most of those that are no near misses must have become one launch.
    if given.count >= 12 and counts.get("attention", 0) < 3 * counts.get("same", 0):
        print("too few became an attention")
        faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
