#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose factors lie in any order give what sums of whole numbers give.

Each product is written twice, of floats and of i32, which stays a plain sum. Numbers are small and whole, so
that floats add them exactly. Factors have up to two dimensions of each kind, in any order, some behind a
transposition; half of the products are large enough to be matrix products. MGPU_SWEEPS takes 40 programs.

Usage: products.py MGPU_TUNE [SEED]
"""
import math
import os
import random
import subprocess
import sys
import tempfile

COUNT, PRODUCTS = 40 if os.environ.get("MGPU_SWEEPS") else 3, 4


def tensor(shape, element):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def split(rng, size):
    """`size` or a little more, as the sizes of up to two dimensions."""
    count = rng.choice([1, 1, 2]) if size > 3 else rng.randrange(2)
    if count < 2:
        return [size] * count
    first = rng.choice([2, 3, 4])
    return [first, math.ceil(size / first)]


class Writer:
    def __init__(self, rng):
        self.rng, self.lines, self.next = rng, [], 0

    def op(self, text, type_):
        self.next += 1
        self.lines.append(f"  %v{self.next} = stablehlo.{text}")
        return f"%v{self.next}", type_

    def numbers(self, shape):
        """Whole numbers from -3 to 3, as i32."""
        flat, all_ = math.prod(shape), tensor([math.prod(shape)], "i32")
        value, _ = self.op(f"iota dim = 0 : {all_}", all_)
        for name, number in [("multiply", self.rng.randrange(1, 97)), ("add", self.rng.randrange(97)), ("remainder", 97),
                             ("remainder", 7), ("subtract", 3)]:
            other, _ = self.op(f"constant dense<{number}> : {all_}", all_)
            value, _ = self.op(f"{name} {value}, {other} : {all_}", all_)
        return self.op(f"reshape {value} : ({all_}) -> {tensor(shape, 'i32')}", shape)[0] if shape != [flat] else value

    def convert(self, value, shape, before, after):
        if before == after:
            return value
        return self.op(f"convert {value} : ({tensor(shape, before)}) -> {tensor(shape, after)}", shape)[0]

    def factor(self, groups):
        """Its dimensions in random order: value, shape, what each is, and the order of a transposition or None."""
        dims = [(kind, k, size) for kind, sizes in groups for k, size in enumerate(sizes)]
        if self.rng.random() < 0.7:
            self.rng.shuffle(dims)
        order = list(range(len(dims)))
        if self.rng.random() < 0.4:
            self.rng.shuffle(order)
        shape = [size for *_, size in dims]
        return self.numbers(shape), shape, [dims[k][:2] for k in order], order

    def product(self):
        rng = self.rng
        large = rng.random() < 0.6
        pick = (lambda: rng.randrange(60, 150)) if large else (lambda: rng.choice([1, 2, 5, 16, 17]))
        m, n, k = split(rng, pick()), split(rng, pick()), split(rng, max(pick(), 2)) or [2]
        batch = split(rng, rng.choice([0, 0, 2, 4])) if rng.random() < 0.5 else []
        batch = [size for size in batch if size]
        if rng.random() < 0.2:
            m = [rng.choice([1, 3, 8, 16])]
        a, b = self.factor([("batch", batch), ("m", m), ("k", k)]), self.factor([("batch", batch), ("n", n), ("k", k)])
        element, result = rng.choice([("f32", "f32"), ("f32", "f32"), ("bf16", "bf16"), ("bf16", "f32"), ("f16", "f32"),
                                      ("f64", "f64")])
        lists = {}
        for name, kinds in [("batching_dims", "batch"), ("contracting_dims", "k")]:
            pairs = [(a[2].index((kinds, i)), b[2].index((kinds, i))) for i in range(len(batch if kinds == "batch" else k))]
            rng.shuffle(pairs)
            lists[name] = pairs
        sizes = {("batch", i): s for i, s in enumerate(batch)} | {("m", i): s for i, s in enumerate(m)} | \
                {("n", i): s for i, s in enumerate(n)} | {("k", i): s for i, s in enumerate(k)}
        out = [sizes[a[2][x]] for x, _ in lists["batching_dims"]] + \
              [sizes[each] for each in a[2] if each[0] == "m"] + [sizes[each] for each in b[2] if each[0] == "n"]
        words = ", ".join(f"{name} = {[x for x, _ in pairs]} x {[y for _, y in pairs]}"
                          for name, pairs in lists.items() if pairs)
        bias = self.numbers(out[-1:]) if out and result in ("f32", "f64") and rng.random() < 0.5 else None
        found = []
        for type_, gives in [(element, result), ("i32", "i32")]:
            values, types = [], []
            for value, shape, kinds, order in (a, b):
                value = self.convert(value, shape, "i32", type_)
                turned = [shape[at] for at in order]
                if order != sorted(order):
                    value, _ = self.op(f"transpose {value}, dims = {order} : ({tensor(shape, type_)}) -> "
                                       f"{tensor(turned, type_)}", turned)
                values.append(value)
                types.append(tensor(turned, type_))
            value, _ = self.op(f"dot_general {values[0]}, {values[1]}, {words} : ({types[0]}, {types[1]}) -> "
                               f"{tensor(out, gives)}", out)
            found.append(self.plus(value, bias, out, gives))
        expected = self.convert(self.convert(found[1], out, "i32", "f32"), out, "f32", result)
        self.lines.append(f"  check.expect_eq {found[0]}, {expected} : {tensor(out, result)}")

    def plus(self, value, bias, shape, element):
        """A row of numbers added to each of the product's, which may share its launch."""
        if bias is None:
            return value
        row, type_ = shape[-1:], tensor(shape, element)
        bias = self.convert(bias, row, "i32", element)
        wide, _ = self.op(f"broadcast_in_dim {bias}, dims = [{len(shape) - 1}] : ({tensor(row, element)}) -> {type_}", shape)
        return self.op(f"add {value}, {wide} : {type_}", shape)[0]


def program(seed):
    writer = Writer(random.Random(seed))
    for _ in range(PRODUCTS):
        writer.product()
    return "\n".join(["func.func @main() {", *writer.lines, "  return", "}", ""])


def main():
    tune = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "products.mlir")
        for seed in [int(sys.argv[2])] if len(sys.argv) > 2 else range(COUNT):
            with open(path, "w") as file:
                file.write(program(seed))
            done = subprocess.run([tune, "run", path, "--no-tuned"], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"seed {seed}: exit {done.returncode}\n{done.stderr[-2000:]}")
    print(f"{COUNT * PRODUCTS} products of floats are those of whole numbers")


main()
