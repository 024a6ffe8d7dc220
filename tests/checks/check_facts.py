#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel's facts are found once (facts, planner/dag/KernelFacts.h). The tables name what finds or holds them
a second time: a name of GONE must not come back, and those of the others are to go. A name of a table that
is gone is a fault too, as is an attribute that no table has. So each list can only become shorter.
"""

import re
import subprocess
import sys

# Pattern of the definition -> what took its place.
GONE = {
    r"struct Linear\b": "facts/AffineEvaluator.h",
    r"class ThreadValues\b": "facts/ThreadValues.h",
    r"struct MatmulFacts\b": "planner::Product",
    r"struct ProductSizes\b": "planner::Product",
    r"struct MatmulSize\b": "planner::Product",
    r"\benclose\(": "planner::KernelFacts",
    r"\blaunchWork\(": "kernels/compile/CudaConfig.h",
}
# Definitions that do what facts does, beside it. File -> pattern.
INDEX_ANALYSES = {
    "kernels/cuda/IndexRanges.h": r"class IndexRanges\b",
    "kernels/cuda/VectorForm.h": r"> step\(mlir::Value value,",
    "kernels/host/LinearGuards.cpp": r"BlockEmitter::factors\(",
    "kernels/host/LoopMarks.cpp": r"class Addresses\b",
    "kernels/lower/Uniformity.h": r"class Uniformity\b",
}
# Structs of a matrix product. planner/dag/KernelFacts.h has the one.
PRODUCTS = {
    "dialect/conversion/linalg/SkinnyProduct.h": r"struct SkinnyProduct\b",
    "dialect/conversion/spmd/NameProducts.cpp": r"struct Product\b",
    "kernels/abi/MatrixProduct.h": r"struct MatrixProduct\b",
    "kernels/cuda/MatmulShape.h": r"struct Matmul(Operand|Shape)\b",
    "planner/dag/KernelFacts.h": r"struct Product\b",
}
# Attributes that carry facts between rooms; the users' are name, role, expect, expected and device_config.
ATTRIBUTES = set("""
    awaits_others axis b_turned body cluster device_config device_only dynamic_shared_bytes expect expected forwarded
    fragment head in_order instruction launch_group matmul meaning name one_device product role sentence sparse
    sparse_operands subgroup warpgroup_product whole workgroup""".split())

listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.h", "*.cpp"], check=True, text=True,
                        capture_output=True).stdout.split()
texts = {}
for path in listed:
    if not path.startswith(("tests/", "third_party/", "kernels/ptx/")):
        try:
            with open(path) as file:
                texts[path] = file.read()
        except FileNotFoundError:
            pass
faults = []
for pattern, instead in GONE.items():
    for path, text in texts.items():
        if re.search(pattern, text) and path != instead:
            faults.append(f"{path}: '{pattern}' is back; {instead} is in its place")
for table in (INDEX_ANALYSES, PRODUCTS):
    for path, pattern in table.items():
        if not re.search(pattern, texts.get(path, "")):
            faults.append(f"{path} has no '{pattern}' any more: take it out of the table")
names = {name for text in texts.values() for name in re.findall(r'"mgpu\.([a-z_]+)"', text)}
names -= {"all_reduce"}  # an operation, in a comment
for name in sorted(names - ATTRIBUTES):
    faults.append(f"mgpu.{name} is one more attribute without a type: a struct of facts carries what it says")
for name in sorted(ATTRIBUTES - names):
    faults.append(f"mgpu.{name} is gone: take it out of the table")
for fault in faults:
    print(fault)
if faults:
    sys.exit(1)
print(f"{len(INDEX_ANALYSES)} index analyses beside facts, {len(PRODUCTS)} structs of a product, "
      f"{len(ATTRIBUTES)} attributes without a type")
