#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the replays of two programs in turn, and compares their first results.

    two_programs.py MGPU_TUNE ONE OTHER ARGUMENTS [--rounds N] [--repeat N] [--tune SECONDS]

Both take ARGUMENTS arguments, given by number and at random, the same for both. Each round runs one and the
other; the ratio is that of a round's medians, and the line shows the median of all rounds. With --tune each program
is tuned before. It needs NumPy.
"""
import argparse
import os
import re
import statistics
import subprocess
import tempfile

import numpy

UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}


def median_us(text):
    number, unit = re.search(r"replay\s+([\d.]+) (\w+) median", text).groups()
    return float(number) * UNITS[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tune_command", metavar="MGPU_TUNE")
    parser.add_argument("programs", nargs=2)
    parser.add_argument("arguments", type=int)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--tune", type=float, default=0)
    options = parser.parse_args()
    given = [word for k in range(options.arguments) for word in ("--arg", f"{k}=random:{k + 1}")]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "MGPU_DB": os.path.join(folder, "tuning.db")}

        def call(*words):
            return subprocess.run([options.tune_command, *words, *given], env=env, check=True, capture_output=True,
                                  text=True).stdout

        if options.tune:
            for program in options.programs:
                call("tune", program, "--budget", str(options.tune))
        times, results = [], []
        for _ in range(options.rounds):
            out = [os.path.join(folder, f"{k}.npy") for k in range(2)]
            times.append([median_us(call("run", program, "--repeat", str(options.repeat), "--out", f"r0={path}"))
                          for program, path in zip(options.programs, out)])
            results = [numpy.load(path) for path in out]
    for k, program in enumerate(options.programs):
        column = [row[k] for row in times]
        print(f"{os.path.basename(program):24} median {statistics.median(column):10.1f} us, least {min(column):10.1f}")
    ratios = sorted(row[0] / row[1] for row in times)
    print(f"ratio  {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    apart = numpy.abs(results[0].astype("f8") - results[1]).max() / numpy.abs(results[1]).max()
    print(f"results differ by at most {apart:.1e} of the largest element")


main()
