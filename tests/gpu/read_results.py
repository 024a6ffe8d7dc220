#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a run of run.sh says, as one result and as the rows of docs/benchmarks.md.

Usage: read_results.py RESULT_DIR [OUT_DIR]
RESULT_DIR holds <gpu>-<date>.json, and <gpu>-<date>-again.json where steps were run again (--only): their
lines take the place of the first run's. OUT_DIR (default bench/results) gets <gpu>-<date>.json, the standard
output tables in Markdown: what failed, what disagreed with the doubles, the targets, and each measurement.
"""

import glob
import json
import os
import re
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "bench", "results")
# By what a line of a part is known.
KNOWN_BY = ("example", "entry", "case", "model", "form", "target", "tool", "part", "shape", "nodes", "kernel", "export",
            "dump", "file")
LOG_LINES = 12


def identity(line):
    return tuple((key, line[key]) for key in KNOWN_BY if isinstance(line.get(key), (str, int)))


def merged(first, again):
    """Lines of `again` in the place of those that they repeat, and behind the others where they repeat none."""
    out = dict(first)
    for key, value in again.items():
        if key == "steps":
            steps = {step["step"]: step for step in first["steps"]}
            steps.update({step["step"]: step for step in value if step["status"] != "not_run"})
            out["steps"] = list(steps.values())
        elif isinstance(value, list) and key not in ("targets", "first_replay"):
            lines = {identity(line): line for line in first.get(key, [])}
            lines.update({identity(line): line for line in value})
            out[key] = list(lines.values())
        elif key == "targets":
            old = {line["target"]: line for line in first.get(key, [])}
            old.update({line["target"]: line for line in value if line["worst"] is not None})
            out[key] = list(old.values())
        elif key not in ("seconds", "complete", "passed", "doctor", "date"):
            out[key] = value
    out["passed"] = all(step["status"] != "failed" for step in out["steps"])
    out["complete"] = first["complete"] and again["complete"]
    out["seconds"] = round(first["seconds"] + again["seconds"], 1)
    return out


def figure(value, digits=3):
    if value is None:
        return "-"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def table(title, heads, rows):
    if not rows:
        return ""
    lines = [f"**{title}**", "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(figure(each) for each in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def share(part, whole):
    return part / whole if part and whole else None


def large_rows(result):
    """Each kernel beside the copy, PyTorch, and both predictions."""
    rates = {line["case"]: line for line in result.get("rates", []) if line.get("ok")}
    calibrated = {(line["case"], line.get("form", "")): line.get("us") for line in result.get("calibrated", [])}
    copied = rates.get("copy", {}).get("gb_per_s") or statistics.median(
        [line["source"]["copy_gb_per_s"] for line in result.get("bench", []) if line.get("part") == "bandwidth"] or [0])
    rows = []
    for line in result.get("large", []):
        name, form = line["case"], line.get("form", "")
        us, alone = line.get("us"), line.get("kernels_us") or line.get("us")
        right = {True: "right", False: "wrong", None: "-"}[line["ok"]]
        if "error" in line or "skipped" in line:
            right = line.get("error") or line["skipped"]
        rows.append([f"{name} {form}".strip(), right[:90].replace("|", "/").replace("\n", " "), us, line.get("gb_per_s"),
                     share(line.get("gb_per_s"), copied), line.get("tflop_per_s"),
                     share(rates.get(name, {}).get("us"), us), line.get("share_of_bare"),
                     share(line.get("predicted_us"), alone), share(calibrated.get((name, form)), alone)])
    return rows


def other_rows(result):
    """Titles, heads and rows of all but the kernels."""
    yield "Decoding", ["model", "form", "result", "us", "kernels", "sum of kernels us", "predicted / measured"], [
        [line["model"], line.get("form"), "right" if line["ok"] else line.get("error", "wrong")[:90],
         (line.get("span_us") or [None])[0], line.get("kernels"), line.get("kernels_us"),
         share(line.get("predicted_us"), line.get("kernels_us") or (line.get("span_us") or [None])[0])]
        for line in result.get("decode", [])]
    yield "Tuned and default, replayed in turn", ["bundle", "us", "p25", "p75", "configuration"], [
        [os.path.basename(line.get("file", "?")), *(line.get("span_us") or [line.get("error", "-"), None, None]),
         (line.get("configuration") or "default").strip()] for line in result.get("tuned", [])]
    bench = result.get("bench", [])
    yield "A replay call beside a bare cuGraphLaunch", ["shape", "nodes", "replay us", "bare us", "difference of CPU us"], [
        [line["shape"], line["nodes"], line["replay_us"], line["bare_us"], line["difference_cpu_us"][0]]
        for line in bench if line.get("part") == "launch"]
    yield "The GPU's time of a replay", ["shape", "nodes", "graph us", "one stream us", "eight streams us"], [
        [line["shape"], line["nodes"], line["graph_us"], line["one_stream_us"], line["eight_streams_us"]]
        for line in bench if line.get("part") == "span"]
    yield "Elementwise kernels beside the copy", ["kernel", "source", "best", "copy GB/s"], [
        [line["kernel"], line["source"]["share"], line["best"]["share"], line["best"]["copy_gb_per_s"]]
        for line in bench if line.get("part") == "bandwidth"]
    yield "Beside torch.cuda.CUDAGraph", ["shape", "nodes", "span us", "of PyTorch's", "call us", "of PyTorch's"], [
        [line["shape"], line["nodes"], line["span_us"], line["span_over_torch"], line["call_us"], line["call_over_torch"]]
        for line in result.get("torch", [])]
    yield "Forms of products, and chains that begin early", ["example", "form", "result", "replay us", "without us"], [
        [line["example"], line["form"], {True: "right", False: "wrong"}.get(line.get("ok"), line.get("skipped")),
         line.get("replay_us"), line.get("without_us")] for line in result.get("examples", []) if "form" in line]


def faults(result):
    """What did not pass, with the end of its log."""
    lines = []
    for step in result["steps"]:
        if step["status"] in ("passed", "skipped") and not step.get("failed"):
            continue
        lines.append(f"- `{step['step']}`: {step['status']}" + (f"; {', '.join(map(str, step['failed']))[:600]}" if step.get("failed") else ""))
        if step.get("log"):
            lines += ["  ```", *("  " + each[:200] for each in step["log"].splitlines()[-LOG_LINES:]), "  ```"]
    return lines or ["- nothing"]


def disagreements(result):
    """Rules of CUDA's that the double keeps and the driver does not."""
    found = [(name, said) for step in result["steps"] for name, said in (step.get("disagreements") or {}).items()]
    return [f"- `{name}`: {said}" for name, said in found] or ["- nothing"]


def report(result):
    gpu = result["doctor"]["gpus"][0]
    driver = result["doctor"].get("driver")
    driver = driver if isinstance(driver, str) else json.dumps(driver)
    driver = "; ".join(result.get("card", [[]])[0][1:]) or driver
    print(f"{gpu['name']} ({gpu.get('arch', '?')}), driver {driver}, {result['date']}; {result['seconds']} s, "
          f"{'all steps ran' if result['complete'] else 'not all of it ran'}\n")
    print("**What failed**\n", *faults(result), "\n**What disagreed with the doubles**\n", *disagreements(result), "", sep="\n")
    print(table("Targets", ["target", "worst", "met"], [[line["target"], line["worst"], {True: "yes", False: "no"}.get(line["met"])]
                                                        for line in result.get("targets", [])]))
    print(table("Kernels at their size", ["kernel", "result", "us", "GB/s", "of the copy", "TFLOP/s", "PyTorch's us / ours",
                                          "of a bare cublasLtMatmul", "predicted on sim / measured", "calibrated / measured"],
                large_rows(result)))
    for title, heads, rows in other_rows(result):
        print(table(title, heads, rows))
    wrong = [line for key in ("exports", "dumps") for line in result.get(key, []) if line.get("ok") is not True]
    print(table("Not written", ["what", "why"], [[line.get("export") or line.get("dump"),
                                                  str(line.get("error") or line.get("skipped"))[:160].replace("\n", " ").replace("|", "/")]
                                                 for line in wrong]))


def read(folder):
    """The result of a folder, and its name."""
    names = sorted(glob.glob(f"{folder}/*.json"), key=lambda name: (name.endswith("-again.json"), name))
    firsts = [name for name in names if not name.endswith("-again.json")]
    if not names or len(firsts) > 1:
        sys.exit(f"{folder} has {len(firsts)} results of whole runs, not one")
    results = []
    for name in names:
        with open(name, encoding="utf-8") as file:
            results.append(json.load(file))
    result = results[0]
    for again in results[1:]:
        result = merged(result, again)
    return result, re.sub(r"-again(?=\.json$)", "", os.path.basename(names[0]))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    result, name = read(sys.argv[1])
    out = sys.argv[2] if len(sys.argv) > 2 else RESULTS
    if "rehearsal" in result and os.path.realpath(out) == os.path.realpath(RESULTS):
        print(f"a rehearsal's result does not go to {RESULTS}", file=sys.stderr)
    else:
        os.makedirs(out, exist_ok=True)
        with open(f"{out}/{name}", "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    report(result)


if __name__ == "__main__":
    main()
