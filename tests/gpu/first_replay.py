#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a cached plan to the end of the first replay, each in a process of its own.

Usage: first_replay.py MGPU_TUNE BUNDLE_DIR
A JSON line after each round, the last of which counts: milliseconds of the command's own clock,
the median of the rounds so far, ROUNDS in the end, taken in turn.
  bundle    plan and cubins are in the file (mlp-main.mgpu)
  database  plan and CUDA C++ are in the file (mlp-texts.mgpu), cubins in the database
  cold      the same with a database that is empty: NVRTC compiles
  process   the whole process of the first, started and ended
and the ratios of the first two to the third.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 5


def first(tune, bundle, database):
    """Milliseconds to the end of the first replay, and of the process."""
    start = time.monotonic()
    done = subprocess.run([tune, "run", bundle, "--target", "cuda:0/4", "--no-tuned", "--json", "--db", database,
                           *(f"--arg={name}=random:{seed}" for seed, name in enumerate(("x", "w1", "w2")))],
                          capture_output=True, text=True, check=False)
    process = 1e3 * (time.monotonic() - start)
    if done.returncode != 0:
        sys.exit(f"{bundle}: exit code {done.returncode}: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    return (said["ready_us"] + said["replay_us"]["median"]) / 1e3, process


def main():
    tune, folder = sys.argv[1:]
    times = {"bundle": [], "database": [], "cold": [], "process": []}
    with tempfile.TemporaryDirectory() as work:
        warm = f"{work}/warm.db"
        first(tune, f"{folder}/mlp-texts.mgpu", warm)  # fills the database
        first(tune, f"{folder}/mlp-main.mgpu", warm)
        for number in range(ROUNDS):
            ms, process = first(tune, f"{folder}/mlp-main.mgpu", warm)
            times["bundle"].append(ms)
            times["process"].append(process)
            times["database"].append(first(tune, f"{folder}/mlp-texts.mgpu", warm)[0])
            # NVIDIA's own cache of compiled kernels would make it warm.
            os.environ["CUDA_CACHE_DISABLE"] = "1"
            times["cold"].append(first(tune, f"{folder}/mlp-texts.mgpu", f"{work}/cold{number}.db")[0])
            del os.environ["CUDA_CACHE_DISABLE"]
            line = {f"{name}_ms": round(statistics.median(values), 3) for name, values in times.items()}
            line["bundle_over_cold"] = line["bundle_ms"] / line["cold_ms"]
            line["database_over_cold"] = line["database_ms"] / line["cold_ms"]
            line["rounds"] = number + 1
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
