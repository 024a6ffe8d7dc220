#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs bench-schedule on small inputs of its own and, where MGPU_DATA has them, on the public ones."""

import functools
import json
import lzma
import os
import sys
import tempfile

import harness

TOOL = sys.argv[1]
run = functools.partial(harness.command, TOOL)


def result(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def small_dag():
    nodes = []
    for layer in range(6):
        first = len(nodes)
        gather = {"id": first, "kind": "all_gather", "name": "g%d" % layer, "bytes": 8, "group": 2,
                  "out_bytes": 1000, "deps": [], "duration_us": 5}
        kernel = {"id": first + 1, "kind": "kernel", "name": "k%d" % layer, "out_bytes": 500,
                  "deps": [first] + ([first - 1] if layer else []), "duration_us": 10}
        nodes += [gather, kernel]
    return {"format": "mgpu-dag/2", "name": "small", "devices": 2, "spmd": True, "resident_bytes": 4096, "nodes": nodes}


def check_dag(folder):
    dag, plan = os.path.join(folder, "d.json"), os.path.join(folder, "p.json")
    with open(dag, "w") as file:
        json.dump(small_dag(), file)
    out = result("--dag", dag, "--target", "sim:dgx-h200", "--seconds", "0.2", "--plan-out", plan)
    # The first gather cannot be hidden; all others can.
    assert out["bound_by"] in ("path", "heads"), out
    assert out["makespan_us"] == 65 and out["lower_bound_us"] == 65 and out["hidden_share"] == 1, out
    assert out["verified"] is True and out["peak_memory_bytes"] > 4096, out
    with open(plan) as file:
        written = json.load(file)["nodes"]
    assert [n["id"] for n in written] == list(range(12)) and max(n["end_us"] for n in written) == 65
    assert set(written[0]) == {"id", "start_us", "end_us", "stream", "offset"}
    # One layer at a time needs its gather, its output and the one before it.
    refused = run("--dag", dag, "--target", "sim:dgx-h200", "--seconds", "0", "--memory", "5000B", expect=1)
    assert "no schedule fits" in refused.stderr, refused.stderr
    run("--dag", dag, "--seconds", "0", expect=2)
    run("--dag", dag, "--target", "sim:nowhere", "--seconds", "0", expect=2)
    run("--dag", dag, "--target", "sim:dgx-h200", "--memory", "much", "--seconds", "0", expect=2)


def check_public(folder):
    data = os.environ.get("MGPU_DATA", "")
    packed = os.path.join(data, "dags", "llama31_8b_bf16_1x8.json.xz")
    if not data or not os.path.exists(packed):
        print("skipped: the public data, for MGPU_DATA does not have it")
        return
    dag, plan = os.path.join(folder, "llama.json"), os.path.join(folder, "llama.plan.json")
    with lzma.open(packed) as source, open(dag, "wb") as target:
        target.write(source.read())
    out = result("--dag", dag, "--target", "sim:dgx-h200", "--memory", "100GB", "--seconds", "0", "--plan-out", plan)
    assert out["hidden_share"] >= 0.92, out
    judged = json.loads(harness.command(sys.executable, os.path.join(data, "dagcheck.py"), dag, plan).stdout)
    for ours, theirs in (("makespan_us", "makespan"), ("peak_memory_bytes", "peak")):
        assert abs(out[ours] - judged[theirs]) <= 1e-9 * abs(judged[theirs]), (ours, out[ours], judged[theirs])
    # Its bound fixes one collective at a time; ours is at least that.
    assert judged["bound"] * (1 - 1e-12) <= out["lower_bound_us"] <= out["makespan_us"], (out, judged)
    refused = run("--dag", dag, "--target", "sim:dgx-h100", "--seconds", "0", expect=1)
    assert "no schedule fits" in refused.stderr, refused.stderr


for step in (check_dag, check_public):
    with tempfile.TemporaryDirectory() as directory:
        step(directory)
print("ok")
