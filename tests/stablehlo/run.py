#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs StableHLO programs that say what their results must be, and counts.

    run.py MGPU_TUNE FOLDER... [--every N] [--jobs N] [--list WORD] [--least SHARE]

A folder may be one of an archive: `programs.tar.xz:stablehlo_testdata`. Without folders it is those of
$MGPU_DATA/programs.tar.xz, and with MGPU_SWEEPS set each program of them. A file may hold several programs, split by `// -----`, and a program several functions
without arguments, each an entry. A program is in scope if it is static and has no types
and operations that mgpu leaves out by decision (OUT); the table says of those in scope how
many are equal, differ, or are refused, by kind of operation and by reason.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor

# Why a program is out of scope, and what shows it in the text without constants.
OUT = [
    ("switched off by its authors", r"DISABLED"),
    ("complex numbers", r"complex<|stablehlo\.(real|imag|complex)\b"),
    ("quantised numbers", r"!quant|uniform_(de)?quantize"),
    ("dynamic shapes", r"<[^<>]*\?|stablehlo\.(dynamic_(broadcast|iota|reshape|pad|gather|conv)|real_dynamic|"
                       r"set_dimension)"),
    ("tokens and tuples", r"!stablehlo\.token|tuple<|stablehlo\.(after_all|infeed|outfeed|send|recv)"),
    ("fft", r"stablehlo\.fft"),
    ("probes", r"interpreter\.probe|expect_serialized"),
]
CHECKS = re.compile(r"check\.\w+")


def bare(text):
    """The text without constants and strings, whose contents mean nothing here."""
    text = re.sub(r'dense<"[^"]*">', "dense<>", text)
    return re.sub(r"//.*", lambda m: m.group() if "DISABLED" in m.group() else "", text)


def entries(text):
    """The functions to run: those without arguments that check something, `main` alone if there is one."""
    found = re.findall(r"func\.func\s+(?:public\s+|private\s+)?@([\w.$-]+)\(\)", text)
    if "main" in found:
        return ["main"]
    parts = re.split(r"(?=func\.func\s)", text)
    return [name for name in found
            if any(re.match(r"func\.func\s+(?:\w+\s+)?@" + re.escape(name) + r"\(", part) and CHECKS.search(part)
                   for part in parts)]


def files(folder):
    """(name, text) of the programs in a folder or in a folder of an archive."""
    archive, _, inner = folder.partition(".tar.xz:")
    if not inner:
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                yield name, file.read()
        return
    with tarfile.open(archive + ".tar.xz") as file:
        for member in file:
            where, name = os.path.split(member.name)
            if member.isfile() and os.path.basename(where) == inner:
                yield name, file.extractfile(member).read().decode("utf-8", "replace")


def programs(folders, every):
    """(name, text, entry, why it is out of scope) of all programs."""
    count = 0
    for folder in folders:
        for name, text in sorted(files(folder)):
            if not name.endswith(".mlir"):
                continue
            for k, part in enumerate(re.split(r"(?m)^// -----.*$", text)):
                plain = bare(part)
                why = next((word for word, pattern in OUT if re.search(pattern, plain)), None)
                found = entries(plain)
                if not found and "func.func" in plain:
                    found, why = ["main"], why or "nothing to check"
                for entry in found:
                    count += 1
                    if (count - 1) % every == 0:
                        yield (name if k == 0 else f"{name}#{k}", part, entry, why, plain)


def kind_of(plain):
    """What the program is about: its rarest operations say it best."""
    ops = re.findall(r"\b(?:stablehlo|chlo)\.([a-z_0-9]+)", plain)
    for word in ("scatter", "select_and_scatter", "sort", "reduce_window", "while", "gather", "convolution",
                 "dot_general", "dot", "dynamic_update_slice", "dynamic_slice", "reduce", "pad", "concatenate"):
        if word in ops:
            return word
    rest = [op for op in ops if op not in ("constant", "custom_call", "return", "broadcast_in_dim", "reshape")]
    return rest[0] if rest else "movement"


def reason_of(text):
    """The error without what is particular to the program."""
    lines = [line for line in text.splitlines() if "error:" in line]
    line = (lines or text.strip().splitlines() or ["no words"])[0]
    line = re.sub(r"^.*?error: ", "", line)
    line = re.sub(r"tensor<[^ ]*>|memref<[^ ]*>", "TYPE", line)
    return re.sub(r"[0-9]+", "N", line)[:150]


def run_one(tune, folder, number, program):
    name, text, entry, _, _ = program
    path = os.path.join(folder, f"{number}.mlir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        done = subprocess.run([tune, "run", path, "--entry", entry], capture_output=True, text=True, errors="replace",
                              timeout=300, check=False, env={**os.environ, "MGPU_DB": os.path.join(folder, "db")})
        code, words = done.returncode, done.stderr
    except subprocess.TimeoutExpired:
        code, words = 124, "error: longer than 300 s"
    os.unlink(path)
    return code, words


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tune")
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--every", type=int, default=1, help="each N-th program alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", help="print the programs with this outcome: differ, refused, equal, out")
    parser.add_argument("--match", default="", help="programs whose name has this")
    parser.add_argument("--least", type=float, default=0, help="fail where a smaller share of those in scope is equal")
    options = parser.parse_args()
    archive = os.path.join(os.environ.get("MGPU_DATA", ""), "programs.tar.xz")
    wanted = options.folders or [f"{archive}:stablehlo_testdata", f"{archive}:stablehlo_interpret"]
    folders = [folder for folder in wanted if os.path.exists(folder.replace(".tar.xz:", ".tar.xz//").split("//")[0])]
    if not folders:
        print("skipped: no public programs here; set MGPU_DATA to a folder with programs.tar.xz")
        return 77
    if os.environ.get("MGPU_SWEEPS"):
        options.every = 1
    every = [p for p in programs(folders, options.every) if options.match in p[0]]
    inside = [p for p in every if p[3] is None]
    table = collections.defaultdict(collections.Counter)
    reasons = collections.Counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda item: run_one(options.tune, folder, *item), enumerate(inside))
        for program, (code, words) in zip(inside, outcomes):
            outcome = {0: "equal", 1: "differ", 5: "refused"}.get(code, "failed")
            if outcome == "differ" and "as the program expects" not in words:
                outcome = "failed"
            table[kind_of(program[4])][outcome] += 1
            if outcome != "equal":
                reasons[(outcome, reason_of(words) if outcome != "differ" else "numbers differ")] += 1
            if options.list == outcome:
                print(f"{program[0]} @{program[2]}: {' '.join(words.split())[:600]}")
    out = collections.Counter(p[3] for p in every if p[3])
    total = sum(table.values(), collections.Counter())
    print(f"{'operation':22}{'equal':>8}{'differ':>8}{'refused':>8}{'failed':>8}")
    for kind, row in [*sorted(table.items(), key=lambda item: -sum(item[1].values())), ("all in scope", total)]:
        print(f"{kind:22}{row['equal']:8}{row['differ']:8}{row['refused']:8}{row['failed']:8}")
    for (outcome, reason), count in reasons.most_common():
        print(f"{count:5} {outcome}: {reason}")
    print("out of scope: " + ", ".join(f"{count} {why}" for why, count in out.most_common()))
    share = total["equal"] / max(1, sum(total.values()))
    print(f"equal: {total['equal']} of {sum(total.values())} in scope ({100 * share:.1f} %)")
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
