#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The wheel that holds everything, installed into an empty environment: what is in it needs the C library
alone, no newer than its tag says, and each command and the package work.

Usage: wheel.py FOLDER SOURCE_DIR, the folder that holds the wheel
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from install import check_pjrt, run  # noqa: E402

MOST_BYTES, MOST_INSTALLED = 45 << 20, 120 << 20
LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def check_binary(path, newest):
    needed = set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", path)))
    assert needed <= LIBRARIES, f"{path} needs {needed - LIBRARIES}"
    assert not re.search(r"R(UN)?PATH", run("objdump", "-p", path)), f"{path} looks for libraries where they were here"
    symbols = run("objdump", "-T", path)
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", symbols)}
    assert max(versions) <= newest, f"{path} needs a C library of {max(versions)}"
    return symbols


def check_contents(wheel, folder):
    major, minor = re.search(r"manylinux_(\d+)_(\d+)_x86_64\.whl$", wheel).groups()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        installed = sum(entry.file_size for entry in archive.infolist())
    size = os.path.getsize(wheel)
    assert size <= MOST_BYTES and installed <= MOST_INSTALLED, f"{size} bytes, {installed} installed"
    newest = (int(major), int(minor))
    check_binary(os.path.join(folder, "mgpu/bin/mgpu-tune"), newest)
    symbols = check_binary(os.path.join(folder, "mgpu/libmgt.so.1"), newest)
    check_binary(os.path.join(folder, "mgpu/libmgpu_pjrt.so"), newest)
    given = {line.split()[-1] for line in symbols.splitlines() if " g " in line and "*UND*" not in line and " .text" in line}
    assert given and all(name.startswith("mgt_") for name in given), sorted(given)
    return size, installed


def install(wheel, folder):
    """Returns the environment's python and what a program is given there."""
    environment = os.path.join(folder, "venv")
    run(sys.executable, "-m", "venv", environment)
    clean = {"HOME": folder, "PATH": os.path.join(environment, "bin") + ":/nowhere", "MGPU_DB": os.path.join(folder, "wheel.db"),
             "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    python = os.path.join(environment, "bin/python")
    run(python, "-m", "pip", "install", "--no-index", wheel, env=clean)
    return python, clean


def check_commands(python, clean, source, folder):
    model = [os.path.join(source, "examples/torch/mlp.pt2"), "--dim", "batch=8"]
    use = [python, "-m", "mgpu"]
    assert ": ok: " in run(*use, "check", *model, env=clean)
    assert "makespan" in run(*use, "plan", *model, "--target", "sim:dgx-h200", env=clean)
    assert "replay" in run(os.path.join(os.path.dirname(python), "mgpu-tune"), "run", *model, "--random", env=clean)
    run(*use, "tune", *model, "--arg", "x=random:1", "--budget", "5", env=clean)
    page = os.path.join(folder, "report.html")
    run(*use, "report", *model, "-o", page, env=clean)
    assert os.path.getsize(page) > 10000
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}})
    asked = f"Content-Length: {len(message)}\r\n\r\n{message}"
    said = subprocess.run([*use, "lsp"], input=asked, capture_output=True, text=True, timeout=60, env=clean).stdout
    assert "mgpu-lsp-server" in said, said


PROGRAM = """
import mgpu, sys
with mgpu.open(sys.argv[1], "host", "--dim", "batch=8") as program:
    assert program.arguments
    print(len(program.arguments), "arguments")
"""


def main():
    source = os.path.realpath(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        [wheel] = glob.glob(os.path.join(os.path.realpath(sys.argv[1]), "*.whl"))
        size, installed = check_contents(wheel, os.path.join(folder, "contents"))
        python, clean = install(wheel, folder)
        check_commands(python, clean, source, folder)
        [plugin] = glob.glob(os.path.join(folder, "venv/lib/*/site-packages/mgpu/libmgpu_pjrt.so"))
        check_pjrt(plugin, source, folder)
        print(run(python, "-c", PROGRAM, os.path.join(source, "examples/torch/mlp.pt2"), env=clean).strip())
        print(f"{os.path.basename(wheel)}: {size / 1e6:.1f} MB, {installed / 1e6:.1f} MB installed")


if __name__ == "__main__":
    main()
