#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes what the documents show.

Usage: run_docs.py BIN_DIR SOURCE_DIR

Every `mgpu-tune ...` line of a fenced block in README.md and docs/*.md runs, in the order of the
document, in a temporary folder with a link to examples/; a block that is marked `mlir` and is a
whole program, or the operations of a function, is parsed by mgpu-opt. Every relative link leads
to a file. What is shown with its answer, behind a `$`, is run by tests/newcomer/tutorial.py.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def documents(source):
    names = ["README.md", "CONTRIBUTING.md", "examples/README.md"]
    names += sorted("docs/" + name for name in os.listdir(os.path.join(source, "docs")) if name.endswith(".md"))
    for name in names:
        with open(os.path.join(source, name), encoding="utf-8") as file:
            yield name, file.read()


def run(command, folder, text=None):
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, timeout=300)
    return None if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    binaries, source = map(os.path.realpath, sys.argv[1:])
    faults, commands, programs, in_readme = [], 0, 0, 0
    for name, text in documents(source):
        for target in LINK.findall(text):
            if not os.path.exists(os.path.join(source, os.path.dirname(name), target)):
                faults.append(f"{name}: dead link {target}")
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(source, "examples"), os.path.join(folder, "examples"))
            for language, block in FENCE.findall(text):
                for line in block.replace("\\\n", " ").splitlines():
                    if not line.startswith("mgpu-tune "):
                        continue
                    words = shlex.split(line, comments=True)
                    commands += 1
                    in_readme += name == "README.md"
                    fault = run([os.path.join(binaries, words[0]), *words[1:]], folder)
                    if fault:
                        faults.append(f"{name}: {line}: {fault}")
                if language == "mlir":
                    programs += 1
                    fault = run([os.path.join(binaries, "mgpu-opt"), "-"], folder, block)
                    if fault:
                        faults.append(f"{name}: block\n{block}: {fault}")
    # A script that finds nothing passes everything.
    if in_readme < 3 or commands < 8 or programs < 1:
        faults.append(f"found only {commands} commands ({in_readme} in README.md) and {programs} programs")
    print("\n".join(faults) if faults else f"{commands} commands run, {programs} programs parse")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
