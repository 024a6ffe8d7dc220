# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files that the mistakes name: good ones, and each kind of bad one."""
import gzip
import json
import os
import shutil
import sqlite3
import struct
import subprocess


def npy(values, shape="(1024,)", descr="<f4", fortran=False, size=4):
    header = repr({"descr": descr, "fortran_order": fortran, "shape": ()}).replace("()", shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(size * values)


def safetensors():
    header = json.dumps({"weight": {"dtype": "F32", "shape": [1024], "data_offsets": [0, 4096]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4096)


TEXTS = {
    "empty.mlir": "",
    "empty.npy": "",
    "text.npy": "1 2 3\n",
    "words.csv": "1.5\nhello\n",
    "table.csv": "1,2\n3,4\n",
    "train.py": "import torch\n\nmodel = torch.nn.Linear(4, 4)\n",
    "kernel.cu": "__global__ void k(float *x) { x[0] = 1; }\n",
    "hlo.txt": "HloModule jit_step, entry_computation_layout={()->f32[]}\n",
    "llvm.ll": "; ModuleID = 'x'\ndefine void @main() {\n  ret void\n}\n",
    "notes.txt": "These are notes of mine.\n",
    "settings.json": '{"threads": 4}\n',
    "broken.json": '{"format": "mgpu-dag/2",\n "nodes": [}\n',
    "notes.mgpu": "These are notes of mine.\n",
}
BYTES = {
    "x.npy": npy(1024),
    "short.npy": npy(1000, "(1000,)"),
    "square.npy": npy(1024, "(32, 32)"),
    "double.npy": npy(1024, descr="<f8", size=8),
    "fortran.npy": npy(1024, "(32, 32)", fortran=True),
    "big-endian.npy": npy(1024, descr=">f4"),
    "objects.npy": npy(1024, descr="|O", size=8),
    "cut.npy": npy(1024)[:500],
    "arrays.npz": b"PK\x03\x04" + bytes(100),
    "w.safetensors": safetensors(),
}


def make(folder, source, environment):
    def path(name):
        return os.path.join(folder, name)

    def write(name, data):
        with open(path(name), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)

    def read(name):
        with open(path(name), "rb") as file:
            return file.read()

    def tune(words):
        subprocess.run(["mgpu-tune", *words.split()], cwd=folder, env=environment, check=True, capture_output=True)

    for name, data in {**TEXTS, **BYTES}.items():
        write(name, data)
    for name, place in {"saxpy.mlir": "saxpy/saxpy.mlir", "mlp.mlir": "mlp/mlp.mlir",
                        "train.mlir": "tensor/data-parallel.mlir"}.items():
        shutil.copy(os.path.join(source, "examples", place), path(name))
    shutil.copy(os.path.join(source, "tests/fuzz/corpus/dag_json/two-nodes.json"), folder)
    write("saxpy.mlir.gz", gzip.compress(read("saxpy.mlir")))
    for name in ("folder", "folder.npy"):
        os.mkdir(path(name))
    os.symlink("/dev/full", path("full.npy"))
    tune("plan saxpy.mlir --arg a=2 -o saxpy.plan --certificate saxpy.cert")
    plan = read("saxpy.plan")
    write("cut.plan", plan[:plan.rindex(b"\n", 0, len(plan) * 2 // 3) + 1])
    write("newer.plan", b"mgpu-plan 99" + plan[plan.index(b"\n"):])
    write("unsafe.plan", b"\n".join(line.split(b" after ")[0] for line in plan.split(b"\n")))
    tune("bundle saxpy.mlir --arg a=2 -o saxpy.mgpu --cpu x86-64-v2")
    write("cut.mgpu", read("saxpy.mgpu")[:5000])
    tune("tune saxpy.mlir --arg a=2 --budget 1 --db tuned.db")
    with sqlite3.connect(path("other.db")) as other:
        other.execute("CREATE TABLE t(a)")
