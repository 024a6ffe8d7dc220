#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs mutants of programs: each ends with an exit code that says why, within 10 s of a processor, and none crashes.

    mutate.py MGPU_TUNE COUNT [SEED] FOLDER_OR_FILE...

A mutant has a line left out, twice or elsewhere, or a number, a type or an operand changed. Every other one is
checked alone. MGPU_SWEEPS in the environment: 80 times COUNT.
"""

import os
import random
import re
import resource
import subprocess
import sys
import tempfile

SECONDS = 10  # of a processor
# What operations become, which a message about a program without them does not name.
INSIDE = re.compile(r"'(?:scf\.for|linalg\.generic|mgpu\.memcpy|memref\.alloc)'")
SWAPS = {"f32": ["f16", "i32", "f64", "index"], "i32": ["i64", "f32", "i1", "i8"], "f16": ["f32", "bf16"],
         "index": ["i64"], "i64": ["i32"], "x": ["y", "z"], "add": ["mul", "and"], "load": ["store"],
         "async": [""], "true": ["false"], "alloc": ["alloca", "dealloc"], "add,": ["minsi,"]}


def mutant(text, random_):
    lines = text.split("\n")
    for _ in range(random_.choice((1, 1, 2, 3))):
        at, other = random_.randrange(len(lines)), random_.randrange(len(lines))
        kind = random_.randrange(6)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(other, lines[at])
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            lines[at] = re.sub(r"\d+", lambda m: random_.choice([m.group(), "0", "1", "-1", "3", "100", "4294967297"]),
                               lines[at])
        elif kind == 4:
            values = re.findall(r"%\w+", text)
            if values:
                lines[at] = re.sub(r"%\w+", lambda m: random_.choice([m.group(), m.group(), random_.choice(values)]),
                                   lines[at])
        else:
            lines[at] = re.sub(r"[\w,]+", lambda m: random_.choice(SWAPS.get(m.group(), [m.group()])), lines[at])
        lines = lines or [""]
    return "\n".join(lines)


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def main():
    tune, count = sys.argv[1], int(sys.argv[2]) * (80 if os.environ.get("MGPU_SWEEPS") else 1)
    rest = sys.argv[3:]
    seed = int(rest.pop(0)) if rest and rest[0].isdigit() else 1
    files = []
    for path in rest:
        files += sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".mlir")) \
            if os.path.isdir(path) else [path]
    random_ = random.Random(seed)
    codes, wrong = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            source = random_.choice(files)
            with open(source) as file:
                text = mutant(file.read(), random_)
            path = os.path.join(folder, "mutant.mlir")
            with open(path, "w") as file:
                file.write(text)
            try:
                done = subprocess.run([tune, ("run", "check")[number % 2], path], capture_output=True, text=True,
                                      timeout=30 * SECONDS, errors="replace", preexec_fn=limit)
                code, message = done.returncode, done.stderr
            except subprocess.TimeoutExpired:
                code, message = "timeout", ""
            codes[code] = codes.get(code, 0) + 1
            named = [each for each in INSIDE.findall(message) if each.strip("'") not in text]
            if code not in (0, 1, 2, 3, 5) or (code != 0 and not message.strip()) or named:
                wrong += 1
                kept = os.path.join(os.environ.get("MGPU_KEEP", folder), f"mutant-{seed}-{number}.mlir")
                with open(kept, "w") as file:
                    file.write(text)
                print(f"{source}, mutant {number} of seed {seed}: {code}\n{message[-600:]}")
    print(f"seed {seed}: {count} mutants, exit codes {dict(sorted(codes.items(), key=str))}, {wrong} wrong")
    return 1 if wrong else 0


sys.exit(main())
