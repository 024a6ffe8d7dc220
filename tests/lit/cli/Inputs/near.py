#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exits with 1 where two .npy files of f32 differ by more than the steps of two products round.

Usage: near.py A.npy B.npy
"""
import struct
import sys


def numbers(path):
    """The header's length is two bytes at 8; the file's numbers follow it."""
    data = open(path, "rb").read()
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    return struct.unpack_from(f"<{(len(data) - begin) // 4}f", data, begin)


a, b = map(numbers, sys.argv[1:])
assert len(a) == len(b) > 0
worst = max(abs(x - y) / max(1, abs(x)) for x, y in zip(a, b))
print(f"{len(a)} numbers, the largest difference is {worst:.1e}")
sys.exit(worst > 1e-5)
