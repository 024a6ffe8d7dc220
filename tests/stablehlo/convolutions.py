#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions with strides, dilations of both sides, padding, groups, reversals and layouts at random, of whole numbers,
whose sums are exact in any order, against NumPy. Many are large enough to be products, and to be cut by residues.

Usage: convolutions.py MGPU_TUNE [COUNT [SEED]]
"""

import itertools
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)


def along(array, dim, where):
    """`array` at a slice of a dimension."""
    return array[(slice(None),) * dim + (where,)]


def spread(x, dim, step, low, high):
    """With step - 1 zeros between elements, and padding, which may be negative."""
    shape = list(x.shape)
    shape[dim] = (shape[dim] - 1) * step + 1
    made = np.zeros(shape)
    along(made, dim, slice(None, None, step))[...] = x
    made = along(made, dim, slice(max(-low, 0), shape[dim] + min(high, 0)))
    return np.pad(made, [(max(low, 0), max(high, 0)) if k == dim else (0, 0) for k in range(x.ndim)])


def convolve(x, kernel, window, groups, batches):
    """[N, C, space] by [O, I, space]."""
    out = []
    for k, (stride, low, high, step, dilation, reverse) in enumerate(window):
        kernel = np.flip(kernel, 2 + k) if reverse else kernel
        x = spread(x, 2 + k, step, low, high)
        out.append((x.shape[2 + k] - ((kernel.shape[2 + k] - 1) * dilation + 1)) // stride + 1)
    count, channels, per = groups * batches, kernel.shape[1], kernel.shape[0] // (groups * batches)
    result = np.zeros((x.shape[0] // batches, kernel.shape[0], *out))
    for tap in itertools.product(*map(range, kernel.shape[2:])):
        seen = x
        for k, (stride, _, _, _, dilation, _) in enumerate(window):
            begin = tap[k] * dilation
            seen = along(seen, 2 + k, slice(begin, begin + (out[k] - 1) * stride + 1, stride))
        for group in range(count):
            rows = slice(group * per, (group + 1) * per)
            part = seen[:, group * channels:(group + 1) * channels] if groups > 1 else np.split(seen, batches)[group if batches > 1 else 0]
            result[:, rows] += np.einsum("nc...,oc->no...", part, kernel[(rows, slice(None)) + tap])
    return result


def draw(seed):
    """The inputs, the result and the program; nothing where windows are larger than what they slide over."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    rank = rng.choice([1, 2, 2, 2, 3])
    groups, batches = rng.choice([(1, 1), (1, 1), (1, 1), (2, 1), (1, 2)])
    channels, features = rng.choice([1, 3, 8, 16]), rng.choice([4, 8, 16, 24]) * groups * batches
    most = {1: 200, 2: 24, 3: 8}[rank] if rng.random() < 0.7 else 5
    window = [(rng.choice([1, 1, 1, 2]), rng.randint(-2, 5), rng.randint(-2, 5), rng.choice([1, 2, 2, 3, 4]), rng.choice([1, 1, 2, 3]),
               rng.random() < 0.3) for _ in range(rank)]
    space = [rng.randint(2, most) for _ in range(rank)]
    taps = [rng.randint(1, 5 if rank < 3 else 3) for _ in range(rank)]
    if any((size - 1) * step + 1 + low + high < (tap - 1) * dilation + 1
           for size, tap, (_, low, high, step, dilation, _) in zip(space, taps, window)):
        return None
    x = numbers.integers(-4, 5, (rng.choice([1, 2, 4]) * batches, channels * groups, *space)).astype(np.float32)
    kernel = numbers.integers(-4, 5, (features, channels, *taps)).astype(np.float32)
    want = convolve(x, kernel, window, groups, batches)
    orders = [list(range(rank + 2)) for _ in range(3)]
    if rng.random() < 0.5:
        for order in orders:
            rng.shuffle(order)
    x, kernel, want = (each.transpose(order) for each, order in zip((x, kernel, want), orders))
    types = [f"tensor<{'x'.join(map(str, each.shape))}xf32>" for each in (x, kernel, want)]
    names = [", ".join({0: first, 1: second}.get(dim, str(dim - 2)) for dim in order)
             for order, (first, second) in zip(orders, ("bf", "oi", "bf"))]
    strides, low, high, step, dilation, reverse = (list(each) for each in zip(*window))
    text = f"""func.func @main(%x: {types[0]}, %kernel: {types[1]}) -> {types[2]} {{
  %y = stablehlo.convolution(%x, %kernel) dim_numbers = [{names[0]}]x[{names[1]}]->[{names[2]}], window = {{stride = {strides},
    pad = {[list(pair) for pair in zip(low, high)]}, lhs_dilate = {step}, rhs_dilate = {dilation}, reverse = {str(reverse).lower()}}}
    {{feature_group_count = {groups} : i64, batch_group_count = {batches} : i64}} : ({types[0]}, {types[1]}) -> {types[2]}
  return %y : {types[2]}
}}
"""
    return x, kernel, want, text


def fault_of(tune, x, kernel, want, text):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/program.mlir", "w", encoding="utf-8") as file:
            file.write(text)
        for name, array in (("x", x), ("kernel", kernel)):
            np.save(f"{folder}/{name}.npy", np.ascontiguousarray(array))
        done = subprocess.run([tune, "run", file.name, "--arg", f"x={folder}/x.npy", "--arg", f"kernel={folder}/kernel.npy", "--out",
                               f"r0={folder}/y.npy"], capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            return f"exit code {done.returncode}: {done.stderr.strip()[-400:]}"
        found = np.load(f"{folder}/y.npy")
    return "" if found.shape == want.shape and (found == want).all() else "the values differ"


def main():
    tune, count, seed = sys.argv[1], *(int(word) for word in (sys.argv[2:] + ["8", "1"][len(sys.argv[2:]):]))
    faults = done = 0
    while done < count:
        drawn = draw(seed)
        if drawn:
            done += 1
            fault = fault_of(tune, *drawn)
            if fault:
                faults += 1
                print(f"seed {seed}: {fault}\n{drawn[3]}")
        seed += 1
    print(f"{done} convolutions, {faults} faults")
    sys.exit("FAIL" if faults else 0)


if __name__ == "__main__":
    main()
