#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of one device that stands for all (--one-device) beside plans of all devices, for machines of 8 GPUs.

Usage: one_device.py MGPU_TUNE
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SUITES = pathlib.Path(__file__).resolve().parents[2] / "bench" / "suites"
TUNE = sys.argv[1]
UNEVEN = """#cut = #spmd.layout<mesh = [2], split = [[0]]>
func.func @main(%x: tensor<5xf32> {spmd.layout = #cut}) -> (tensor<5xf32> {spmd.layout = #cut}) {
  %s = spmd.full_to_shard %x : tensor<5xf32> to tensor<?xf32>
  %y = math.exp %s : tensor<?xf32>
  %r = spmd.shard_to_full %y : tensor<?xf32> to tensor<5xf32>
  return %r : tensor<5xf32>
}
"""
# No group stands for one in another order; one of two groups of five is on two machines.
GROUPS = """func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %s = spmd.all_reduce sum ins(%x : tensor<8xf32>) outs(%x : tensor<8xf32>) groups [{}] -> tensor<8xf32>
  return %s : tensor<8xf32>
}}
"""
DEVICES = """mgpu.device_config @c #mgpu.device_config<numDevices = 2>
func.func @main(%x: memref<4xf32>) {
  return
}
"""


def written(script, *arguments):
    return subprocess.run([sys.executable, SUITES / script, *map(str, arguments)], check=True, capture_output=True,
                          text=True).stdout


def tune(*arguments):
    """Exit code, output and the most memory it took, in KB."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([TUNE, *map(str, arguments)], stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        out.seek(0)
        return os.waitstatus_to_exitcode(status), out.read(), usage.ru_maxrss


def plan(file, *options):
    code, text, memory = tune("plan", file, "--target", "sim:dgx-h200-x64", "--budget", "0", "--json", "--no-tuned",
                              *options)
    assert code == 0, text
    return json.loads(text), memory


def compare(file, *options, arena=False, resharded=False):
    """Only those transforms that need to know no more of a collective than its bytes; gives the plan of one device.
    Programs that are resharded by copies use collectives instead, which take longer."""
    for transforms in ("none", "algorithm,copies,order,early,nofork"):
        every, _ = plan(file, "--transforms", transforms, *options)
        one, _ = plan(file, "--one-device", "--transforms", transforms, *options)
        assert one["verified"] and one["devices"] == every["devices"]
        if resharded and abs(one["replay_us"] / every["replay_us"] - 1) > 1e-12:
            assert every["replay_us"] < one["replay_us"] < 1.2 * every["replay_us"], (file, transforms)
            continue
        # Times are added up in another order.
        assert abs(one["replay_us"] / every["replay_us"] - 1) < 1e-12, (file, transforms, one["replay_us"], every["replay_us"])
        # Equal starts are told apart by the numbers of nodes, so what runs beside what may differ a little.
        for name in ("contended_replay_us", "replay_bound_us"):
            assert abs(one[name] / every[name] - 1) < 0.01, (file, transforms, name, one[name], every[name])
        if arena and transforms == "none":
            assert one["arena_bytes"][0] == every["arena_bytes"][0], file
    return one


def examples():
    """Each is planned as with all devices, or refused with a reason."""
    found = {}
    for file in sorted((SUITES.parents[1] / "examples").glob("*/*.mlir")):
        if file.parent.name not in ("shard", "stablehlo", "tensor"):
            continue
        options = ["--devices", "4"] if "layout" not in file.read_text() and file.parent.name != "shard" else []
        if "%rate" in file.read_text():
            options += ["--arg", "rate=0.01"]
        code, text, _ = tune("plan", file, "--one-device", "--target", "sim:dgx-h200-x64", "--budget", "0", *options)
        assert code in (0, 5), text
        if code == 0:
            compare(file, *options, resharded=file.parent.name == "shard")
        found[f"{file.parent.name}/{file.name}"] = code
    return found


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    numbers, memories = [], []

    def program(name, text):
        (folder / name).write_text(text)
        return folder / name

    for devices in (2, 4, 8, 16):
        file = program(f"t{devices}.mlir", written("transformer.py", "--layers", 2, "--devices", devices))
        compare(file, arena=True)
    large = program("large.mlir", written("transformer.py", "--layers", 2, "--devices", 16, "--tokens", 512, "--head", 64))
    changed = compare(large)
    assert any(each["kept"] for each in changed["transforms"]), changed
    for grid in ("2x4", "1x8", "2x2", "2x8"):
        compare(program(f"s{grid}.mlir", written("sharded_transformer.py", "--layers", 1, "--grid", grid)), arena=True,
                resharded=True)

    # Neither nodes nor memory grow, but for a launch more of each of three products whose sums are split.
    for devices in (8, 64, 512):
        file = program(f"m{devices}.mlir", written("transformer.py", "--layers", 1, "--devices", devices))
        one, memory = plan(file, "--one-device", "-o", folder / "p.plan", "--certificate", folder / "p.cert")
        numbers.append(len(one["nodes"]))
        memories.append(memory)
    assert numbers[2] <= numbers[0] + 3, numbers
    assert memories[2] < 1.25 * memories[0], memories

    code, text, _ = tune("check", file, "--one-device", "--plan", folder / "p.plan", "--certificate", folder / "p.cert")
    assert code == 0 and "p.plan: safe" in text and "p.cert: proves" in text, text
    eight = folder / "m8.mlir"
    plan(eight, "--one-device", "-o", folder / "p.plan")
    for wanted, words, arguments in [
            (1, "is this the plan of another program", ["check", eight, "--plan", folder / "p.plan"]),
            (2, "--one-device is of a plan", ["check", eight, "--one-device"]),
            (5, "devices do not all do this alike", ["plan", program("u.mlir", UNEVEN)]),
            (5, "names each of its devices", ["plan", program("d.mlir", DEVICES)]),
            (5, "devices do not all do this alike",
             ["plan", program("g.mlir", GROUPS.format("[0, 1], [2, 3], [5, 4]")), "--devices", "6"]),
            (5, "lie on other numbers of machines",
             ["plan", program("h.mlir", GROUPS.format("[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]")), "--devices", "10"])]:
        if arguments[0] == "plan" and arguments[-1] != "--one-device":
            arguments += ["--one-device", "--target", "sim:dgx-h200-x64"]
        code, text, _ = tune(*arguments)
        assert code == wanted and words in text, (arguments, code, text)
    refused = {file for file, code in examples().items() if code == 5}
    assert refused == {"shard/jacobi.mlir", "stablehlo/mlp-step.mlir", "tensor/pipeline.mlir"}, refused
    print("one device stands for all")


main()
