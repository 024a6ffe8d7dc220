#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts the steps of rows.csv and writes docs/predicted.md: predicted, measured, and their ratio.

Usage: predict.py MGPU_TUNE [--update | --first | --check]
--update writes the page; --first also keeps these predictions as those of the first rates; --check compares the page
with what it would be; without any of these the table is printed.
"""
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import kernel_lists
import steps

HERE = pathlib.Path(__file__).resolve().parent
PAGE, FIRST = HERE.parents[1] / "docs" / "predicted.md", HERE / "first.csv"
NEW_TOKENS = 100  # gpt-fast's default
POSITIONS = kernel_lists.POSITIONS
# The prefill, which is not compiled, starts each of its operations from Python: assumed 4 to 10 us.
OPERATIONS_OF_A_LAYER, START_US = 25, (4, 10)
# int8 weights: conversions to f32 run at a quarter of a multiprocessor's rate. At the least they hide behind the loads; at
# the most kernels reach the share of the memory's rate that https://github.com/pytorch/ao, torchao/quantization/README.md,
# has of the same model on another A100: "1131.18" GB/s with int8 weights, "1418.93" with bf16.
DEQUANTISED_SHARE = 1131.18 / 1418.93
RATIOS = (("Llama-2-7B, 1 to 2 GPUs", "2", "3"), ("Llama-2-7B, 1 to 4 GPUs", "2", "8"),
          ("Llama-2-7B, 1 to 8 GPUs", "2", "9"), ("Llama-2-70B, 2 to 4 GPUs", "10", "11"),
          ("Llama-2-70B, 2 to 8 GPUs", "10", "4"), ("Llama-2-7B, bf16 to int8", "2", "7"))
BAR = {"1", "2", "3", "4", "8", "9", "10", "11", "12"}


def rows(name="rows.csv"):
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file))


def measured_us(row):
    value, tokens = float(row["measured"]), int(row["batch"]) * POSITIONS.get(row["kind"], 1)
    return {"us": value, "tokens/s": 1e6 / value, "tokens/s/GPU": tokens * 1e6 / value}[row["unit"]]


def explain(tune, row):
    """The plan of a row's kernels, in words: (makespan, least, most, text)."""
    listed = kernel_lists.make(row["kind"], row["model"], *(int(row[each]) for each in ("devices", "weight_bytes", "batch")))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "list.json")
        path.write_text(listed.text(f"row {row['id']}"))
        done = subprocess.run([tune, "plan", path, "--target", f"sim:{row['machine']}", "--budget", "0", "--explain",
                               "--no-tuned", "--transforms", "none"], cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"row {row['id']}: {done.stdout}{done.stderr}")
    middle = float(re.search(r"with contention: makespan ([\d.]+) us", done.stdout)[1])
    ends = re.search(r"from ([\d.e+]+) to ([\d.e+]+) us by the ranges", done.stdout)
    return middle, *(map(float, ends.groups()) if ends else (middle, middle)), done.stdout


def predict(tune, row):
    """Microseconds of a step as its page times it: (middle, least, most, text)."""
    middle, least, most, text = explain(tune, row)
    if row["weight_bytes"] == "1":
        loads = float(re.search(r"([\d.]+) us  kernels, bound by memory", text)[1])
        most += loads / DEQUANTISED_SHARE - loads
        middle = (least * most) ** 0.5
    if row["kind"] == "decode":
        layers = kernel_lists.MODELS[row["model"]].layers
        host = re.search(r"rate\.replay_us = ([\d.]+) .*: ([\d.]+) to ([\d.]+);", text)
        waits = [float(each) for each in host.groups()]
        starts = [(START_US[0] * START_US[1]) ** 0.5, *START_US]

        def timed(step, wait, start):
            first = max(step, OPERATIONS_OF_A_LAYER * layers * start)
            return (first + (NEW_TOKENS - 1) * (step + wait)) / NEW_TOKENS

        middle, least, most = (timed(*each) for each in zip((middle, least, most), waits, starts))
    return middle, least, most, text


def parts(text):
    """The parts of a replay, as `plan --explain` says them."""
    return text[text.index("a replay is made of"):].split("makespan with contention from")[0]


def our_plan(tune, row):
    """Microseconds of the tensor program of steps.py as mgpu plans it, before any tuning; None where there is none."""
    if row["kind"] == "training":
        return None
    kind = {"1": "i8", "2": "bf16"}[row["weight_bytes"]]
    words = [row["model"], "--devices", row["devices"], "--weights", kind]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "step.mlir")
        path.write_text(steps.make(words).text())
        done = subprocess.run([tune, "plan", path, "--target", f"sim:{row['machine']}", "--budget", "0", "--json",
                               "--no-tuned", *(["--one-device"] if row["devices"] != "1" else [])],
                              capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"row {row['id']}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)["contended_replay_us"]


def first():
    if not FIRST.exists():
        return {}
    with open(FIRST, newline="") as file:
        return {row["id"]: float(row["us"]) for row in csv.DictReader(file)}


def error(us, row):
    return us / measured_us(row) - 1


def verdict(errors):
    errors = [abs(each) for each in errors]
    return f"median {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %"


def table(found, plans):
    out = ["| row | model | GPUs | machine | measured, ms | kernel list predicted, ms | from | to | ratio | "
           "with the first rates | our plan, ms |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    before = first()
    for row, middle, least, most, _ in found.values():
        us = measured_us(row)
        plan = plans[row["id"]]
        kind = " int8" if row["weight_bytes"] == "1" else ""
        times = " | ".join(f"{each / 1000:.4g}" for each in (us, middle, least, most))
        out.append(f"| [{row['id']}]({row['source']}) | {row['model']}{kind} | {row['devices']} | `{row['machine']}` | "
                   f"{times} | {middle / us:.3f} | {before[row['id']] / us:.3f} | "
                   f"{f'{plan / 1000:.4g}' if plan else 'none'} |")
    return "\n".join(out)


def ratio(found, a, b):
    """How much faster row b is than row a, measured and predicted."""
    return measured_us(found[a][0]) / measured_us(found[b][0]), found[a][1] / found[b][1]


def ratios(found):
    out = ["| ratio of step times | measured | predicted | error |", "|---|---|---|---|"]
    for words, a, b in RATIOS:
        measured, predicted = ratio(found, a, b)
        out.append(f"| {words} | {measured:.2f} | {predicted:.2f} | {100 * (predicted / measured - 1):+.1f} % |")
    return "\n".join(out)


def page(found, plans):
    before = first()
    judged = [each for each in found.values() if each[0]["id"] in BAR]
    held = [row["id"] for row, _, least, most, _ in found.values() if least <= measured_us(row) <= most]
    missed = [each for each in found if each not in held]
    texts = {"TABLE": table(found, plans), "RATIOS": ratios(found),
             "SUMMARY": f"Rows 1 to 4 and 8 to 12: {verdict(error(each[1], each[0]) for each in judged)}. With the first "
                        f"rates: {verdict(error(before[each[0]['id']], each[0]) for each in judged)}. The measurement lies "
                        f"in the interval in rows {', '.join(held)}, and outside of it in rows {', '.join(missed)}.",
             "PARTS": "\n".join(f"Row {row['id']}, {row['model']} on {row['devices']} of `{row['machine']}`:\n```\n"
                                f"{parts(text)}```" for row, _, _, _, text in found.values()),
             "READINGS": "\n".join(f"- `{name}`: {words}." for name, words in kernel_lists.READINGS.items())}
    text = PAGE.read_text()
    for name, words in texts.items():
        text = re.sub(f"(<!-- {name} -->\n).*?(\n<!-- end -->)", lambda m: m[1] + words + m[2], text, flags=re.S)
    return text


def main(tune, option):
    found = {row["id"]: (row, *predict(tune, row)) for row in rows()}
    if option == "--first":
        FIRST.write_text("id,us\n" + "".join(f"{each},{of[1]:.1f}\n" for each, of in found.items()))
    plans = {each: our_plan(tune, of[0]) for each, of in found.items()}
    text = page(found, plans)
    if option in ("--update", "--first"):
        PAGE.write_text(text)
    elif option == "--check":
        if text != PAGE.read_text():
            sys.exit(f"{PAGE} is not what {' '.join(sys.argv[:1])} makes: run it with --update")
    print(table(found, plans) + "\n\n" + ratios(found) + "\n\n" + re.search("<!-- SUMMARY -->\n(.*)", text)[1])
    return found


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--update"], ["--first"], ["--check"]):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "")
