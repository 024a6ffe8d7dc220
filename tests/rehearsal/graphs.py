#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs built in Python on GPUs that are not there: their CUDA C++ over the doubles of CUDA's
libraries gives what their C++ for the host does. One is examples/embed/step.py, opened as it is and
as a bundle, the others are random. With `external` instead memory of a GPU that the caller owns:
examples/embed/tensor.py over a double of torch, a state that two programs share, arguments on two GPUs;
and examples/embed/cubin.py.

Usage: graphs.py LIBMGT SOURCE_DIR LIBRARIES [external]
"""

import os
import subprocess
import sys
import tempfile

CHECK = """
def results(program):
    values = program(x=range(16), y=[3] * 16)["sum"].tolist()
    assert [time.name for time in program.times()].count("all_reduce_6") == 1
    return values

expected = results(g.open("host:2"))
assert expected == [float(2 * k + 14) for k in range(8)], expected
assert results(g.open("cuda:0/2")) == expected
try:
    g.open("cuda:0,1")
    raise SystemExit("several GPUs take a bundle")
except mgpu.UnsupportedError as error:
    assert "save the program with their architecture" in str(error), error
g.save(FILE, arch="sm_90", cpu="none")
for target in ("cuda:1/2", "cuda:3,1"):
    with mgpu.load(FILE, target) as program:
        assert program(x=range(16), y=[3] * 16)["sum"].tolist() == expected, target
"""

EXTERNAL = """
import mgpu, os, sqlite3, torch
ADD = dict(cuda='extern "C" __global__ void add(float *y, const float *x) { y[threadIdx.x] += x[threadIdx.x]; }', block=4,
           host="void add(mgpu_block, float *y, const float *x) { for (int i = 0; i < 4; ++i) y[i] += x[i]; }")

def graph(devices, all_reduce):
    g = mgpu.Graph(devices=devices)
    y = [g.external(f"y{d}", (4,), device=d) for d in range(devices)]
    for d in range(devices):
        g.kernel("add", params=("rw", "r"), **ADD)(y[d], g.external(f"x{d}", (4,), device=d))
    if all_reduce:
        g.all_reduce(y)
    return g

g = graph(1, False)
first, second = g.open("cuda:0"), g.open("cuda:0")
x, y = torch.ones(4), torch.zeros(4)
made = first(x0=x, y0=y)
assert made["y0"] is y and y.tolist() == [1] * 4, y.tolist()
z = torch.zeros(4)
for k in range(5):  # from the same graph, changed
    first(y0=z if k % 2 else y)
assert (y.tolist(), z.tolist()) == ([4] * 4, [2] * 4), (y.tolist(), z.tolist())
second.share("y0", first)
second(x0=[10.0] * 4)  # copied to memory of its own
assert y.tolist() == [14] * 4 and second.read("x0").tolist() == [10] * 4
assert torch._Tensor.tolist(y) == first.read("y0").tolist()
for wrong, words in ((torch.ones(5), "its array"), (torch.ones(4, dtype=torch.int32), "elements of type f32")):
    try:
        first.bind("x0", wrong)
        raise SystemExit(words)
    except mgpu.UsageError as error:
        assert words in str(error), error
class Host:  # says that it is on the GPU
    __cuda_array_interface__ = {"version": 3, "shape": (4,), "typestr": "<f4", "data": (id(first) // 16 * 16, False)}
try:
    first.bind("x0", Host())
    raise SystemExit("an address of the host's is no GPU's")
except mgpu.UsageError as error:
    assert "are not memory on cuda:0" in str(error), error
first(x0=x, y0=y)  # it was not lost by that
assert second.devices == {"x0": 0, "y0": 0}
assert second.array("y0").__cuda_array_interface__["data"][0] == y.data_ptr()
second.close(), first.close()

g = graph(2, True)
g.save(FILE, arch="sm_90", cpu="none")
with mgpu.load(FILE, "cuda:1,2", deadline=60) as program:
    for k in range(2):
        made = program(x0=[1.0] * 4, y0=[10.0 * k] * 4, x1=[2.0] * 4, y1=[20.0] * 4)
        assert made["y0"].tolist() == made["y1"].tolist() == [23 + 10.0 * k] * 4, made["y0"].tolist()
    memory = program.array("y1")
    program.write("y1", [5.0] * 4)
    assert program.read("y1").tolist() == [5] * 4
"""
# Memory that begins at a multiple of its element and of no more, or, from one run to the next, of 16 bytes.
UNALIGNED = """
import ctypes, itertools, mgpu, struct
COUNT, KINDS = 37, {"f32": "f", "f16": "e", "f64": "d", "i8": "b"}
HOST = "void more({0} block, {1} *y, const {1} *x) {{ for (int i = 0; i < 37; ++i) y[i] = x[i] + 1; }}"
CUDA = 'extern "C" __global__ void more({0} *y, const {0} *x) {{ y[threadIdx.x] = x[threadIdx.x] + 1; }}'

class Memory:  # one buffer, of the host's or of a GPU's
    def __init__(self, kind, offset, isOnGpu):
        self.letter, self.isOnGpu, size = KINDS[kind], isOnGpu, struct.calcsize(KINDS[kind])
        self.bytes, self.kind = COUNT * size, "<" + ("i" if kind == "i8" else "f") + str(size)
        if isOnGpu:
            import torch
            self.owner = torch.zeros(COUNT * 2 + 16)
            first = self.owner.data_ptr()
        else:
            self.owner = (ctypes.c_char * (self.bytes + 64))()
            first = -(-ctypes.addressof(self.owner) // 16) * 16
        self.address = first + offset * size
        self.memory = (ctypes.c_char * self.bytes).from_address(self.address)
    def given(self):
        return self if self.isOnGpu else memoryview(self.memory).cast("B")
    @property
    def __cuda_array_interface__(self):
        return {"version": 3, "shape": (COUNT,), "typestr": self.kind, "data": (self.address, False), "strides": None}
    def set(self, values):
        self.memory.raw = struct.pack(f"{COUNT}{self.letter}", *values)
    def get(self):
        return list(struct.unpack(f"{COUNT}{self.letter}", self.memory.raw))

def graph(kind):
    g = mgpu.Graph(devices=2)
    of = {"f32": "float", "f64": "double", "i8": "signed char"}.get(kind)
    x, y, z = ([g.external(f"{name}{d}", (COUNT,), dtype=kind, device=d) for d in range(2)] for name in "xyz")
    for d in range(2):
        if of:
            g.kernel("more", params=("w", "r"), cuda=CUDA.format(of), host=HOST.format("mgpu_block", of), block=COUNT)(y[d], x[d])
        else:
            g.copy(y[d], x[d])
        g.copy(z[d][1:COUNT], y[d][0:COUNT - 1])
        g.fill(z[d][0:1], 5)
    g.all_reduce(y)
    return g, 1 if of else 0

for kind, isOnGpu in itertools.product(KINDS, (False, True)):
    g, added = graph(kind)
    with g.open("cuda:0/2" if isOnGpu else "host:2") as program:
        for offsets in ((0,) * 6, (1,) * 6, (0, 1, 3, 2, 1, 1), (0,) * 6, (3, 3, 1, 1, 0, 1)):
            memory = {name: Memory(kind, offset, isOnGpu) for name, offset in zip(("x0", "x1", "y0", "y1", "z0", "z1"), offsets)}
            x = [[(k * (3 + d) + offsets[d]) % 40 for k in range(COUNT)] for d in range(2)]
            for d in range(2):
                memory[f"x{d}"].set(x[d])
            program(**{name: each.given() for name, each in memory.items()})
            for d in range(2):
                assert memory[f"y{d}"].get() == [a + b + 2 * added for a, b in zip(*x)], (kind, isOnGpu, offsets)
                assert memory[f"z{d}"].get() == [5] + [a + added for a in x[d][:-1]], (kind, isOnGpu, offsets)
# Less than that is copied by a call of the program, and refused where nothing is to be copied.
g = mgpu.Graph()
x, y = g.external("x", (4,)), g.external("y", (4,))
g.copy(y, x)
with g.open("host") as program:
    owner = (ctypes.c_char * 32)()
    odd = memoryview((ctypes.c_char * 16).from_address(-(-ctypes.addressof(owner) // 4) * 4 + 1)).cast("B").cast("f")
    for k in range(4):
        odd[k] = k + 1
    assert program(x=odd)["y"].tolist() == [1, 2, 3, 4]
    try:
        program.bind("x", odd)
        raise SystemExit("floats begin at an odd address")
    except mgpu.UsageError as error:
        assert "multiple of" in str(error), error
"""
CUBIN = """
import mgpu, runpy, sqlite3, sys
g = mgpu.Graph()
x, y = g.external("x", (4,)), g.external("y", (4,))
g.kernel("add_one", params=("w", "r", "i32"), cuda='extern "C" __global__ void add_one(float *y, const float *x, int n) { int i = blockIdx.x * blockDim.x + '
         'threadIdx.x; if (i < n) y[i] = x[i] + 1; }', block=128)(y, x, 4)
g.save(FILE, arch="sm_90", cpu="none")
data = sqlite3.connect(FILE).execute("SELECT value FROM blobs WHERE key = (SELECT blob FROM kernel_images WHERE form = 'cubin')").fetchone()[0]
with open(FILE + ".cubin", "wb") as file:
    file.write(data[data.index(bytes([127]) + b"ELF"):])
sys.argv = [EXAMPLE, FILE + ".cubin", "sm_90", "add_one", "128", "cuda:0"]
runpy.run_path(EXAMPLE, run_name="__main__")
"""


def main():
    library, source, libraries = sys.argv[1:4]
    package = os.path.join(source, "pipeline/c/python")
    with open(os.path.join(source, "examples/embed/step.py"), encoding="utf-8") as file:
        text = file.read().split("program = ")[0]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "MGPU_REHEARSAL": folder, "MGPU_REHEARSAL_GPUS": "4",
                       "MGPU_DB": os.path.join(folder, "db"), "NCCL_GRAPH_MIXING_SUPPORT": "0", "MGPU_LIBRARY": library,
                       "PYTHONPATH": package + ":" + os.path.join(source, "tests/rehearsal/python")}
        # Ends without the double's list of what is left: under load its table of contexts was once found
        # damaged there, and the walk over it did not end.
        end = "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"
        program = text + f"FILE = {os.path.join(folder, 'step.mgpu')!r}\n" + CHECK + end
        script = os.path.join(source, "tests/embed/random_graphs.py")
        random = f"import runpy, sys\nsys.argv = [{script!r}, '8', '100', 'cuda:0/{{}}']\nrunpy.run_path({script!r}, run_name='__main__')" + end
        examples = os.path.join(source, "examples/embed")
        file = f"FILE = {os.path.join(folder, 'other.mgpu')!r}\n"
        tensor = f"import runpy\nrunpy.run_path({os.path.join(examples, 'tensor.py')!r}, run_name='__main__')" + end
        cubin = file + f"EXAMPLE = {os.path.join(examples, 'cubin.py')!r}\n" + CUBIN + end
        plain = ((program, ""), (random, ""))
        external = ((file + EXTERNAL + end, ""), (UNALIGNED + end, ""), (tensor, "[3.0, 3.0, 3.0, 3.0]\n"), (cubin, "[1.0, 2.0, 3.0, 4.0]\n"))
        for text, expected in external if "external" in sys.argv[4:] else plain:
            words = ["-c", text]
            done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
            if done.returncode == 77:  # random graphs without NumPy
                continue
            if done.returncode != 0 or expected not in done.stdout:
                sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print("graphs on GPUs' doubles give what they give on the host")


if __name__ == "__main__":
    main()
