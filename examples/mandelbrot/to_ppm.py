#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns the counts of the mandelbrot example into a picture: to_ppm.py counts.npy image.ppm"""

import ast
import struct
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    if data[:8] != b"\x93NUMPY\x01\x00":
        sys.exit(f"{sys.argv[1]} is not a version 1 .npy file")
    (length,) = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10:10 + length].decode("latin1"))
    if header["descr"] != "<i4" or len(header["shape"]) != 2:
        sys.exit(f"{sys.argv[1]} is not a two-dimensional array of i32")
    height, width = header["shape"]
    counts = struct.unpack_from(f"<{width * height}i", data, 10 + length)
    limit = max(counts)
    pixels = bytearray()
    for count in counts:
        t = 0.0 if count == limit else (count / limit) ** 0.5
        pixels += bytes((int(255 * t), int(255 * t * t), int(128 * (1 - t) + 64 * t) if t else 0))
    with open(sys.argv[2], "wb") as file:
        file.write(f"P6\n{width} {height}\n255\n".encode() + pixels)


main()
