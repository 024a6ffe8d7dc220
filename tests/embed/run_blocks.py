#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs each Python block of a document and compares what it prints with the block after it.

Usage: run_blocks.py DOCUMENT...
"""

import os
import re
import subprocess
import sys
import tempfile

BLOCKS = re.compile(r"^```python\n(.*?)^```\n```\n(.*?)^```$", re.M | re.S)


def main():
    text = ""
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            text += file.read()
    blocks = BLOCKS.findall(text)
    if len(blocks) < 2 or len(blocks) != text.count("```python"):
        sys.exit(f"{len(blocks)} of {text.count('```python')} blocks of Python have their output after them")
    with tempfile.TemporaryDirectory() as folder:
        for program, expected in blocks:
            with open(os.path.join(folder, "example.py"), "w", encoding="utf-8") as file:
                file.write(program)
            done = subprocess.run([sys.executable, "example.py"], cwd=folder, capture_output=True, text=True)
            if done.stdout != expected or done.stderr or done.returncode:
                sys.exit(f"{program}\nprints\n{done.stdout}{done.stderr}and not\n{expected}")
    print(f"{len(blocks)} blocks print what the document says")


if __name__ == "__main__":
    main()
