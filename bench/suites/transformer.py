#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the forward pass of a transformer as one function over tensors to stdout.

Tensor parallelism: each device has its columns of wq, wk, wv and w1, and its rows of wo and w2; two
all_reduces a layer. One head a device; sizes are small, for it is the number of operations that counts.
"""
import argparse

LAYER = """func.func private @layer(%x: {x}, %wq: {col}, %wk: {col}, %wv: {col}, %wo: {row}, %w1: {up}, %w2: {down}) -> {x} {{
  %no_p = arith.constant dense<0.0> : {p}
  %no_x = arith.constant dense<0.0> : {x}
  %no_s = arith.constant dense<0.0> : {s}
  %no_h = arith.constant dense<0.0> : {h}
  %q = linalg.matmul ins(%x, %wq : {x}, {col}) outs(%no_p : {p}) -> {p}
  %k = linalg.matmul ins(%x, %wk : {x}, {col}) outs(%no_p : {p}) -> {p}
  %v = linalg.matmul ins(%x, %wv : {x}, {col}) outs(%no_p : {p}) -> {p}
  %e = tensor.empty() : {t}
  %kt = linalg.transpose ins(%k : {p}) outs(%e : {t}) permutation = [1, 0]
  %s = linalg.matmul ins(%q, %kt : {p}, {t}) outs(%no_s : {s}) -> {s}
  %w = linalg.softmax dimension(1) ins(%s : {s}) outs(%no_s : {s}) -> {s}
  %o = linalg.matmul ins(%w, %v : {s}, {p}) outs(%no_p : {p}) -> {p}
  %part = linalg.matmul ins(%o, %wo : {p}, {row}) outs(%no_x : {x}) -> {x}
  %all = spmd.all_reduce sum ins(%part : {x}) outs(%part : {x}) -> {x}
  %y = arith.addf %x, %all : {x}
  %a = linalg.matmul ins(%y, %w1 : {x}, {up}) outs(%no_h : {h}) -> {h}
  %h = arith.maximumf %a, %no_h : {h}
  %part2 = linalg.matmul ins(%h, %w2 : {h}, {down}) outs(%no_x : {x}) -> {x}
  %all2 = spmd.all_reduce sum ins(%part2 : {x}) outs(%part2 : {x}) -> {x}
  %z = arith.addf %y, %all2 : {x}
  return %z : {x}
}}"""


def tensor(*sizes):
    return f"tensor<{'x'.join(map(str, sizes))}xf32>"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in [("layers", 48), ("devices", 8), ("tokens", 32), ("head", 16)]:
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    n, tokens, head = args.devices, args.tokens, args.head
    width, mine = head * n, 4 * head
    types = {"x": tensor(tokens, width), "p": tensor(tokens, head), "t": tensor(head, tokens),
             "s": tensor(tokens, tokens), "h": tensor(tokens, mine), "col": tensor(width, head),
             "row": tensor(head, width), "up": tensor(width, mine), "down": tensor(mine, width)}
    print(f"#cols = #spmd.layout<mesh = [{n}], split = [[], [0]]>")
    print(f"#rows = #spmd.layout<mesh = [{n}], split = [[0], []]>")
    print(LAYER.format(**types))
    weights = [("wq", "col", (width, width)), ("wk", "col", (width, width)), ("wv", "col", (width, width)),
               ("wo", "row", (width, width)), ("w1", "up", (width, mine * n)), ("w2", "down", (mine * n, width))]
    arguments, body = [f"%y0: {types['x']}"], []
    for layer in range(args.layers):
        given = f"%y{layer}"
        for name, shard, full in weights:
            layout = "cols" if shard in ("col", "up") else "rows"
            arguments.append(f'%{name}_{layer}: {tensor(*full)} {{spmd.layout = #{layout}, mgpu.role = "resident"}}')
            body.append(f"  %{name}s_{layer} = spmd.full_to_shard %{name}_{layer} : {tensor(*full)} to {types[shard]}")
            given += f", %{name}s_{layer}"
        shards = ", ".join([types["x"]] + [types[shard] for _, shard, _ in weights])
        body.append(f"  %y{layer + 1} = func.call @layer({given}) : ({shards}) -> {types['x']}")
    print(f"func.func @main({', '.join(arguments)}) -> {types['x']} {{")
    print("\n".join(body))
    print(f"  return %y{args.layers} : {types['x']}\n}}")


main()
