#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks every #include against the layering table, and every namespace against its folder."""

import os
import re
import subprocess
import sys

# Leaf folder -> the folders of ours it may include, beside itself and support.
# A name ending in /* stands for all folders below it. A folder with sources and no row
# is an error, and so is a row without a folder.
PLAN = ["planner/dag", "planner/plan"]
RUNTIME = PLAN + ["kernels/abi", "kernels/space", "kernels/compile", "device/api", "db"]
# A room of pipeline has these and the rooms before it.
STEPS = RUNTIME + ["planner/dagfile", "planner/record", "planner/schedule", "planner/schedule/*", "planner/cost",
                   "device/*", "capture/*", "bench/measure", "tuner/*", "bench/profile"]
OURS = {
    "support": [],
    "kernels/abi": [],
    "kernels/ptx": [],
    "device/api": ["kernels/abi"],
    "device/tcp": ["device/api"],
    "device/mpi": ["device/api"],
    "device/mpi/plugin": ["device/mpi"],
    "device/host": ["device/api", "kernels/abi", "kernels/ptx"],
    "device/cuda/api": ["device/api", "kernels/abi"],
    "device/cuda/nccl": ["device/api", "device/cuda/api"],
    "device/cuda/cupti": ["device/cuda/api"],
    "device/cuda/graph": ["device/api", "kernels/abi", "device/cuda/api", "device/cuda/nccl", "device/cuda/cupti"],
    "device/cuda": ["device/api", "device/cuda/*"],
    "db": ["device/api"],
    "dialect/mgpu": [],
    "dialect/spmd": ["dialect/mgpu"],
    "dialect/sdy": [],
    "dialect/mpmd": ["dialect/sdy"],
    "dialect/stablehlo": [],
    "dialect/vhlo": ["dialect/sdy", "dialect/stablehlo"],
    "dialect/conversion": ["dialect/mgpu", "dialect/mpmd", "dialect/sdy", "dialect/spmd", "dialect/stablehlo"],
    "dialect/conversion/linalg": ["dialect/mgpu", "dialect/conversion"],
    "dialect/conversion/gpu": ["dialect/mgpu", "dialect/conversion"],
    "dialect/conversion/shard": ["dialect/mgpu", "dialect/spmd", "dialect/conversion", "dialect/conversion/spmd"],
    "dialect/conversion/spmd": ["dialect/mgpu", "dialect/spmd", "dialect/conversion"],
    "dialect/conversion/mpmd": ["dialect/mgpu", "dialect/mpmd", "dialect/sdy", "dialect/spmd", "dialect/stablehlo", "dialect/conversion", "dialect/conversion/spmd"],
    "dialect/conversion/sdy": ["dialect/mgpu", "dialect/sdy", "dialect/spmd", "dialect/stablehlo", "dialect/conversion", "dialect/conversion/spmd"],
    "dialect/conversion/stablehlo": ["dialect/mgpu", "dialect/spmd", "dialect/stablehlo", "dialect/conversion", "dialect/conversion/spmd"],
    "planner/dag": [],
    "planner/record": ["planner/dag"],
    "planner/dagfile": ["planner/dag"],
    "facts": ["dialect/mgpu", "planner/dag"],
    "planner/import": ["facts", "dialect/mgpu", "dialect/mpmd", "dialect/sdy", "dialect/conversion", "planner/dag", "planner/record"],
    "planner/cost": ["planner/dag", "device/api"],
    "planner/plan": ["planner/dag"],
    "planner/schedule/problem": ["planner/dag", "planner/cost"],
    "planner/certificate": ["planner/dag", "planner/schedule/problem"],
    "planner/schedule/bound": ["planner/plan", "planner/schedule/problem", "planner/certificate"],
    "planner/schedule/list": PLAN + ["planner/cost", "device/api"],
    "planner/schedule/exact": ["planner/schedule/problem", "planner/certificate"],
    "planner/schedule/search": PLAN + ["planner/certificate", "planner/schedule/problem", "planner/schedule/bound", "planner/schedule/exact"],
    "planner/schedule/alike": PLAN + ["planner/cost", "planner/certificate", "planner/schedule/problem", "planner/schedule/bound",
                                      "planner/schedule/list"],
    "planner/schedule/transform": PLAN + ["planner/schedule/problem", "planner/cost", "device/api"],
    "planner/schedule": PLAN + ["planner/cost", "planner/certificate", "planner/schedule/*", "device/api"],
    "kernels/space": ["planner/dag", "device/api", "kernels/abi"],
    "kernels/lower": ["facts", "dialect/mgpu", "kernels/abi", "kernels/space"],
    "kernels/host": ["facts", "dialect/mgpu", "planner/dag", "kernels/abi", "kernels/space", "kernels/lower"],
    "kernels/cuda": ["facts", "dialect/mgpu", "planner/dag", "kernels/abi", "kernels/space", "kernels/lower"],
    "kernels/compile": ["planner/dag", "device/api", "kernels/abi", "kernels/ptx", "kernels/space"],
    "capture/graph": PLAN + ["kernels/compile", "device/api"],
    "capture/replay": RUNTIME + ["capture/graph"],
    "capture/ranks": RUNTIME + ["capture/graph", "capture/replay"],
    "bench/measure": ["capture/*", "device/api"],
    "bench/profile": PLAN + ["planner/cost", "planner/schedule", "planner/schedule/list", "capture/*", "device/api", "bench/measure"],
    "tuner/space": PLAN + ["planner/cost", "planner/schedule", "planner/schedule/list", "planner/schedule/transform", "kernels/space", "kernels/compile", "device/api", "db"],
    "tuner/strategy": ["tuner/space"],
    "tuner/record": PLAN + ["planner/cost", "planner/schedule", "capture/replay", "db", "bench/measure", "bench/profile", "tuner/space"],
    "tuner/candidate": PLAN + ["kernels/space", "device/api", "capture/replay", "bench/measure", "bench/profile", "tuner/space", "tuner/record"],
    "tuner/session": PLAN + ["planner/schedule", "planner/schedule/list", "db", "bench/measure", "tuner/space", "tuner/strategy",
                             "tuner/record", "tuner/candidate"],
    "tuner/report": ["db", "tuner/space", "tuner/record"],
    "pipeline/torch": [],
    "pipeline/target": STEPS,
    "pipeline/program": STEPS + ["pipeline/torch", "pipeline/target"],
    "pipeline/plan": STEPS + ["pipeline/target", "pipeline/program"],
    "pipeline/build": STEPS + ["pipeline/target", "pipeline/program", "pipeline/plan"],
    "pipeline/serve": STEPS,
    "pipeline/run": STEPS + ["pipeline/target", "pipeline/program", "pipeline/plan", "pipeline/build", "pipeline/serve"],
    "pipeline/tune": STEPS + ["pipeline/target", "pipeline/program", "pipeline/plan", "pipeline/build", "pipeline/run"],
    "pipeline/compiler": PLAN + ["facts", "dialect/*", "kernels/*", "planner/cost", "planner/import", "pipeline/*", "device/api"],
    "pipeline/c": RUNTIME + ["planner/record", "bench/measure", "planner/schedule", "capture/*", "device/*", "pipeline/*"],
    "pipeline/pjrt": ["device/api", "device/host", "device/cuda", "kernels/compile", "pipeline/c", "pipeline/program"],
    "bench/suites": ["*"],
    "bench/suites/cuda": ["*"],
    "bench/suites/mpi": ["*"],
    "tools/options": ["pipeline/*"],
    "tools/mgpu-tune": ["*"],
    "tools/mgpu-opt": ["dialect/*", "kernels/lower"],
    "tools/mgpu-lsp-server": ["dialect/*"],
}
# These may hold folders without rows of their own, and include everything.
FREE = ["tests", "examples", "cmake"]
# System header (regular expression) -> the folders that may include it.
MLIR = ["dialect", "facts", "planner/import", "kernels/lower", "kernels/host", "kernels/cuda", "pipeline/compiler", "tools/mgpu-opt",
        "tools/mgpu-lsp-server", "tools/mgpu-tune", "tests", "bench/suites", "cmake"]
OTHERS = {
    r"sqlite3\.h": ["db", "tests/unit/db"],
    r"nvrtc\.h": ["kernels/compile"],
    r"(cuda|cudaTypedefs|cuda_runtime|cuda_runtime_api)\.h": ["device/cuda"],
    r"nccl\.h": ["device/cuda/nccl"],
    r"cupti.*\.h": ["device/cuda/cupti"],
    r"(mlir|mlir-c|llvm|llvm-c|lld|clang)/.*": MLIR,
    r"mpi\.h": ["device/mpi/plugin", "bench/suites/mpi", "tests/distributed"],
    r"gtest/.*|gmock/.*": ["tests", "cmake"],
    r"benchmark/.*": ["bench/suites"],
    r"CLI/.*": ["tools", "bench/suites"],
}
# Folder -> the namespace of its files, where that is not made of names of its path. The folder of the mgpu
# dialect cannot have a second `mgpu` inside the first; the files of pipeline/compiler that make kernels go to
# kernels with the facts they find.
NAMESPACES = {
    "support": ["mgpu"],
    "dialect/mgpu": ["mgpu::ir"],
    "pipeline/compiler": ["mgpu::pipeline", "mgpu::kernels"],
    "kernels/host": ["mgpu::kernels", "mgpu::kernels::host", "mgpu::kernels::functions"],
    "tools/mgpu-lsp-server": ["mgpu::tools::lsp"],
    "device/cuda/cupti": ["mgpu::device", "mgpu::device::cuptiheader"],
}
NAMESPACE = re.compile(r"^namespace (mgpu[\w:]*) \{\n(.*?)^\}", re.M | re.S)
FORWARD = re.compile(r"\s*((class|struct|enum class) [\w:]+( : \w+)?;\s*)+")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)
SUFFIXES = (".h", ".cpp", ".c", ".inc")


def under(path, folders):
    return any(path == f or path.startswith(f + "/") for f in folders)


def allows(folder, row):
    return any(f == "*" or f == folder or (f.endswith("/*") and folder.startswith(f[:-1])) for f in row)


def folder_of(path):
    """The folder whose row counts: that of the file itself, never a parent's."""
    folder = os.path.dirname(path)
    for free in FREE:
        if folder == free or folder.startswith(free + "/"):
            return free
    return folder if folder in OURS else None


def check_namespaces(path, text):
    """Files define names in the namespace of their folder alone: its parts are names of the path, in order."""
    folder = os.path.dirname(path)
    if under(folder, FREE):
        return []
    faults = []
    for match in NAMESPACE.finditer(text):
        name, body = match.groups()
        if FORWARD.fullmatch(body):
            continue
        path_names = iter(folder.split("/"))
        of_path = name != "mgpu" and all(part in path_names for part in name.split("::")[1:])
        if name not in NAMESPACES[folder] if folder in NAMESPACES else not of_path:
            line = text.count("\n", 0, match.start()) + 1
            faults.append(f"{path}:{line}: {name} is not the namespace of {folder}")
    return faults


def check(path, text, tracked):
    """The faults of one file, as sentences."""
    source = folder_of(path)
    if source is None:
        return [f"{path}: its folder is not in the table of {os.path.basename(__file__)}"]
    faults = check_namespaces(path, text)
    for match in INCLUDE.finditer(text):
        name = match.group(1) or match.group(2)
        line = text.count("\n", 0, match.start()) + 1
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        target = beside if match.group(1) and beside in tracked else name
        owner = folder_of(target) if "/" in target else None
        if owner in ("tools/options", "tools/mgpu-lsp-server") and source == "tools/mgpu-tune":
            continue
        if owner is not None and owner.startswith("tools/") and owner != source:
            faults.append(f"{path}:{line}: nothing may include {target}: what it needs of a tool belongs to pipeline")
            continue
        if owner is not None:
            if source not in FREE and owner not in (source, "support") and not allows(owner, OURS[source]):
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
           ("planner/schedule/list/X.cpp", '#include "planner/schedule/Timeline.h"\n'),
           ("tests/unit/X.cpp", '#include "tools/mgpu-tune/Options.h"\n'),
           ("bench/suites/X.cpp", '#include "tools/mgpu-tune/Options.h"\n'),
           ("planner/dag/text/X.cpp", "\n"),
           ("planner/dag/X.h", "namespace mgpu::kernels {\nstruct X {};\n}\n"),
           ("planner/dag/X.h", "namespace mgpu {\nstruct X {};\n}\n"),
           ("novel/X.cpp", "\n")]
    good = [("planner/plan/X.cpp", '#include "planner/dag/Dag.h"\n#include <vector>\n'),
            ("db/X.cpp", "#include <sqlite3.h>\n"),
            ("tools/mgpu-tune/X.cpp", '#include "tools/options/OptionTable.h"\n'),
            ("kernels/host/X.cpp", '#include "mlir/IR/Builders.h"\n'),
            ("planner/schedule/search/X.h", "namespace mgpu {\nclass Y;\n}\nnamespace mgpu::planner::search {\nint x;\n}\n"),
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
    folders = {os.path.dirname(path) for path in files}
    faults += [f"{folder}: a row of the table without a folder" for folder in OURS if folder not in folders]
    print("\n".join(faults) if faults else f"{len(files)} files keep to the layers")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
