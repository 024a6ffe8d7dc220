#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variants of a GPU that is not there: what is stored of one decides whether it is on, old spellings mean what new ones
do, and the comparison of tests/gpu stores what came of kernels that begin early.

Usage: variants.py MGPU_TUNE EXAMPLES_DIR LIBRARIES
"""

import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import examples  # noqa: E402

NOTE = "variants that the database says have passed on this GPU: "


def main():
    tune, source, libraries = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({"LD_LIBRARY_PATH": libraries, "MGPU_DB": f"{folder}/db",
                           "MGPU_REHEARSAL": os.environ.get("MGPU_REHEARSAL", folder)})

        def run(*words, expect=0):
            done = subprocess.run([tune, *words], capture_output=True, text=True, check=False)
            if done.returncode != expect:
                sys.exit(f"{' '.join(words)}: exit code {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
            return done

        def replay(*words):
            """What is said of defaults, and the bytes of the result."""
            out = f"{folder}/out.npy"
            done = run("run", f"{source}/mlp/mlp.mlir", "--random", "--target", "cuda:0/4", "--out", f"y={out}", *words)
            with open(out, "rb") as file:
                said = [line.split(NOTE)[1] for line in done.stderr.splitlines() if NOTE in line]
                return said, file.read()

        def expect(got, wanted, what):
            if got != wanted:
                sys.exit(f"{what}: {got}, not {wanted}")

        def store(name, *figures):
            return run("db", "variant", name, "--target", "cuda:0", *figures).stdout

        # No word is stored yet; each word gives the bits.
        said, plain = replay()
        expect(said, [], "defaults without evidence")
        for words in (["--variant", "pdl"], ["--variant=pdl=on,mma"]):
            expect(replay(*words), ([], plain), str(words))

        # What is stored is listed.
        said = store("mma", "--replay-us", "5")
        expect(bool(re.match(r"mma: passed on .*, CUDA driver [\d.]+\n$", said)), True, said)
        listed = {each["name"]: each for each in json.loads(run("db", "variant", "--json").stdout)["variants"]}
        expect([(each["verdict"], each["replay_us"]) for each in listed["mma"]["evidence"]], [("passed", 5)], "of mma")
        expect(listed["pdl"]["evidence"], [], "of pdl")
        # There is no product of f16 in this program.
        expect(replay(), ([], plain), "with evidence of mma")

        for figures, wanted in ((["--replay-us", "9", "--without-us", "8"], []),
                                (["--replay-us", "8", "--without-us", "9"], ["pdl"])):
            store("pdl", *figures)
            expect(replay(), (wanted, plain), str(figures))
        expect(replay("--variant", "pdl=off"), ([], plain), "off by word")
        expect(replay("--no-tuned"), ([], plain), "without the record")
        tuned = run("tune", f"{source}/mlp/mlp.mlir", "--target", "cuda:0/4", "--budget", "2").stdout
        expect("tuned" in tuned, True, tuned)
        store("pdl", "--failed", "y differs")
        expect(replay("--scheduler", "list"), ([], plain), "after a failure")
        run("db", "variant", "pdl", "--target", "host:2", "--replay-us", "3", expect=2)
        run("db", "variant", "pdl", "--target", "cuda:0", expect=2)

        # As tests/gpu/run.sh does, in a database of its own.
        os.environ["MGPU_DB"] = f"{folder}/compared"
        examples.CHAINS, examples.EARLY_REPEAT = [("mlp", "main")], 2
        expect(examples.check_early(tune, source), True, "kernels that begin early")
        text = run("db", "variant").stdout
        if not re.search(r"^pdl: .*\n.*\n  .*: passed, [\d.e+]+ us, [\d.e+]+ us without it$", text, re.M):
            sys.exit(text)
        violations = f"{os.environ['MGPU_REHEARSAL']}/violations"
        if os.path.exists(violations):
            with open(violations, encoding="utf-8") as file:
                sys.exit(f"rules of CUDA's that were broken:\n{file.read()}")


if __name__ == "__main__":
    main()
