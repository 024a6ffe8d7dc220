#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads Shardy's own mpmd programs, compares the verdict on each, and runs those that are whole.

    files.py MGPU_OPT MGPU_TUNE [--mutants N] [--seed N] [--run SHARE]

The programs are the files of `mpmd/` in $MGPU_DATA/programs.tar.xz. A file may hold several,
split by `// -----`. Those that Shardy reads without a pass and expects an error of must be
refused by us; all others must be read, and be the same after they are written and read again.
Mutants of them may be refused, and must not crash the command.

A function with a topology is run on the host, and equals its flattened form (mpmd-flatten). Which mesh a
name is on is what the file's RUN line says; what that leaves open is on the first one. What is not run is
counted by its reason. Without MGPU_SWEEPS every SHARE-th function is run.
"""

import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tarfile

from whole_programs import Runs

# Where our verdict is another one, by file and program: why.
OTHER = {
    ("infer_mesh_pipeline_call_op_failures.mlir", 0): "a call gives one value to a callee of two arguments",
}
# Options of Shardy's command that are not passes.
PLAIN = re.compile(r"-?-(split-input-file|verify-diagnostics|allow-unregistered-dialect)?")
SPLIT = re.compile(r"(?m)^// -----.*$")


def programs(path):
    """(file, number, text, options of the command, whether Shardy refuses it) of each program."""
    with tarfile.open(path) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            folder, name = os.path.split(member.name)
            if not member.isfile() or os.path.basename(folder) != "mpmd":
                continue
            text = archive.extractfile(member).read().decode("utf-8", "replace")
            line = re.search(r"RUN: *mpmd_opt +%s(.*)", text)
            words = re.sub(r"2>&1|\|.*", "", line.group(1)).split() if line else []
            plain = all(PLAIN.fullmatch(word) for word in words)
            parts = SPLIT.split(text) if any("split-input-file" in word for word in words) else [text]
            options = ["--allow-unregistered-dialect"] if "--allow-unregistered-dialect" in words else []
            for number, part in enumerate(parts):
                meshes = re.findall(r"([\w.]+)@([\w.]+)", " ".join(re.findall(r"assignment=(\S+)", line.group(1))) if line else "")
                yield name, number, part, options, plain and "expected-error" in part, dict(meshes)


def read(command, text, *options):
    return subprocess.run([command, *options], input=text, capture_output=True, text=True, errors="replace", timeout=600)


def crashed(result):
    return result.returncode not in (0, 1)


def all_read(command, texts, *options):
    """Whether one process reads them all, so that none needs a process of its own."""
    return read(command, "\n// -----\n".join(texts), *options, "--split-input-file").returncode == 0


def crashing(command, texts):
    """The texts at which the command crashes: one process reads many, and halves of those where it does."""
    if not texts or not crashed(read(command, "\n// -----\n".join(texts), "--allow-unregistered-dialect", "--split-input-file")):
        return []
    middle = len(texts) // 2
    return crashing(command, texts[:middle]) + crashing(command, texts[middle:]) if middle else texts


def mutant(random, text, pool):
    """One to three changes: a stretch is cut, doubled, or taken from another program; or one word for another."""
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(text) + 1)
        end = min(len(text), at + random.choice([1, 3, 10, 80]))
        words = [match.span() for match in re.finditer(r"[\w.@%#!]+", text)]
        kind = random.randrange(4)
        if kind == 3 and len(words) > 1:
            (at, end), (other, stop) = random.sample(words, 2)
            text = text[:at] + text[other:stop] + text[end:]
            continue
        source = random.choice(pool)
        begin = random.randrange(len(source) + 1)
        piece = ["", text[at:end] * 2, source[begin:begin + random.choice([1, 5, 40])], ""][kind]
        text = text[:at] + piece + text[end:]
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("tune")
    parser.add_argument("--run", type=int, default=1 if os.environ.get("MGPU_SWEEPS") else 10)
    parser.add_argument("--mutants", type=int, default=2000 if os.environ.get("MGPU_SWEEPS") else 100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    path = os.path.join(os.environ.get("MGPU_DATA", ""), "programs.tar.xz")
    if not os.path.exists(path):
        print("skipped: set MGPU_DATA to a folder with programs.tar.xz")
        return 77
    faults = []
    table = collections.defaultdict(collections.Counter)
    texts = []
    runs = Runs(options.command, options.tune, options.run)
    every = list(programs(path))
    # Also written and read again, as text and as bytecode: a program that changes is refused.
    whole = {kind for kind in ((), ("--allow-unregistered-dialect",))
             if all_read(options.command, [text for name, number, text, flags, refused, _ in every if tuple(flags) == kind and not refused
                                           and (name, number) not in OTHER], *kind, "--verify-roundtrip")}
    for name, number, text, flags, refused, assigned in every:
        texts.append(text)
        why = OTHER.get((name, number))
        known = tuple(flags) in whole and not refused and not why
        result = None if known else read(options.command, text, *flags, "--verify-roundtrip")
        ours = not known and result.returncode != 0
        table[name]["refused" if ours else "read"] += 1
        if not known and ((ours != refused) != bool(why) or crashed(result)):
            faults.append(f"{name} {number}: Shardy {'refuses' if refused else 'reads'} it: {result.stderr[:400]}")
        elif why:
            table[name][f"not as Shardy: {why}"] += 1
        if not ours:
            runs.compare(name, number, text, assigned)
    for name, row in table.items():
        print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in row.items()))
        for why, count in runs.rows[name].most_common():
            print(f"    {count} {why}")
    total = sum(runs.rows.values(), collections.Counter())
    tried = {why: count for why, count in total.items() if not why.startswith("not run")}
    print(f"{runs.seen} functions with meshes, {sum(tried.values())} tried, {total['equal']} equal their flattened form")
    for why, count in total.most_common():
        print(f"    {count} {why}")
    faults += runs.faults
    rng = random.Random(options.seed)
    mutants = [mutant(rng, rng.choice(texts), texts) for _ in range(options.mutants)]
    for k, changed in enumerate(crashing(options.command, mutants)):
        with open(f"mutant-{options.seed}-{k}.mlir", "w", encoding="utf-8") as file:
            file.write(changed)
        faults.append(f"mutant-{options.seed}-{k}.mlir: the command crashes")
    print(f"{len(table)} files, {len(texts)} programs; {options.mutants} mutants")
    print("\n".join(faults) or "all as expected")
    return 1 if faults or len(table) == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
