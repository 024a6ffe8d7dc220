#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands on several GPUs that are not there, a process for each: `run` gives the host's bits, and `calibrate`, with
kernels of fewer points, what `plan` plans with, or nothing where a GPU fails.

Usage: gpus.py MGPU_TUNE SOURCE_DIR LIBRARIES
"""

import json
import os
import re
import subprocess
import sys
import tempfile

SMALLER = [("4194304", "4096"), ("16384", "16"), ("65536", "1024"), ("#few = 256", "#few = 4"),
           ("%rounds = arith.constant 512", "%rounds = arith.constant 8"), ("512x512", "32x32"), ("256x256", "16x16")]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tune, source, libraries = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        doubles = {"LD_LIBRARY_PATH": libraries, "MGPU_REHEARSAL": folder, "MGPU_REHEARSAL_GPUS": "4",
                   "MGPU_DB": f"{folder}/db"}
        worlds = iter(range(100))

        def run(words, environment, expect=0):
            world = f"{folder}/world{next(worlds)}"
            done = subprocess.run([tune, *words], capture_output=True, text=True,
                                  env={**os.environ, **environment, "MGPU_REHEARSAL_WORLD": world})
            if os.path.exists(world):
                os.remove(world)
            if done.returncode != expect:
                sys.exit(f"{' '.join(words)}: exit code {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
            return done.stdout, done.stderr

        ops = ["run", f"{source}/examples/ops/ops.mlir", "--no-tuned", "--arg", "a=iota", "--arg", "b=random:3"]
        outputs = ["gathered", "maximum", "product", "chained", "uneven"]
        for target in ["host:4", "cuda:3,1,0,2"]:
            out = [f"{name}={folder}/{name}.{target[:4]}.npy" for name in outputs]
            run([*ops, "--target", target, *[word for each in out for word in ("--out", each)]], doubles)
        for name in outputs:
            with open(f"{folder}/{name}.host.npy", "rb") as host, open(f"{folder}/{name}.cuda.npy", "rb") as gpus:
                if host.read() != gpus.read():
                    sys.exit(f"{name} is another on several GPUs")

        kernels, node = f"{folder}/kernels.mlir", f"{folder}/node.json"
        with open(f"{source}/pipeline/calibrate.mlir", encoding="utf-8") as text:
            program = text.read()
        for old, new in SMALLER:
            program = program.replace(old, new)
        with open(kernels, "w", encoding="utf-8") as text:
            text.write(program)
        calibrate = ["calibrate", kernels, "--target", "cuda:2,0", "-o", node]
        _, said = run(calibrate, {**doubles, "MGPU_REHEARSAL_FAULT": "0:300"}, expect=1)
        if "the calibration on several GPUs failed; rank 1 (cuda:0) " not in said or os.path.exists(node):
            sys.exit(f"a GPU that fails gives\n{said}and {os.listdir(folder)}")
        shown, said = run(calibrate, doubles)
        print(shown, end="")
        for words in ["mgpu-tune: all_reduce of 2 x 16777216 bytes: ", "mgpu-tune: send_recv of 2 x 4096 bytes, 1 to 0: "]:
            if said.count(words) != 1:
                sys.exit(f"'{words}' is not there once:\n{said}")
        with open(node, encoding="utf-8") as text:
            topology = json.load(text)
        calibration = topology["calibration"]
        if (topology["devices"] != 2 or topology["device"]["name"] != "Fake GPU (test double)"
                or len(calibration["collectives"]) != 24
                or not re.match(r"measured by calibrate on \d{4}-\d\d-\d\d, on cuda:2,0 \(", calibration["source"])):
            sys.exit(f"what is written is\n{json.dumps(topology, indent=1)}")
        plan, _ = run(["plan", f"{source}/tests/lit/cli/Inputs/two.json", "--target", f"sim:{node}", "--budget", "20",
                       "--explain"], {"MGPU_DB": f"{folder}/db"})
        if "100 % measured or frozen, 0 % published, 0 % assumed" not in plan:
            sys.exit(f"the plan is\n{plan}")


if __name__ == "__main__":
    main()
