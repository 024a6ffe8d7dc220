#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bundle is profiled, tuned and compared where there is no compiler, and what was found runs to
the same bits.

Usage: tune.py MGPU_TUNE BUNDLE, where the command is the one without a compiler
"""

import functools
import json
import os
import sys
import tempfile

import harness


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tune, bundle = (os.path.realpath(path) for path in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        command = functools.partial(harness.command, cwd=folder)
        arguments = harness.pairs("--arg", [f"{name}=random:{ord(name)}" for name in "ab"])
        stored = ["--db", "t.db"]

        def outputs(name, *words):
            done = command(tune, "run", bundle, *arguments, "--out", f"a={name}", *words)
            with open(f"{folder}/{name}", "rb") as file:
                return file.read(), done.stderr

        expected, _ = outputs("plain.npy", "--no-tuned")
        facts = json.loads(command(tune, "profile", bundle, "--repeat", "3", "--json", *arguments, *stored).stdout)
        plan = json.loads(command(tune, "plan", bundle, "--json").stdout)
        assert not facts["tuned"] and len(facts["nodes"]) == len(plan["nodes"]), len(facts["nodes"])
        # Its kernels are built: what was profiled leaves its plan as it is.
        assert "tuned" not in outputs("profiled.npy", *stored)[1]
        found = json.loads(command(tune, "tune", bundle, "--budget", "12", "--json", *arguments, *stored).stdout)
        assert found["default_us"] > 0, found
        bits, said = outputs("tuned.npy", *stored)
        assert bits == expected
        # On a loaded machine the two may not be told apart.
        if "as nothing beats it in" in said:
            return
        assert "using the configuration tuned in" in said, said
        lines = command(tune, "compare", bundle, "default", "tuned", "--budget", "20", *arguments, *stored).stdout
        assert "default" in lines and "tuned" in lines, lines


if __name__ == "__main__":
    main()
