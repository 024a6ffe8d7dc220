#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a plugin shows GetPjrtApi alone, and shares no symbol of LLVM or MLIR with its host.

Usage: symbols.py PLUGIN.so
"""

import subprocess
import sys


def names(*words):
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[-1] for line in lines if line.strip()]


def main():
    shown = names("nm", "-D", "--defined-only", sys.argv[1])
    assert shown == ["GetPjrtApi"], shown
    taken = [name for name in names("nm", "-D", "--undefined-only", sys.argv[1]) if "llvm" in name.lower() or "mlir" in name.lower()]
    assert not taken, taken
    dynamic = subprocess.run(["readelf", "-d", sys.argv[1]], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in dynamic and "LLVM" not in dynamic and "MLIR" not in dynamic, dynamic


if __name__ == "__main__":
    main()
