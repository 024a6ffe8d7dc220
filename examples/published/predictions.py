# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts a step that others measured, of which rows.csv and kept.csv have one in each row."""
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import kernel_lists
import steps
import training

HERE = pathlib.Path(__file__).resolve().parent
NEW_TOKENS = 100  # gpt-fast's default
POSITIONS = kernel_lists.POSITIONS
# The prefill, which is not compiled, starts each of its operations from Python: assumed 4 to 10 us.
OPERATIONS_OF_A_LAYER, START_US, PROMPT = 25, (4, 10), 5
# int8 weights: conversions to f32 run at a quarter of a multiprocessor's rate. At the least they hide behind the loads; at
# the most kernels reach the share of the memory's rate that https://github.com/pytorch/ao, torchao/quantization/README.md,
# has of the same model on another A100: "1131.18" GB/s with int8 weights, "1418.93" with bf16.
DEQUANTISED_SHARE = 1131.18 / 1418.93


def rows(name="rows.csv"):
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file))


def measured_us(row):
    value, tokens = float(row["measured"]), int(row["batch"]) * POSITIONS.get(row["kind"], 1)
    return {"us": value, "tokens/s": 1e6 / value, "tokens/s/GPU": tokens * 1e6 / value}[row["unit"]]


def planned(tune, row, *options):
    """What `plan` says of the kernels of a row."""
    listed = kernel_lists.make(row["kind"], row["model"], *(int(row[each]) for each in ("devices", "weight_bytes", "batch")))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "list.json")
        path.write_text(listed.text(f"row {row['id']}"))
        done = subprocess.run([tune, "plan", path, "--target", f"sim:{row['machine']}", "--budget", "0", "--no-tuned",
                               "--transforms", "none", *options], cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"row {row['id']}: {done.stdout}{done.stderr}")
    return done.stdout


def explain(tune, row):
    """The plan of a row's kernels, in words: (makespan, least, most, text)."""
    text = planned(tune, row, "--explain")
    middle = float(re.search(r"with contention: makespan ([\d.]+) us", text)[1])
    ends = re.search(r"from ([\d.e+]+) to ([\d.e+]+) us by the ranges", text)
    return middle, *(map(float, ends.groups()) if ends else (middle, middle)), text


def predict(tune, row):
    """Microseconds of a step as its page times it: (middle, least, most, text)."""
    middle, least, most, text = explain(tune, row)
    if row["weight_bytes"] == "1":
        loads = float(re.search(r"([\d.]+) us  kernels, bound by memory", text)[1])
        most += loads / DEQUANTISED_SHARE - loads
        middle = (least * most) ** 0.5
    if row["kind"] == "decode":
        m, prompt = kernel_lists.MODELS[row["model"]], 0
        if m.experts > 1:  # the prompt's tokens read the weights of their experts one by one
            prompt = explain(tune, {**row, "batch": str(PROMPT)})[0]
        host = re.search(r"rate\.replay_us = ([\d.]+) .*: ([\d.]+) to ([\d.]+);", text)
        waits = [float(each) for each in host.groups()]
        starts = [(START_US[0] * START_US[1]) ** 0.5, *START_US]

        def timed(step, wait, start):
            first = max(step, prompt, OPERATIONS_OF_A_LAYER * m.layers * start)
            return (first + (NEW_TOKENS - 1) * (step + wait)) / NEW_TOKENS

        middle, least, most = (timed(*each) for each in zip((middle, least, most), waits, starts))
    return middle, least, most, text


def parts(text):
    """The parts of a replay, as `plan --explain` says them."""
    return text[text.index("a replay is made of"):].split("makespan with contention from")[0]


def our_plan(tune, row):
    """Microseconds of the row's tensor program as mgpu plans it, before any tuning. A training step is planned with 2 and
    with 4 layers, and each further layer takes as long as one of those that were added."""
    def time_of(program):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "step.mlir")
            path.write_text(program)
            done = subprocess.run([tune, "plan", path, "--target", f"sim:{row['machine']}", "--budget", "0", "--json",
                                   "--no-tuned", *(["--one-device"] if row["devices"] != "1" else [])],
                                  capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"row {row['id']}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)["contended_replay_us"]

    words = [row["model"], "--devices", row["devices"]]
    if row["kind"] != "training":
        return time_of(steps.make([*words, "--weights", {"1": "i8", "2": "bf16"}[row["weight_bytes"]]]).text())
    two, four = (time_of(training.make([*words, "--layers", layers, "--batch", row["batch"]]).text()) for layers in ("2", "4"))
    return four + (kernel_lists.MODELS[row["model"]].layers - 4) * (four - two) / 2
