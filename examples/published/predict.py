#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts the steps of rows.csv and writes docs/predicted.md: predicted, measured, and their ratio.

Usage: predict.py MGPU_TUNE [--update | --first | --check]
--update writes the page; --first also keeps these predictions as those of the first rates; --check compares the page
with what it would be; without any of these the table is printed.
"""
import csv
import pathlib
import re
import statistics
import sys

import kernel_lists
import what_if
from predictions import measured_us, our_plan, parts, predict, rows

HERE = pathlib.Path(__file__).resolve().parent
PAGE, PICTURE = (HERE.parents[1] / "docs" / name for name in ("predicted.md", "predicted.svg"))
FIRST = HERE / "first.csv"
RATIOS = (("Llama-2-7B, 1 to 2 GPUs", "2", "3"), ("Llama-2-7B, 1 to 4 GPUs", "2", "8"),
          ("Llama-2-7B, 1 to 8 GPUs", "2", "9"), ("Llama-2-70B, 2 to 4 GPUs", "10", "11"),
          ("Llama-2-70B, 2 to 8 GPUs", "10", "4"), ("Llama-2-7B, bf16 to int8", "2", "7"))
BAR = {"1", "2", "3", "4", "8", "9", "10", "11", "12"}


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


def model(row):
    return row["model"] + (" int8" if row["weight_bytes"] == "1" else "")


def table(found, plans):
    out = ["| row | model | GPUs | machine | measured, ms | kernel list predicted, ms | from | to | ratio | "
           "with the first rates | our plan, ms |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    before = first()
    for row, middle, least, most, _ in found.values():
        us = measured_us(row)
        plan = plans[row["id"]]
        times = " | ".join(f"{each / 1000:.4g}" for each in (us, middle, least, most))
        out.append(f"| [{row['id']}]({row['source']}) | {model(row)} | {row['devices']} | `{row['machine']}` | "
                   f"{times} | {middle / us:.3f} | {before[row['id']] / us:.3f} | {plan / 1000:.4g} |")
    return "\n".join(out)


def kept_table(kept):
    out = ["| row | model | step | batch | GPUs | measured, ms | predicted, ms | from | to | ratio |",
           "|---|---|---|---|---|---|---|---|---|---|"]
    for row, middle, least, most, _ in kept.values():
        us = measured_us(row)
        times = " | ".join(f"{each / 1000:.4g}" for each in (us, middle, least, most))
        out.append(f"| [{row['id']}]({row['source']}) | {model(row)} | {row['kind']} | {row['batch']} | {row['devices']} | "
                   f"{times} | {middle / us:.3f} |")
    return "\n".join(out + ["", f"Errors: {verdict(error(each[1], each[0]) for each in kept.values())}."])


def gain(pair):
    """Milliseconds that all-reduces in one kernel save, measured and predicted."""
    (slow, slow_us, *_), (fast, fast_us, *_) = pair
    return (measured_us(slow) - measured_us(fast)) / 1000, (slow_us - fast_us) / 1000


def ratio(found, a, b):
    """How much faster row b is than row a, measured and predicted."""
    return measured_us(found[a][0]) / measured_us(found[b][0]), found[a][1] / found[b][1]


def ratios(found):
    out = ["| ratio of step times | measured | predicted | error |", "|---|---|---|---|"]
    for words, a, b in RATIOS:
        measured, predicted = ratio(found, a, b)
        out.append(f"| {words} | {measured:.2f} | {predicted:.2f} | {100 * (predicted / measured - 1):+.1f} % |")
    return "\n".join(out)


def page(found, plans, kept, pair):
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
             "KEPT": kept_table(kept),
             "GAIN": "Row 5, Qwen3-8B on 8 of `dgx-h800`: 72 all-reduces in one kernel each, in place of NCCL's, save {:.2f} ms "
                     "of a step; predicted are {:.2f} ms.".format(*gain(pair)),
             "READINGS": "\n".join(f"- `{name}`: {words}." for name, words in kernel_lists.READINGS.items())}
    text = PAGE.read_text()
    for name, words in texts.items():
        text, blocks = re.subn(f"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}{words}\n{m[2]}", text, flags=re.S)
        if blocks != 1:
            sys.exit(f"{PAGE} has {blocks} blocks {name}: it must have one, from <!-- {name} --> to <!-- end -->")
    return text


def main(tune, option):
    tune = str(pathlib.Path(tune).resolve())
    found, kept = ({row["id"]: (row, *predict(tune, row)) for row in rows(name)} for name in ("rows.csv", "kept.csv"))
    pair = [(row, *predict(tune, row)) for row in rows("gain.csv")]
    if option == "--first":
        FIRST.write_text("id,us\n" + "".join(f"{each},{of[1]:.1f}\n" for each, of in found.items()))
    plans = {each: our_plan(tune, of[0]) for each, of in found.items()}
    for path, text in ((PAGE, page(found, plans, kept, pair)), (PICTURE, what_if.answer(tune))):
        if option in ("--update", "--first"):
            path.write_text(text)
        elif option == "--check" and text != path.read_text():
            sys.exit(f"{path} is not what {sys.argv[0]} makes: run it with --update")
    print("\n\n".join((table(found, plans), ratios(found), kept_table(kept), "{:.3f} ms, {:.3f} predicted".format(*gain(pair)))))
    return found, kept, pair


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--update"], ["--first"], ["--check"]):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "")
