#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares pipeline/pjrt/Abi.h with xla/pjrt/c/pjrt_c_api.h: the offset of each field, the sizes, the slots and the
numbers of what both name. MGPU_PJRT_HEADERS is a folder with xla/pjrt/c; without it the test is skipped.

Usage: abi.py SOURCE_DIR CC
"""

import os
import re
import subprocess
import sys
import tempfile


def fields_of(body):
    """The names of the fields of a struct's text; of a function pointer its name."""
    body = re.sub(r"union\s*\{.*?\};", lambda m: m.group().split("{", 1)[1].rsplit("}", 1)[0], body, flags=re.S)
    for part in body.split(";"):
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", part)
        if pointer:
            yield pointer.group(1)
        elif part.strip():
            yield from (name.strip(" *\n") for name in re.sub(r"^.*[\s*](?=\w+\s*(,|$))", "", part.strip(), flags=re.S).split(","))


def expressions(source):
    """What both headers have, as expressions of C."""
    with open(os.path.join(source, "pipeline/pjrt/Calls.inc"), encoding="utf-8") as file:
        calls = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    with open(os.path.join(source, "pipeline/pjrt/Abi.h"), encoding="utf-8") as file:
        header = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    structs, slots = {}, []
    for name, body in re.findall(r"^CALL(?:_WITHOUT_ERROR)?\((\w+),(.*?)\)$", calls, flags=re.S | re.M):
        structs[f"PJRT_{name}_Args"] = ["struct_size", "extension_start", *fields_of(body)]
        slots.append(f"PJRT_{name}")
    assert len(slots) == 138, len(slots)
    for name, body in re.findall(r"^typedef struct (PJRT_\w+) \{(.*?)\n\} \1;", header, flags=re.S | re.M):
        if name != "PJRT_Api" and "Layouts" not in name:
            structs[name] = list(fields_of(body))
    yield from (f"offsetof({name}, {field})" for name, fields in structs.items() for field in fields)
    yield from (f"sizeof({name})" for name in structs)
    yield from (f"offsetof(PJRT_Api, {slot})" for slot in slots)
    yield from ("sizeof(PJRT_Api)", "PJRT_API_MAJOR", "PJRT_API_MINOR")
    yield from re.findall(r"^  (PJRT_\w+_\w+)(?: = \d+)?,$", header, flags=re.M)


def values(cc, include, lines, flags):
    text = f'#include <stddef.h>\n#include <stdio.h>\n#include "{include}"\nint main(void) {{\n' + \
        "".join(f'  printf("%s %ld\\n", "{line}", (long)({line}));\n' for line in lines) + "  return 0;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "print.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run([cc, "-w", *flags, path, "-o", path[:-2]], check=True)
        return subprocess.run([path[:-2]], capture_output=True, text=True, check=True).stdout.splitlines()


def main():
    source, cc = sys.argv[1:]
    headers = os.environ.get("MGPU_PJRT_HEADERS")
    if not headers:
        print("skipped: MGPU_PJRT_HEADERS names no folder")
        sys.exit(77)
    lines = sorted(set(expressions(source)))
    ours = values(cc, "Abi.h", lines, ["-I", os.path.join(source, "pipeline/pjrt")])
    theirs = values(cc, "xla/pjrt/c/pjrt_c_api.h", lines, ["-I", headers])
    wrong = [f"{own} here, and there {their}" for own, their in zip(ours, theirs) if own != their]
    assert len(ours) == len(theirs) > 1000 and not wrong, "\n".join(wrong)
    print(f"{len(ours)} numbers are the same")


if __name__ == "__main__":
    main()
