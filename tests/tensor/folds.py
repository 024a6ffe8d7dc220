#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of math and arith with constants beside the same with arguments: what MLIR folds is what is run.

    folds.py MGPU_TUNE [INCLUDES]

MLIR's folders are a part of what programs compute, and some of them were wrong: atan2 of zeros, casts of index
to narrow integers and back. Numbers are those at the ends of the types, in all pairs. INCLUDES has MLIR's headers:
each operation that math and arith declare there must be among those that are compared, or be refused by mgpu.
"""

import os
import re
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
TESTS = ["math." + name for name in "isfinite isinf isnan isnormal".split()]
BINARY = ["math.atan2", "math.copysign", "math.powf"] + ["arith." + name for name in (
    "addf subf mulf divf remf maximumf minimumf maxnumf minnumf").split()]
WHOLE_UNARY = ["math." + name for name in "absi ctlz ctpop cttz".split()]
WHOLE_BINARY = ["arith." + name for name in (
    "addi subi muli andi ori xori maxsi maxui minsi minui").split()]
# Their right side is no zero, and no overflow comes of it.
DIVISIONS = ["arith." + name for name in "divsi divui remsi remui ceildivsi ceildivui floordivsi".split()]
SHIFTS = ["arith." + name for name in "shli shrsi shrui".split()]  # by less than the width
FLOAT_ORDERS = "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()
WHOLE_ORDERS = "eq ne slt sle sgt sge ult ule ugt uge".split()
EXACT = ["math." + name for name in (
    "absf copysign sqrt ceil floor round roundeven trunc fma absi ctlz ctpop cttz ipowi clampf").split()] + TESTS
# One is what constants are; the others are of floats of 4 bits, which mgpu refuses.
APART = {"arith.constant", "arith.scaling_extf", "arith.scaling_truncf"}
ULPS = 4  # of functions: MLIR folds by the C library


def special(element):
    if element in FLOATS:
        info = np.finfo(FLOATS[element])
        return np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -7.25, np.inf, -np.inf, np.nan, info.max, -info.max,
                         info.tiny, -info.tiny, info.tiny / 2], dtype=FLOATS[element])
    info = np.iinfo(INTEGERS[element])
    return np.array([0, 1, -1, 2, 3, -7, 100, info.max, info.min, info.max - 1, info.min + 1], dtype=INTEGERS[element])


def element_of(values):
    return next((name for name, kind in (FLOATS | INTEGERS).items() if values.dtype == kind), "i1")


def dense(values):
    if values.dtype.kind == "f":
        bits = values.view(np.dtype(f"u{values.itemsize}"))
        return f"dense<[{', '.join(f'0x{bit:0{2 * values.itemsize}X}' for bit in bits)}]>"
    return f"dense<[{', '.join(str(value).lower() for value in values)}]>"


class Case:
    """Operations on the same operands: each a name, its text, and the results' element types. In the text `%0`, `%1` ...
    are the operands, `<f32>` is their tensor of that type, and `%made` what stands before a semicolon."""

    def __init__(self, *sides):
        self.sides, self.ops = sides, []
        self.elements, self.count = [element_of(side) for side in sides], len(sides[0])

    def type(self, element):
        return f"tensor<{self.count}x{element}>"

    def add(self, name, text, *results):
        self.ops.append((name, re.sub(r"<(\w+)>", lambda found: self.type(found[1]), text), results))

    def plain(self, names):
        """Those of all operands, which have one type, and so has the result."""
        operands = ", ".join(f"%{k}" for k in range(len(self.sides)))
        for name in names:
            self.add(name, f"{name} {operands} : <{self.elements[0]}>", self.elements[0])

    def program(self, is_constant):
        """Each operation's results are results of the program."""
        types = [self.type(element) for element in self.elements]
        lines, results, gives = [], [], []
        if is_constant:
            lines = [f"  %s{k} = arith.constant {dense(side)} : {types[k]}" for k, side in enumerate(self.sides)]
        for k, (_, text, elements) in enumerate(self.ops):
            name = f"%r{k}:{len(elements)}" if len(elements) > 1 else f"%r{k}"
            text = re.sub(r"%(\d)", r"%s\1", text).replace("%made", f"%m{k}")
            *before, last = text.split("; ")
            lines += [*(f"  %m{k} = {each}" for each in before), f"  {name} = {last}"]
            results += [f"%r{k}{f'#{each}' if len(elements) > 1 else ''}" for each in range(len(elements))]
            gives += [self.type(element) for element in elements]
        arguments = "" if is_constant else ", ".join(f"%s{k}: {type_}" for k, type_ in enumerate(types))
        return "\n".join([f"func.func @main({arguments}) -> ({', '.join(gives)}) {{", *lines,
                          f"  return {', '.join(results)} : {', '.join(gives)}", "}", ""])

    def run(self, tune, folder, is_constant):
        path, text, command = os.path.join(folder, "program.mlir"), self.program(is_constant), []
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        for k, side in enumerate(self.sides):
            np.save(f"{folder}/s{k}.npy", side)
            command += [] if is_constant else ["--arg", f"s{k}={folder}/s{k}.npy"]
        elements = [element for *_, results in self.ops for element in results]
        for k in range(len(elements)):
            command += ["--out", f"r{k}={folder}/r{k}.npy"]
        done = subprocess.run([tune, "run", path, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"exit {done.returncode}: {done.stderr[-1500:]}\n{text[:1500]}")
        return iter([np.load(f"{folder}/r{k}.npy") for k in range(len(elements))])


def of_floats(element):
    values = special(element)
    left, right = (side.reshape(-1) for side in np.meshgrid(values, values, indexing="ij"))
    one = Case(values)
    one.plain(UNARY)
    for name in TESTS:
        one.add(name, f"{name} %0 : <{element}>", "i1")
    one.add("math.sincos", f"math.sincos %0 : <{element}>", element, element)
    one.add("arith.bitcast", f"arith.bitcast %0 : <{element}> to <i{element[1:]}>", f"i{element[1:]}")
    for other in FLOATS:
        if int(other[1:]) != int(element[1:]):
            name = "arith.extf" if int(other[1:]) > int(element[1:]) else "arith.truncf"
            one.add(name, f"{name} %0 : <{element}> to <{other}>", other)
    two = Case(left, right)
    two.plain(BINARY)
    for order in FLOAT_ORDERS:
        two.add(f"arith.cmpf {order}", f"arith.cmpf {order}, %0, %1 : <{element}>", "i1")
    powers = Case(np.tile(values, 5), np.repeat(np.array([0, 1, 2, -3, 5], np.int32), len(values)))
    powers.add("math.fpowi", f"math.fpowi %0, %1 : <{element}>, <i32>", element)
    three = Case(left, right, np.roll(left, 7))
    three.plain(["math.fma"])
    low, high = np.minimum(np.nan_to_num(left), np.nan_to_num(right)), np.maximum(np.nan_to_num(left), np.nan_to_num(right))
    between = Case(np.roll(left, 5), low, high)
    between.add("math.clampf", f"math.clampf %0 to [%1, %2] : <{element}>", element)
    chosen = Case(left > right, left, right)
    chosen.add("arith.select", f"arith.select %0, %1, %2 : <i1>, <{element}>", element)
    whole = Case(values[np.abs(values) < 100])  # beyond a type's ends a cast is undefined
    for other in INTEGERS:
        whole.add("arith.fptosi", f"arith.fptosi %0 : <{element}> to <{other}>", other)
    positive = Case(values[(values >= 0) & (values < 100)])
    for other in INTEGERS:
        positive.add("arith.fptoui", f"arith.fptoui %0 : <{element}> to <{other}>", other)
    return [one, two, powers, three, between, chosen, whole, positive]


def of_integers(element):
    values = special(element)
    left, right = (side.reshape(-1) for side in np.meshgrid(values, values, indexing="ij"))
    width = int(element[1:])
    one = Case(values)
    one.plain(WHOLE_UNARY)
    for other in ["i1", *INTEGERS]:
        names = ["arith.extsi", "arith.extui"] if int(other[1:]) > width else \
            ["arith.trunci"] if int(other[1:]) < width else []
        for name in names:
            one.add(name, f"{name} %0 : <{element}> to <{other}>", other)
    for name in ("arith.index_cast", "arith.index_castui"):  # there, and back to each width
        for other in INTEGERS:
            one.add(name, f"{name} %0 : <{element}> to <index>; {name} %made : <index> to <{other}>", other)
    for other in FLOATS:
        for name in ("arith.sitofp", "arith.uitofp"):
            one.add(name, f"{name} %0 : <{element}> to <{other}>", other)
    two = Case(left, right)
    two.plain(WHOLE_BINARY)
    for order in WHOLE_ORDERS:
        two.add(f"arith.cmpi {order}", f"arith.cmpi {order}, %0, %1 : <{element}>", "i1")
    two.add("arith.addui_extended", f"arith.addui_extended %0, %1 : <{element}>, <i1>", element, "i1")
    for name in ("arith.mulsi_extended", "arith.mului_extended"):
        two.add(name, f"{name} %0, %1 : <{element}>", element, element)
    safe = (right != 0) & ~((right == -1) & (left == values.min()))
    quotients = Case(left[safe], right[safe])
    quotients.plain(DIVISIONS)
    powers = Case(np.tile(values, 4), np.repeat(np.array([0, 1, 2, 5], values.dtype), len(values)))
    powers.plain(["math.ipowi"])
    shifts = Case(np.tile(values, 4), np.repeat(np.array([0, 1, 3, width - 1], values.dtype), len(values)))
    shifts.plain(SHIFTS)
    chosen = Case(left > right, left, right)
    chosen.add("arith.select", f"arith.select %0, %1, %2 : <i1>, <{element}>", element)
    return [one, two, quotients, powers, shifts, chosen]


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


def declared(includes):
    """The operations that MLIR's headers have of both dialects."""
    for dialect, path in (("arith", "Arith/IR/ArithOps.td"), ("math", "Math/IR/MathOps.td")):
        with open(f"{includes}/mlir/Dialect/{path}", encoding="utf-8") as file:
            for name in re.findall(r'def \w+\s*:\s*\w+<\s*"(\w+)"', file.read()):
                yield f"{dialect}.{name}"


def main():
    tune, *includes = sys.argv[1:]
    cases = [case for element in FLOATS for case in of_floats(element)]
    cases += [case for element in INTEGERS for case in of_integers(element)]
    names, faults = [name for case in cases for name, *_ in case.ops], 0
    if includes:
        missing = set(declared(includes[0])) - {name.split()[0] for name in names} - APART
        faults += len(missing)
        print(f"not compared: {sorted(missing)}" if missing else "each operation of MLIR's headers is compared")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            folded, ran = case.run(tune, folder, True), case.run(tune, folder, False)
            for name, _, results in case.ops:
                exact = name.startswith("arith.") or name in EXACT
                for one, other in [(next(folded), next(ran)) for _ in results]:
                    bad = differ(one, other, exact)
                    if bad.any():
                        at = int(np.argmax(bad))
                        faults += 1
                        print(f"{name} of {[(side.dtype.name, side[at]) for side in case.sides]}: folded {one[at]!r}, run {other[at]!r}")
    print(f"{len(names)} operations, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
