#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples of the shard dialect's Python document, corrected as little as they need.

Those with a printed input and result give it on the host; all others are checked. What the document
leaves undefined is not compared. CORRECTED says what each one lacked: the page lost operands and all
that stood in angle brackets.

Usage: document.py MGPU_TUNE MGPU_OPT
"""
import os
import subprocess
import sys
import tempfile

from harness import command, pairs, read_npy, write_npy

SQUARES = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]
WIDE = [[1, 2, 5, 6, 3, 4, 7, 8]] * 2 + [[9, 10, 13, 14, 11, 12, 15, 16]] * 2

# Grid, operation, its types, each device's input, and each device's result (None: undefined).
RESULTS = [
    ("2x2", "shard.all_gather %0 on @grid0 grid_axes = [1] gather_axis = 1 : {} -> {}", "2x2xi8", "2x4xi8", SQUARES, WIDE),
    ("2x2", "shard.all_slice %0 on @grid0 grid_axes = [1] slice_axis = 1 : {} -> {}", "2x4xi8", "2x2xi8", WIDE, SQUARES),
    ("3", "shard.all_to_all %0 on @grid0 grid_axes = [0] split_axis = 0 concat_axis = 0 : {} -> {}", "3x2xi8", "3x2xi8",
     [[10 * d + k for k in range(1, 7)] for d in (1, 2, 3)],
     [[10 * d + 2 * k + j for d in (1, 2, 3) for j in (1, 2)] for k in range(3)]),
    ("2x2", "shard.broadcast %0 on @grid0 grid_axes = [0] root = [0] : ({}) -> {}", "2xi8", "2xi8",
     [[1, 2], [3, 4], [-1, -1], [-1, -1]], [[1, 2], [3, 4]] * 2),
    ("2x2", "shard.gather %0 on @grid0 grid_axes = [1] gather_axis = 1 root = [1] : ({}) -> {}", "2x2xi8", "2x4xi8",
     SQUARES, [None, WIDE[0], None, WIDE[2]]),
    ("2x2", "shard.reduce_scatter %0 on @grid0 grid_axes = [1] reduction = max scatter_axis = 0 : {} -> {}", "2x2xf32",
     "1x2xf64", SQUARES, [[5, 6], [7, 8], [13, 14], [15, 16]]),
    ("2x2", "shard.scatter %0 on @grid0 grid_axes = [0] scatter_axis = 0 root = [1] : ({}) -> {}", "2x2xi8", "1x2xi8",
     [[-1] * 4, [-1] * 4, [1, 2, 3, 4], [5, 6, 7, 8]], [[1, 2], [5, 6], [3, 4], [7, 8]]),
    ("2x4", "shard.shift %0 on @grid0 grid_axes = [1] shift_axis = 1 offset = 2 rotate : {} -> {}", "2xi8", "2xi8",
     [[k, k] for k in range(1, 9)], [[k, k] for k in (3, 4, 1, 2, 7, 8, 5, 6)]),
]
CORRECTED = {
    "reduce_scatter": "'reduction = ' had no value; the printed result is that of max",
    "shift": "the operand was lost; the printed result has the elements of a device once, where the type has two",
    "all_reduce": "'reduction = :' had no value",
    "reduce": "'reduction = ' had no value; the grid, which no text says, must have a place [2, 3] along axes 1 and 0",
    "neighbors_linear_indices": "of two results one was named, the grid is @grid0, and each needs a type",
    "sharding": "the type '!shard.sharding' was lost, and %sharding3 is not there",
    "shard": "'...', \"op0\" and \"op1\" stand for code",
}
# Grid, lines of a function of %0, and the type of what it returns.
OTHERS = [
    ("4x3", "tensor<3x4xf32>", "tensor<3x4xf64>",
     "%1 = shard.all_reduce %0 on @grid0 grid_axes = [1, 0] reduction = sum : tensor<3x4xf32> -> tensor<3x4xf64>"),
    ("4x3", "tensor<3x4xf32>", "tensor<3x4xf64>",
     "%1 = shard.reduce %0 on @grid0 grid_axes = [1, 0] reduction = sum root = [2, 3] : (tensor<3x4xf32>) -> tensor<3x4xf64>"),
    ("2x2x4", "tensor<4x8xf32>", "tensor<4x8xf32>",
     "%s = shard.sharding @grid0 split_axes = [[]] : !shard.sharding\n  %1 = shard.shard %0 to %s : tensor<4x8xf32>"),
    ("2x2x4", "tensor<4x8xf32>", "tensor<4x8xf32>",
     "%s = shard.sharding @grid0 split_axes = [[0]] : !shard.sharding\n  %1 = shard.shard %0 to %s : tensor<4x8xf32>"),
    ("2x2x4", "tensor<4x8xf32>", "tensor<4x8xf32>",
     "%s = shard.sharding @grid0 split_axes = [[0]] halo_sizes = [1, 2] : !shard.sharding\n"
     "  %1 = shard.shard %0 to %s : tensor<4x8xf32>"),
    ("4", "tensor<4x14xf32>", "tensor<4x14xf32>",
     "%s = shard.sharding @grid0 split_axes = [[], [0]] sharded_dims_offsets = [0, 2, 5, 9, 14] : !shard.sharding\n"
     "  %1 = shard.shard %0 to %s : tensor<4x14xf32>"),
    ("2x2x2", "tensor<4x8xf32>", "tensor<4x8xf32>",
     "%s = shard.sharding @grid0 split_axes = [[0]] : !shard.sharding\n  %a = shard.shard %0 to %s : tensor<4x8xf32>\n"
     "  %t = shard.sharding @grid0 split_axes = [[1]] : !shard.sharding\n"
     "  %b = shard.shard %a to %t annotate_for_users : tensor<4x8xf32>\n"
     "  %u = shard.sharding @grid0 split_axes = [[2]] : !shard.sharding\n"
     "  %c = shard.shard %a to %u annotate_for_users : tensor<4x8xf32>\n  %1 = arith.addf %b, %c : tensor<4x8xf32>"),
]
# What process_linear_index and neighbors_linear_indices give on a grid of 10 x 20 x 30.
INDICES = """shard.grid @grid0(shape = 10x20x30)
func.func @main() -> (index, index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %down, %up = shard.neighbors_linear_indices on @grid0[%c1, %c2, %c3] split_axes = [1] : index, index
  return %down, %up : index, index
}
"""
CODES = {"i8": "|i1", "f32": "<f4", "f64": "<f8"}


def stacked(words, count):
    """The type of all devices' tensors, one behind the other."""
    first, rest = words.split("x", 1)
    return f"tensor<{int(first) * count}x{rest}>"


def program(grid, operation, given, result):
    sizes = [int(size) for size in grid.split("x")]
    count = 1
    for size in sizes:
        count *= size

    def layout(words):
        split = [list(range(len(sizes)))] + [[]] * (words.count("x") - 1)
        return f"{{spmd.layout = #spmd.layout<mesh = {sizes}, split = {split}>}}"
    whole, out = stacked(given, count), stacked(result, count)
    return (f"shard.grid @grid0(shape = {grid})\n"
            f"func.func @main(%all: {whole} {layout(given)}) -> ({out} {layout(result)}) {{\n"
            f"  %0 = spmd.full_to_shard %all : {whole} to tensor<{given}>\n"
            f"  %1 = {operation.format(f'tensor<{given}>', f'tensor<{result}>')}\n"
            f"  %r = spmd.shard_to_full %1 : tensor<{result}> to {out}\n  return %r : {out}\n}}\n")


def main():
    tune = sys.argv[1]
    for name, words in CORRECTED.items():
        print(f"corrected: shard.{name}: {words}")
    with tempfile.TemporaryDirectory() as folder:
        path, given = os.path.join(folder, "p.mlir"), os.path.join(folder, "x.npy")

        def write(text):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        for grid, operation, before, after, inputs, results in RESULTS:
            write(program(grid, operation, before, after))
            element = before.rsplit("x", 1)[1]
            flat = [float(v) if element[0] == "f" else v for tensor in inputs for v in tensor]
            shape = [int(n) for n in stacked(before, len(inputs))[7:].rsplit("x", 1)[0].split("x")]
            write_npy(given, flat, shape, CODES[element])
            out = os.path.join(folder, "r.npy")
            command(tune, "run", path, "--arg", f"all={given}", *pairs("--out", [f"r0={out}"]), about=operation)
            got, _ = read_npy(out)
            size = len(got) // len(inputs)
            for device, expected in enumerate(results):
                here = list(got[device * size:(device + 1) * size])
                if expected is not None and here != expected:
                    sys.exit(f"{operation}, device {device}: {here}, expected {expected}")
        for grid, before, after, lines in OTHERS:
            write(f"shard.grid @grid0(shape = {grid})\nfunc.func @main(%0: {before}) -> {after} {{\n  {lines}\n"
                  f"  return %1 : {after}\n}}\n")
            command(tune, "check", path, about=lines)
        write(INDICES)
        done = subprocess.run([sys.argv[2], "--convert-shard-to-spmd", "--canonicalize", path], capture_output=True,
                              text=True, check=True)
        for number in ("633", "693"):
            if f"arith.constant {number} : index" not in done.stdout:
                sys.exit(f"{number} is not in\n{done.stdout}")
    print(f"{len(RESULTS)} examples give what is printed; {len(OTHERS) + 1} others are right")


if __name__ == "__main__":
    main()
