#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks every #include against the layering table; each arrow against it is an error."""

import os
import re
import subprocess
import sys

# Folder -> the folders of ours it may include, beside itself and support.
# The longest matching prefix decides; a folder without an entry is an error.
OURS = {
    "support": [],
    "device/api": [],
    "device/host": ["device/api"],
    "device/cuda": ["device/api"],
    "db": ["device/api"],
    "dialect": ["dialect"],
    "planner/dag": [],
    "planner/cost": ["planner/dag", "device/api"],
    "planner/plan": ["planner/dag"],
    "planner/schedule": ["planner/dag", "planner/plan", "planner/cost"],
    "planner/import": ["dialect", "planner/dag"],
    "kernels/emit": ["dialect", "planner/dag"],
    "kernels/compile": ["planner/dag", "device/api"],
    "capture/graph": ["planner/dag", "planner/plan", "kernels/compile", "device/api"],
    "capture/replay": ["capture/graph", "planner/dag", "planner/plan", "kernels/compile", "device/api", "db"],
    "capture/c": ["capture/replay", "capture/graph", "planner/dag", "planner/plan", "kernels/compile", "device"],
    "bench/measure": ["capture", "device/api"],
    "bench/report": ["bench/measure", "db"],
    "tuner": ["tuner", "planner/dag", "planner/plan", "planner/cost", "planner/schedule",
              "kernels/compile", "capture", "bench/measure", "device/api", "db"],
    "bench/suites": ["*"],
    "tools": ["*"],
    "tests": ["*"],
    "examples": ["*"],
    "cmake": [],
}
# System header (regular expression) -> the folders that may include it.
MLIR = ["dialect", "planner/import", "kernels/emit", "tools/mgpu-opt", "tools/mgpu-lsp-server",
        "tools/mgpu-tune", "tests", "bench/suites", "cmake"]
OTHERS = {
    r"sqlite3\.h": ["db", "tests/unit/db"],
    r"nvrtc\.h": ["kernels/compile"],
    r"(cuda|cudaTypedefs|cuda_runtime|cuda_runtime_api|nccl|cupti.*)\.h": ["device/cuda"],
    r"(mlir|mlir-c|llvm|llvm-c|lld|clang)/.*": MLIR,
    r"gtest/.*|gmock/.*": ["tests", "cmake"],
    r"benchmark/.*": ["bench/suites"],
    r"CLI/.*": ["tools", "bench/suites"],
}
# device/host/HostKernelAbi.h is the contract between emitted code and the host
# backend: plain C, included by the emitter so that the two cannot differ.
FILES = {"device/host/HostKernelAbi.h": ["kernels/emit"]}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)
SUFFIXES = (".h", ".cpp", ".c", ".inc")


def under(path, folders):
    return any(f == "*" or path == f or path.startswith(f + "/") for f in folders)


def folder_of(path):
    parts = path.split("/")[:-1]
    while parts:
        if "/".join(parts) in OURS:
            return "/".join(parts)
        parts.pop()
    return None


def check(path, text, tracked):
    """The faults of one file, as sentences."""
    source = folder_of(path)
    if source is None:
        return [f"{path}: its folder is not in the table of {os.path.basename(__file__)}"]
    faults = []
    for match in INCLUDE.finditer(text):
        name = match.group(1) or match.group(2)
        line = text.count("\n", 0, match.start()) + 1
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        target = beside if match.group(1) and beside in tracked else name
        owner = folder_of(target) if "/" in target else None
        if target in FILES and under(path, FILES[target]):
            continue
        if owner is not None:
            if owner not in (source, "support") and not under(owner, OURS[source]):
                faults.append(f"{path}:{line}: {source} may not include {target}")
            continue
        for pattern, folders in OTHERS.items():
            if re.fullmatch(pattern, name) and not under(path, folders):
                faults.append(f"{path}:{line}: only {', '.join(folders)} may include <{name}>")
    return faults


def self_test():
    """The checker must find what it is for; a checker that finds nothing passes everything."""
    tracked = {"planner/dag/Dag.h", "db/Database.h"}
    bad = [("planner/dag/X.cpp", '#include "db/Database.h"\n'),
           ("planner/dag/X.cpp", "#include <sqlite3.h>\n"),
           ("capture/graph/X.cpp", '#include "mlir/IR/Builders.h"\n'),
           ("support/X.h", '# include "planner/dag/Dag.h"\n'),
           ("device/api/X.h", '#include "../../db/Database.h"\n'),
           ("tools/mgpu-tune/X.cpp", "#include <nvrtc.h>\n"),
           ("novel/X.cpp", "\n")]
    good = [("planner/plan/X.cpp", '#include "planner/dag/Dag.h"\n#include <vector>\n'),
            ("db/X.cpp", "#include <sqlite3.h>\n"),
            ("kernels/emit/X.cpp", '#include "mlir/IR/Builders.h"\n'),
            ("tests/unit/X.cpp", '#include "db/Database.h"\n')]
    for path, text in bad:
        assert check(path, text, tracked), (path, text)
    for path, text in good:
        assert not check(path, text, tracked), (path, text)


def main():
    self_test()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             check=True, capture_output=True, text=True).stdout
    files = [f for f in listing.split("\0") if f.endswith(SUFFIXES) and os.path.isfile(f)]
    if not files:
        sys.exit("no source file found")
    tracked = set(files)
    faults = []
    for path in files:
        with open(path, encoding="utf-8") as file:
            faults += check(path, file.read(), tracked)
    print("\n".join(faults) if faults else f"{len(files)} files keep to the layers")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
