#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bundle is profiled, tuned and compared where there is no compiler, and what was found runs to
the same bits.

Usage: tune.py MGPU_TUNE BUNDLE
"""

import json
import os
import subprocess
import sys
import tempfile


def command(*words, folder):
    env = dict(os.environ, MGPU_LD_LLD="/nowhere")
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tune, bundle = (os.path.realpath(path) for path in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        arguments = [word for name in "ab" for word in ("--arg", f"{name}=random:{ord(name)}")]
        stored = ["--db", "t.db"]

        def outputs(name, *words):
            _, said = command(tune, "run", bundle, *arguments, "--out", f"a={name}", *words, folder=folder)
            with open(f"{folder}/{name}", "rb") as file:
                return file.read(), said

        expected, _ = outputs("plain.npy", "--no-tuned")
        facts = json.loads(command(tune, "profile", bundle, "--repeat", "3", "--json", *arguments, *stored,
                                   folder=folder)[0])
        plan = json.loads(command(tune, "plan", bundle, "--json", folder=folder)[0])
        assert not facts["tuned"] and len(facts["nodes"]) == len(plan["nodes"]), len(facts["nodes"])
        # Its kernels are built: what was profiled leaves its plan as it is.
        assert "tuned" not in outputs("profiled.npy", *stored)[1]
        found = json.loads(command(tune, "tune", bundle, "--budget", "12", "--json", *arguments, *stored,
                                   folder=folder)[0])
        assert found["default_us"] > 0, found
        bits, said = outputs("tuned.npy", *stored)
        assert "using the configuration tuned in" in said, said
        assert bits == expected
        lines = command(tune, "compare", bundle, "default", "tuned", "--budget", "20", *arguments, *stored,
                        folder=folder)[0]
        assert "default" in lines and "tuned" in lines, lines


if __name__ == "__main__":
    main()
