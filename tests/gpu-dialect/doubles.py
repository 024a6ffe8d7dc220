#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs of the gpu dialect on a GPU that is not there, and compares what they print with the host.

    doubles.py MGPU_TUNE SOURCE_DIR LIBRARIES

The libraries are those of tests/rehearsal: kernels are compiled as CUDA C++ and run on the processor. With
MGPU_SWEEPS all programs that LISTED has run, else those of few kernels.
"""

import os
import re
import subprocess
import sys
import tempfile

# In tests/lit/gpu; the table of docs/gpu-dialect.md takes from here what has run so.
FEW = ["copies", "devices", "kernels", "loops", "subgroups"]
MORE = ["all-reduce", "barriers", "host-memory", "mma-sync", "nvgpu", "sparse", "sparse-2to4", "sparse-square",
        "panels", "phases", "runner", "tensor-boxes", "tensor-map-views", "tensor-maps", "vectors", "warpgroup"]
LISTED = FEW + MORE


# A kernel that is compiled already, as MLIR's lowering calls one: a memref is two pointers, an offset, sizes, strides.
CUDA = """extern "C" __global__ void scale(float *, float *x, long long offset, long long size, long long stride, float f) {
  long long i = threadIdx.x;
  if (i < size)
    x[offset + i * stride] *= f;
}
"""
BINARY = """module attributes {gpu.container_module} {
  gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90">, bin = "OBJECT">]
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %f = arith.constant 2.5 : f32
    %v = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : vector<4xf32>
    %c0 = arith.constant 0 : index
    %m = memref.alloc() : memref<4xf32>
    vector.store %v, %m[%c0] : memref<4xf32>, vector<4xf32>
    gpu.launch_func @kernels::@scale blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%m : memref<4xf32>, %f : f32)
    %r = vector.load %m[%c0] : memref<4xf32>, vector<4xf32>
    vector.print %r : vector<4xf32>
    return
  }
}
"""
# Run where the doubles are found: NVRTC's keeps the text that the driver's runs.
COMPILE = """
import ctypes, sys
nvrtc = ctypes.CDLL("libnvrtc.so.13")
program, size = ctypes.c_void_p(), ctypes.c_size_t()
text = open(sys.argv[1], "rb").read()
options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")
for code in (nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"scale.cu", 0, None, None),
             nvrtc.nvrtcCompileProgram(program, 1, options), nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))):
    assert code == 0, code
cubin = ctypes.create_string_buffer(size.value)
assert nvrtc.nvrtcGetCUBIN(program, cubin) == 0
open(sys.argv[2], "wb").write(cubin.raw)
"""


def compiled(tune, folder, environment):
    """What a program prints whose kernel comes as a cubin."""
    text, cubin, program = (os.path.join(folder, name) for name in ("scale.cu", "scale.cubin", "binary.mlir"))
    with open(text, "w", encoding="utf-8") as file:
        file.write(CUDA)
    done = subprocess.run([sys.executable, "-c", COMPILE, text, cubin], capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        return None, done.stderr
    with open(cubin, "rb") as file:
        escaped = "".join(f"\\{byte:02X}" for byte in file.read())
    with open(program, "w", encoding="utf-8") as file:
        file.write(BINARY.replace("OBJECT", escaped))
    return printed(tune, program, ["--target", "cuda:0"], environment)


def printed(tune, program, target, environment):
    done = subprocess.run([tune, "run", program, *target], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        return None, done.stdout + done.stderr
    text = re.sub(r"base@ = 0x[0-9a-f]+", "base@ = ADDRESS", done.stdout)
    return re.sub(r"^prepare .*", "", text, flags=re.DOTALL | re.MULTILINE), done.stderr


def withoutFaults(folder, gpu, errors):
    """Nothing printed, where rules of CUDA's were broken."""
    broken = os.path.join(folder, "violations")
    if os.path.exists(broken) and os.path.getsize(broken) > 0:
        with open(broken, encoding="utf-8") as file:
            return None, errors + file.read()
    return gpu, errors


def main():
    tune, source, libraries = sys.argv[1:]
    wrong = 0
    names = LISTED if os.environ.get("MGPU_SWEEPS") else FEW
    # One program of two devices: on one GPU, and on a GPU each, whose processes meet in a file.
    runs = [(name, "cuda:0/2" if name == "devices" else "cuda:0") for name in names] + [("devices", "cuda:0,1")]
    # A driver keeps what kernels print until it is waited for.
    runs.append(("../run/printf", "cuda:0"))
    for name, target in runs:
        program = os.path.join(source, "tests/lit/gpu", name + ".mlir")
        with tempfile.TemporaryDirectory() as folder:
            own = {"MGPU_DB": os.path.join(folder, "db")}
            host, errors = printed(tune, program, [], own)
            doubles = {**own, "LD_LIBRARY_PATH": libraries, "MGPU_REHEARSAL": folder, "MGPU_REHEARSAL_GPUS": "2",
                       "MGPU_REHEARSAL_WORLD": os.path.join(folder, "world")}
            gpu, more = printed(tune, program, ["--target", target], doubles)
            gpu, more = withoutFaults(folder, gpu, more)
            if name == "sparse" and not os.path.exists(os.path.join(folder, "calls")):
                gpu, more = None, more + "cuSPARSE computed nothing"
        if host is None or gpu is None or host != gpu:
            wrong += 1
            print(f"{name} on {target}:\n--- host\n{host or errors}\n--- doubles\n{gpu or more}")
    with tempfile.TemporaryDirectory() as folder:
        doubles = {"MGPU_DB": os.path.join(folder, "db"), "LD_LIBRARY_PATH": libraries, "MGPU_REHEARSAL": folder}
        gpu, more = withoutFaults(folder, *compiled(tune, folder, doubles))
        if gpu != "( 2.5, 5, 7.5, 10 )\n":
            wrong += 1
            print(f"a kernel that is compiled already:\n{gpu or more}")
    print(f"{len(runs)} runs, and one whose kernel is compiled already: {wrong} fail on a GPU that is not there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
