#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of the shard dialect, and mutants of them, are valid here where they are valid for mlir-opt.

Each operation is written with random attributes, right ones and wrong ones, and texts are changed: words
are cut, doubled, swapped, and numbers replaced. `mgpu-opt` must give mlir-opt's verdict on each, and
`mgpu-tune check` must call none valid that mlir-opt refuses; what it refuses beyond that is exit code 5,
or a rule of MEANING, which the dialect's words have and its verifier has not. Skipped where mlir-opt is
absent. MGPU_SWEEPS=all takes more programs.

Usage: verdicts.py MGPU_OPT MGPU_TUNE [SEED]
"""
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

MLIR_OPT = [shutil.which("mlir-opt-22"), "/usr/lib/llvm-22/bin/mlir-opt"]
MARK = "// -----"
WORDS = ["[0]", "[1]", "[0, 1]", "[1, 0]", "[0, 0]", "[]", "[[0]]", "[[0], [1]]", "[[], [0]]", "[7]", "sum", "max", "generic",
         "average", "f32", "i32", "index", "@grid", "@none", "?", "-1", "0", "1", "2", "3", "4", "8", "16", "rotate",
         "tensor<4x8xf32>", "tensor<8x8xf32>", "tensor<?x8xf32>", "tensor<4x8xi32>", "memref<4x8xf32>", "%x", "%i"]
# What mgpu-tune says of programs that mlir-opt takes, and that the document's words forbid.
MEANING = re.compile("'shift_axis' is none of 'grid_axes'|offsets for each dimension|has offsets from|"
                     "offsets more than parts|names axis|splits dimension|needs two sizes in 'halo_sizes'|has halos of")


def operation(rng, grid):
    """One operation, with its result type."""
    axes = rng.sample(range(len(grid)), rng.randint(0 if rng.random() < 0.1 else 1, len(grid)))
    if rng.random() < 0.05:
        axes.append(rng.choice([0, 1, 5]))
    size = 1
    for axis in axes:
        size *= grid[axis] if axis < len(grid) else 1
    off = rng.choice([0, 0, 0, 0, 1])  # sometimes a size that is wrong
    shape = lambda rows, columns=8: f"tensor<{rows}x{columns}xf32>"
    x, where = shape(8), f"on @grid grid_axes = {axes}"
    root = [rng.randrange(grid[a] + (rng.random() < 0.1)) if a < len(grid) else 0 for a in axes]
    if rng.random() < 0.1:
        root = root[1:]
    reduction = rng.choice(["sum", "max", "min", "product", "average", "bitwise_and", "generic"])
    part, more = 8 // max(size, 1) + off, 8 * size + off
    split = rng.choice(["[[0]]", "[[], [0]]", "[[0], [1]]", "[[0, 1]]", "[[1], [0]]", "[[2]]", "[[0], [0]]", "[]"])
    sizes = rng.choice(["", " halo_sizes = [1, 2]", " halo_sizes = [1]", " sharded_dims_offsets = [0, 3, 8]",
                        " sharded_dims_offsets = [0, 8]", " halo_sizes = [1, 2] sharded_dims_offsets = [0, 3, 8]"])
    sharding = f"%s = shard.sharding @grid split_axes = {split}{sizes} : !shard.sharding\n  "
    cases = [
        (f"%r = shard.all_gather %x {where} gather_axis = 0 : {x} -> {shape(more)}", shape(more)),
        (f"%r = shard.all_reduce %x {where} reduction = {reduction} : {x} -> {shape(8 + off)}", shape(8 + off)),
        (f"%r = shard.all_slice %x {where} slice_axis = 0 : {x} -> {shape(part)}", shape(part)),
        (f"%r = shard.all_to_all %x {where} split_axis = 0 concat_axis = 1 : {x} -> {shape(part, 8 * size)}", shape(part, 8 * size)),
        (f"%r = shard.broadcast %x {where} root = {root} : ({x}) -> {shape(8 + off)}", shape(8 + off)),
        (f"%r = shard.gather %x {where} gather_axis = 0 root = {root} : ({x}) -> {shape(more)}", shape(more)),
        (f"%r = shard.reduce %x {where} reduction = {reduction} root = {root} : ({x}) -> {x}", x),
        (f"%r = shard.reduce_scatter %x {where} reduction = {reduction} scatter_axis = 0 : {x} -> {shape(part)}", shape(part)),
        (f"%r = shard.scatter %x {where} scatter_axis = 0 root = {root} : ({x}) -> {shape(part)}", shape(part)),
        (f"%r = shard.shift %x {where} shift_axis = {rng.randrange(3)} offset = {rng.randint(-2, 2)}"
         f"{rng.choice([' rotate', ''])} : {x} -> {shape(8 + off)}", shape(8 + off)),
        (f"%t = shard.send %x {where} destination = {root} : ({x}) -> {x}\n  "
         f"%r = shard.recv %x {where} source = {root} : ({x}) -> {x}", x),
        (f"%r = shard.update_halo %x on @grid split_axes = {split} halo_sizes = {rng.choice(['[1, 1]', '[1]', '[0, 2]'])} : {x}", x),
        (sharding + f"%r = shard.shard %x to %s {rng.choice(['annotate_for_users ', ''])}: {x}", x),
        (sharding + f"%a = shard.shard %x to %s : {x}\n  %g = shard.get_sharding %a : {x} -> !shard.sharding\n  "
         f"%r = shard.shard %x to %g : {x}", x),
        (sharding + "%p:2 = shard.shard_shape dims = [8, 8] sharding = %s device = [%i, %i] : index, index\n  "
         f"%r = tensor.splat %f : {x}", x),
        (f"%p = shard.process_linear_index on @grid : index\n  %r = tensor.splat %f : {x}", x),
        (f"%p{':' + str(len(grid)) if len(grid) > 1 else ''} = shard.process_multi_index on @grid : {', '.join(['index'] * len(grid))}\n  "
         f"%r = tensor.splat %f : {x}", x),
        (f"%p = shard.grid_shape @grid axes = [{rng.randrange(3)}] : index\n  %r = tensor.splat %f : {x}", x),
        (f"%p, %q = shard.neighbors_linear_indices on @grid[{', '.join(['%i'] * len(grid))}] split_axes = [0] : index, index\n  "
         f"%r = tensor.splat %f : {x}", x),
    ]
    return rng.choice(cases)


def program(rng):
    grid = rng.choice([[2], [4], [2, 2], [2, 4], [2, 2, 2]])
    text, result = operation(rng, grid)
    return (f"shard.grid @grid(shape = {'x'.join(map(str, grid))})\n"
            f"func.func @main(%x: tensor<8x8xf32>) -> {result} {{\n  %i = arith.constant 0 : index\n"
            f"  %f = arith.constant 1.0 : f32\n  {text}\n  return %r : {result}\n}}\n")


def mutant(rng, text):
    for _ in range(rng.randint(1, 2)):
        words = [m.span() for m in re.finditer(r"\[[^\[\]]*\]|tensor<[^>]*>|[\w.@%!]+", text)]
        at, end = rng.choice(words)
        kind = rng.randrange(4)
        other = rng.choice(words)
        text = text[:at] + ["", text[at:end] + " " + text[at:end], rng.choice(WORDS), text[other[0]:other[1]]][kind] + text[end:]
    return text.replace(MARK, "")


def verdicts(command, texts):
    """Whether each is valid; all in one process where that does not crash."""
    whole = ("\n" + MARK + "\n").join(texts)
    done = subprocess.run([command, "--split-input-file"], input=whole, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode not in (0, 1):
        if len(texts) == 1:
            return [None]
        half = len(texts) // 2
        return verdicts(command, texts[:half]) + verdicts(command, texts[half:])
    lines, result = 1, []
    bad = {int(n) for n in re.findall(r"^<stdin>:(\d+):\d+: error", done.stderr, re.M)}
    for text in texts:
        end = lines + text.count("\n") + 1  # the line of the mark
        result.append(not any(lines <= n <= end for n in bad))
        lines = end + 1
    return result


def main():
    theirs = next((path for path in MLIR_OPT if path and os.path.exists(path)), None)
    if not theirs:
        print("skipped: mlir-opt of LLVM 22 is not here")
        return 77
    mgpu_opt, tune = sys.argv[1:3]
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    sweep = os.environ.get("MGPU_SWEEPS") == "all"
    texts = [program(rng) for _ in range(4000 if sweep else 400)]
    texts += [mutant(rng, rng.choice(texts)) for _ in range(8000 if sweep else 800)]
    wanted, ours = verdicts(theirs, texts), verdicts(mgpu_opt, texts)
    counts, faults = collections.Counter(), []
    for text, want, have in zip(texts, wanted, ours):
        counts["mlir-opt crashes" if want is None else "valid" if want else "refused"] += 1
        if have is None or (want is not None and want != have):
            faults.append(f"mlir-opt says {want}, mgpu-opt {have}:\n{text}")
    codes = collections.Counter()
    chosen = rng.sample(range(len(texts)), 1500 if sweep else 60)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.mlir")
        for k in chosen:
            with open(path, "w", encoding="utf-8") as file:
                file.write(texts[k])
            done = subprocess.run([tune, "check", path], capture_output=True, text=True, timeout=60, check=False)
            kind = "unsupported" if done.returncode == 5 else "valid" if done.returncode == 0 else "refused"
            means = bool(MEANING.search(done.stderr))
            codes[kind + (" by its meaning" if means else "")] += 1
            if done.returncode not in (0, 1, 5) or (done.returncode == 0 and wanted[k] is False) or \
                    (done.returncode == 1 and wanted[k] and not means):
                faults.append(f"mlir-opt says {wanted[k]}, mgpu-tune check exits with {done.returncode}: {done.stderr}\n{texts[k]}")
    print("\n".join(faults[:20]))
    print(f"{len(texts)} programs: {dict(counts)} for mlir-opt; of {len(chosen)} mgpu-tune says {dict(codes)}; {len(faults)} faults")
    return 1 if faults or not counts["valid"] or not counts["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
