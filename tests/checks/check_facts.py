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
    r"class IndexRanges\b": "facts/IndexRanges.h",
    r"class Uniformity\b": "facts/Uniformity.h",
    r"\bIdsOf(Many)?\b": "facts/Uniformity.h",
    r"> step\(mlir::Value value,": "facts/Uniformity.h",
    r"BlockEmitter::factors\(": "facts/Uniformity.h",
    r"struct MatmulFacts\b": "planner::Product",
    r"struct ProductSizes\b": "planner::Product",
    r"struct MatmulSize\b": "planner::Product",
    r"struct Matmul(Operand|Shape)\b": "#mgpu.product",
    r"struct SkinnyProduct\b": "linalg::ContractionDimensions",
    r"\benclose\(": "planner::KernelFacts",
    r"\blaunchWork\(": "kernels/compile/CudaConfig.h",
}
# Definitions that do what facts does, beside it. File -> pattern. This one asks about LLVM's loops, for what
# LLVM's vectoriser makes of them.
INDEX_ANALYSES = {
    "kernels/host/LoopMarks.cpp": r"class Addresses\b",
}
# Structs of a matrix product: what it asks for, and what a library is told; in MLIR it is #mgpu.product.
PRODUCTS = {
    "kernels/abi/MatrixProduct.h": r"struct MatrixProduct\b",
    "planner/dag/KernelFacts.h": r"struct Product\b",
}
# Attributes without a type of the dialect, as its document lists them: the users' four come first.
ATTRIBUTES = set("""
    expect expected name role dynamic_shared_bytes fragment launch_group subgroup""".split())
# Those with one, and names that are read and dropped.
TYPED = {"attention", "cluster", "mark", "product", "sparse", "device_config"}
EARLIER = {"b_turned", "matmul"}

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
names -= TYPED | EARLIER | {"all_reduce"}  # an operation, in a comment
with open("dialect/mgpu/MgpuBase.td") as file:
    document = file.read()
for name in sorted(ATTRIBUTES | TYPED - {"device_config"}):
    if f"`mgpu.{name}`" not in document:
        faults.append(f"dialect/mgpu/MgpuBase.td: the dialect's document does not list mgpu.{name}")
# These are for a sparse matrix, for an instruction of a warpgroup, and for why a library is not asked.
others = {"SparseProduct", "WarpgroupProduct", "LibraryProduct"}
for path, text in texts.items():
    for name in re.findall(r"struct (\w*Product) {", text):
        if path not in PRODUCTS and name not in others:
            faults.append(f"{path}: struct {name} is one more of a product; #mgpu.product says what it says")
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
