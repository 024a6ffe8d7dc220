#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Custom calls as functions: of a library on the command line, registered from C and from Python.

Usage: functions.py CALLS.mlir LIBRARY.so PROGRAM, with MGPU_TUNE, MGPU_LIBRARY and PYTHONPATH
"""

import array
import os
import struct
import subprocess
import sys
import tempfile

import mgpu

CALLS, LIBRARY, PROGRAM = sys.argv[1:]
TUNE = os.environ["MGPU_TUNE"]
failed = []


def expect(what, ok):
    if not ok:
        failed.append(what)


def tune(*words):
    done = subprocess.run([TUNE, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def opened(entry, *names, **options):
    words = [word for name in names for word in ("--custom", f"{name}=registered")]
    return mgpu.open(CALLS, options.pop("target", "host"), "--entry", entry, *words, **options)


def raises(kind, words, call):
    try:
        call()
        failed.append(f"no error: {words}")
    except kind as error:
        expect(f"{words} in {error}", words in str(error))


X = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
SCALED = [[(x + 1) * 6 + 1 for x in row] for row in X]


def command_line(folder):
    scaled = ("--entry", "scaled", "--custom", f"scale$all={LIBRARY}:scale")
    out = f"{folder}/y.npy"
    with open(f"{folder}/x.npy", "wb") as file:
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".ljust(117) + b"\n"
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        file.write(array.array("f", sum(X, [])).tobytes())
    code, said = tune("run", CALLS, *scaled, "--arg", f"x={folder}/x.npy", "--out", f"r0={out}")
    expect(said, code == 0 and "warning" not in said)
    with open(out, "rb") as file:
        expect("the library's results", list(struct.unpack("<6f", file.read()[-24:])) == sum(SCALED, []))
    for words, part, code in (
        (("check", CALLS, *scaled), "ok: 1 device", 0), (("plan", CALLS, *scaled, "--target", "host"), "replay", 0),
        (("run", CALLS, "--entry", "scaled", "--random", "--custom", "scale$all=registered"), "no function is registered as 'scale$all'", 5),
        (("run", CALLS, "--entry", "scaled", "--random", "--custom", f"scale$all={LIBRARY}:none"), "the library has no function 'none'", 2),
        (("run", CALLS, "--entry", "scaled", "--random", "--custom", "scale$all=/none.so:f"), "the library does not open", 2),
        (("run", CALLS, "--entry", "scaled", "--random", "--custom", f"scale$all={LIBRARY}:fails"), "failed: it returned 9", 1),
        (("run", CALLS, "--entry", "scaled", "--random", "--target", "host:1", "--custom", f"skale={LIBRARY}:scale"), "the program has no such call; it calls scale$all", 2),
        (("bundle", CALLS, *scaled, "--arch", "sm_80", "-o", f"{folder}/gpu.mgpu"), "which the host target calls; a GPU takes a kernel", 5),
    ):
        found, said = tune(*words)
        expect(f"{words}: {found}: {said}", found == code and part in said)
    code, said = tune("bundle", CALLS, "--entry", "scaled", "--custom", "scale$all=registered", "-o", f"{folder}/scaled.mgpu")
    expect(said, code == 0)
    code, said = tune("run", f"{folder}/scaled.mgpu", "--random", "--custom", f"scale$all={LIBRARY}:scale")
    expect(said, code == 0)
    done = subprocess.run([PROGRAM, f"{folder}/scaled.mgpu"], capture_output=True, text=True, check=False)
    expect(done.stdout, done.returncode == 0)


def from_python():
    seen = []

    def scale(operands, results, config):
        seen.append((operands[0].type, operands[0].shape, results[0].shape, config))
        by = float(bytes(byte for byte in config.split(b":")[0] if byte in b"0123456789"))
        return [[value * by for value in row] for row in operands[0].tolist()]

    raises(mgpu.UnsupportedError, "no function is registered", lambda: opened("scaled", "scale$all"))
    mgpu.register("scale$all", scale)
    expect("scaled", opened("scaled", "scale$all")(x=X)["r0"].tolist() == SCALED)
    expect(f"seen {seen}", seen == [("f32", (2, 3), (2, 3), b"3"), ("f32", (2, 3), (2, 3), b"{by = 2 : i64}")])
    seen.clear()
    loop = opened("in_loop", "scale$all", threads=1)
    expect("a loop", loop(x=X)["r0"].tolist() == [[x * 4096 for x in row] for row in X] and len(seen) == 12)
    audited = opened("scaled", "scale$all", audit=1)
    expect("an audit", audited(x=X)["r0"].tolist() == SCALED and audited.counters().differences == 0)

    def rows(operands, results, config):
        values = operands[0].tolist()
        results[1].data[0] = results[1].data[1] = 3
        for k, bit in enumerate((True, False, True)):
            results[2].data[k] = bit
        for k, row in enumerate(values):
            results[0].data[k] = sum(row)
        expect("an empty result", results[3].shape == (0,) and config == b"")

    x = [[float(10 * i + j) for j in range(8)] for i in range(4)]
    several = mgpu.open(CALLS, "host", "--entry", "several", functions={"rows": rows})(x=x)
    expect(f"several {several}", [several[f"r{k}"].tolist() for k in range(4)] == [[39.0, 69.0], [3, 3], [True, False, True], []])

    def accumulate(operands, results, config):
        for i in range(2):
            for j in range(3):
                results[0].data[i, j] += operands[1].data[i, j]

    mgpu.register("accumulate", accumulate)
    for target in ("host:1", "host:2"):
        words = ("--devices", "2") if target == "host:2" else ()
        both = mgpu.open(CALLS, target, "--entry", "in_place", "--custom", "accumulate=registered", *words)(x=X)
        expect("in place", both["r0"].tolist() == [[v + 1 for v in row] for row in X] and
               both["r1"].tolist() == [[2 * v + 1 for v in row] for row in X])


def errors():

    def raising(operands, results, config):
        raise ValueError("nothing of this kind")

    mgpu.register("scale$all", raising)
    program = opened("scaled", "scale$all")
    raises(mgpu.InvalidError, "failed: ValueError: nothing of this kind", lambda: program(x=X))
    raises(mgpu.InvalidError, "calls.mlir:6:", lambda: program(x=X))
    mgpu.register("scale$all", lambda operands, results, config: (operands[0], operands[0]))
    raises(mgpu.InvalidError, "has 1 results, and its function gave 2", lambda: opened("scaled", "scale$all")(x=X))
    mgpu.register("scale$all", lambda operands, results, config: [1.0, 2.0])
    raises(mgpu.InvalidError, "has shape (2, 3), and its array (2,)", lambda: opened("scaled", "scale$all")(x=X))
    mgpu.register("scale$all", None)
    raises(mgpu.UnsupportedError, "no function is registered", lambda: opened("scaled", "scale$all"))
    mgpu.register("keep", lambda operands, results, config: operands[0])
    expect("nothing", opened("nothing", "keep")(x=b"")["r0"].tolist() == [])

    def spoils(operands, results, config):
        operands[0].data[0, 0] = 1

    mgpu.register("scale$all", spoils)
    raises(mgpu.InvalidError, "TypeError: cannot modify read-only memory", lambda: opened("scaled", "scale$all")(x=X))
    # An open program keeps its function, wherever its arguments lie.
    mgpu.register("scale$all", lambda operands, results, config: operands[0])
    program = opened("scaled", "scale$all")
    mgpu.register("scale$all", None)
    memory = array.array("f", sum(X, []))
    program.bind("x", memory)
    expect("bound", program()["r0"].tolist() == [[x + 2 for x in row] for row in X])
    # A factorisation is a function like any other.
    mgpu.register("lapack_spotrf_ffi", lambda operands, results, config: operands[0])
    expect("a factorisation", opened("factors", "lapack_spotrf_ffi")(x=[[1, 2], [3, 4]])["r0"].tolist() == [[1.0, 2.0], [3.0, 4.0]])


# A run that calls a function has begun when the interpreter ends.
AT_EXIT = """
import mgpu, sys, time

def scale(operands, results, config):
    time.sleep(0.2)
    return operands[0]

mgpu.register("scale$all", scale)
program = mgpu.open(sys.argv[1], "host", "--entry", "scaled", "--custom", "scale$all=registered")
program.write("x", [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
program.replay_on()
"""


def at_exit():
    try:
        done = subprocess.run([sys.executable, "-c", AT_EXIT, CALLS], capture_output=True, text=True, check=False, timeout=60)
        expect(f"the end: {done}", done.returncode == 0)
    except subprocess.TimeoutExpired:
        failed.append("the interpreter does not end")


with tempfile.TemporaryDirectory() as place:
    command_line(place)
at_exit()
from_python()
errors()
print("\n".join(failed) or "functions are called")
sys.exit(1 if failed else 0)
