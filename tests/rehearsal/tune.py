#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Candidates for a GPU, tuned over the double of the driver, which minds how it is opened.

Usage: tune.py MGPU_TUNE PROGRAM LIBRARIES    (PROGRAM: examples/saxpy's, or its bundle)
"""

import os
import subprocess
import sys
import tempfile


def main():
    tune, program, libraries = sys.argv[1:]
    values = [] if program.endswith(".mgpu") else ["--arg", "a=2.5"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries,
                       "MGPU_REHEARSAL": os.environ.get("MGPU_REHEARSAL", folder), "MGPU_DB": f"{folder}/db"}
        violations = f"{environment['MGPU_REHEARSAL']}/violations"
        done = subprocess.run([tune, "tune", program, *values, "--target", "cuda:0/4", "--budget", "3"],
                              capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0 or "tuned" not in done.stdout:
            sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
        if os.path.exists(violations):
            with open(violations, encoding="utf-8") as text:
                sys.exit(f"rules of CUDA's that were broken:\n{text.read()}")
    print(done.stdout, end="")


if __name__ == "__main__":
    main()
