#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one step of decoding of a mixture of experts in StableHLO, as JAX exports what a mesh has cut, to stdout.

Each layer has an attention with rotated keys and a cache, whose heads are cut, and experts, each on a device of its
own: 11 collectives and some 200 operations. Sizes are small, for it is the numbers of both that count.
"""
import argparse

D, HEAD, LENGTH, INNER = 64, 16, 32, 32  # hidden, a head, the cache, an expert


def shape(*sizes):
    return f"tensor<{''.join(f'{size}x' for size in sizes)}f32>"


class Text:
    """The lines of a function, and a name for each value."""

    def __init__(self, devices):
        self.lines, self.count, self.devices = [], 0, devices
        self.group = f"replica_groups = dense<[{list(range(devices))}]> : tensor<1x{devices}xi64>"

    def put(self, form, *values):
        self.count += 1
        name = f"%{self.count}"
        self.lines.append(f"    {name} = stablehlo.{form.format(*values)}")
        return name

    def all(self, kind, left, right, type_):
        return self.put(f"{kind} {{}}, {{}} : {type_}", left, right)

    def one(self, kind, value, type_):
        return self.put(f"{kind} {{}} : {type_}", value)

    def fill(self, number, type_):
        return self.put(f"constant dense<{number}> : {type_}")

    def spread(self, value, dims, from_, to):
        return self.put(f"broadcast_in_dim {{}}, dims = {dims} : ({from_}) -> {to}", value)

    def dot(self, left, right, sizes, to):
        return self.put(f"dot_general {{}}, {{}}, contracting_dims = [1] x [0] : ({sizes[0]}, {sizes[1]}) -> {to}", left, right)

    def dense(self, value, w, name, *sizes):
        """A product with its bias."""
        rows, columns = sizes
        out = self.dot(value, w[name], (shape(1, rows), shape(rows, columns)), shape(1, columns))
        return self.all("add", out, w["b" + name], shape(1, columns))

    def fold(self, kind, start, value, from_, to):
        zero = self.fill(start, "tensor<f32>")
        return self.put(f"reduce({{}} init: {{}}) applies stablehlo.{kind} across dimensions = [1] : ({from_}, tensor<f32>) -> {to}",
                        value, zero)

    def gathered(self, kind, value, from_, to, how, sums="add"):
        """A collective: those that sum have a body."""
        name, head = f"%{self.count + 1}", f'"stablehlo.{kind}"({value}) <{{{self.group}{how}}}>'
        self.count += 1
        body = ""
        if kind in ("all_reduce", "reduce_scatter"):
            body = f" ({{\n    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n      %s = stablehlo.{sums} %a, %b : tensor<f32>\n" \
                   "      stablehlo.return %s : tensor<f32>\n    })"
        self.lines.append(f"    {name} = {head}{body} : ({from_}) -> {to}")
        return name

    def reduced(self, value, type_, sums="add"):
        return self.gathered("all_reduce", value, type_, type_, "", sums)

    def normed(self, x, weight):
        type_, column = shape(1, D), shape(1)
        mean = self.all("multiply", self.fold("add", "0.0", self.all("multiply", x, x, type_), type_, column),
                        self.fill(1 / D, column), column)
        scale = self.one("rsqrt", self.all("add", mean, self.fill("1.0e-5", column), column), column)
        return self.all("multiply", self.all("multiply", x, self.spread(scale, [0], column, type_), type_), weight, type_)

    def rotated(self, value, turns):
        """The first half of a head against the other, by the cosines and sines of the position."""
        whole, half = shape(1, HEAD), shape(1, HEAD // 2)
        cut = [self.put(f"slice {{}} [0:1, {at}:{at + HEAD // 2}] : ({whole}) -> {half}", value) for at in (0, HEAD // 2)]
        angle = self.all("multiply", turns, self.fill(0.5, half), half)
        cos, sin = self.one("cosine", angle, half), self.one("sine", angle, half)
        first = self.all("subtract", self.all("multiply", cut[0], cos, half), self.all("multiply", cut[1], sin, half), half)
        second = self.all("add", self.all("multiply", cut[1], cos, half), self.all("multiply", cut[0], sin, half), half)
        return self.put(f"concatenate {{}}, {{}}, dim = 1 : ({half}, {half}) -> {whole}", first, second)

    def soft(self, scores, n):
        """A softmax of which each device has a part: the largest and the sum are of all."""
        row, one = shape(1, n), shape(1)
        most = self.reduced(self.fold("maximum", "-1.0e30", scores, row, one), one, "maximum")
        powers = self.one("exponential", self.all("subtract", scores, self.spread(most, [0], one, row), row), row)
        total = self.reduced(self.fold("add", "0.0", powers, row, one), one)
        return self.all("divide", powers, self.spread(total, [0], one, row), row)

    def attention(self, x, w):
        whole, key, cache = shape(1, D), shape(1, HEAD), shape(LENGTH, HEAD)
        h = self.normed(x, w["norm"])
        q, k, v = (self.dense(h, w, name, D, HEAD) for name in ("wq", "wk", "wv"))
        q, k = self.rotated(q, w["turns"]), self.rotated(k, w["turns"])
        keys, values = (self.put(f"concatenate {{}}, {{}}, dim = 0 : ({shape(LENGTH - 1, HEAD)}, {key}) -> {cache}", self.put(
            f"slice {{}} [1:{LENGTH}, 0:{HEAD}] : ({cache}) -> {shape(LENGTH - 1, HEAD)}", w[old]), new)
                        for old, new in (("keys", k), ("values", v)))
        turned = self.put(f"transpose {{}}, dims = [1, 0] : ({cache}) -> {shape(HEAD, LENGTH)}", keys)
        scores = self.dot(q, turned, (key, shape(HEAD, LENGTH)), shape(1, LENGTH))
        weights = self.soft(self.all("multiply", scores, self.fill(0.25, shape(1, LENGTH)), shape(1, LENGTH)), LENGTH)
        out = self.dot(weights, values, (shape(1, LENGTH), cache), key)
        out = self.dense(out, w, "wo", HEAD, D)
        return self.all("add", x, self.reduced(out, whole), whole), [keys, values]

    def expert(self, h, w, which):
        """Gate and inner product of one expert, its gate clamped and its share of the token."""
        whole, inner = shape(1, D), shape(1, INNER)
        gate, up = (self.dense(h, w, f"{name}{which}", D, INNER) for name in ("gate", "up"))
        gate = self.all("minimum", gate, self.fill("7.0", inner), inner)
        up = self.all("maximum", self.all("minimum", up, self.fill("7.0", inner), inner), self.fill("-7.0", inner), inner)
        gate = self.all("multiply", gate, self.one("logistic", self.all("multiply", gate, self.fill("1.702", inner), inner), inner),
                        inner)
        both = self.all("multiply", gate, self.all("add", up, self.fill("1.0", inner), inner), inner)
        return self.dense(both, w, f"down{which}", INNER, D)

    def experts(self, x, w):
        whole, share = shape(1, D), shape(1, 4)
        h = self.normed(x, w["norm2"])
        weights = self.soft(self.dense(h, w, "router", D, 4), 4)
        every = self.gathered("all_gather", weights, share, shape(1, 4 * self.devices), ", all_gather_dim = 1 : i64")
        best = self.fold("maximum", "0.0", every, shape(1, 4 * self.devices), shape(1))
        parts = None
        for which in range(4):
            mine = self.put(f"slice {{}} [0:1, {which}:{which + 1}] : ({share}) -> {shape(1, 1)}", weights)
            mine = self.all("divide", mine, self.spread(best, [0], shape(1), shape(1, 1)), shape(1, 1))
            out = self.all("multiply", self.expert(h, w, which), self.spread(mine, [0, 1], shape(1, 1), whole), whole)
            out = self.reduced(out, whole) if which else out
            parts = out if parts is None else self.all("add", parts, out, whole)
        cut = self.gathered("reduce_scatter", parts, whole, shape(1, D // self.devices), ", scatter_dimension = 1 : i64")
        joined = self.gathered("all_gather", cut, shape(1, D // self.devices), whole, ", all_gather_dim = 1 : i64")
        return self.all("add", x, joined, whole)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=36)
    parser.add_argument("--devices", type=int, default=32)
    args = parser.parse_args()
    if D % args.devices:
        parser.error(f"--devices divides {D}")
    sizes = {"norm": (1, D), "norm2": (1, D), "turns": (1, HEAD // 2), "keys": (LENGTH, HEAD), "values": (LENGTH, HEAD),
             "wo": (HEAD, D), "router": (D, 4), **{name: (D, HEAD) for name in ("wq", "wk", "wv")}}
    for which in range(4):
        sizes.update({f"gate{which}": (D, INNER), f"up{which}": (D, INNER), f"down{which}": (INNER, D)})
    biased = [name for name in sizes if name[0] in "w" or name[:-1] in ("gate", "up", "down") or name == "router"]
    sizes.update({"b" + name: (1, sizes[name][1]) for name in biased})
    text, x, arguments, results = Text(args.devices), "%x", [f"%x: {shape(1, D)}"], []
    for layer in range(args.layers):
        weights = {name: f"%{name}_{layer}" for name in sizes}
        arguments += [f"{value}: {shape(*sizes[name])}" for name, value in weights.items()]
        x, cache = text.attention(x, weights)
        x = text.experts(x, weights)
        results += cache
    types = [shape(1, D)] + [shape(LENGTH, HEAD)] * len(results)
    print(f"module @decode attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {args.devices} : i32}} {{")
    print(f"  func.func public @main({', '.join(arguments)}) -> ({', '.join(types)}) {{")
    print("\n".join(text.lines))
    print(f"    return {', '.join([x] + results)} : {', '.join(types)}\n  }}\n}}")


main()
