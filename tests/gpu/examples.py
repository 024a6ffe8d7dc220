#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every example on a card must give the bits it gives on the host target.

Usage: examples.py MGPU_TUNE EXAMPLES_DIR [REPEAT]
Exit code 77, which ctest counts as skipped, without a card or NVRTC; unless MGPU_REQUIRE_GPU is set.
Prints one JSON line for each run: example, target, microseconds of a replay.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

EXAMPLES = [("saxpy", "main", {"a": "2.5"}), ("heat", "main", {}), ("mandelbrot", "main", {}),
            ("mlp", "main", {}), ("ops", "main", {}), ("digits", "main", {"rate": "0.5"}),
            ("digits", "eval", {})]


def run(tune, *words):
    return subprocess.run([tune, *words], capture_output=True, text=True, check=False)


def card_is_there(tune):
    report = json.loads(run(tune, "doctor", "--json").stdout)
    return bool(report.get("cards")) and "version" in report["nvrtc"]


def signature(tune, file, entry, scalars):
    """The number of devices and the names of the arrays."""
    words = [f"--arg={name}={value}" for name, value in scalars.items()]
    checked = run(tune, "check", file, "--entry", entry, *words)
    if checked.returncode != 0:
        sys.exit(f"check {file}: {checked.stderr}")
    devices = int(re.search(r"ok: (\d+) devices", checked.stdout).group(1))
    arrays = re.findall(r"^  (argument|result) (\S+): (\S*x\S+) ", checked.stdout, re.M)
    return devices, [name for kind, name, _ in arrays if kind == "argument"], \
        [name for _, name, _ in arrays]


def replay(tune, file, entry, scalars, arrays, outputs, target, repeat, folder):
    """The bytes of every array afterwards, and the median time of a replay."""
    words = ["--target", target, "--entry", entry, "--repeat", str(repeat), "--json"]
    for name, value in scalars.items():
        words += ["--arg", f"{name}={value}"]
    for seed, name in enumerate(arrays):
        words += ["--arg", f"{name}=random:{seed}"]
    for name in outputs:
        words += ["--out", f"{name}={folder}/{name}.npy"]
    done = run(tune, "run", file, *words)
    if done.returncode != 0:
        return None, f"exit code {done.returncode}: {done.stderr.strip()}"
    data = {}
    for name in outputs:
        with open(f"{folder}/{name}.npy", "rb") as array:
            data[name] = array.read()
    return data, json.loads(done.stdout)["replay_us"]["median"]


def main():
    tune, examples = sys.argv[1], sys.argv[2]
    repeat = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    if not card_is_there(tune):
        if os.environ.get("MGPU_REQUIRE_GPU"):
            sys.exit("there is no card, or no NVRTC: see mgpu-tune doctor")
        print("skipped: no card or no NVRTC")
        sys.exit(77)
    failures = 0
    for name, entry, scalars in EXAMPLES:
        file = f"{examples}/{name}/{name}.mlir"
        devices, arrays, outputs = signature(tune, file, entry, scalars)
        with tempfile.TemporaryDirectory() as folder:
            expected, why = replay(tune, file, entry, scalars, arrays, outputs,
                                   f"host:{devices}", repeat, folder)
            if expected is None:
                sys.exit(f"{name} on the host: {why}")
            for logical in sorted({max(devices, each) for each in (1, 2, 4)}):
                target = "cuda:0" if logical == 1 else f"cuda:0/{logical}"
                got, figure = replay(tune, file, entry, scalars, arrays, outputs, target, repeat,
                                     folder)
                wrong = [] if got is None else [k for k in outputs if got[k] != expected[k]]
                line = {"example": name, "entry": entry, "target": target, "repeat": repeat,
                        "ok": got is not None and not wrong}
                if got is None:
                    line["error"] = figure
                elif wrong:
                    line["differ"] = wrong
                else:
                    line["replay_us"] = figure
                failures += not line["ok"]
                print(json.dumps(line), flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
