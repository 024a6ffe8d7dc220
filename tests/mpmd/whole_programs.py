# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the functions of mpmd programs that are whole, against their flattened form."""

import collections
import os
import re
import subprocess
import tempfile

# What the user would have to say otherwise: names of results, and that an argument is not kept.
KEPT = re.compile(r"(tf\.aliasing_output|jax\.buffer_donor)\s*=")
# A function gives what its flattened form gives, or says what it has that cannot run, or is refused as upstream.
EXPECTED = re.compile(r"equal$|run; gives nothing$|not run: |exit 5: |exit 1, as Shardy refuses it: ")
FUNCTION = re.compile(r"func\.func\s+(public\s+|private\s+)?@([\w.]+)\s*\(")


class Entry:
    """A function that may be run. `meshes` are those of its topology."""

    def __init__(self, program, match, end):
        self.name = match.group(2)
        self.is_private = (match.group(1) or "").strip() == "private"
        at, depth = match.end(), 1
        while depth and at < len(program):
            depth += {"(": 1, ")": -1}.get(program[at], 0)
            at += 1
        head = re.split(r"\n\s*(?:%|//|return|func\.|mpmd\.|stablehlo\.|\})", program[at:end])[0]
        said = re.search(r"topology\"?\s*=\s*(#[\w]+\b(?!\.))?", head)
        alias = said and said.group(1) and re.search(re.escape(said.group(1)) + r"\s*=(.*)", program)
        topology = alias.group(1) if alias else head if said else ""
        self.meshes = re.findall(r'<\s*"([\w./]+)"\s*:', topology)
        before = max(program.rfind("\n}", 0, match.start()), 0)  # comments above it are about it
        self.is_refused = "expected-error" in program[before:end]
        self.is_body = "mesh_shape" in head
        self.is_called = bool(re.search(r"call @%s\b" % re.escape(self.name), program))

    def why_not(self):
        """Why it is no whole program; empty if it is one."""
        if self.is_body:
            return "a fragment's body"
        if self.is_private and self.is_called:
            return "a part of another function"
        return "" if self.meshes else "no topology"

    def made_public(self, program):
        return re.sub(r"func\.func\s+private\s+@%s\s*\(" % re.escape(self.name), f"func.func @{self.name}(", program)


def entries(program):
    found = list(FUNCTION.finditer(program))
    ends = [match.start() for match in found[1:]] + [len(program)]
    return [Entry(program, match, end) for match, end in zip(found, ends)]


def reason(text):
    """The first error, without places and names."""
    match = re.search(r"error: (.*)", text)
    return re.sub(r"'[^']*'", "'..'", match.group(1) if match else text[:100])[:110]


class Runs:
    """Runs every `share`-th function, and counts by file what came of each."""

    def __init__(self, opt, tune, share):
        self.opt, self.tune, self.share = opt, tune, share
        self.seen = 0
        self.rows = collections.defaultdict(collections.Counter)
        self.faults = []

    def write(self, folder, name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run(self, folder, path, entry, words, results):
        """The exit code, and what the results are or why there are none."""
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

    def run_assigned(self, folder, path, entry, assigned, words, results):
        """With the meshes that the file says; where that leaves a computation without one, it gets the first."""
        while True:
            meshes = [word for name, mesh in assigned.items() for word in ("--assign", f"{name}={mesh}")]
            code, made = self.run(folder, path, entry.name, meshes + words, results)
            open_name = code and re.search(r"say one with --assign ([\w.]+)=MESH", made)
            if not open_name or open_name.group(1) in assigned:
                return code, made
            assigned = {**assigned, open_name.group(1): entry.meshes[0]}

    def compare(self, name, number, program, assigned):
        for entry in entries(program):
            if entry.why_not():
                self.rows[name][f"not run: {entry.why_not()}"] += 1
                continue
            self.seen += 1
            if self.seen % self.share == 0:
                why = self.compare_one(program, entry, assigned)
                self.rows[name][why] += 1
                if not EXPECTED.match(why):
                    self.faults.append(f"{name} {number} @{entry.name}: {why}")

    def compare_one(self, program, entry, assigned):
        program = KEPT.sub("test.not_kept =", entry.made_public(program))
        with tempfile.TemporaryDirectory() as folder:
            path = self.write(folder, "program.mlir", program)
            passes = "builtin.module(inline,mpmd-expand{entry=%s},mpmd-flatten{entry=%s})" % (entry.name, entry.name)
            flat = subprocess.run([self.opt, path, f"--pass-pipeline={passes}"], capture_output=True, text=True,
                                  errors="replace", timeout=60)
            if flat.returncode:
                return "not run: no flattened form: " + reason(flat.stderr)
            head = re.search(r"func\.func (?:public )?@%s\((.*)" % re.escape(entry.name), flat.stdout)
            given = head.group(1).split(") -> ")
            results = len(re.findall(r"tensor<", given[1])) if len(given) > 1 else 0
            names = set(re.findall(r'(?:named_computation<|name=)"([\w.]+)"', program))
            here = {name: mesh for name, mesh in assigned.items() if name in names and mesh in entry.meshes}
            count = len(re.findall(r"%\w+:", given[0]))
            values = [word for k in range(count) for word in ("--arg", f"{k}=random:{k + 1}")]
            code, ours = self.run_assigned(folder, path, entry, here, values, results)
            if code:
                shardy = ", as Shardy refuses it" if entry.is_refused else ""
                return f"exit {code}{shardy}: " + reason(ours)
            if not results:
                return "run; gives nothing"
            code, plain = self.run(folder, self.write(folder, "flat.mlir", flat.stdout), entry.name, values, results)
            if code:
                return f"flattened form, exit {code}: " + reason(plain)
            return "equal" if ours == plain else "differs from its flattened form"
