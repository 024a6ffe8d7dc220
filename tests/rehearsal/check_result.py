#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a rehearsal must have left behind: check_result.py FOLDER BENCH_RESULTS
                                          check_result.py --late FOLDER SECONDS

One result that says it is none, with every part of it there, and none among the real ones. With --late, of a run that had too little time: each
step is there nonetheless, the last not run.
"""

import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpu"))
from run import LIMITS  # noqa: E402



def has_bits(lines):
    """All functions are the host's here: what only has to be close has its bits, too."""
    close = [each for each in lines if each.get("compared", "bits") != "bits"]
    return len(close) == 4 and all(each["host_bits"] for each in close)


# What each part is with one GPU of sm_90.
PARTS = {"examples": lambda lines: len(lines) == 15 and has_bits(lines),
         "replays": lambda lines: len(lines) == 11 and has_bits(lines) and all(
             each["replays"] == 120 and "host_growth_bytes" in each for each in lines),
         "first_replay": lambda lines: len(lines) == 1 and lines[0]["cold_ms"] > lines[0]["bundle_ms"] > 0,
         "torch": lambda lines: len(lines) == 3,
         "large": lambda lines: len(lines) == 28 and all(each["ok"] and each["us"] > 0 for each in lines),
         "decode": lambda lines: len(lines) == 4 and all(each["ok"] for each in lines),
         "tuned": lambda lines: len(lines) == 2 and lines[1]["configuration"],
         "sanitizer": lambda lines: len(lines) == 18}
BENCH = {"gpu": 1, "launch": 8, "span": 8, "bandwidth": 3}
# Two GPUs, NCCL 2.30, calibrate, and what PyTorch and JAX do are not rehearsed.
SKIPPED = {"calibrate", "predict", "rates", "exports", "gpu-ranks 2", "gpu-ranks 4", "gpu-ranks 2 one", "gpu-ranks 4 one", "gpu-ranks 2 die"}


def check_late(folder, seconds):
    names = [name for name in os.listdir(folder) if name.endswith(".json")]
    if len(names) != 1:
        sys.exit(f"a run that was late left {os.listdir(folder)}")
    with open(f"{folder}/{names[0]}", encoding="utf-8") as file:
        result = json.load(file)
    steps = {step["step"]: step["status"] for step in result["steps"]}
    if list(steps) != list(LIMITS) or steps[list(LIMITS)[-1]] != "not_run" or "failed" in steps.values():
        sys.exit(f"a run that was late has the steps {steps}")
    # The last of what was begun may take its grace to end, and then all is written.
    if result["complete"] or result["seconds"] > seconds + 15:
        sys.exit(f"a run of {seconds} s took {result['seconds']} s, and is complete: {result['complete']}")
    print(f"a run that was late left all {len(steps)} steps after {result['seconds']} s")


def main():
    if sys.argv[1] == "--late":
        return check_late(sys.argv[2], float(sys.argv[3]))
    folder, real = sys.argv[1:]
    faults = []
    if glob.glob(f"{real}/*double*"):
        faults.append(f"there is a rehearsal's result in {real}")
    found = os.listdir(folder)
    results = [name for name in found if name.endswith(".json")]
    if len(results) != 1 or not results[0].startswith("fake-gpu-test-double-") or \
            set(found) - {results[0].replace(".json", end) for end in (".db.gz", "-dumps.tar.gz")} != {results[0], results[0].replace(".json", "-logs.tar.gz")}:
        sys.exit(f"not one result and its logs: {found}")
    with open(f"{folder}/{results[0]}", encoding="utf-8") as file:
        result = json.load(file)
    if "rehearsal" not in result:
        faults.append("the result does not say that it is a rehearsal's")
    if not result["complete"]:
        faults.append("something was left out")
    for step in result["steps"]:
        wanted = "skipped" if step["step"] in SKIPPED else "passed"
        if step["status"] != wanted or step.get("disagreements"):
            faults.append(f"not as it should be: {step}")
    if [step["step"] for step in result["steps"]] != list(LIMITS):
        faults.append(f"other steps than those that have limits: {[step['step'] for step in result['steps']]}")
    for part, is_whole in PARTS.items():
        if not is_whole(result.get(part, [])):
            faults.append(f"{part}: {len(result.get(part, []))} lines, or not what they should be")
    if len(result.get("targets", [])) != 6 or any(each["worst"] is None or each["met"] is not None for each in result["targets"]):
        faults.append(f"not all targets were judged: {result.get('targets')}")
    for part, count in BENCH.items():
        lines = [each for each in result.get("bench", []) if each["part"] == part]
        if len(lines) != count:
            faults.append(f"bench {part}: {len(lines)} lines, not {count}")
    print("\n".join(faults) if faults else f"the rehearsal left what it should ({len(result['steps'])} steps)")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
