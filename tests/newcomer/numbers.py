#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program, one target and one database have one set of numbers: what `tune`, `plan`, `run`, `profile`, `report` and
`compare` call the plan, predicted and measured is the same in each. The digits end where the error begins, and JSON has
both. What an older version tuned, by load, replay and fetch together, is named once and not used.

Usage: numbers.py MGPU_TUNE EXAMPLES_DIR
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile

TUNE, EXAMPLES = sys.argv[1:]
MLP = f"{EXAMPLES}/mlp/mlp.mlir"
HERE = (MLP, "--target", "host:4")
ERROR = re.compile(r"makespan ([0-9.]+) us \+-([0-9]+) %, bound ([0-9.]+) us by \w+: ([^(]*) \(")


def run(*words):
    """What a command prints, and its notes."""
    done = subprocess.run([TUNE, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def read(command, *words):
    return json.loads(run(command, *words, "--json")[0])


def check(holds, *what):
    if not holds:
        sys.exit("\n".join(map(str, what)))


def plan_of(text):
    """The line of a plan among those that a command prints, without its title and the replay that is predicted."""
    return next(line for line in text.splitlines() if "makespan " in line).partition("makespan ")[2].partition(";")[0]


def is_one_set(assumed):
    """The plan's times and the prediction are one in `plan`, `run` and `tune`, in text and JSON."""
    plan = read("plan", *HERE)
    text = run("plan", *HERE)[0]
    line = f"makespan {plan_of(text)}"
    makespan, percent, bound, verdict = ERROR.match(line).groups()
    # The digits of the text are rounded by at most an eighth of the error.
    for told, known in ((makespan, "replay_us"), (bound, "replay_bound_us")):
        error = plan["error"] * plan[known]
        check(abs(float(told) - plan[known]) <= error / 8 + 1e-9, line, known, plan[known])
        finest = float(told) / 10 ** math.floor(math.log10(error / 4))
        check(abs(finest - round(finest)) < 1e-6, line, error)
    check(int(percent) == round(100 * plan["error"]), line, plan["error"])
    check(verdict.endswith("under assumed rates") == assumed, line)
    predicted = plan["predicted"]
    said = f"+-{percent} % a replay here on {predicted['threads']} thread"
    check(said in text and predicted["low_us"] < predicted["us"] < predicted["high_us"], said, text)
    for command, words in (("tune", ("--budget", "4")), ("run", ("--random",))):
        check(line in run(command, *HERE, *words)[0].replace("plan    ", ""), command, line)
        told = read(command, *HERE, *words)
        check(told["plan"].startswith(line) and said in told["plan"], command, told["plan"], line)
        check(told.get("predicted", predicted) == predicted, told, predicted)
    return line


def of_an_older_objective(folder):
    """Winners by load, replay and fetch together have no objective in their problem."""
    exported = f"{folder}/exported"
    run("db", "export", "-o", exported)
    with open(exported) as file:
        text = file.read()
    older = re.sub(r"objective=replay[,;]? ?|[,;]? ?objective=replay", "", text)
    check(older != text, "no problem has an objective", text[:2000])
    with open(exported, "w") as file:
        file.write(older)
    database = f"{folder}/older"
    run("db", "import", exported, "--db", database)
    note = "judged by load, replay and fetch together, and is not used: tune again"
    for command in ("plan", "run"):
        notes = run(command, *HERE, "--db", database, *(("--random",) if command == "run" else ()))[1]
        check(notes.count(note) == 1 and "nothing beats" not in notes, command, notes)


with tempfile.TemporaryDirectory() as FOLDER:
    os.environ["MGPU_DB"] = f"{FOLDER}/db"
    tuned = read("tune", *HERE, "--budget", "8", "--seed", "1")
    before = is_one_set(assumed=True)
    report = read("report", MLP)
    for when, at in (("before", "default"), ("after", "tuned")):
        check(report[when]["us"] == tuned["times"][at]["median_us"], when, report[when], tuned["times"])
    check(report["failed"] == len(tuned["failed"]) and report["tried"] == tuned["evaluated"], report["tried"], tuned)
    check(report["spaces"] == tuned["spaces"] or len(report["spaces"]) == len(tuned["spaces"]), report["spaces"])
    # What `profile` measures is what all go by then.
    profile = read("profile", *HERE)
    after = is_one_set(assumed="assumed" in profile["plan"])
    check(after != before and profile["plan"].startswith(after), profile["plan"], after)
    report = read("report", MLP)["profile"]
    check(report["plan"] == profile["plan"] and report["recomputed_us"] == profile["predicted_us"], report["plan"])
    check(report["replay"]["median_us"] == profile["measured_us"], report["replay"])
    # The clock differs from one process to the next, by less than it did when these were four things.
    measured = [tuned["tuned_us"], profile["measured_us"], read("compare", MLP, "tuned", "serial", "--target", "host:4")[
        "times"]["a"]["median_us"]]
    check(max(measured) < 3 * min(measured), measured)
    of_an_older_objective(FOLDER)
print("ok")
