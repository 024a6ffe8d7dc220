#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of math and arith with constants beside the same with arguments: what MLIR folds is what is run.

    folds.py MGPU_TUNE

MLIR's folders are a part of what programs compute, and some of them were wrong: atan2 of zeros, casts of index
to narrow integers and back. Numbers are those at the ends of the types, in all pairs.
"""

import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
UNARY = ["math." + name for name in (
    "absf acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 round "
    "roundeven rsqrt sin sinh sqrt tan tanh trunc").split()] + ["arith.negf"]
BINARY = ["math.atan2", "math.copysign", "math.powf"] + ["arith." + name for name in (
    "addf subf mulf divf remf maximumf minimumf maxnumf minnumf").split()]
WHOLE_UNARY = ["math." + name for name in "absi ctlz ctpop cttz".split()]
WHOLE_BINARY = ["arith." + name for name in (
    "addi subi muli andi ori xori maxsi maxui minsi minui").split()]
# Their right side is no zero, and no overflow comes of it.
DIVISIONS = ["arith." + name for name in "divsi divui remsi remui ceildivsi ceildivui floordivsi".split()]
ULPS = 4  # of functions: MLIR folds by the C library


def special(element):
    if element in FLOATS:
        info = np.finfo(FLOATS[element])
        return np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -7.25, np.inf, -np.inf, np.nan, info.max, -info.max,
                         info.tiny, -info.tiny, info.tiny / 2], dtype=FLOATS[element])
    info = np.iinfo(INTEGERS[element])
    return np.array([0, 1, -1, 2, 3, -7, 100, info.max, info.min, info.max - 1, info.min + 1], dtype=INTEGERS[element])


def dense(values, element):
    if element in FLOATS:
        bits = values.view(np.dtype(f"u{values.itemsize}"))
        return f"dense<[{', '.join(f'0x{bit:0{2 * values.itemsize}X}' for bit in bits)}]>"
    return f"dense<[{', '.join(map(str, values))}]>"


def program(ops, element, sides, is_constant):
    """Each operation's result is one of the program's; `sides` are its operands."""
    count = len(sides[0])
    type_ = f"tensor<{count}x{element}>"
    lines, names = [], [f"%s{k}" for k in range(len(sides))]
    if is_constant:
        lines = [f"  {name} = arith.constant {dense(side, element)} : {type_}" for name, side in zip(names, sides)]
    for k, op in enumerate(ops):
        lines.append(f"  %r{k} = {op} {', '.join(names[:2 if len(sides) > 1 else 1])} : {type_}")
    arguments = "" if is_constant else ", ".join(f"{name}: {type_}" for name in names)
    results = ", ".join(f"%r{k}" for k in range(len(ops)))
    types = ", ".join([type_] * len(ops))
    return "\n".join([f"func.func @main({arguments}) -> ({types}) {{", *lines, f"  return {results} : {types}", "}", ""])


def results(tune, folder, text, sides, count):
    path = os.path.join(folder, "program.mlir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    command = [tune, "run", path]
    for k, side in enumerate(sides):
        np.save(f"{folder}/s{k}.npy", side)
        command += ["--arg", f"s{k}={folder}/s{k}.npy"]
    for k in range(count):
        command += ["--out", f"r{k}={folder}/r{k}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"exit {done.returncode}: {done.stderr[-1500:]}\n{text[:1500]}")
    return [np.load(f"{folder}/r{k}.npy") for k in range(count)]


def differ(folded, run, exact):
    """Where two results are not the same number; functions may be some units in the last place apart."""
    if folded.dtype.kind != "f":
        return folded != run
    same = (folded == run) & (np.signbit(folded) == np.signbit(run)) | (np.isnan(folded) & np.isnan(run))
    if exact:
        return ~same
    with np.errstate(all="ignore"):
        near = np.abs(folded.astype(np.float64) - run.astype(np.float64)) <= ULPS * np.spacing(np.abs(run)).astype(np.float64)
    return ~(same | near & (np.signbit(folded) == np.signbit(run)))


def main():
    tune, faults, count = sys.argv[1], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for elements, unary, binary in [(FLOATS, UNARY, BINARY), (INTEGERS, WHOLE_UNARY, WHOLE_BINARY + DIVISIONS)]:
            for element in elements:
                values = special(element)
                left, right = (side.reshape(-1) for side in np.meshgrid(values, values, indexing="ij"))
                safe = (right != 0) & ~((right == -1) & (left == values.min())) if elements is INTEGERS else right == right
                sets = [(unary, [values])]
                if elements is FLOATS:
                    sets.append((binary, [left, right]))
                else:
                    sets += [(WHOLE_BINARY, [left, right]), (DIVISIONS, [left[safe], right[safe]])]
                for ops, sides in sets:
                    folded = results(tune, folder, program(ops, element, sides, True), [], len(ops))
                    ran = results(tune, folder, program(ops, element, sides, False), sides, len(ops))
                    for op, one, other in zip(ops, folded, ran):
                        exact = not op.startswith("math.") or op in ("math.absf", "math.copysign", "math.sqrt")
                        bad = differ(one, other, exact)
                        count += 1
                        if bad.any():
                            at = int(np.argmax(bad))
                            faults += 1
                            print(f"{op} of {element} {[side[at] for side in sides]}: folded {one[at]!r}, run {other[at]!r}")
    print(f"{count} operations, {faults} of them folded into other numbers than are run")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
