#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs Shardy's programs that compare sharded functions with sequential ones on the processes of a mesh.

    interpreter.py MGPU_TUNE [FOLDER] [--every N]

Each public file of `sdy/` in $MGPU_DATA/programs.tar.xz with `check.expect_*` has parts, split by `//---`:
functions with shardings, and a `main` that gives parts of tensors to `interpreter.run_parallel` and says
what must come back. A sequential function that the file leaves out is the parallel one without shardings.
A file is equal, or it is refused for a reason that stands here. Without MGPU_SWEEPS every fifth is run.
"""
import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile

# Files that hold what this version does not read, and what shows that in the text.
OUT = {"fft and complex numbers": r"complex<"}
SHARDING = re.compile(r"sdy\.sharding = #sdy\.sharding(?:_per_value<\[.*?\]>\]>|<@\w+, \[[^\]]*\]>)")


def programs(folder):
    """(name, text) of each file that checks something."""
    if folder:
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                yield name, file.read()
        return
    with tarfile.open(os.path.join(os.environ["MGPU_DATA"], "programs.tar.xz")) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            where, name = os.path.split(member.name)
            if member.isfile() and os.path.basename(where) == "sdy":
                yield name, archive.extractfile(member).read().decode("utf-8")


def function(text, name):
    """The text of a function; None where it is not there."""
    found = re.search(r"^func\.func @" + name + r"\(.*?^}$", text, re.M | re.S)
    return found and found.group(0)


def whole(text):
    """One module of all parts, which comments part, with the sequential functions that are called."""
    text = re.sub(r"//.*", "", text)  # also the marks between parts
    for called in sorted(set(re.findall(r"call @(sequential_\w+)", text))):
        parallel = function(text, called.replace("sequential_", "parallel_"))
        if function(text, called) or not parallel:
            continue
        plain = SHARDING.sub("", parallel).replace("parallel_", "sequential_")
        plain = re.sub(r",\s*}", "}", re.sub(r"{\s*}(?=[\s,)])", "", plain))
        text += "\n" + re.sub(r",\s*(?=})", "", plain) + "\n"
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tune")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--every", type=int, default=1 if os.environ.get("MGPU_SWEEPS") else 5)
    options = parser.parse_args()
    if not options.folder and not os.path.exists(os.path.join(os.environ.get("MGPU_DATA", ""), "programs.tar.xz")):
        print("skipped: no public programs here; set MGPU_DATA to a folder with programs.tar.xz")
        return 77
    chosen = [each for each in programs(options.folder) if "check.expect" in each[1]][::options.every]
    counts, faults = {"equal": 0, "refused": 0}, 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.mlir")
        for name, text in chosen:
            with open(path, "w", encoding="utf-8") as file:
                file.write(whole(text))
            done = subprocess.run([options.tune, "run", path, "--entry", "main"], capture_output=True, text=True,
                                  check=False, timeout=120, env={**os.environ, "MGPU_DB": os.path.join(folder, "db")})
            why = next((why for why, shown in OUT.items() if re.search(shown, text)), None)
            if done.returncode == 0 and not why:
                counts["equal"] += 1
            elif done.returncode == 5 and why:
                counts["refused"] += 1
                print(f"{name}: refused: {why}")
            else:
                faults += 1
                print(f"{name}: exit {done.returncode}: {done.stderr[-600:]}")
    print(f"{len(chosen)} files: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()) + f", {faults} faults")
    return 1 if faults or not counts["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
