#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs bench-schedule on small inputs of its own and, where MGPU_DATA has them, on the public ones."""

import functools
import json
import lzma
import os
import sys
import tarfile
import tempfile

import harness

TOOL = sys.argv[1]
# Two machines of capacity 1 in one resource of 2: jobs 3, 3, 2, 2, 2 need 6; then with a chain.
SMALL = {
    "t_1_1.rcp": ("7 1\n2\n0 0 5 2 3 4 5 6\n3 1 1 7\n3 1 1 7\n2 1 1 7\n2 1 1 7\n2 1 1 7\n0 0 0\n", 6),
    "t_1_2.rcp": ("5 1\n3\n0 0 2 2 3\n4 2 1 4\n3 2 1 5\n2 1 1 5\n0 0 0\n", 7),
}
run = functools.partial(harness.command, TOOL)


def result(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def check_psplib(folder):
    best = os.path.join(folder, "best.sm")
    for name, (text, _) in SMALL.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    with open(best, "w") as file:
        file.write("Par Inst Makespan\n1 1 6\n1 2 7\n")
    out = result("--psplib", folder, "--best", best, "--seconds", "5")
    assert {i["name"]: i["makespan"] for i in out["instances"]} == {"t_1_1": 6, "t_1_2": 7}, out
    assert out["average_deviation"] == 0 and out["share_at_best"] == 1 and out["proven"] == 2, out
    # A list that asks for less than the optimum shows as deviation, not as an error.
    with open(best, "w") as file:
        file.write("1 1 5\n")
    out = result("--psplib", folder, "--best", best, "--seconds", "0.1")
    assert abs(out["average_deviation"] - 20) < 1e-9 and out["share_at_best"] == 0, out
    with open(best, "w") as file:
        file.write("1 9 5\n")
    assert "_1_9.rcp" in run("--psplib", folder, "--best", best, "--seconds", "0", expect=1).stderr
    run("--psplib", folder, "--seconds", "0", expect=2)


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
    run("--dag", dag, "--target", "sim:nowhere", "--seconds", "0", expect=2)
    run("--dag", dag, "--target", "sim:dgx-h200", "--memory", "much", "--seconds", "0", expect=2)


def check_public(folder):
    data = os.environ.get("MGPU_DATA", "")
    archive = os.path.join(data, "psplib", "j30.tar.xz")
    packed = os.path.join(data, "dags", "llama31_8b_bf16_1x8.json.xz")
    if not data or not os.path.exists(archive) or not os.path.exists(packed):
        print("skipped: the public data, for MGPU_DATA does not have it")
        return
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    out = result("--psplib", os.path.join(folder, "j30"), "--best", os.path.join(data, "psplib", "j30opt.sm"),
                 "--every", "30", "--seconds", "2", "--clock", "cpu")
    assert out["count"] == 16 and out["share_at_best"] == 1, out
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


for step in (check_psplib, check_dag, check_public):
    with tempfile.TemporaryDirectory() as directory:
        step(directory)
print("ok")
