#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds what Containerfile describes without a container engine: a Debian root by mmdebstrap, each RUN in it by
chroot. Then its entry point reads, plans and runs a program there. Needs root and Debian's packages.

Usage: container.py SOURCE_DIR
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from install import run  # noqa: E402


def build(source, root):
    """Returns the environment and the entry point."""
    environment, entry = {"PATH": "/usr/bin:/bin"}, None
    with open(os.path.join(source, "Containerfile"), encoding="utf-8") as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    for word, rest in ((word, rest.strip()) for word, rest in lines):
        if word == "FROM":
            assert rest == "debian:12-slim", rest
            packages = next(re.search(r"install \S+ \S+ (.*)", more).group(1) for _, more in lines if "apt-get install" in more)
            run("mmdebstrap", "--variant=minbase", "--include", packages.strip().replace(" ", ","), "bookworm", root)
        elif word == "RUN" and "apt-get" not in rest:
            run("/usr/sbin/chroot", root, "/bin/sh", "-ec", rest, env=environment)
        elif word == "COPY":
            pattern, to = rest.split()
            for path in glob.glob(os.path.join(source, pattern)):
                shutil.copy(path, root + to)
        elif word == "ENV":
            environment.update([rest.split("=", 1)])
        elif word == "WORKDIR":
            os.makedirs(root + rest)
        elif word == "ENTRYPOINT":
            entry = re.findall(r'"([^"]+)"', rest)
    return environment, entry


def main():
    source = os.path.realpath(sys.argv[1])
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        print("skipped: needs root and the package mmdebstrap")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "root")
        environment, entry = build(source, root)
        os.chmod(root, 0o755)
        shutil.copy(os.path.join(source, "examples/torch/mlp.pt2"), os.path.join(root, "work/model.pt2"))
        subprocess.run(["mount", "-t", "proc", "proc", root + "/proc"], check=True)
        try:
            for words in (["check"], ["plan"], ["run", "--random"]):
                said = run("/usr/sbin/chroot", root, *entry, words[0], "/work/model.pt2", *words[1:], "--dim", "batch=8", env=environment)
                print(said.splitlines()[0])
            # The wheel brings all that it needs: nothing else is installed there.
            packages = run("/usr/sbin/chroot", root, "pip", "list", "--format=freeze", env=environment).split()
            assert {name.split("==")[0] for name in packages} <= {"mgpu", "pip", "setuptools"}, packages
            said = run("/usr/sbin/chroot", root, "python", "-m", "mgpu", "run", "/work/model.pt2", "--random", "--dim", "batch=8", env=environment)
            print(said.splitlines()[0])
        finally:
            subprocess.run(["umount", root + "/proc"], check=True)


if __name__ == "__main__":
    main()
