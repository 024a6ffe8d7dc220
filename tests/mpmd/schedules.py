#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules have their published orders, and change no result.

The order is read from mgpu-opt's program, and played with works of one length: no mesh waits for
ever, and the time and the memory are those that are published. Random pipelines then run under each
schedule and give, bit for bit, what they give without one. MGPU_SWEEPS makes it more of them."""
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

from harness import command, pairs, write_npy
from pipeline_program import N, Pipeline

opt, tune = sys.argv[1:3]
SWEEPS = bool(os.environ.get("MGPU_SWEEPS"))
NAMES = ["gpipe", "1f1b", "eager-1f1b", "interleaved", "circular", "zb-h1", "zb-h2", "dualpipev"]
SPLIT = ["zb-h1", "zb-h2", "dualpipev"]  # backward work in two parts


def write(folder, pipeline):
    path = os.path.join(folder, "pipeline.mlir")
    with open(path, "w") as file:
        file.write(pipeline.text())
    return path


def orders(folder, pipeline, name, pairs=None):
    """By mesh: ("F", "B" or "W", microbatch, stage) in order. `pairs` gets by mesh the halves of works that
    run as one: the works' places in the order, and 1 or 2."""
    assign = ",".join(f"f{j}=m{mesh}" for j, mesh in enumerate(pipeline.mesh_of))
    split = "mpmd-split-backward," if name in SPLIT else ""
    passes = (f"builtin.module(inline,symbol-dce,mpmd-expand,mpmd-assign-meshes{{assign={assign}}},"
              f"{split}mpmd-schedule{{schedule={name}}})")
    text = command(opt, f"--pass-pipeline={passes}", write(folder, pipeline), about=name).stdout
    found = [[] for _ in range(pipeline.meshes)]
    for mesh, stage, back, counter, half, rest in re.findall(
            r'fragment<mesh="m(\d+)", origin=\["f(\d+)"(\(1\))?\]>.*call_counter = (\d+) : ui32'
            r'(?:, mpmd.half = (\d) : i64)?(, split_drop)?', text):
        if half and pairs is not None:
            pairs[int(mesh)].append((len(found[int(mesh)]), int(half)))
        found[int(mesh)].append(("W" if rest else "B" if back else "F", int(counter), int(stage)))
    return found


def play(pipeline, order, takes_two=False):
    """When all is done, the most microbatches that each mesh keeps at a time, and how long each does
    nothing between its first work and its last."""
    ends = ["W" if any(kind == "W" for kind, *_ in row) else "B" for row in order]
    done, free, at = {}, [0] * pipeline.meshes, [0] * pipeline.meshes
    kept, most, idle = [0] * pipeline.meshes, [0] * pipeline.meshes, [0] * pipeline.meshes
    while any(at[s] < len(order[s]) for s in range(pipeline.meshes)):
        moved = False
        for s in range(pipeline.meshes):
            if at[s] == len(order[s]):
                continue
            kind, i, j = order[s][at[s]]
            needs = [("F", i, j - 1)] if kind == "F" and j else []
            if kind == "W":
                needs = [("B", i, j)]
            if kind == "B":
                needs = [("F", i, j)] + ([("B", i, j + 1)] if j + 1 < pipeline.stages else [])
            if not all(need in done for need in needs):
                continue
            # Backward work that is not split takes as long as both its parts.
            whole = kind == "B" and ("W", i, j) not in order[s] and takes_two
            start = max([free[s]] + [done[need] for need in needs])
            idle[s] += start - free[s] if at[s] else 0
            free[s] = start + (2 if whole else 1)
            done[kind, i, j] = free[s]
            end = "B" if kind == "B" and ("W", i, j) not in order[s] else ends[s]
            kept[s] += 1 if kind == "F" else -1 if kind == end else 0
            most[s] = max(most[s], kept[s])
            at[s] += 1
            moved = True
        assert moved, f"the meshes wait for each other: {order}"
    return max(free), most, idle


def check_orders(folder, p, m):
    plain = Pipeline(p, m)
    both = [(kind, i, s) for s in range(p) for kind in "FB" for i in range(m)]
    for name, memory in [("gpipe", lambda s: m), ("1f1b", lambda s: p - s), ("eager-1f1b", lambda s: 2 * (p - s) - 1)]:
        order = orders(folder, plain, name)
        assert sorted(sum(order, [])) == sorted(both), (name, p, m, order)
        length, most, _ = play(plain, order)
        assert most == [min(m, memory(s)) for s in range(p)], (name, p, m, most)
        # A share (p - 1) / (m + p - 1) of the time is idle.
        assert length == 2 * (m + p - 1), (name, p, m, length)
        for s, row in enumerate(order):
            for kind in "FB":
                assert [i for k, i, _ in row if k == kind] == list(range(m)), (name, row)
            if name == "1f1b":  # as Shardy says it
                place = {(kind, i): at for at, (kind, i, _) in enumerate(row)}
                for i in range(m):
                    if i + p - s < m:
                        assert place["B", i] < place["F", i + p - s], row
                    if i + p - s - 1 < m:
                        assert place["F", i + p - s - 1] < place["B", i], row


def check_stages(folder, p, m, v):
    pipeline = Pipeline(p, m, v)
    for name in ["interleaved", "circular"]:
        order = orders(folder, pipeline, name)
        assert all(len(row) == 2 * m * v for row in order), (name, order)
        length, most, _ = play(pipeline, order)
        if m % p == 0:  # the bubble is v times smaller
            assert length == 2 * (m * v + p - 1), (name, p, m, v, length)
        if name == "circular":
            assert most == [m * v] * p, most
        else:
            assert most == [min(m * v, 2 * (p - s) - 1 + (v - 1) * p) for s in range(p)], (p, m, v, most)


def check_split(folder, p, m):
    """Forward, backward and weights' works of one length; the first mesh's backward work is not split.
    There are enough microbatches for all meshes to be busy."""
    pipeline = Pipeline(p, m)
    plain, _, _ = play(pipeline, orders(folder, pipeline, "1f1b"), takes_two=True)
    assert plain == 3 * m + 3 * (p - 1), plain
    for name in ["zb-h1", "zb-h2"]:
        order = orders(folder, pipeline, name)
        for s, row in enumerate(order):
            kinds = "FB" if s == 0 else "FBW"
            assert sorted(row) == sorted((kind, i, s) for kind in kinds for i in range(m)), row
            place = {(kind, i): at for at, (kind, i, _) in enumerate(row)}
            before = 2 * (p - s) - 1 if name == "zb-h2" else p - s
            assert place["B", 0] == min(before, m), (name, row)
            lag = 2 * s if name == "zb-h2" else s
            for i in range(m if s else 0):
                assert place["B", min(i + lag, m - 1)] < place["W", i], (name, row)
                if i + lag + 1 < m:
                    assert place["W", i] < place["B", i + lag + 1], (name, row)
        length, most, idle = play(pipeline, order, takes_two=True)
        assert length == 3 * m + p - 1, (name, length)  # zb-h1: a third of the bubble
        assert most == [p if name == "zb-h1" else 2 * p - 1] * p, (name, most)
        assert idle == [p - 1 - s if name == "zb-h1" else 0 for s in range(p)], (name, idle)


def folded_order(p, m, s):
    """The steps of DualPipeV on mesh s, as docs/schedules.md has them, and the halves of works that run as
    one, as orders() gives them."""
    order, forward, backward, waiting, pairs = [], [0, 0], [0, 0], [], []

    def add(work, half):
        if work[0] == "W" and work[2] == 0:
            return  # no mesh waits for the first stage
        if half:
            pairs.append((len(order), half))
        order.append(work)

    def go(words, late=""):
        for word in words.split():
            word, half = word.rstrip("+"), 1 if word[-1] == "+" else 2 if word[0] == "+" else 0
            word = word.lstrip("+")
            stage = int(word[1:] or 0)
            number = s if stage == 0 else 2 * p - 1 - s
            if word[0] == "F":
                add(("F", forward[stage], number), half)
                forward[stage] += 1
            elif word[0] == "B":
                add(("B", backward[stage], number), half)
                rest = ("W", backward[stage], number)
                if word in late:
                    waiting.append(rest)
                else:
                    add(rest, half)
                backward[stage] += 1
            else:
                add(waiting.pop(0), half)

    r = p - 1 - s
    for count, words, late in [(2 * r, "F0", ""), (s + 1, "F0 F1", ""), (r, "B1 W F1", "B1"),
                               (m - 2 * p + s + 1, "F0+ +B1 F1+ +B0", ""), (r, "B1 F1+ +B0", "")]:
        for _ in range(count):
            go(words, late)
    for k in range(2 * (s + 1)):  # the second half of these waits
        go("B1" if k % 2 == 0 else "B0", "B0 B1" if k >= s + 1 else "")
    for _ in range(r):
        go("W B0", "B0")
    for _ in range(s + 1):
        go("W")
    return order, pairs


def check_folded(folder, p, m):
    pipeline = Pipeline(p, m, folded=True)
    halves = [[] for _ in range(p)]
    order = orders(folder, pipeline, "dualpipev", halves)
    for s in range(p):
        assert (order[s], halves[s]) == folded_order(p, m, s), (p, m, s, order[s], halves[s])
    length, most, _ = play(pipeline, order, takes_two=True)
    assert length == 6 * m + p - 1, (p, m, length)  # two forward, backward and weights' works each
    assert most == [2 * p + 1] * p, (p, m, most)
    words = ["--pass-pipeline=builtin.module(inline,mpmd-expand,mpmd-assign-meshes{assign="
             + ",".join(word for word in pipeline.assign if word != "--assign") + "},mpmd-schedule{schedule=dualpipev})"]
    command(opt, *words, write(folder, Pipeline(p, 2 * p - 1, folded=True)), expect=1)


def check_pairs(folder):
    """Kernels of two works that run as one have no order. All other kernels of a device have
    one order."""
    pipeline = Pipeline(2, 6, folded=True)
    path = write(folder, pipeline)
    lines = pipeline.text().split("\n")
    starts = [at for at, line in enumerate(lines, 1) if "named_computation" in line]
    plan = json.loads(command(tune, "plan", path, *pipeline.assign, "--schedule", "dualpipev", "--explain", "--json",
                              "--no-tuned").stdout)
    follows, kernels = {}, [[], []]
    for node in sorted(plan["nodes"], key=lambda node: node["id"]):
        follows[node["id"]] = set(node["dependencies"]).union(*(follows[id] for id in node["dependencies"]))
        device = node["streams"][0]["device"]
        if node["kind"] == "kernel" and node["location"] and device < 2:
            work = max(at for at in starts if at <= int(node["location"].split(":")[-2]))
            kernels[device].append((node["id"], "(1)" in lines[work - 1]))
    for s, all_of in enumerate(kernels):
        free = [(a, b) for k, a in enumerate(all_of) for b in all_of[k + 1:] if a[0] not in follows[b[0]]]
        assert len(free) >= 2 * (6 - 2 * 2 + s + 1) + 1 - s, (s, free)  # the pairs of steps 4 and 5
        assert all(a[1] != b[1] for a, b in free), (s, free)
    other = json.loads(command(tune, "plan", path, *pipeline.assign, "--schedule", "circular", "--explain", "--json",
                               "--no-tuned").stdout)
    for node in sorted(other["nodes"], key=lambda node: node["id"]):
        follows[node["id"]] = set(node["dependencies"]).union(*(follows[id] for id in node["dependencies"]))
    ids = [node["id"] for node in other["nodes"]
           if node["kind"] == "kernel" and node["location"] and node["streams"][0]["device"] == 0]
    assert all(a in follows[b] for a, b in zip(sorted(ids), sorted(ids)[1:])), ids


def check_remat(folder):
    """Backward work that computes forward work again keeps less, and changes no result."""
    pipeline = Pipeline(3, 6, devices=[[2], [1], [2, 2]])
    pipeline.repeats = [3, 3, 3]
    for name in pipeline.arguments:
        write_npy(os.path.join(folder, f"{name}.npy"), [(7 * k + len(name)) % 3 - 1 for k in range(N * N)], (N, N), "<i4")
    plain = results(folder, pipeline, "--schedule", "gpipe")
    assert results(folder, pipeline, "--schedule", "gpipe", "--remat") == plain
    assert results(folder, pipeline, "--schedule", "zb-h1", "--remat") == plain
    # In one stream: what runs at the same time as other work does not share its memory.
    peaks = [json.loads(command(tune, "plan", write(folder, pipeline), *pipeline.assign, "--schedule", "gpipe", "--json",
                                "--streams", "1", "--no-tuned", *options).stdout)["pipeline"]["meshes"][2]["peak_bytes"]
             for options in ([], ["--remat"])]
    assert peaks[0] - peaks[1] >= 4 * N * N * 4, peaks  # four of the six microbatches, and more


def check_table(folder):
    """The rows of docs/schedules.md."""
    pipeline = Pipeline(2, 4, 2)
    for name, row in [("interleaved", "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0"),
                      ("circular", "F0.0 F1.0 F0.1 F1.1 F2.0 F3.0 F2.1 F3.1 B0.1 B1.1 B0.0 B1.0")]:
        found = [f"{kind}{i}.{j // 2}" for kind, i, j in orders(folder, pipeline, name)[0]]
        assert found[:len(row.split())] == row.split(), (name, found)


def planned(path, pipeline, name, *options):
    """The plan under a schedule; none if nothing fits the memory, or the schedule is not for it."""
    line = [tune, "plan", path, *pipeline.assign, "--schedule", name, "--json", "--no-tuned", *options]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode in (0, 1, 5), (line, done.stderr)
    assert name != "auto" or done.returncode != 5, (line, done.stderr)
    return None if done.returncode else json.loads(done.stdout)


def check_auto(folder, seed):
    """`auto` is as short as the shortest named schedule that fits, and says which it took."""
    rng = random.Random(seed)
    meshes, stages = rng.randint(2, 4), rng.choice([1, 1, 2])
    pipeline = Pipeline(meshes, rng.choice([meshes, 2 * meshes]), stages, fused=rng.random() < 0.3)
    if rng.random() < 0.5:  # else all stages do the same
        pipeline.repeats = [rng.randint(1, 3) for _ in range(pipeline.stages)]
    path = write(folder, pipeline)
    machine = ["--target", "sim:dgx-h200", "--budget", "20"]
    runs = [[], machine]
    least = max(planned(path, pipeline, "1f1b" if stages == 1 else "circular", *machine)["arena_bytes"])
    # Resident bytes are beside the arenas: there is more to add than to take away.
    runs += [machine + ["--memory", str(int(least * share))] for share in (0.9, 1, 1.3)]
    for options in runs:
        auto = planned(path, pipeline, "auto", *options)
        named = {name: planned(path, pipeline, name, *options) for name in NAMES}
        again = [name for name, plan in named.items() if not plan] if auto else NAMES
        named |= {f"{name} --remat": planned(path, pipeline, name, "--remat", *options) for name in again}
        named = {name: plan["replay_us"] for name, plan in named.items() if plan}
        if not auto:
            assert not named, (seed, options, named)
            continue
        tried = {each["name"]: each.get("replay_us") for each in auto["schedule"]["tried"]}
        assert auto["replay_us"] <= min(named.values(), default=math.inf), (seed, options, named, tried)
        assert tried[auto["schedule"]["name"]] == auto["replay_us"], (seed, options, tried)
        for name in tried.keys() - {"own"}:
            assert tried[name] == named.get(name), (seed, options, name, named, tried)


def results(folder, pipeline, *options):
    outs = [os.path.join(folder, f"r{k}.npy") for k in range(pipeline.results)]
    command(tune, "run", write(folder, pipeline), *pipeline.assign, *options,
            *pairs("--arg", [f"{a}={folder}/{a}.npy" for a in pipeline.arguments]),
            *pairs("--out", [f"r{k}={out}" for k, out in enumerate(outs)]),
            about=f"{options}\n{pipeline.text()}", timeout=120)
    values = []
    for out in outs:
        with open(out, "rb") as file:
            values.append(file.read())
        os.remove(out)
    return values


def check_results(folder, seed):
    rng = random.Random(seed)
    stages = rng.choice([1, 1, 2])
    meshes, inference = rng.randint(2, 3), rng.random() < 0.25
    folded = rng.random() < 0.3
    sizes = [rng.choice([[1], [1], [2], [2, 2]]) for _ in range(meshes)]
    pipeline = Pipeline(meshes, 2 * meshes if folded else rng.choice([meshes, 2 * meshes]), stages,
                        fused=not inference and rng.random() < 0.5, devices=sizes, inference=inference, folded=folded)
    stages = pipeline.stages // meshes
    for name in pipeline.arguments:
        write_npy(os.path.join(folder, f"{name}.npy"), [rng.randint(-2, 2) for _ in range(N * N)], (N, N), "<i4")
    plain = results(folder, pipeline)
    for name in [*(NAMES if SWEEPS else rng.sample(NAMES, 2)), "auto"]:
        if stages > 1 and name not in ("interleaved", "circular", "auto", *["dualpipev"] * folded):
            continue
        if stages == 1 and name == "dualpipev" or pipeline.fused and meshes == 2 and name in SPLIT:
            continue
        shuffled = ["--scheduler", "shuffled", "--seed", str(seed)] if rng.random() < 0.5 else []
        remat = ["--remat"] if rng.random() < 0.3 else []
        assert results(folder, pipeline, "--schedule", name, *shuffled, *remat) == plain, (seed, name, pipeline.text())


def check_plan(folder):
    """A plan keeps the order, also a shuffled one, and 1f1b needs less memory than gpipe."""
    pipeline = Pipeline(2, 6)
    path = write(folder, pipeline)
    lines = pipeline.text().split("\n")
    first = next(at for at, line in enumerate(lines, 1) if '"f0"> ' in line)
    backward = next(at for at, line in enumerate(lines, 1) if '"f0"(1)> ' in line)
    peaks = {}
    for name, expected in [("gpipe", "FFFFFFBBBBBB"), ("1f1b", "FFBFBFBFBFBB")]:
        for shuffled in ([], ["--scheduler", "shuffled", "--seed", "7"]):
            plan = json.loads(command(tune, "plan", path, *pipeline.assign, "--schedule", name, "--explain", "--json",
                                      "--no-tuned", *shuffled).stdout)
            kinds = ""
            for node in sorted(plan["nodes"], key=lambda node: node["phase_start_us"]):
                if node["kind"] != "kernel" or node["streams"][0]["device"] != 0 or not node["location"]:
                    continue
                line = int(node["location"].split(":")[-2])
                if first < line < first + 6:
                    kinds += "F"
                elif backward < line < backward + 9:
                    kinds += "B"
            assert re.sub(r"(.)\1*", r"\1", kinds) == re.sub(r"(.)\1*", r"\1", expected), (name, kinds)
            if not shuffled:
                peaks[name] = plan["pipeline"]["meshes"][0]["peak_bytes"]
            there, back = plan["pipeline"]["transfers"]
            assert there == {"from": "m0", "to": "m1", "copies": 6, "bytes": 6 * N * N * 4}, there
            assert plan["pipeline"]["transfer_bytes"] == there["bytes"] + back["bytes"], back
            assert 0 < plan["pipeline"]["bubble"] < 1
    assert peaks["gpipe"] - peaks["1f1b"] >= 3 * N * N * 4, peaks


with tempfile.TemporaryDirectory() as at:
    for p, m in [(1, 2), (2, 4), (4, 8), (3, 2)] + ([(p, m) for p in range(1, 7) for m in range(1, 13)] if SWEEPS else []):
        check_orders(at, p, m)
    for p, m, v in [(2, 4, 2), (3, 6, 2)] + ([(4, 8, 3), (2, 6, 3), (5, 5, 2)] if SWEEPS else []):
        check_stages(at, p, m, v)
    for p, m in [(2, 6), (4, 12)]:
        check_split(at, p, m)
    for p, m in [(2, 4), (3, 7)] + ([(p, m) for p in range(2, 6) for m in range(2 * p, 4 * p, 3)] if SWEEPS else []):
        check_folded(at, p, m)
    check_pairs(at)
    check_remat(at)
    check_table(at)
    check_plan(at)
    for number in range(40 if SWEEPS else 2):
        check_auto(at, number)
    for number in range(60 if SWEEPS else 4):
        check_results(at, number)
print("schedules have their orders, and the results of none")
