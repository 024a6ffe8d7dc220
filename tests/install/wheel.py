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
import tarfile
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from install import check_pjrt, run  # noqa: E402

MOST_BYTES, MOST_INSTALLED = 45_000_000, 120_000_000
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
model, bytecode, text, call = sys.argv[1:]
with mgpu.open(model, "host", "--dim", "batch=8") as program:
    results = program(x=[[0.125 * k for k in range(16)]] * 8)["r0"]
    assert results.shape == (8, 16) and len({tuple(row) for row in results.tolist()}) == 1, results
with mgpu.open(text) as program:
    assert program.arguments and program.explain()
with mgpu.open(bytecode) as program:
    assert program.arguments and program.explain()

def twice(operands, results, config):
    for k, value in enumerate(operands[0].tolist()):
        results[0].data[k] = 2 * value

mgpu.register("twice", twice)
with mgpu.open(call, "host", "--custom", "twice=registered") as program:
    name, = (name for name, argument in program.arguments.items() if argument.role == b"input")
    assert list(program(**{name: [1, 2, 3, 4]}).values())[0].tolist() == [2, 4, 6, 8]
try:
    mgpu.compile(len, ())
except ImportError:
    print("a .pt2, MLIR, bytecode and a registered function run; torch is not here")
"""
CALL = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def check_package(python, clean, source, folder):
    with tarfile.open(os.path.join(source, "tests/stablehlo/exports.tar.gz")) as archive:
        member = next(name for name in archive.getnames() if name.endswith("/jax-mlp.vhlo"))
        with open(os.path.join(folder, "model.bc"), "wb") as file:
            file.write(archive.extractfile(member).read())
    with open(os.path.join(folder, "call.mlir"), "w", encoding="utf-8") as file:
        file.write(CALL)
    print(run(python, "-c", PROGRAM, os.path.join(source, "examples/torch/mlp.pt2"), os.path.join(folder, "model.bc"),
              os.path.join(source, "examples/stablehlo/mlp-step.mlir"), os.path.join(folder, "call.mlir"), env=clean).strip())


def main():
    source = os.path.realpath(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        [wheel] = glob.glob(os.path.join(os.path.realpath(sys.argv[1]), "*.whl"))
        size, installed = check_contents(wheel, os.path.join(folder, "contents"))
        python, clean = install(wheel, folder)
        check_commands(python, clean, source, folder)
        [plugin] = glob.glob(os.path.join(folder, "venv/lib/*/site-packages/mgpu/libmgpu_pjrt.so"))
        check_pjrt(plugin, source, folder)
        check_package(python, clean, source, folder)
        print(f"{os.path.basename(wheel)}: {size / 1e6:.1f} MB, {installed / 1e6:.1f} MB installed")


if __name__ == "__main__":
    main()
