#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Edges of a graph: the double finds none too few in a program's graphs, and finds each one that it takes out, by the
bytes that the PTX of kernels touches.

Usage: order.py MGPU_TUNE PROGRAM LIBRARIES
"""

import os
import subprocess
import sys
import tempfile

# The edges of examples/mlp on 4 GPUs that are taken out: from copies in to first kernels, from those to second ones, and
# from the sum to the copy of its result. Bytes that the sum itself reads are NCCL's affair, and the double sees none.
EDGES = [0, 3, 4, 7, 13]


def violations(tune, program, folder, edge):
    path = f"{folder}/violations"
    if os.path.exists(path):
        os.remove(path)
    done = subprocess.run([tune, "run", program, "--random", "--target", "cuda:0/4"], capture_output=True, text=True,
                          check=False, env=os.environ | {"MGPU_REHEARSAL_EDGE": str(edge)})
    if done.returncode:
        sys.exit(f"edge {edge}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    tune, program, libraries = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({"LD_LIBRARY_PATH": libraries, "MGPU_DB": f"{folder}/db", "MGPU_REHEARSAL": folder,
                           "MGPU_REHEARSAL_PTX": "1"})
        if said := violations(tune, program, folder, -1):
            sys.exit(f"a graph as it is: {said}")
        for edge in EDGES:
            said = violations(tune, program, folder, edge)
            if "no path of edges orders them" not in said:
                sys.exit(f"without edge {edge} nothing is found: {said}")
    print(f"{len(EDGES)} edges taken out of a graph, each found")


if __name__ == "__main__":
    main()
