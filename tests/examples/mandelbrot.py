#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import subprocess
import sys

from harness import Example, expect_equal, f32, write_npy

example = Example("mandelbrot")
re = [f32(-2.25 + 3.0 * j / 127) for j in range(128)]
im = [f32(-1.125 + 2.25 * i / 95) for i in range(96)]
write_npy(example.path("re.npy"), re, (128,))
write_npy(example.path("im.npy"), im, (96,))
example.check()
out = example.run({name: example.path(name + ".npy") for name in ("re", "im")}, ["counts"])


def count(cr, ci):
    zr = zi = 0.0
    for n in range(64):
        zr2, zi2 = f32(zr * zr), f32(zi * zi)
        if f32(zr2 + zi2) > 4:
            return n
        zr, zi = f32(f32(zr2 - zi2) + cr), f32(f32(f32(zr * zi) * 2) + ci)
    return 64


expect_equal("counts", out["counts"], [count(cr, ci) for ci in im for cr in re], (96, 128))
image = example.path("m.ppm")
subprocess.run([sys.executable, os.path.join(example.folder, "to_ppm.py"), example.path("counts.npy"), image], check=True)
with open(image, "rb") as file:
    data = file.read()
assert data.startswith(b"P6\n128 96\n255\n") and len(data) == 14 + 3 * 96 * 128
