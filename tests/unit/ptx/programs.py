#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the PTX unit programs of vosen/ZLUDA whose paths hash to 0 modulo 3, and compares the words
that its tests expect. MGPU_ZLUDA_TESTS names the folder ptx/src/test of a checkout; without it
there is nothing to do. With a further argument, all programs whose names hold it are run."""

import hashlib
import math
import os
import re
import struct
import subprocess
import sys

CODES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q", "f16": "e", "f32": "f", "f64": "d"}
# What PTX allows is not what the expected words say, or leaves more than one result open.
LOOSE = {"cos": 1e-6, "sin": 1e-6, "lg2": 1e-6, "ex2": 1e-6, "rsqrt": 1e-6, "tanh": 1e-3}


def invocations(text):
    """The macros' arguments, split at their outermost commas: (macro, name, lists)."""
    for match in re.finditer(r"^(test_ptx\w*)!\s*\(", text, re.M):
        at, depth, parts, start = match.end(), 1, [], match.end()
        while depth:
            letter = text[at]
            depth += letter in "([{"
            depth -= letter in ")]}"
            if (letter == "," and depth == 1) or depth == 0:
                parts.append(text[start:at].strip())
                start = at + 1
            at += 1
        yield match.group(1), parts[0], [p for p in parts[1:] if p]


def split(inner):
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(inner):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and depth == 0:
            parts.append(inner[start:at])
            start = at + 1
    parts.append(inner[start:])
    return [p.strip() for p in parts if p.strip()]


def value_of(word):
    """A Rust expression's value and type; the type is None where the word does not say it."""
    word = re.sub(r"\s+", " ", word).strip()
    minus = word.startswith("-")
    if minus:
        value, kind = value_of(word[1:])
        return -value, kind
    found = re.fullmatch(r"(?:\w+::)*(f16|f32|f64)::(?:consts::)?(NAN|INFINITY|NEG_INFINITY|PI|MAX|MIN)(\.to_bits\(\))?", word)
    if found:
        value = {"NAN": math.nan, "INFINITY": math.inf, "NEG_INFINITY": -math.inf, "PI": math.pi}.get(found.group(2))
        if value is None:
            raise ValueError(word)
        if found.group(3):
            code = {"f16": "u16", "f32": "u32", "f64": "u64"}[found.group(1)]
            return struct.unpack("<" + CODES[code], struct.pack("<" + CODES[found.group(1)], value))[0], code
        return value, found.group(1)
    found = re.fullmatch(r"(?:\w+::)*(f16|f32|f64)::(from_f32|from_f64|from_bits)\((.*)\)(\.to_bits\(\))?", word)
    if found:
        kind, how, inner, bits = found.groups()
        value, _ = value_of(inner)
        code = {"f16": "u16", "f32": "u32", "f64": "u64"}[kind]
        if how == "from_bits":
            value = struct.unpack("<" + CODES[kind], struct.pack("<" + CODES[code], value))[0]
        if bits:
            return struct.unpack("<" + CODES[code], struct.pack("<" + CODES[kind], value))[0], code
        return value, kind
    found = re.fullmatch(r"(?:std::)?([ui]\d+)::(MAX|MIN|max_value\(\)|min_value\(\))", word)
    if found:
        bits = int(found.group(1)[1:])
        signed = found.group(1)[0] == "i"
        high = found.group(2).lower().startswith("max")
        return ((1 << (bits - signed)) - 1 if high else -(1 << (bits - 1)) if signed else 0), found.group(1)
    found = re.fullmatch(r"(0x[0-9a-fA-F_]+?|0b[01_]+?|[0-9_]+(?:\.[0-9_]*)?(?:e-?\d+)?)_?((?:[uif])(?:8|16|32|64))?", word)
    if not found:
        raise ValueError(word)
    digits, kind = found.group(1).replace("_", ""), found.group(2)
    if digits.startswith("0x") or digits.startswith("0b"):
        return int(digits, 0), kind
    return (float(digits) if "." in digits or "e" in digits or (kind or "").startswith("f") else int(digits)), kind


def words_of(text):
    """A Rust array: its bytes and the type of its elements."""
    text = re.sub(r"//[^\n]*", "", text).strip()
    repeated = re.fullmatch(r"\[(.*);\s*(\d+)\s*\]", text, re.S)
    parts = [repeated.group(1)] * int(repeated.group(2)) if repeated else split(text.strip("[]{} \n"))
    values = [value_of(p) for p in parts]
    kind = next((k for _, k in values if k), "f32" if any(isinstance(v, float) for v, _ in values) else "i32")
    out = b""
    for value, _ in values:
        value = float(value) if kind[0] == "f" else int(value)
        if kind[0] != "f":
            value &= (1 << int(kind[1:])) - 1
        out += struct.pack("<" + (CODES[kind] if kind[0] == "f" else CODES["u" + kind[1:]]), value)
    return out, kind


def agrees(name, kind, expected, found):
    if expected == found:
        return True
    if kind[0] != "f":
        return False
    size = struct.calcsize(CODES[kind])
    count = len(expected) // size
    for a, b in zip(struct.unpack(f"<{count}{CODES[kind]}", expected), struct.unpack(f"<{count}{CODES[kind]}", found)):
        if not (a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= LOOSE.get(name.split("_")[0], 0) * max(1, abs(a))):
            return False
    return True


def main():
    folder = os.environ.get("MGPU_ZLUDA_TESTS")
    if not folder:
        print("MGPU_ZLUDA_TESTS names no folder of ZLUDA's tests, so there is nothing to run")
        return 77
    wanted = sys.argv[2] if len(sys.argv) > 2 else None
    text = open(os.path.join(folder, "spirv_run/mod.rs")).read()
    right, refused, wrong = 0, [], []
    for macro, name, lists in invocations(text):
        for sub in ["spirv_run/"] + (["spirv_run/32/"] if macro.endswith("32") else []):
            path = f"{sub}{name}.ptx"
            ours = int(hashlib.sha256(path.encode()).hexdigest(), 16) % 3 == 0
            if not (ours if wanted is None else wanted == name) or not lists or not os.path.exists(os.path.join(folder, path)):
                continue
            is_warp = macro == "test_ptx_warp"
            given, (expected, kind) = "-" if is_warp else words_of(lists[0])[0].hex(), words_of(lists[-1])
            done = subprocess.run([sys.argv[1], os.path.join(folder, path), name, "64" if is_warp else "1", given, str(len(expected))],
                                  capture_output=True, text=True, timeout=60)
            if done.returncode == 0 and agrees(name, kind, expected, bytes.fromhex(done.stdout.strip())):
                right += 1
            elif done.returncode == 5:
                refused.append(f"{path}: {done.stderr.strip()}")
            else:
                wrong.append(f"{path}: {done.stderr.strip()} {done.stdout.strip()[:64]} expected {expected.hex()[:64]}")
    print(f"{right} right, {len(refused)} refused, {len(wrong)} wrong")
    print("\n".join(["refused " + r for r in refused] + ["wrong " + w for w in wrong]))
    return 1 if wrong or not right or len(refused) * 20 > right else 0


if __name__ == "__main__":
    sys.exit(main())
