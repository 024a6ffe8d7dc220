#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what `plan` predicts of programs on the host with what their replays take.

Usage: predict_host.py MGPU_TUNE [--target sim:node.json] [--only REGEX] [--db FILE] [--json FILE]

Predicted is what `plan --json` says after one `calibrate`, measured the median of 300 replays in each of three
processes, of which the middle one counts; replays that are long are fewer. The error is |predicted / measured - 1|.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile

import host_programs

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 2.0  # of the replays of one process


def tool(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout)


def predicted(plan):
    """Microseconds, and the interval that they are said to be in; none of plans without one."""
    found = plan.get("predicted")
    if not found:
        return plan["replay_us"], None
    return found["us"], (found["low_us"], found["high_us"])


def measured(tune, program, options):
    def replay(times):
        found = tool(tune, "run", program, "--random", "--no-tuned", "--json", f"--repeat={times}", *options)
        return found["replay_us"]["median"]
    times = max(5, min(300, int(SECONDS * 1e6 / max(replay(3), 0.01))))
    return statistics.median(replay(times) for _ in range(3))


def compare(tune, program, folder, target, database):
    path = os.path.join(HERE, "../../examples", program.example)
    if program.text:
        path = os.path.join(folder, program.name + ".mlir")
        with open(path, "w") as file:
            file.write(program.text)
    options = [*program.options, f"--db={database}"]
    plan = tool(tune, "plan", path, "--no-tuned", "--json", *([f"--target={target}"] if target else []), *options)
    us, interval = predicted(plan)
    took = measured(tune, path, options)
    return {"name": program.name, "classes": program.classes, "held_out": program.held, "predicted_us": us,
            "low_us": interval and interval[0], "high_us": interval and interval[1], "measured_us": took,
            "error": us / took - 1, "inside": bool(interval) and interval[0] <= took <= interval[1]}


def line(row):
    bar = f"{row['low_us']:.3g} to {row['high_us']:.3g}" if row["low_us"] is not None else ""
    return (f"| {row['name']}{' (held out)' if row['held_out'] else ''} | {row['predicted_us']:.4g} | {bar} | "
            f"{row['measured_us']:.4g} | {100 * row['error']:+.0f} % |{'' if row['inside'] or not bar else ' outside'}")


def summary(name, rows):
    errors = [abs(row["error"]) for row in rows]
    worst = max(max(row["predicted_us"] / row["measured_us"], row["measured_us"] / row["predicted_us"]) for row in rows)
    return (f"{name}: {len(rows)} programs, median error {100 * statistics.median(errors):.0f} %, worst {worst:.1f} x, "
            f"{sum(row['inside'] for row in rows)} inside their intervals")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tune")
    parser.add_argument("--target", help="plan for it in place of the host as it was calibrated")
    parser.add_argument("--only", default="", help="programs whose names match")
    parser.add_argument("--db", help="calibrated before; else the host is calibrated first")
    parser.add_argument("--json", help="where to write the rows")
    args = parser.parse_args()
    load, rows = os.getloadavg()[0], []
    with tempfile.TemporaryDirectory() as folder:
        database = args.db or os.path.join(folder, "mgpu.db")
        if not args.db and not args.target:
            tool(args.tune, "calibrate", "--target=host:4", "--json", f"--db={database}")
        print("| program | predicted us | interval | measured us | error |\n|---|---|---|---|---|")
        for program in host_programs.PROGRAMS:
            if re.search(args.only, program.name):
                rows.append(compare(args.tune, program, folder, args.target, database))
                print(line(rows[-1]), flush=True)
    print(summary("all", rows))
    for name in ("small", "functions", "memory", "devices"):
        if mine := [row for row in rows if name in row["classes"]]:
            print(summary(name, mine))
    if mine := [row for row in rows if row["held_out"]]:
        print(summary("held out", mine))
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)


main()
