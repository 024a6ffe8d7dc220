#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads Shardy's own mpmd programs, compares the verdict on each, and runs those that are whole.

    files.py MGPU_OPT MGPU_TUNE [--mutants N] [--seed N] [--run SHARE]

The programs are the files of `mpmd/` in $MGPU_DATA/programs.tar.xz. A file may hold several,
split by `// -----`. Those that Shardy reads without a pass and expects an error of must be
refused by us; all others must be read, and be the same after they are written and read again.
Mutants of them may be refused, and must not crash the command.

A public function with a topology, arguments and results is run on the host, and equals its flattened
form (mpmd-flatten). Which mesh a name is on is what the file's RUN line says, else the first one. What
is not run is counted by its reason. Without MGPU_SWEEPS every SHARE-th function is run.
"""

import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile

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


def entries(text):
    """(name, meshes) of each public function with a topology."""
    for match in re.finditer(r"func\.func\s+(public\s+|private\s+)?@([\w.]+)\s*\(", text):
        if (match.group(1) or "").strip() == "private":
            continue
        at, depth = match.end(), 1
        while depth and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        head = re.split(r"\n\s*(?:%|//|return|func\.|mpmd\.|stablehlo\.|\})", text[at:])[0]
        if "topology" not in head:
            continue
        topology = head if "#topology" not in head else re.search(r"#topology\s*=(.*)", text).group(1)
        meshes = re.findall(r'<\s*"([\w./]+)"\s*:', topology)
        yield match.group(2), meshes


# What the user would have to say otherwise: names of results, and that an argument is not kept.
PRIVATE = re.compile(r"(tf\.aliasing_output|jax\.buffer_donor)\s*=")


class Runs:
    """Runs whole programs, and counts why others are not run."""

    def __init__(self, opt, tune, share):
        self.opt, self.tune, self.share = opt, tune, share
        self.seen = 0
        self.rows = collections.defaultdict(collections.Counter)
        self.faults = []

    def file(self, folder, name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run(self, folder, path, entry, words, results):
        """What the results are, or why there are none."""
        outs = [os.path.join(folder, f"r{k}.npy") for k in range(results)]
        for k, out in enumerate(outs):
            words = words + ["--out", f"r{k}={out}"]
        done = subprocess.run([self.tune, "run", path, "--entry", entry, *words], capture_output=True, text=True,
                              errors="replace", timeout=120)
        if done.returncode:
            return done.returncode, done.stderr
        values = []
        for out in outs:
            with open(out, "rb") as file:
                values.append(file.read())
            os.remove(out)
        return 0, values

    def compare(self, name, number, text, assigned):
        for entry, meshes in entries(text):
            self.seen += 1
            if self.seen % self.share == 0:
                why = self.compare_one(text, entry, meshes, assigned)
                self.rows[name][why] += 1
                if why.startswith("differs"):
                    self.faults.append(f"{name} {number} @{entry}: {why}")

    def compare_one(self, text, entry, meshes, assigned):
        text = PRIVATE.sub("test.not_kept =", text)
        with tempfile.TemporaryDirectory() as folder:
            path = self.file(folder, "program.mlir", text)
            flat = subprocess.run([self.opt, path, "--pass-pipeline=builtin.module(inline,mpmd-expand{entry=%s},mpmd-flatten{entry=%s})"
                                   % (entry, entry)], capture_output=True, text=True, errors="replace", timeout=60)
            if flat.returncode:
                return "no flattened form: " + reason(flat.stderr)
            head = re.search(r"func\.func (?:public )?@%s\((.*)" % re.escape(entry), flat.stdout)
            given = head.group(1).split(") -> ")
            results = len(re.findall(r"tensor<", given[1])) if len(given) > 1 else 0
            if not results:
                return "gives nothing"
            names = sorted(set(re.findall(r'named_computation<"([\w.]+)"|named_tensor .*name="([\w.]+)"', text)))
            words = []
            for word in sorted({pair[0] or pair[1] for pair in names}):
                mesh = assigned.get(word)
                words += ["--assign", f"{word}={mesh if mesh in meshes else meshes[0]}"]
            values = [word for k in range(len(re.findall(r"%\w+:", given[0]))) for word in ("--arg", f"{k}=random:{k + 1}")]
            code, ours = self.run(folder, path, entry, words + values, results)
            if code:
                return f"exit {code}: " + reason(ours)
            code, plain = self.run(folder, self.file(folder, "flat.mlir", flat.stdout), entry, values, results)
            if code:
                return f"flattened form, exit {code}: " + reason(plain)
            return "equal" if ours == plain else "differs from its flattened form"


def reason(text):
    """The first error, without places and names."""
    match = re.search(r"error: (.*)", text)
    return re.sub(r"'[^']*'", "'..'", match.group(1) if match else text[:100])[:110]


def read(command, text, *options):
    return subprocess.run([command, *options], input=text, capture_output=True, text=True, errors="replace", timeout=60)


def crashed(result):
    return result.returncode not in (0, 1)


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
    parser.add_argument("--run", type=int, default=1 if os.environ.get("MGPU_SWEEPS") else 25)
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
    for name, number, text, flags, refused, assigned in programs(path):
        texts.append(text)
        # Also written and read again, as text and as bytecode: a program that changes is refused.
        result = read(options.command, text, *flags, "--verify-roundtrip")
        ours = result.returncode != 0
        why = OTHER.get((name, number))
        table[name]["refused" if ours else "read"] += 1
        if (ours != refused) != bool(why) or crashed(result):
            faults.append(f"{name} {number}: Shardy {'refuses' if refused else 'reads'} it: {result.stderr[:400]}")
        elif why:
            table[name][f"not as Shardy: {why}"] += 1
        if not ours:
            runs.compare(name, number, text, assigned)
    for name, row in table.items():
        print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in row.items()))
        for why, count in runs.rows[name].most_common():
            print(f"    {count} run: {why}")
    total = sum(runs.rows.values(), collections.Counter())
    print(f"{runs.seen} functions with meshes, {total.total()} tried, {total['equal']} equal their flattened form")
    faults += runs.faults
    rng = random.Random(options.seed)
    kinds = collections.Counter()
    for k in range(options.mutants):
        changed = mutant(rng, rng.choice(texts), texts)
        result = read(options.command, changed, "--allow-unregistered-dialect")
        kinds["refused" if result.returncode else "read"] += 1
        if crashed(result):
            with open(f"mutant-{options.seed}-{k}.mlir", "w", encoding="utf-8") as file:
                file.write(changed)
            faults.append(f"mutant-{options.seed}-{k}.mlir: exit code {result.returncode}")
    print(f"{len(table)} files, {len(texts)} programs; {options.mutants} mutants: {dict(kinds)}")
    print("\n".join(faults) or "all as expected")
    return 1 if faults or len(table) == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
