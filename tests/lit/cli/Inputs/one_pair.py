#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every number that is printed of one decision is the same stored pair.

Usage: one_pair.py MGPU_TUNE PROGRAM DATABASE [ARGUMENT...]

Tunes PROGRAM for a fresh DATABASE, and asks tune (again, answered from the database), report (md,
json), compare, db show and db list (text and json) for the two times and the sentence.
"""

import json
import re
import subprocess
import sys

TIME = r"([0-9.]+ [num]?s)"


def main():
    tune, program, database, *arguments = sys.argv[1:]

    def run(*words, code=0):
        done = subprocess.run([tune, *words, "--db", database], capture_output=True, text=True)
        if done.returncode != code:
            sys.exit(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def text_pair(text, pattern=rf"default +{TIME}\ntuned +{TIME}: (.*)"):
        found = re.search(pattern, text)
        if not found:
            sys.exit(f"no pair in:\n{text}")
        return found.groups()[:2]

    subject = [program, *arguments]
    first = run("tune", *subject, "--budget", "12")
    pair = text_pair(first)
    again = json.loads(run("tune", *subject, "--budget", "1", "--json"))
    stored = (again["default_us"], again["tuned_us"])
    pairs = {
        "tune again": text_pair(run("tune", *subject, "--budget", "1")),
        "report md": text_pair(run("report", "--format", "md"),
                               rf"\| default \| {TIME}[^|]*\|\n\| tuned \| {TIME}"),
        "compare": text_pair(run("compare", *subject, "default", "tuned", "--budget", "1")),
        "db list": re.search(rf"  {TIME} +{TIME}  (?:FAST|SAME|AMBG|SLOW|the default)", run("db", "list")).groups(),
    }
    report = json.loads(run("report", "--format", "json"))
    listed, = json.loads(run("db", "list", "--json"))["programs"]
    pairs["db show"] = text_pair(run("db", "show", listed["key"]))
    shown = json.loads(run("db", "show", listed["key"], "--json"))["decided"]
    numbers = {
        "report json": (report["before"]["us"], report["after"]["us"]),
        "db list json": tuple(listed["times"][side]["median_us"] for side in ("default", "tuned")),
        "db show json": tuple(shown[side]["median_us"] for side in ("default", "tuned")),
    }
    faults = [f"{name} says {found}, tune said {pair}" for name, found in pairs.items() if found != pair]
    # Text has fewer digits than what is stored.
    faults += [f"{name} says {found}, stored is {stored}" for name, found in numbers.items()
               if any(abs(a / b - 1) > 1e-5 for a, b in zip(found, stored))]
    # The text is those numbers, in their unit.
    for words, us in zip(pair, stored):
        value, unit = words.split()
        if abs(float(value) * {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[unit] / us - 1) > 1e-3:
            faults.append(f"'{words}' is not {us} us")
    if not 0 < stored[1] <= stored[0]:
        faults.append(f"the winner is slower than the default: {stored}")
    # `run` uses what is decided, and says so in the same words.
    chosen = shown["configuration"]
    if not chosen or chosen != listed["configuration"]:
        faults.append(f"db list and db show differ: {chosen} and {listed['configuration']}")
    said = subprocess.run([tune, "run", *subject, "--arg", "x=1", "--arg", "y=1", "--db", database],
                          capture_output=True, text=True).stderr
    if shown["comparison"] not in said:
        faults.append(f"run says '{said}', stored is '{shown['comparison']}'")
    print("\n".join(faults) if faults else "one pair")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
