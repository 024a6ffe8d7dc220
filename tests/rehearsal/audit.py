#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Audits on GPUs that are not there: the double drops a kernel of a graph, moves an address, or lets a rank have its
buffer elsewhere in a window, and says nothing. One audit finds each, by the node's name, and none where all is right.

Usage: audit.py MGPU_TUNE LIBMGT SOURCE_DIR LIBRARIES
"""

import os
import re
import subprocess
import sys
import tempfile

TUNE, LIBRARY, SOURCE, LIBRARIES = sys.argv[1:]
MLP = f"{SOURCE}/examples/mlp/mlp.mlir"
# The kernels of the program's 4 devices, in the order in which they are put into the graph of one GPU.
KERNELS = [f"main_kernel{k // 4}_{12 + k}" for k in range(8)]

# A program on four GPUs, in threads of this process, whose graphs come before those of the reference.
RANKS = """
import array, mgpu, random, sys
file, nccl, count = sys.argv[1:]
rng = random.Random(3)
with mgpu.load(file, "cuda:0,1,2,3", audit=2, nccl=nccl or None) as program:
    for name, count_of in (("x", 32 * 64), ("w1", 64 * 128), ("w2", 128 * 64)):
        flat = array.array("f", (rng.uniform(-1, 1) for _ in range(count_of)))
        program.array(name).data.cast("B")[:] = memoryview(flat).cast("B")
    for k in range(int(count)):
        print(program.audit() or "alike")
    assert program.counters().audits == int(count), program.counters()
"""

# A state that each replay adds to, of which some rows are fetched.
STATE = """
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main(%s: memref<64x8xf32> {mgpu.role = "resident"}, %x: memref<64x8xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %dev = mgpu.get_device %c0 : !mgpu.device
  %ds = mgpu.alloc %dev : !mgpu.device -> memref<64x8xf32>
  %dx = mgpu.alloc %dev : !mgpu.device -> memref<64x8xf32>
  mgpu.memcpy %ds, %s, %dev, %host : memref<64x8xf32>, memref<64x8xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dx, %x, %dev, %host : memref<64x8xf32>, memref<64x8xf32>, !mgpu.device, !mgpu.device
  linalg.add ins(%ds, %dx : memref<64x8xf32>, memref<64x8xf32>) outs(%ds : memref<64x8xf32>)
  %sh = memref.subview %s[0, 0] [ROWS, 8] [1, 1] : memref<64x8xf32> to memref<ROWSx8xf32, strided<[8, 1]>>
  %dsh = memref.subview %ds[0, 0] [ROWS, 8] [1, 1] : memref<64x8xf32> to memref<ROWSx8xf32, strided<[8, 1]>>
  mgpu.memcpy %sh, %dsh, %host, %dev : memref<ROWSx8xf32, strided<[8, 1]>>, memref<ROWSx8xf32, strided<[8, 1]>>, !mgpu.device, !mgpu.device
  return
}
"""


def run(words, folder, wrong="", expect=0):
    path = f"{folder}/violations"
    environment = os.environ | {"MGPU_REHEARSAL_WRONG": wrong} if wrong else dict(os.environ)
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != expect:
        sys.exit(f"{wrong} {words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as text:
            sys.exit(f"{wrong} {words}: {text.read()}")
    return done.stdout + done.stderr


def named(said, name, wrong):
    """The first line that says so names the node."""
    line = re.search("^.*audit of replay .*$", said, re.M)
    if not line or f"'{name}'" not in line[0] or "wrote something else" not in line[0]:
        sys.exit(f"{wrong}: '{name}' is not named in\n{said}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({"LD_LIBRARY_PATH": LIBRARIES, "MGPU_DB": f"{folder}/db", "MGPU_REHEARSAL": folder,
                           "MGPU_REHEARSAL_GPUS": "4", "NCCL_GRAPH_MIXING_SUPPORT": "0", "MGPU_LIBRARY": LIBRARY,
                           "MGPU_REHEARSAL_WORLD": f"{folder}/world",
                           "PYTHONPATH": f"{SOURCE}/pipeline/c/python", "PYTHONDONTWRITEBYTECODE": "1"})
        run_all(folder)


def run_all(folder):
    base = [TUNE, "run", MLP, "--random", "--no-tuned", "--repeat", "4", "--audit", "2"]
    for target in ("host", "cuda:0/4", "cuda:0,1,2,3"):
        said = run([*base, "--target", target], folder)
        if "2 of 4 replays, none differs" not in said:
            sys.exit(f"{target}: {said}")
    one = [*base, "--target", "cuda:0/4"]
    for kind in ("drop", "move"):
        for k, name in enumerate(KERNELS):
            wrong = f"{kind}:0:{k + 1}"
            named(run(one, folder, wrong, expect=1), name, wrong)
    named(run([*one, "--on-difference", "stop"], folder, "drop:0:2", expect=4), KERNELS[1], "stop")
    said = run([*one, "--on-difference", "fall-back"], folder, "drop:0:2", expect=1)
    if "the reference is replayed from here on" not in said or "1 of 4 replays, 1 differ" not in said:
        sys.exit(f"falling back: {said}")
    state(folder)
    ranks(folder)
    print(f"audits over doubles: three clean ones, state, {2 * len(KERNELS)} faults on one GPU, and 5 of ranks, each found at once")


def state(folder):
    """State is audited if all of it that replays write is fetched."""
    for rows in (64, 32):
        path = f"{folder}/state{rows}.mlir"
        with open(path, "w", encoding="utf-8") as text:
            text.write(STATE.replace("ROWS", str(rows)))
        said = run([TUNE, "run", path, "--random", "--no-tuned", "--repeat", "4", "--audit", "2", "--target", "cuda:0"],
                   folder, expect=0 if rows == 64 else 5)
        if ("2 of 4 replays, none differs" if rows == 64 else "is state that stays on the GPU") not in said:
            sys.exit(f"{rows} rows fetched: {said}")


def ranks(folder):
    bundle, script = f"{folder}/mlp.mgpu", f"{folder}/ranks.py"
    run([TUNE, "bundle", MLP, "--arch", "sm_90", "-o", bundle], folder)
    with open(script, "w", encoding="utf-8") as text:
        text.write(RANKS)
    # The first collective over windows is that before any capture.
    for nccl, wrong, name in [("", "", ""), ("windows", "", ""), ("", "drop:1:1", KERNELS[1]), ("", "drop:3:2", KERNELS[7]),
                              ("", "move:2:1", KERNELS[2]), ("windows", "window:0:2", "all_reduce_20"),
                              ("windows", "window:3:2", "all_reduce_20")]:
        said = run([sys.executable, script, bundle, nccl, "2"], folder, wrong)
        if name:
            named(said, name, wrong)
        elif said.split() != ["alike", "alike"]:
            sys.exit(f"ranks without a fault: {said}")


if __name__ == "__main__":
    main()
