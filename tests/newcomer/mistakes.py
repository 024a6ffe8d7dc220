#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every mistake of mistakes.txt and programs.txt ends with its exit code, one sentence, and the
words that say what is wrong, where, and what to do.

Usage: mistakes.py MGPU_TUNE SOURCE_DIR [WORDS]; with WORDS only commands that have them run.
"""
import os
import re
import subprocess
import sys
import tempfile

import files

LEAST = 110  # a script that finds no mistakes passes everything
# What no answer says: words of libraries, and of faults of our own.
NEVER = ["<unknown>", "unregistered", "Assertion", "terminate called", "exception", "Stack dump", "see current operation",
         "-allow-", "PLEASE submit"]


class Row:
    def __init__(self, command, expected, where="", program=None):
        self.command, self.where, self.program = command, where, program
        code, words = expected.split(":", 1)
        self.code, self.words = int(code), [word.strip() for word in words.split(" | ")]


def rows_of_commands(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    for typed, expected in zip(lines[::2], lines[1::2], strict=True):
        assert typed.startswith("$ "), typed
        yield Row(typed[2:], expected)


def rows_of_programs(path):
    with open(path, encoding="utf-8") as file:
        parts = re.split(r"^//--- (\S+)\n", file.read(), flags=re.M)[1:]
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        typed, expected, body = text.split("\n", 2)
        name += ".mlir"
        words = typed.removeprefix("// $ ").split(" ", 1)
        yield Row(" ".join(["mgpu-tune", words[0], name, *words[1:]]), expected.removeprefix("// "), name + ":",
                  body if "func.func @main" in body else FRAME.replace("BODY", body))


def fault_of(row, environment, folder):
    """What is wrong with the answer to a row; empty where nothing is."""
    if row.program is not None:
        with open(os.path.join(folder, row.where[:-1]), "w", encoding="utf-8") as file:
            file.write(row.program)
    done = subprocess.run(["sh", "-c", row.command], cwd=folder, env=environment, capture_output=True, timeout=120)
    out = (done.stdout + done.stderr).decode(errors="replace")
    # A message is not broken into lines; a shell's own are not looked at.
    found = [] if done.returncode == row.code else [f"exit code {done.returncode}, not {row.code}"]
    found += [f"without: {word}" for word in row.words if word not in out]
    found += [f"with: {word}" for word in NEVER if word in out]
    if row.where and not re.search(re.escape(row.where) + r"\d+", out):
        found.append("names no line of the program")
    last = out.rstrip("\n").rsplit("\n", 1)[-1]
    if not last.startswith("mgpu-tune: error: "):
        found.append("does not end with one sentence: 'mgpu-tune: error: ...'")
    if found:
        return f"$ {row.command}\n" + "".join(f"  ! {each}\n" for each in found) + "".join(
            f"  > {line}\n" for line in out.splitlines()[-12:])
    return ""


def absent_words(environment, folder):
    """Words of answers that this machine does not give: it has a GPU's driver, or no NVRTC."""
    def ask(words):
        return subprocess.run(["mgpu-tune", *words.split()], cwd=folder, env=environment, capture_output=True, text=True)

    words = [] if "no NVIDIA driver" in ask("devices").stdout else ["no NVIDIA driver"]
    return words + (["NVRTC"] if ask("kernels saxpy.mlir --arg a=2").returncode == 3 else [])


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    tune, source = map(os.path.realpath, sys.argv[1:3])
    here = os.path.dirname(os.path.realpath(__file__))
    rows = [*rows_of_commands(os.path.join(here, "mistakes.txt")), *rows_of_programs(os.path.join(here, "programs.txt"))]
    assert len(rows) >= LEAST, len(rows)
    rows = [row for row in rows if len(sys.argv) == 3 or sys.argv[3] in row.command]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PATH": os.path.dirname(tune) + ":" + os.environ["PATH"], "HOME": folder,
                       "XDG_CACHE_HOME": folder, "XDG_STATE_HOME": folder}
        for name in ("MGPU_DB", "MGPU_DB_SITE"):
            environment.pop(name, None)
        files.make(folder, source, environment)
        absent = absent_words(environment, folder)
        rows = [row for row in rows if not any(word in " ".join(row.words) for word in absent)]
        faults = [fault for fault in (fault_of(row, environment, folder) for row in rows) if fault]
    print("\n".join(faults) if faults else f"{len(rows)} mistakes get their answers")
    print(f"{len(faults)} of {len(rows)} do not", file=sys.stderr) if faults else None
    sys.exit(1 if faults else 0)


FRAME = """mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%x: memref<64xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c2048 = arith.constant 2048 : index
  %one = arith.constant 1.0 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %e = mgpu.get_device %c1 : !mgpu.device
  %comm = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  %b = mgpu.alloc %e : !mgpu.device -> memref<64xf32>
  mgpu.memcpy %a, %x, %d, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
BODY
  return
}
"""

if __name__ == "__main__":
    main()
