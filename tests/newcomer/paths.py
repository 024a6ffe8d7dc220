#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every file or folder of this tree that a document names in backticks is there.

Usage: paths.py SOURCE_DIR DOCUMENT...
"""
import os
import re
import sys

source, documents = sys.argv[1], sys.argv[2:]
top = {name for name in os.listdir(source) if os.path.isdir(os.path.join(source, name))}
count, faults = 0, []
for document in documents:
    with open(os.path.join(source, document), encoding="utf-8") as file:
        words = re.findall(r"`([\w./-]+/[\w./-]*)`", file.read())
    for word in words:
        if word.split("/")[0] in top and "NAME" not in word:
            count += 1
            if not os.path.exists(os.path.join(source, word)):
                faults.append(f"{document}: there is no {word}")
print("\n".join(faults) if faults else f"{count} paths are there")
sys.exit(1 if faults or count < 40 else 0)
