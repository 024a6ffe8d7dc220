#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A GPU is planned by its own rates: over a double of the driver, `plan --target cuda:K/N` is compared with the plan of
the machine that has such GPUs, and what the driver may say wrong is said in one sentence.

Usage: machine.py MGPU_TUNE EXAMPLES_DIR LIBRARIES
"""

import json
import os
import subprocess
import sys
import tempfile

TUNE, EXAMPLES, LIBRARIES = sys.argv[1:]
MLP = f"{EXAMPLES}/mlp/mlp.mlir"
# As MGPU_REHEARSAL_GPU: name, multiprocessors, clock, memory clock, bus, bytes.
H100 = "NVIDIA H100 80GB HBM3|132|1980000|2619000|5120|85028896768"
LARGE = """func.func @main(%x: tensor<4096x2048xf32>, %w: tensor<2048x2048xf32>) -> tensor<4096x2048xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x2048xf32>, tensor<2048x2048xf32>) -> tensor<4096x2048xf32>
  %1 = stablehlo.add %0, %x : tensor<4096x2048xf32>
  return %1 : tensor<4096x2048xf32>
}
"""


def run(*words, gpu=H100, expect=0):
    environment = dict(os.environ, MGPU_REHEARSAL_GPU=gpu, LD_LIBRARY_PATH=LIBRARIES)
    done = subprocess.run([TUNE, *words], capture_output=True, text=True, check=False, env=environment)
    if done.returncode != expect:
        sys.exit(f"{' '.join(words)} on {gpu}: exit code {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    return done.stderr if expect else done.stdout


def planned(*words, **how):
    return json.loads(run("plan", *words, "--json", "--explain", "--transforms", "none", "--no-tuned", **how))


def times(plan, kinds):
    return {node["id"]: node["phase_end_us"] - node["phase_start_us"] for node in plan["nodes"] if node["kind"] in kinds}


def check(holds, what):
    if not holds:
        sys.exit(what)


def follows_its_gpu():
    """Kernels and collectives take what they take on the machine that has such GPUs, within 1 %."""
    here, there = planned(MLP, "--target", "cuda:0/4"), planned(MLP, "--target", "sim:dgx-h100")
    ours, theirs = (times(plan, ("kernel", "collective")) for plan in (here, there))
    check(ours.keys() == theirs.keys() and len(ours) > 8, "other nodes")
    for node, us in ours.items():
        check(abs(us / theirs[node] - 1) <= 0.01, f"node {node}: {us} us, and {theirs[node]} on dgx-h100")
    check(here["contended_replay_us"] >= here["replay_us"], "contention is not of this machine")
    # In text and explanation too, with every figure's origin, and none of the host's.
    explained = run("plan", MLP, "--target", "cuda:0/4", "--explain", "--no-tuned")
    check("memory = 3.35e+12 bytes/s (published" in explained and "host roofline" not in explained, explained)


def obeys_its_options(folder):
    """--memory, --what-if, --pareto and certificates are of GPUs and of the host as of sim targets."""
    for target in ("cuda:0/4", "host:4"):
        least = planned(MLP, "--target", target)
        bytes_ = max(least["arena_bytes"])
        within = planned(MLP, "--target", target, "--memory", str(bytes_))
        check(max(within["arena_bytes"]) <= bytes_ == within["memory_bytes"], f"{target}: {within['arena_bytes']}")
        refused = run("plan", MLP, "--target", target, "--memory", "4KB", "--no-tuned", expect=1)
        check("fits 4000 bytes" in refused, refused)
        faster = planned(MLP, "--target", target, "--what-if", "link=4x", "--what-if", "host_link=4x")["what_if"]
        check(faster["replay_us"] < least["replay_us"], f"{target}: {faster} and {least['replay_us']}")
        front = json.loads(run("plan", MLP, "--target", target, "--pareto", "--json", "--no-tuned"))["front"]
        check(front and front[0]["memory_bytes"] <= bytes_, front)
        plan, proof = f"{folder}/plan", f"{folder}/proof"
        run("plan", MLP, "--target", target, "--no-tuned", "-o", plan, "--certificate", proof)
        run("check", MLP, "--plan", plan, "--certificate", proof)
    # A GPU's own memory is the limit where none is given.
    small = H100.rsplit("|", 1)[0] + "|65536"
    check("fits 16384 bytes" in run("plan", MLP, "--target", "cuda:0/4", "--no-tuned", gpu=small, expect=1), "no limit")


def scales_what_it_does_not_know(folder):
    program = f"{folder}/large.mlir"
    with open(program, "w") as file:
        file.write(LARGE)
    whole = times(planned(program, "--target", "cuda:0"), ("kernel",))
    scaled = planned(program, "--target", "cuda:0", gpu="NVIDIA X1|66|1980000|2619000|2560|42000000000")
    check({node["duration_origin"] for node in scaled["nodes"]} == {"scaled"}, scaled["nodes"])
    for node, us in times(scaled, ("kernel",)).items():
        check(1.8 <= us / whole[node] <= 2.2, f"node {node}: {us} us, and {whole[node]} on twice as much")
    check("scaled from dgx-h100" in scaled["model"], scaled["model"])
    for gpu, wrong in (("X|66|0|2619000|2560|1", "clock of 'X' is 0 kHz"), ("X|66|1980000|0|2560|1", "memory clock"),
                       ("X|66|2000000000|2619000|2560|1", "clock of 'X' is 2000000000 kHz"),
                       ("X|66|1980000|2619000|0|1", "memory bus"), ("X|0|1980000|2619000|2560|1", "multiprocessors")):
        said = run("plan", program, "--target", "cuda:0", "--no-tuned", gpu=gpu, expect=3)
        check(wrong in said and said.count("\n") == 1 and "sim:NAME" in said, said)


def host_rates(factor):
    """A calibration of this host in which all takes `factor` as long, as device/api/Topology.h has it."""
    with open("/proc/cpuinfo") as file:
        cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    rate = {"bytes_per_second": 1e10, "source": "a test"}
    device = {"name": f"host: {cpu}" if cpu else "host", "memory_bytes": 1 << 34, "memory_bytes_per_second": 1e10,
              "sm_count": 1, "architecture": 1, "flops_per_second": 1e10, "bf16_flops_per_second": 1e10,
              "tf32_flops_per_second": 1e10, "source": "a test"}
    rows = [({"launch": 1, "access": 24, "operation": 16}, 96, 0.02), ({"launch": 1, "access": 12288}, 49152, 0.4),
            ({"launch": 1, "operation": 73728}, 49152, 1.3), ({"copy": 64}, 128, 0.02), ({"copy": 32768}, 65536, 0.6)]
    return {"format": "mgpu-topology/1", "name": "host", "devices": 4, "device": device, "host_link": rate,
            "link": {"kind": "memory", **rate}, "calibration": {
                "launch_us": 0.02, "copy_latency_us": 0.02, "source": "a test", "matmuls": [], "contention": [],
                "kernel_beside_kernel": [], "collectives": [
                    {"op": "all_reduce", "ranks": 4, "bytes": 8192, "us": 2 * factor}],
                "host": [{"counts": counts, "bytes": bytes_, "us": us * factor} for counts, bytes_, us in rows]}}


def is_not_the_host():
    """Whatever was measured of the host, also twice as fast, changes no digit of a GPU's plan."""
    plans = []
    for factor in (None, 1, 0.5):
        if factor:
            with open(os.environ["MGPU_DB"] + ".host.json", "w") as file:
                json.dump(host_rates(factor), file)
        plans.append([run("plan", MLP, "--target", target, "--no-tuned", "-o", "-") for target in ("cuda:0/4", "host:4")])
    check(plans[0][0] == plans[1][0] == plans[2][0], "the host's rates are in a GPU's plan")
    check(len({host for _, host in plans}) == 3, "the host's rates are not in its own plan")


with tempfile.TemporaryDirectory() as FOLDER:
    os.environ.update(MGPU_DB=f"{FOLDER}/db", MGPU_REHEARSAL=FOLDER)
    follows_its_gpu()
    obeys_its_options(FOLDER)
    scales_what_it_does_not_know(FOLDER)
    is_not_the_host()
print("ok")
