# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests in Python share, with the standard library only: commands that must end well, .npy
files, random numbers, matrices, and the examples.

Usage of each example's test: NAME.py MGPU_TUNE EXAMPLES_DIR [BUNDLE]; a bundle stands in for the
program. Other folders' tests find this file by PYTHONPATH.
"""

import array
import ast
import math
import os
import struct
import subprocess
import sys
import tempfile

CODES = {"|i1": "b", "<f4": "f", "<f8": "d", "<i2": "h", "<i4": "i", "<i8": "q",
         "<f2": "H", "<V2": "H"}  # the last two are f16 and bf16, as the bits of a whole number


def command(*words, expect=0, about="", **options):
    """Runs a command, whose output is kept. Ends the test if its exit code is not `expect`, with
    what it said and then `about`."""
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode != expect:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}{about}")
    return done


def pairs(option, values):
    """Words of a command that give an option for each value."""
    return [word for value in values for word in (option, value)]


def read_npy(path):
    """(flat list, shape) of a little-endian C-order file."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:6] == b"\x93NUMPY" and data[6] == 1, path
    (length,) = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10:10 + length].decode("latin1"))
    assert not header["fortran_order"], path
    values = array.array(CODES[header["descr"]])
    values.frombytes(data[10 + length:])
    assert len(values) == math.prod(header["shape"]), path
    return list(values), header["shape"]


def write_npy(path, values, shape, descr="<f4"):
    assert len(values) == math.prod(shape)
    header = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(array.array(CODES[descr], values).tobytes())


def f32(value):
    """Rounds to the nearest float. An operation on two floats done in double and rounded so is
    rounded once: double has more than twice the digits."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def random_bits(seed, index):
    """SplitMix64, as docs/arguments.md defines random:SEED."""
    mask = (1 << 64) - 1
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def random_f32(seed, count):
    return [(random_bits(seed, i) >> 40) * 2.0**-24 for i in range(count)]


def matmul(a, b, m, k, n):
    """The product of an m x k and a k x n matrix, which are flat lists, as the result is."""
    return [sum(a[i * k + p] * b[p * n + j] for p in range(k)) for i in range(m) for j in range(n)]


def transposed(a, rows, columns):
    return [a[i * columns + j] for j in range(columns) for i in range(rows)]


class Example:
    def __init__(self, name):
        if len(sys.argv) not in (3, 4):
            sys.exit(__doc__)
        self.tune, examples = sys.argv[1:3]
        self.folder = os.path.join(examples, name)
        self.file = sys.argv[3] if len(sys.argv) == 4 else os.path.join(self.folder, name + ".mlir")
        self.keep = tempfile.TemporaryDirectory()

    def path(self, name):
        return os.path.join(self.keep.name, name)

    def write(self, name, values, shape):
        """The path of a file that can be given as the argument `name`."""
        path = self.path(f"given-{name}.npy")
        write_npy(path, values, shape)
        return path

    def given(self, shapes, value):
        """Values and files of arguments, each {name: ...}. `value` makes an element of random bits."""
        values = {name: [value(random_bits(seed, i)) for i in range(math.prod(shape))]
                  for seed, (name, shape) in enumerate(shapes.items())}
        return values, {name: self.write(name, values[name], shape) for name, shape in shapes.items()}

    def command(self, *words):
        return command(self.tune, *words, env={**os.environ, "MGPU_DB": self.path("tuning.db")}).stdout

    def check(self, *words):
        self.command("check", self.file, *words)

    def run(self, args, outs, *words, target="host:4"):
        """{name: (values, shape)} of the outputs."""
        self.command("run", self.file, "--target", target, *words,
                     *pairs("--arg", [f"{name}={value}" for name, value in args.items()]),
                     *pairs("--out", [f"{name}={self.path(name + '.npy')}" for name in outs]))
        return {name: read_npy(self.path(name + ".npy")) for name in outs}


def expect_equal(name, got, values, shape):
    got, got_shape = got
    if tuple(got_shape) != tuple(shape):
        sys.exit(f"{name}: shape {got_shape}, expected {shape}")
    wrong = [i for i, (g, v) in enumerate(zip(got, values)) if g != v]
    if wrong:
        i = wrong[0]
        sys.exit(f"{name}: {len(wrong)} of {len(values)} differ, first [{i}]: {got[i]!r}, expected {values[i]!r}")
    print(f"{name}: {len(values)} values equal bit for bit")


def expect_close(name, got, values, tolerance):
    got, _ = got
    worst = max(abs(g - v) for g, v in zip(got, values))
    if len(got) != len(values) or not worst <= tolerance:
        sys.exit(f"{name}: largest difference {worst}, allowed {tolerance}")
    print(f"{name}: {len(values)} values within {worst:.2g} (allowed {tolerance})")
