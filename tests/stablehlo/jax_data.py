#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the serialised modules of JAX's test data, checks and runs them.

Usage: jax_data.py MGPU_TUNE TABLE [--update]

MGPU_JAX names a checkout of https://github.com/jax-ml/jax; without it the test is skipped (77). Its files are texts in Python,
which are read and not executed. Each module decodes. One whose calls are known gives the recorded outputs; of any other TABLE
has the sentence: a line for each module with its platform, what it calls, and what comes out.
"""

import ast
import collections
import datetime
import glob
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

FOLDER = "jax/_src/internal_test_util/export_back_compat_test_data"
TYPES = {name: getattr(np, name) for name in ("float16", "float32", "float64", "complex64", "complex128", "int8", "int16", "int32",
                                              "int64", "uint8", "uint16", "uint32", "uint64", "bool_")}
TYPES["bool"] = np.bool_
VALUES = {"nan": np.nan, "inf": np.inf, "True": True, "False": False, "None": None}


def value_of(node):
    """The value of an expression of literals, arrays and dates."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List)):
        values = [value_of(each) for each in node.elts]
        return tuple(values) if isinstance(node, ast.Tuple) else values
    if isinstance(node, ast.Dict):
        return {value_of(key): value_of(each) for key, each in zip(node.keys, node.values)}
    if isinstance(node, ast.Name):
        return TYPES.get(node.id) or VALUES.get(node.id)
    if isinstance(node, ast.Attribute):
        return TYPES.get(node.attr)
    if isinstance(node, ast.UnaryOp):
        value = value_of(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        x, y = value_of(node.left), value_of(node.right)
        return x + y if isinstance(node.op, ast.Add) else x - y
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        options = {each.arg: value_of(each.value) for each in node.keywords}
        if name == "dict":
            return options
        arguments = [value_of(each) for each in node.args]
        if name == "array":
            return np.array(arguments[0], dtype=options.get("dtype"))
        if name == "date":
            return datetime.date(*arguments)
        if name in TYPES:
            return TYPES[name](*arguments)
    raise ValueError(ast.dump(node)[:80])


def modules_of(path):
    """The modules of a file by name: a dictionary with `mlir_module_serialized`."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = {}
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        try:
            value = value_of(node.value)
        except (ValueError, AttributeError, TypeError):
            continue
        if isinstance(value, dict) and "mlir_module_serialized" in value:
            found[ast.unparse(target)] = value
        elif isinstance(value, dict):
            for key, each in value.items():
                if isinstance(each, dict) and "mlir_module_serialized" in each:
                    found[f"{ast.unparse(target)}[{key!r}]"] = each
    return found


def sentence_of(done):
    """What was refused, without places and what is long."""
    lines = [line for line in done.stderr.splitlines() if "error: " in line]
    text = lines[0].split("error: ", 1)[1] if lines else ""
    text = re.sub(r"^(\S*:\d+:\d+)?:? ?(kernel \w+: )?", "", text)
    return f"exit {done.returncode}: {text[:110]}"


def outcome_of(tune, folder, module):
    """What comes of `check` and `run`."""
    path = f"{folder}/module.bc"
    with open(path, "wb") as file:
        file.write(module["mlir_module_serialized"])
    checked = subprocess.run([tune, "check", path], capture_output=True, text=True, timeout=120, check=False)
    if checked.returncode:
        return "check ends with " + sentence_of(checked)
    inputs, expected = module.get("inputs", ()), module.get("expected_outputs", ())
    command = [tune, "run", path]
    for k, value in enumerate(inputs):
        np.save(f"{folder}/a{k}.npy", np.asarray(value))
        command += ["--arg", f"{k}={folder}/a{k}.npy"]
    names = re.findall(r"(?m)^  result (\S+):", checked.stdout)
    for k, name in enumerate(names):
        command += ["--out", f"{name}={folder}/r{k}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        return "checked; run ends with " + sentence_of(done)
    if len(names) != len(expected):
        return f"{len(names)} results of {len(expected)}"
    for k, wanted in enumerate(expected):
        found = np.load(f"{folder}/r{k}.npy")
        near = 1e-5 if np.asarray(wanted).dtype.itemsize <= 4 else 1e-12
        if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=near, atol=near, equal_nan=True):
            return f"result {k} is another"
    return "equal"


def main():
    tune, table = sys.argv[1:3]
    snapshot = os.environ.get("MGPU_JAX")
    if not snapshot:
        print("skipped: MGPU_JAX names no checkout of JAX")
        sys.exit(77)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MGPU_DB"] = f"{folder}/db"
        for path in sorted(glob.glob(f"{snapshot}/{FOLDER}/**/*.py", recursive=True)):
            for name, module in modules_of(path).items():
                calls = ", ".join(module.get("custom_call_targets", ())) or "no call"
                file = os.path.relpath(path, f"{snapshot}/{FOLDER}").removesuffix(".py")
                found.append(f"{file} {name} ({calls}): {outcome_of(tune, folder, module)}")
    text = "# module (what it calls): what comes out; jax_data.py --update\n" + "\n".join(found) + "\n"
    if "--update" in sys.argv[3:]:
        with open(table, "w", encoding="utf-8") as file:
            file.write(text)
    with open(table, encoding="utf-8") as file:
        known = file.read()
    kinds = collections.Counter(line.rpartition("): ")[2].split(":")[0] for line in found)
    print(f"{len(found)} modules; " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    for line in found:
        if line + "\n" not in known:
            print(f"not in the table: {line}")
    return 0 if text == known else 1


if __name__ == "__main__":
    sys.exit(main())
