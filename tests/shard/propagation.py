#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts that are found for Shardy's tests of propagation move no more bytes than Shardy's own.

Each function of a public test file is planned twice: as it is, and with the shardings that the file
expects asked for at each argument, result and operation. What `check --sharding-report` says of bytes
is compared. Functions that mgpu refuses or does not parse, or whose expectation it does, are counted.

Usage: propagation.py MGPU_TUNE [FOLDER]   (FOLDER holds the files, else $MGPU_DATA/programs.tar.xz)
"""
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

FILES = ["aggressive_propagation.mlir", "sharding_group_propagation.mlir",
         "basic_propagation_data_flow_edges.mlir", "op_sharding_rule_registry_conservative.mlir",
         "propagation_pipeline_dedup_functions_fully_true.mlir"]
SHARDING = re.compile(r"#sdy\.sharding_per_value<\[<(@\w+, \[.*?\](?:, replicated=\{[^}]*\})?)>\]>")
EDGE = re.compile(r"sdy\.(?:func_)?data_flow_edge \S+ sharding=<(@\w+, \[.*?\])>")
OP = re.compile(r"\b(?:(?:stablehlo|sdy|chlo)\.\w+|call)\b")


def folder_of(arguments, temporary):
    """Where the files are, or None."""
    if len(arguments) > 2:
        return arguments[2]
    archive = os.path.join(os.environ.get("MGPU_DATA", ""), "programs.tar.xz")
    if not os.path.exists(archive):
        return None
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if "/sdy/" in member.name and os.path.basename(member.name) in FILES:
                member.name = os.path.basename(member.name)
                tar.extract(member, temporary)
    return temporary


def closed(sharding):
    return sharding.replace(", ?", "").replace("?", "")


def functions(section):
    """(the module's other lines, [(name, what the file expects, the function)]) of a section."""
    others, found, expected, lines = [], [], [], iter(section.splitlines())
    for line in lines:
        if re.match(r"\s*//", line):
            match = re.match(r"\s*//\s*CHECK(?:-\w+)?:(.*)", line)
            if match:
                expected = [] if "CHECK-LABEL" in line else expected
                expected.append(match.group(1).strip())
            continue
        match = re.match(r"func\.func (?:public )?@(\w+)", line)
        if not match: # a private function is part of those that call it
            others.append(line)
            continue
        body = [line]
        for more in lines:
            check = re.match(r"\s*//\s*CHECK(?:-\w+)?:(.*)", more)
            if check:
                expected.append(check.group(1).strip())
            elif not re.match(r"\s*//", more):
                body.append(more)
            if more == "}":
                break
        found.append((match.group(1), expected, body))
        expected = []
    return others, found


def asked(expected, body):
    """The function with what is expected asked for; None where this text is not read."""
    text = " ".join(expected)
    # What is checked stands before the operation that it is of.
    here = "\n".join(body)
    head = re.match(r"func\.func .*?(?<=[)>]) \{\n", here, re.S) or re.match(r"func\.func .*?\) *\{\n", here, re.S)
    if not head:
        return None
    new_head = head.group(0)
    for name, sharding in re.findall(r"(%arg\d+): tensor<[^>]*> \{[^{}]*?sdy\.sharding = #sdy\.sharding<(@\w+, \[.*?\])>", text):
        pattern = re.compile(re.escape(name) + r"(: tensor<[^>]*>)(?: \{sdy\.sharding = #sdy\.sharding<@\w+, \[.*?\]>\})?")
        value = closed(sharding)
        new_head = pattern.sub(lambda m: f"{name}{m.group(1)} {{sdy.sharding = #sdy.sharding<{value}>}}", new_head, 1)
    wanted = []
    for piece in re.split(r"(?=\b(?!sdy\.sharding )(?:stablehlo|sdy|chlo)\.\w+ |\bcall @)", text):
        op = OP.match(piece)
        if op:
            sharding = SHARDING.search(piece) or EDGE.match(piece)
            wanted.append((op.group(0), sharding and closed(sharding.group(1))))
    out, renamed, statement = [], set(), ""
    for line in here[head.end():].splitlines():
        statement += line + "\n"
        opens = re.search(r"[{(]\s*$", line)
        if not opens and (not re.search(r"(: .*|-> .*|return.*|\}|group_id ?= ?\d+.*)$", line) or line.rstrip().endswith(":")):
            continue
        match = re.match(r"\s*%(\w+) = \"?([\w.]+)", statement)
        for name in renamed:
            statement = re.sub(rf"%{name}\b(?! =)", f"%asked_{name}", statement)
        out.append(statement)
        result = re.findall(r"(tensor<[^>]*>)\s*$", statement)
        statement = ""
        if not match:
            continue
        renamed.discard(match.group(1))  # another value of that name, in another region
        at = next((k for k, (op, _) in enumerate(wanted) if op == match.group(2)), None)
        if at is None:
            continue
        sharding = wanted[at][1]
        del wanted[:at + 1]
        if sharding and result and not opens and result[0].count("x"):
            name = match.group(1)
            out.append(f"  %asked_{name} = sdy.sharding_constraint %{name} <{sharding}> : {result[0]}\n")
            renamed.add(name)
    return new_head + "".join(out) + statement


def bytes_of(tune, folder, name, text):
    """Bytes that devices receive; the exit code where that is not 0."""
    path = os.path.join(folder, "program.mlir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([tune, "check", path, "--entry", name, "--sharding-report", "--json"],
                          capture_output=True, text=True, check=False, timeout=60)
    if "is not a valid program" in done.stderr:  # it does not parse, as attributes and operations of Shardy's passes
        return None, 5, done.stderr
    if done.returncode:
        return None, done.returncode, done.stderr
    lines = json.loads(done.stdout).get("sharding", [])
    return sum(int(n) for line in lines for n in re.findall(r": (\d+) bytes to each device", line)), 0, lines


def main():
    tune = sys.argv[1]
    verbose = os.environ.get("MGPU_VERBOSE")
    with tempfile.TemporaryDirectory() as temporary:
        folder = folder_of(sys.argv, temporary)
        if not folder:
            print("skipped: no public programs here; set MGPU_DATA to a folder with programs.tar.xz")
            return 0
        faults = compared = 0
        for file in FILES:
            with open(os.path.join(folder, file), encoding="utf-8") as opened:
                sections = opened.read().split("// -----")
            counts = {"equal": 0, "fewer": 0, "more": 0, "refused": 0, "not read": 0}
            for section in sections:
                others, found = functions(section)
                for name, expected, body in found:
                    module = "\n".join(others)
                    rest = "\n".join("\n".join(b) for n, _, b in found if n != name)
                    own, code, why = bytes_of(tune, temporary, name, module + rest + "\n" + "\n".join(body))
                    if code not in (0, 5):
                        faults += 1
                        print(f"{file}: {name}: exit {code}: {why}")
                        continue
                    if code == 5:
                        counts["refused"] += 1
                        if verbose:
                            print(f"{file}: {name}: {why}")
                        continue
                    text = asked(expected, body)
                    theirs, code, why = (None, -1, "not read") if text is None else \
                        bytes_of(tune, temporary, name, module + rest + "\n" + text)
                    if code:
                        counts["not read"] += 1
                        if verbose:
                            print(f"{file}: {name}: expectation: {why}\n{text}")
                        continue
                    compared += 1
                    kind = "equal" if own == theirs else "fewer" if own < theirs else "more"
                    counts[kind] += 1
                    if kind == "more" or verbose:
                        print(f"{file}: {name}: {own} bytes, {theirs} as Shardy's test expects")
                    faults += kind == "more"
            print(f"{file}: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
        print(f"{compared} functions compared, {faults} faults")
        return 1 if faults or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
