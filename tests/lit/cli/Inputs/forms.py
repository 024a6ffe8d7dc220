# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""forms.py PLAN JSON TRACE DOT RUN_TRACE RUN_JSON: the forms of one plan parse and agree."""

import json
import re
import sys

plan, form, trace, dot, run_trace, run = sys.argv[1:]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


with open(plan, encoding="utf-8") as file:
    steps = re.findall(r'^step (\d+) "([^"]*)" on (.*?) start (\S+) for (\S+)', file.read(), re.M)
assert steps

form = load(form)
nodes = [(node["id"], node["name"], len(node["streams"])) for node in form["nodes"]]
assert nodes == [(int(i), name, len(lanes.split())) for i, name, lanes, _, _ in steps]
begins = {"load": 0, "replay": form["load_us"], "fetch": form["load_us"] + form["replay_us"]}
for phase in begins:
    ends = [node["phase_end_us"] for node in form["nodes"] if node["phase"] == phase]
    assert abs(max(ends, default=0) - form[phase + "_us"]) < 1e-6
assert form["replay_bound_us"] <= form["replay_us"] <= form["serial_replay_us"]

# A trace shows load, replay and fetch one after the other, and names them.
spans = [event for event in load(trace)["traceEvents"] if event["ph"] == "X"]
assert {span["name"]: span["dur"] for span in spans if span["cat"] == "phase"} == {
    phase: form[phase + "_us"] for phase in begins if form[phase + "_us"] > 0}
wanted = [(name, begins[node["phase"]] + float(start)) for (_, name, lanes, start, _), node in zip(steps, form["nodes"])
          for _ in lanes.split()]
assert sorted((span["name"], span["ts"]) for span in spans if span["cat"] != "phase") == sorted(wanted)

# Each step ran once, at a time that is none before the start.
spans = [event for event in load(run_trace)["traceEvents"] if event["ph"] == "X"]
assert {span["name"] for span in spans} <= {name for _, name, _, _, _ in steps} and spans
assert all(span["ts"] >= 0 and span["dur"] >= 0 for span in spans)
run = load(run)
assert run["nodes"] == len(steps) and run["replay_us"]["repeat"] == 1 and run["replay_us"]["median"] > 0

# The subset of the DOT grammar that is used: one digraph of subgraphs, boxes and arrows.
name = r'"(?:[^"\\]|\\.)*"|\w+'
attributes = rf"(?: \[\w+=(?:{name})\])?"
line = re.compile(rf"\s*(?:(?:sub)?(?:di)?graph (?:{name}) {{|}}|\w+=(?:{name});|node{attributes};"
                  rf"|(n\d+){attributes};|(n\d+) -> (n\d+){attributes};)$")
declared, used, depth = set(), set(), 0
with open(dot, encoding="utf-8") as file:
    for text in file.read().splitlines():
        match = line.match(text)
        assert match, f"not DOT: {text}"
        depth += text.endswith("{") - (text.strip() == "}")
        assert depth >= 0
        declared |= {match[1]} - {None}
        used |= {match[2], match[3]} - {None}
assert depth == 0 and used <= declared
assert declared == {f"n{step[0]}" for step in steps}
