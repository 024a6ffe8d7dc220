#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes examples/shard/transformer.mlir with more layers, each with weights of its own, and another grid to stdout."""
import argparse
import pathlib
import re

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "shard" / "transformer.mlir"
X, W = "tensor<2x16x64xf32>", "tensor<64x64xf32>"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--grid", default="2x4")
    args = parser.parse_args()
    head = EXAMPLE.read_text().split("func.func @main")[0]
    print(re.sub(r"shape = \w+", f"shape = {args.grid}", head))
    arguments, shards, calls = [f"%y0: {X}"], [], []
    for layer in range(args.layers):
        given = f"%y{layer}"
        for name in ("wq", "wk", "wv", "wo", "w1", "w2"):
            cut = "rows" if name in ("wo", "w2") else "columns"
            arguments.append(f'%{name}_{layer}: {W} {{mgpu.role = "resident"}}')
            shards.append(f"  %{name}s_{layer} = shard.shard %{name}_{layer} to %{cut} : {W}")
            given += f", %{name}s_{layer}"
        calls.append(f"  %y{layer + 1} = func.call @layer({given}) : ({X}, {', '.join([W] * 6)}) -> {X}")
    print(f"func.func @main({', '.join(arguments)}) -> {X} {{")
    print("  %columns = shard.sharding @grid split_axes = [[], [1]] : !shard.sharding")
    print("  %rows = shard.sharding @grid split_axes = [[1]] : !shard.sharding")
    print("\n".join(shards + calls))
    print(f"  return %y{args.layers} : {X}\n}}")


main()
