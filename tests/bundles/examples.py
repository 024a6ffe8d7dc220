#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each example as a bundle gives the bits of the program itself, at CPU levels of this machine (with
MGPU_SWEEPS=all at every one), run by the command that has no compiler.

Usage: examples.py MGPU_TUNE MGPU_TUNE_RUNTIME EXAMPLES_DIR
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from harness import command, pairs

EXAMPLES = [("saxpy", "main", ["a=2.5"]), ("heat", "main", []), ("mandelbrot", "main", []), ("mlp", "main", []),
            ("attention", "main", []), ("ops", "main", []), ("exchange", "main", []),
            ("tensor/attention", "main", []), ("tensor/fully-sharded", "main", ["rate=0.5"]),
            ("shard/transformer", "main", []), ("tensor/pipeline", "main", []), ("mpmd/training", "main", []),
            ("digits", "main", ["rate=0.5"]), ("digits", "eval", [])]
# The levels between the lowest and this machine's own have their turn in make check-all.
ALL = os.environ.get("MGPU_SWEEPS") == "all"
if ALL:  # 5660 nodes: a bundle takes ten seconds, and each run two
    EXAMPLES.append(("mpmd/gpt", "main", []))
LEVELS = ["x86-64-v2"] + (["x86-64-v3", "x86-64-v4"] if ALL else [])
COMPILED = [] if ALL else ["--cpu", "x86-64-v2,x86-64-v4"]  # else each level


def run(tune, file, values, arguments, folder, *words, seed=1):
    """{name: bytes of its .npy} of every argument and result after two replays."""
    os.mkdir(folder)
    inputs, outs = list(values), []
    for k, (kind, name, role) in enumerate(arguments):
        if role == "specialised":
            continue
        if kind == "argument":
            inputs.append(f"{name}=random:{k + seed}")
        outs.append(name)
    while True:
        line = [tune, "run", file, "--repeat", "2", *pairs("--arg", inputs),
                *pairs("--out", [f"{name}={folder}/{name}.npy" for name in outs]), *words]
        done = subprocess.run(line, capture_output=True, text=True)
        kept = re.search(r"the program never copies the resident argument '(.*?)' back", done.stderr)
        if done.returncode != 2 or not kept:
            break
        outs.remove(kept[1])  # its state stays on the devices
    if done.returncode:
        sys.exit(f"{' '.join(line)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    contents = {}
    for name in outs:
        with open(f"{folder}/{name}.npy", "rb") as output:
            contents[name] = output.read()
    return contents


def check_alternatives(tune, runtime, examples, folder):
    """Where there is no compiler `tune` chooses among the ways that a bundle has of each kernel; `run`
    then takes what it chose, and gives the same bits."""
    file, bundle = f"{examples}/mlp/mlp.mlir", f"{folder}/alternatives.mgpu"
    command(tune, "bundle", file, "--alternatives", "3", "--cpu", "x86-64-v2", "-o", bundle)
    command(runtime, "check", bundle)
    stored = ["--db", f"{folder}/alternatives.db"]
    found = json.loads(command(runtime, "tune", bundle, "--budget", "60" if ALL else "24", "--json", *stored).stdout)
    alone = [part for part in found["spaces"] if part["points"] == 4]
    if not alone or any(part["tried"] < 2 for part in alone) or found["failed"]:
        sys.exit(f"the ways of each kernel were not tried: {found['spaces']}, {found['failed']}")
    values = [f"{name}=random:{k}" for k, name in enumerate(("x", "w1", "w2"))]

    def result(*words):
        command(runtime, "run", bundle, *pairs("--arg", values), "--out", f"y={folder}/y.npy", *words)
        with open(f"{folder}/y.npy", "rb") as output:
            return output.read()

    if result(*stored) != result("--no-tuned"):
        sys.exit("mlp: what was chosen gives other bits")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tune, runtime, examples = sys.argv[1:]
    libraries = command("ldd", runtime).stdout
    if re.search("LLVM|MLIR", libraries):
        sys.exit(f"{runtime} is to run without a compiler, but needs\n{libraries}")
    levels = set()
    with tempfile.TemporaryDirectory() as folder:
        for name, entry, values in EXAMPLES:
            program = name if "/" in name else f"{name}/{name}"
            file, stem = f"{examples}/{program}.mlir", name.replace("/", "-")
            bundle = f"{folder}/{stem}-{entry}.mgpu"
            command(tune, "bundle", file, "--entry", entry, *pairs("--arg", values), *COMPILED, "-o", bundle)
            listing = command(runtime, "check", bundle).stdout
            arguments = re.findall(r"^  (argument|result) (\w+): \S+ \((.*)\)$", listing, re.M)
            where = f"{folder}/{stem}-{entry}"
            expected = run(tune, file, values, arguments, f"{where}-program", "--entry", entry)
            if not expected:
                sys.exit(f"{name}: nothing to compare in\n{listing}")
            for level in LEVELS:
                probe = subprocess.run([runtime, "run", bundle, "--cpu", level], capture_output=True, text=True)
                if "this processor does not run it" in probe.stderr:
                    continue
                levels.add(level)
                if run(runtime, bundle, [], arguments, f"{where}-{level}", "--cpu", level) != expected:
                    sys.exit(f"{name} @{entry}: the bundle at {level} gives other bits than the program")
            if run(runtime, bundle, values, arguments, f"{where}-best") != expected:
                sys.exit(f"{name} @{entry}: the bundle gives other bits than the program")
            if len(expected) > 1 and run(runtime, bundle, [], arguments, f"{where}-other", seed=99) == expected:
                sys.exit(f"{name} @{entry}: other inputs give the same bits, so nothing was compared")
            command(runtime, "run", file, expect=5)
        check_alternatives(tune, runtime, examples, folder)
    print(f"{len(EXAMPLES)} bundles equal their programs bit for bit at {', '.join(sorted(levels))}")
    if not levels:
        sys.exit("this processor runs none of the levels")


if __name__ == "__main__":
    main()
