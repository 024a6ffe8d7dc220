#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Examples, built by calls: their plans and the bits of their results are those of the MLIR. And
`check --probe` passes them, and not a kernel that writes what its launch does not say.

Usage: same_as_mlir.py MGPU_TUNE EXAMPLES
"""

import os
import random
import re
import subprocess
import sys
import tempfile

import mgpu


def saxpy():
    g = mgpu.Graph(devices=4)
    x, y = g.input("x", (1024,)), g.input("y", (1024,))
    xs, ys = ([g.empty((256,), device=d, name=name + str(d)) for d in range(4)] for name in "xy")
    kernel = g.kernel("saxpy", params=("r", "rw", "f32"), block=64, host="""
void saxpy(mgpu_block block, const float *x, float *y, float a) {
  for (uint32_t t = 0; t < block.size.x; ++t) {
    uint32_t i = block.index.x * block.size.x + t;
    y[i] = a * x[i] + y[i];
  }
}""")
    for parts, whole in ((xs, x), (ys, y)):
        for d in range(4):
            g.copy(parts[d], whole[256 * d:256 * d + 256])
    for d in range(4):
        kernel(xs[d], ys[d], 2.7, grid=4, flops=512)
    for d in range(4):
        g.copy(y[256 * d:256 * d + 256], ys[d])
    return g, ["--arg", "a=2.7"], {"x": 1024, "y": 1024}, ["y"]


def ops():
    g = mgpu.Graph(devices=4)
    a, b = g.input("a", (16,)), g.input("b", (10,))
    out = {name: g.input(name, (size,), role="output") for name, size in
           [("gathered", 16), ("maximum", 4), ("minimum", 4), ("product", 4), ("broadcasted", 4), ("chained", 16), ("uneven", 10)]}
    part, whole = ([g.empty((size,), device=d) for d in range(4)] for size in (4, 16))
    sizes, starts = (3, 3, 2, 2), (0, 3, 6, 8)
    piece = [g.empty((size,), device=d) for d, size in enumerate(sizes)]
    most, least, product = ([g.empty((4,), device=d) for d in range(4)] for _ in range(3))
    for d in range(4):
        g.copy(part[d], a[4 * d:4 * d + 4])
    for d in range(4):
        g.copy(piece[d], b[starts[d]:starts[d] + sizes[d]])
    for d in range(4):
        g.copy(out["uneven"][starts[d]:starts[d] + sizes[d]], piece[d])
    g.all_gather(part, whole)
    g.all_reduce(part, "max", most)
    g.all_reduce(part, "min", least)
    g.all_reduce(part, "prod", product)
    g.broadcast(part, root=1)
    for name, source in [("gathered", whole[3]), ("maximum", most[2]), ("minimum", least[0]), ("product", product[1]), ("broadcasted", part[3])]:
        g.copy(out[name], source)
    first, second = g.empty((16,), device=1), g.empty((16,), device=2)
    g.copy(first, whole[0])
    kernel = g.kernel("plus", params=("rw",), block=16, host="void plus(mgpu_block, float *x) { for (int i = 0; i < 16; ++i) x[i] += 1.0f; }")
    kernel(first, flops=16)
    g.copy(second, first)
    g.copy(out["chained"], second)
    return g, [], {"a": 16, "b": 10}, list(out)


def shape_of(plan):
    """A plan without the names of its nodes and buffers."""
    return re.sub(r'"[^"\n]*"', '""', plan)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def main():
    tune, examples = sys.argv[1:]
    for make in (saxpy, ops):
        g, options, inputs, outputs = make()
        source = os.path.join(examples, make.__name__, make.__name__ + ".mlir")
        draw = random.Random(3)
        with tempfile.TemporaryDirectory() as folder:
            given, values = [], {}
            for name, count in inputs.items():
                values[name] = [draw.uniform(-4, 4) for _ in range(count)]
                path = os.path.join(folder, name + ".bin")
                with open(path, "wb") as file:
                    file.write(mgpu._arrays.take(name, values[name], "f32", (count,)))
                given += ["--arg", f"{name}=raw:f32:{count}:{path}"]
            made = os.path.join(folder, "a.plan")
            run(tune, "plan", source, *options, "--target", "host:4", "-o", made)
            with open(made, encoding="utf-8") as file:
                expected = shape_of(file.read())
            assert shape_of(g.plan().text) == expected, f"{make.__name__}:\n{g.plan().text}\nnot\n{expected}"
            files = {name: os.path.join(folder, name + ".npy") for name in outputs}
            run(tune, "run", source, *options, "--target", "host:4", *given, *(word for name in outputs for word in ("--out", f"{name}={files[name]}")))
            results = g.open("host:4")(**values)
            for name in outputs:
                with open(files[name], "rb") as file:
                    bits = file.read()[-len(results[name].tobytes()):]
                assert results[name].tobytes() == bits, f"{make.__name__}: {name}"
        run(tune, "check", source, *options, "--probe")
    g = mgpu.Graph()
    g.kernel("stray", params=("w",), host="void stray(mgpu_block, float *y) { y[4] = 1; }")(g.empty((8,), name="a")[:4])
    with tempfile.TemporaryDirectory() as folder:
        bundle = os.path.join(folder, "stray.mgpu")
        g.save(bundle, cpu="x86-64-v2")
        run(tune, "check", bundle)
        done = subprocess.run([tune, "check", bundle, "--probe"], capture_output=True, text=True)
        words = "kernel 'stray' writes bytes 16 to 20 of buffer 'a', which has 32; its launch does not say so"
        assert done.returncode == 1 and words in done.stderr, done
    print("programs built by calls have the plans and the bits of the MLIR's")


if __name__ == "__main__":
    main()
