#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each constraint of our dialects has a label, as all_reduce_c2. The dialect's document lists it, the
message about it ends with it, and a test expects that message.

The messages themselves are compared with the tests by mgpu-opt --verify-diagnostics.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
faults = []


def labels(pattern, files):
    found = [label for file in files for label in re.findall(pattern, file.read_text())]
    if not found:
        faults.append(f"no labels in {', '.join(str(file) for file in files)}")
    return found


def number(label):
    operation, digits = label.rsplit("_c", 1)
    return operation, int(digits)


def compare(left, where, right, elsewhere):
    for label in sorted(set(left) - set(right), key=number):
        faults.append(f"{label} is in {where} and not in {elsewhere}")


def check(document, tests, sources):
    """The labels of one dialect."""
    listed = labels(r"- \((\w+_c\d+)\)", [document])
    tested = labels(r"expected-error.*\[(\w+_c\d+)\]\}\}", sorted(tests.glob("*.mlir")))
    name = document.name
    compare(listed, name, tested, f"a test of {tests.name}")
    compare(tested, f"a test of {tests.name}", listed, name)
    for label in listed:
        operation, position = number(label)
        if listed.count(label) > 1:
            faults.append(f"{label} is twice in {name}")
        if position > 1 and f"{operation}_c{position - 1}" not in listed:
            faults.append(f"{label} has no label before it in {name}")
    # A message without a label would be a constraint that nothing lists.
    for file in sources:
        text = re.sub(r'"(?:[^"\\]|\\.)*"', lambda quoted: quoted[0].replace(";", ","), file.read_text())
        for message in re.findall(r"\bemit(?:Op)?Error\([^;]*;", text):
            if "rule(" not in message and not re.search(r"\[\w+_c\d+\]", message):
                faults.append(f"{file.name}: a message without a label: {' '.join(message.split())}")
    return len(listed)


count = check(ROOT / "docs/generated/MgpuDialect.md", ROOT / "tests/lit/mgpu",
              sorted((ROOT / "dialect/mgpu").glob("*Verify.cpp")) + [ROOT / "dialect/mgpu/MgpuDialect.cpp"])
count += check(ROOT / "docs/generated/SpmdDialect.md", ROOT / "tests/lit/spmd",
               [ROOT / "dialect/spmd/SpmdVerify.cpp", ROOT / "dialect/spmd/Layout.cpp"])
count += check(ROOT / "docs/generated/MpmdDialect.md", ROOT / "tests/lit/mpmd", [ROOT / "dialect/mpmd/MpmdVerify.cpp"])

print("\n".join(faults) or f"{count} constraints")
sys.exit(bool(faults))
