#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random StableHLO programs, judged operation by operation by evaluate.py.

    random_programs.py MGPU_TUNE [--operations N] [--seed S] [--bundle | --resident | --transforms | --shardings]

Operations have all element types, rank 0, sizes 0, several dimensions of indices, unused and repeated
results, donations and numbers at the ends of their types. Every value is a result of the program, so that
each operation is judged by the bits that its operands really had. A program that is refused (exit 5) is
counted apart. The table at the end says how often each operation was drawn, which is as often as any other;
--seed S with the number that a fault names draws that program again.
"""

import argparse
import collections
import glob
import os
import random
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

import collectives  # its operations, and those of the next one, are drawn
import compound
import evaluate
from draw import Program
from operations import DRAWN

OPERATIONS = 10  # of a program
LEAST = 100  # times that each operation is drawn, where there are so many
TRANSFORMS = "algorithm,copies,scatter,bucket,chunk,split,order,early,nofork".split(",")


def operations_of(seed):
    """Those of the program of that seed: the programs in their order draw all operations equally often."""
    for k in range((seed - 1) * OPERATIONS, seed * OPERATIONS):
        cycle, at = divmod(k, len(DRAWN))
        yield random.Random(f"cycle {cycle}").sample(DRAWN, len(DRAWN))[at]


def undrawn(names):
    """The operations of the dialects that no program has, and that docs/limits.md does not name as refused."""
    root, declared = os.path.join(os.path.dirname(__file__), "../.."), set()
    for dialect, path in {"stablehlo.": "Stablehlo*Ops.td", "chlo.": "ChloOps.td", "mhlo.": "MhloOps.td"}.items():
        for each in glob.glob(f"{root}/dialect/stablehlo/{path}"):
            with open(each, encoding="utf-8") as file:
                declared |= {dialect + name for name in re.findall(r'def \w+Op\s*:\s*\w+<\s*"([\w-]+)"', file.read())}
    with open(f"{root}/docs/limits.md", encoding="utf-8") as file:
        refused = set(re.findall(r"`([\w-]+)`", re.search(r"(?s)\n## StableHLO\n- (.*?)\n", file.read()).group(1)))
    known = {name if "." in name else f"stablehlo.{name}" for name in names} | {"stablehlo.return"}
    return sorted(name for name in declared - known if name.split(".")[1] not in refused | {"custom_call"})


def program_of(seed, donates=True, shards=False):
    return Program(random.Random(seed), np.random.default_rng(seed), operations_of(seed), donates, shards)


def run(tune, folder, program, bundle=False, resident=False, transforms=""):
    """Exit status, words, and the program's results by name."""
    path = f"{folder}/program.mlir"
    with open(path, "w", encoding="utf-8") as file:
        file.write(program.text())
    if bundle:
        done = subprocess.run([tune, "bundle", path, "-o", f"{folder}/program.mgpu"], capture_output=True, text=True,
                              timeout=300, check=False)
        if done.returncode:
            return done.returncode, done.stderr, {}
        path = f"{folder}/program.mgpu"
    command = [tune, "run", path]
    for name, value in program.arguments.items():
        np.save(f"{folder}/{name}.npy", value)
        command += ["--arg", f"{name}={folder}/{name}.npy"]
        command += ["--role", f"{name}=resident"] if resident else []
    for k in range(len(program.results)):
        command += ["--out", f"r{k}={folder}/r{k}.npy"]
    command += ["--repeat", "2"] if resident else []
    command += ["--transforms", transforms] if transforms else []
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    if done.returncode:
        return done.returncode, done.stderr, {}
    found = {}
    for k, (value, stored) in enumerate(program.results):
        have = np.load(f"{folder}/r{k}.npy")
        found[value.name] = evaluate.decoded(have.reshape(value.shape), value.kind, stored)
    return 0, done.stderr, found


def faults_of(program, found):
    """What each operation that is judged wrongly gave."""
    values = dict(found)
    for name, (kind, array) in program.given.items():
        values.setdefault(name, array)
    for name, operands, result, judge in program.judged:
        if result not in found or any(operand not in values for operand in operands):
            continue
        with np.errstate(all="ignore"):
            words = judge(found[result], [np.asarray(values[operand]) for operand in operands], values)
        if words:
            yield f"{name} {result}: {words}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tune")
    parser.add_argument("--operations", type=int, default=60)
    parser.add_argument("--sweep", type=int, default=0, help="how many operations there are with MGPU_SWEEPS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bundle", action="store_true", help="through a bundle")
    parser.add_argument("--resident", action="store_true", help="the second replay over arguments that stay there")
    parser.add_argument("--transforms", action="store_true", help="with changes of the program that keep its bits")
    parser.add_argument("--shardings", action="store_true", help="with arguments that are split over devices")
    options = parser.parse_args()
    if options.sweep and os.environ.get("MGPU_SWEEPS"):
        options.operations = options.sweep
    drawn, refused, faults, words = collections.Counter(), 0, 0, collections.Counter()
    seed = options.seed
    with tempfile.TemporaryDirectory() as folder:
        while sum(drawn.values()) + refused < options.operations:
            program = program_of(seed, donates=not options.resident, shards=options.shardings)
            chosen = ",".join(program.rng.sample(TRANSFORMS, 3)) if options.transforms else ""
            try:
                code, said, found = run(options.tune, folder, program, options.bundle, options.resident, chosen)
            except subprocess.TimeoutExpired:
                code, said, found = 124, "no answer in 300 s", {}
            if code == 5:
                refused += OPERATIONS
                words[next((line for line in said.splitlines() if "error:" in line), said)[-160:]] += 1
            elif code or "warning:" in said:
                faults += 1
                print(f"seed {seed}: exit {code}: {said[-1500:]}")
            sys.stdout.flush()
            for fault in faults_of(program, found):
                faults += 1
                print(f"seed {seed}: {fault}")
            if code == 0:
                drawn.update(program.names)
            seed += 1
    print(", ".join(f"{name} {count}" for name, count in sorted(drawn.items())))
    if options.operations >= LEAST * len(DRAWN):
        rare = [f"{name} was drawn {count} times, not {LEAST}" for name, count in drawn.items() if count < LEAST]
        rare += [f"{name} is neither drawn nor refused by docs/limits.md" for name in undrawn(drawn)]
        faults += len(rare)
        print("\n".join(rare))
    for line, count in words.items():
        print(f"refused {count}: {line}")
    print(f"{sum(drawn.values())} operations of {len(drawn)} kinds in programs {options.seed} to {seed - 1}, "
          f"{faults} faults; {refused} operations refused")
    return 1 if faults or refused * 100 > options.operations else 0


if __name__ == "__main__":
    sys.exit(main())
