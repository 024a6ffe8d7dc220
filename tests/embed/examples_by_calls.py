#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Example programs, built by calls: its text is that of the MLIR's but for kernels' sources, hashes
and places, so is its plan, and its results have the bits of the MLIR's. The calls are made from the
text of the MLIR's bundle, node by node; the kernels are its CUDA C++, compiled for the host by the
system's compiler as any C++ of a user's.

A loop's number is an i64 and no index, and has another name; what a block moves by is not declared, and a program built by
calls knows no products of matrices: these words are left out of both texts. Where there are products the
plan is that of the same calls with the MLIR's durations declared. What the host of gpu/dot prints is a
result here, as calls print nothing. The first kernel of source/source is a CUDA file with an MLIR body as what the
host runs in its place; the calls give that body's text.

Usage: examples_by_calls.py MGPU_TUNE EXAMPLES SHIM_FOLDER [NAME...]; without names a few, all with
MGPU_SWEEPS=all in the environment
"""

import ctypes
import difflib
import json
import math
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile

import mgpu
from mgpu import _library
from mgpu.graph import _COLLECTIVES, _KINDS, _PARTS, _REDUCTIONS

EXAMPLES = {
    "saxpy/saxpy": ["a=2.5"], "heat/heat": [], "mandelbrot/mandelbrot": [], "mlp/mlp": [], "ops/ops": [], "exchange/exchange": [],
    "attention/attention": [], "tensor/attention": [], "tensor/data-parallel": ["rate=0.5"], "tensor/tensor-parallel": ["rate=0.5"],
    "tensor/fully-sharded": ["rate=0.5"], "tensor/pipeline": [], "mpmd/training": [], "mpmd/named": [], "shard/jacobi": [],
    "shard/matmul": [], "shard/transpose": [], "shard/training": ["rate=0.5"], "shard/transformer": [], "stablehlo/mlp-step": [],
    "digits/digits": ["rate=0.5"], "gpu/dot": [], "source/source": [], "mpmd/gpt": [], "mpmd/heterogeneous": [], "mpmd/inference": [],
    "mpmd/offload": []}
FEW = ("saxpy/saxpy", "heat/heat", "ops/ops", "exchange/exchange")
OPTIONS = {"mpmd/named": ["--assign", "embed=front", "--assign", "head=back"]}
WIDTH = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "index": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f8E4M3FN": 1, "f8E5M2": 1}
ROLES = {"temporary": "temporary", "resident": "temporary", "argument": "argument", "local": "temporary", "result": "temporary",
         "constant": "constant"}
DEVICE = {"host": -1}

# One block of the kernel runs the whole launch; the shim's threads take turns, so one launch runs at a time.
HOST = """
#include "{shim}/CudaShim.h"
#include <mutex>
#include <type_traits>
#include <utility>
#undef __shared__
#define __shared__
{text}
#line 1 "adapter"
static uint64_t mgpu_values[64];
static unsigned mgpu_grid[3];
template <class T> static T mgpu_get(size_t k) {{
  T value{{}};
  if constexpr (std::is_class_v<T>) {{
    const unsigned all[12] = {{mgpu_grid[0], mgpu_grid[1], mgpu_grid[2], 0, 0, 0, 0, 0, 0, mgpu_grid[0], mgpu_grid[1], mgpu_grid[2]}};
    static_assert(sizeof(T) == sizeof all || sizeof(T) < 8, "an MgpuLaunch, or a number of a class");
    memcpy(&value, sizeof(T) == sizeof all ? (const void *)all : &mgpu_values[k], sizeof(T));
  }} else {{
    memcpy(&value, &mgpu_values[k], sizeof(T));
  }}
  return value;
}}
template <class... A, size_t... K> static void mgpu_call(void (*kernel)(A...), std::index_sequence<K...>) {{
  kernel(mgpu_get<std::remove_cv_t<A>>(K)...);
}}
template <class... A> static void mgpu_run(void (*kernel)(A...)) {{ mgpu_call(kernel, std::index_sequence_for<A...>()); }}
static void mgpu_body() {{ mgpu_run({entry}); }}
void mgpu_host(mgpu_block b{parameters}) {{
  static std::mutex mutex;
  if (b.index.x | b.index.y | b.index.z) return;
  std::lock_guard<std::mutex> lock(mutex);
  const uint64_t given[] = {{{given}}};
  memcpy(mgpu_values, given, sizeof given);
  const unsigned grid[] = {{b.grid.x, b.grid.y, b.grid.z}};
  memcpy(mgpu_grid, grid, sizeof grid);
  auto blocks = [](uint64_t count, uint64_t size, uint64_t covers) {{ return unsigned((count * size + covers - 1) / covers); }};
  shimLaunch({{blocks(b.grid.x, {sx}, {cx}), blocks(b.grid.y, {sy}, {cy}), blocks(b.grid.z, {sz}, {cz})}}, {{{bx}, {by}, {bz}}}, mgpu_body);
}}
"""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


class Bundle:
    """What the command made of a program."""

    def __init__(self, path):
        connection = sqlite3.connect(path)
        self.text = connection.execute("SELECT text FROM programs").fetchone()[0]
        self.plan = connection.execute("SELECT text FROM plans").fetchone()[0]
        self.blobs = dict(connection.execute("SELECT key, value FROM blobs").fetchall())
        self.kernels = {kernel: (json.loads(facts)["image"], self.blobs[blob].decode()) for kernel, facts, blob in
                        connection.execute("SELECT kernel, facts, blob FROM kernel_images WHERE form = 'cuda'")}
        connection.close()


def box(words):
    """OFFSET{+SIZE*STRIDE}:WIDTH, in bytes."""
    figures, width = words.split(":")
    offset, *dims = figures.split("+")
    sizes, strides = [], []
    for dim in dims:
        size, stride = dim.split("*")
        sizes.append(int(size))
        strides.append(int(stride))
    return int(offset), sizes, strides, int(width)


class Calls:
    """Makes the calls of a bundle's text."""

    def __init__(self, bundle, shim, microseconds=None):
        self.bundle, self.shim, self.microseconds = bundle, shim, microseconds
        self.numNodes = 0
        self.launches = set()  # by node
        self.lines = bundle.text.splitlines()
        words = shlex.split(self.lines[1])
        self.graph = mgpu.Graph(devices=int(words[3]), name=words[1])
        self.call = self.graph._call
        self.buffers, self.kernels, self.shapes = [], [], []
        self.roles, self.results = {}, {}
        self.inductions, self.trips = {}, 1
        for line in self.lines:
            words = shlex.split(line)
            if words[0] == "induction":
                self.inductions[int(words[1])] = (int(words[3]), int(words[5]))
            elif words[0] == "loop":
                self.trips = int(words[1])
            elif words[0] == "argument" and "buffer" in words:
                self.roles[int(words[-1])] = words[2]
            elif words[0] == "result":
                self.results[int(words[-1])] = words[1]

    def run(self):
        node = []
        isOpen = False
        self.undeclared = [shlex.split(line) for line in self.lines if line.startswith("buffer ")]
        roles = [words[4] for words in self.undeclared]
        # Temporary memory of a program with a loop is its trips'.
        self.ofLoop = range(roles.index("temporary"), len(roles) - roles[::-1].index("temporary")) if self.trips > 1 and "temporary" in roles else ()
        self.declare(self.ofLoop[0] if self.ofLoop else len(roles))
        for line in self.lines[2:]:
            words = shlex.split(line)
            if words[0] == "kernel":
                self.kernel(words)
            if words[0] in ("node", "end") and node:
                phase = shlex.split(node[0])[2]
                if phase == "replay" and self.trips > 1 and not isOpen:
                    isOpen = True
                    self.begin()
                if phase == "epilogue" and isOpen:
                    isOpen = False
                    self.end()
                self.node([shlex.split(each) for each in node])
                node = []
            if words[0] == "node" or node:
                node.append(line)
        if isOpen:
            self.end()
        return self.graph

    def declare(self, end):
        while len(self.buffers) < end:
            self.buffer(self.undeclared[len(self.buffers)])

    def end(self):
        self.call("mgt_builder_end_loop")
        self.declare(len(self.undeclared))

    def begin(self):
        number = ctypes.c_uint32()
        first, step = next(iter(self.inductions.values()), (0, 1))
        self.call("mgt_builder_begin_loop", self.trips, first, step, ctypes.byref(number))
        for k in self.inductions:
            self.buffers[k] = (number.value, 8)
        self.declare(self.ofLoop[-1] + 1 if self.ofLoop else 0)

    def buffer(self, words):
        # buffer NAME on DEVICE ROLE INDEX bytes N type T shape ... [contents HASH]
        name, device, role = words[1], DEVICE.get(words[3], words[3]), words[4]
        at = words.index("shape")
        shape = [int(word) for word in words[at + 1:words.index("contents") if "contents" in words else None]]
        kind, k = words[9], len(self.buffers)
        self.shapes.append((shape, WIDTH[kind]))
        isUnused = self.ofLoop and k + 1 == self.ofLoop[0] and (role, kind) == ("local", "index")
        if k in self.inductions or (name == "induction" and self.trips > 1) or isUnused:
            self.buffers.append(None)  # made by the loop
            return
        what = "result" if k in self.results and role == "result" else ROLES[role]
        contents = self.bundle.blobs[words[-1]] if role == "constant" else None
        spec = _library.BufferSpec(
            name=(self.results.get(k, name) if what == "result" else name).encode(), kind=_KINDS[what], device=int(device), type=kind.encode(),
            rank=len(shape), shape=(ctypes.c_int64 * len(shape))(*shape),
            role=self.roles[k].encode() if self.roles.get(k) in ("resident", "dynamic") else None,
            contents=ctypes.cast(ctypes.c_char_p(contents), ctypes.c_void_p))
        number = ctypes.c_uint32()
        self.call("mgt_builder_buffer", ctypes.byref(spec), ctypes.byref(number))
        self.buffers.append((number.value, WIDTH[kind]))

    def kernel(self, words):
        name, block = words[1], [int(word) for word in words[3:6]]
        k = len(self.kernels)
        image, text = self.bundle.kernels[k]
        launch = next(shlex.split(line) for line in self.lines if line.startswith(f"launch {k} "))
        given = launch[launch.index("with") + 1:] if "with" in launch else []
        host = HOST.format(
            shim=self.shim, text=text, entry=image["entry"],
            parameters="".join(f", {'void *' if word[0] == 'b' else 'int64_t '}a{n}" for n, word in enumerate(given)),
            given=", ".join(f"(uint64_t)a{n}" for n in range(len(given))) or "0",
            **dict(zip(("sx", "sy", "sz"), image["source_block"])), **dict(zip(("cx", "cy", "cz"), image["covers"])),
            **dict(zip(("bx", "by", "bz"), image["block"])))
        number = ctypes.c_uint32()
        spec = _library.KernelSpec(name=name.encode(), entry=b"mgpu_host", host=host.encode(), block=(ctypes.c_uint32 * 3)(*block))
        self.call("mgt_builder_kernel", ctypes.byref(spec), ctypes.byref(number))
        self.kernels.append(number.value)

    def view(self, buffer, words):
        number, width = self.buffers[int(buffer)]
        offset, sizes, strides, element = box(words)
        assert element == width and offset % width == 0, (buffer, words)
        return _library.View(number, offset // width, len(sizes), (ctypes.c_int64 * len(sizes))(*sizes),
                             (ctypes.c_int64 * len(strides))(*(stride // width for stride in strides)))

    def node(self, lines):
        head, work, rest = lines[0], lines[1], lines[2:]
        after = head[head.index("cost") + 5:]
        if after[:1] == ["asks"]:
            after = after[5:]
        part = (_PARTS[after[1]], int(after[2]), int(after[3])) if after[:1] == ["in"] else (-1, 0, 0)
        self.call("mgt_builder_part", *part)
        name = re.sub(r"_\d+$", "", head[1]).encode()
        if work[0] == "copy":
            source, destination = self.view(work[1], work[2]), self.view(work[3], work[4])
            self.call("mgt_builder_copy_as", ctypes.byref(destination), ctypes.byref(source), name)
        elif work[0] == "launch":
            self.launch(name, head, work, [line for line in rest if line[0] == "use"])
        else:
            self.collective(work, [line for line in rest if line[0] == "member"])
        self.numNodes += 1

    def launch(self, name, head, work, uses):
        number = self.kernels[int(work[1])]
        args = []
        for word in work[work.index("with") + 1:] if "with" in work else []:
            if word[0] == "s":
                args.append(_library.Arg(0, _library.View(), b"i64", int(word[1:].split("+")[0], 16)))
                continue
            buffer, offset = word[1:].split("+")
            index, width = self.buffers[int(buffer)]
            none = (ctypes.c_int64 * 1)(0)
            args.append(_library.Arg(0, _library.View(index, int(offset) // width, 1, none, (ctypes.c_int64 * 1)(1)), None, 0))
        for use in uses:
            access = 4 | (1 if "r" in use[2] else 0) | (2 if "w" in use[2] else 0)
            args.append(_library.Arg(access, self.view(use[1], use[3]), None, 0))
        most = (ctypes.c_uint64 * len(args))()
        figures = head[head.index("cost") + 2:]
        self.limit(most, len(args) - len(uses), [use for use in uses if "r" in use[2]], uses, int(figures[0]))
        self.limit(most, len(args) - len(uses), [use for use in uses if "w" in use[2]], uses, int(figures[1]))
        flops = float(head[head.index("cost") + 1])
        self.launches.add(self.numNodes)
        self.call("mgt_builder_launch", ctypes.byref(_library.LaunchSpec(
            kernel=number, device=int(head[4]), grid=(ctypes.c_uint32 * 3)(*map(int, work[3:6])), num_args=len(args),
            args=(_library.Arg * len(args))(*args), name=name, flops=flops,
            microseconds=self.microseconds[self.numNodes] if self.microseconds else 0, most_bytes=most)))

    def limit(self, most, first, some, uses, cost):
        """Where a launch touches fewer bytes than its uses have, the largest one is a table."""
        def size(use):
            _, sizes, _, width = box(use[3])
            return math.prod(sizes) * width
        excess = sum(map(size, some)) - cost
        if excess > 0:
            table = max(some, key=size)
            most[first + uses.index(table)] = size(table) - excess

    def axis(self, buffer, words):
        """What a box of a whole buffer with one dimension more is cut along."""
        shape, width = self.shapes[int(buffer)]
        _, sizes, strides, _ = box(words)
        step = width
        for axis in reversed(range(len(shape))):
            if len(sizes) == len(shape) + 1 and shape[axis] % sizes[0] == 0 and strides[0] == shape[axis] // sizes[0] * step:
                return axis
            step *= shape[axis]
        return None

    def collective(self, work, members):
        # collective KIND OP TYPE root R communicator C [pairs ...]
        kind, root = work[1], int(work[5])
        sends, receives = [each[3:5] for each in members], [each[6:8] for each in members]
        split, concat = self.axis(*sends[0]), self.axis(*receives[0])
        views = [self.view, lambda buffer, _: _library.View(self.buffers[int(buffer)][0], 0, 0, None, None)]
        cut = kind in ("all_gather", "reduce_scatter", "all_to_all") and (split, concat) != (None, None)
        send, receive = [views[cut](*each) for each in sends], [views[cut](*each) for each in receives]
        axis, other = split if kind != "all_gather" else concat, concat
        if kind == "send_recv":  # who sends comes first
            send, receive = [send[0], send[0]], [receive[1], receive[1]]
        pairs = [int(rank) for word in work[8:] for rank in re.findall(r"\d+", word)]
        array = _library.View * len(members)
        self.call("mgt_builder_collective", ctypes.byref(_library.CollectiveSpec(
            kind=_COLLECTIVES[kind], reduction=_REDUCTIONS[work[2]], num_members=len(members), send=array(*send), receive=array(*receive),
            axis=axis or 0, concat_axis=other or 0, root=root, num_pairs=len(pairs) // 2, pairs=(ctypes.c_uint32 * len(pairs))(*pairs))))


def plain(text):
    """A program's text without what may differ."""
    out = []
    arguments = {line.split()[-1] for line in text.splitlines() if line.startswith("argument ")}
    for line in text.splitlines():
        if line.startswith("result ") and line.split()[-1] in arguments:
            continue  # an argument that is written is no result of calls
        if line.startswith(("mgpu-program ", "argument")) and "specialised" in line or line.startswith("mgpu-program "):
            continue
        if line.startswith("kernel "):
            line = re.sub(r" hash .*", "", line)
        line = re.sub(r' at "[^"]*"', "", line)
        line = re.sub(r" asks( [\d.e+]+){4}", "", line)  # a kernel's code says it, which calls do not show
        line = re.sub(r" by -?\d+ -?\d+ -?\d+", "", line).replace(" matmul", "")
        line = re.sub(r'^buffer "[^"]*" on host result', "buffer on host result", line)  # it has the result's name
        if line.startswith("buffer "):
            line = re.sub(r" argument \d+", " argument", line)  # their numbers count those that are compiled in
        if re.fullmatch(r'buffer "[^"]*" on host local 0 bytes 8 type (index|i64) shape', line):
            line = "a loop's number"
        out.append(line)
    return "\n".join(out)


def differences(mine, theirs):
    return "\n".join(list(difflib.unified_diff(theirs.splitlines(), mine.splitlines(), "MLIR", "calls", lineterm="", n=0))[:40])


def results_of(program, given):
    for name, value in given.items():
        program.write(name, value)
    program.replay(2)
    program.fetch()
    return {name: program.read(name).tobytes() for name, about in program.arguments.items() if about.bytes}


def without_prints(text):
    """gpu/dot gives its sums in place of printing them."""
    start = text.index("    %all = memref.cast %sums")
    end = text.index("    return\n", start)
    text = text[:start] + "    return %sums : memref<4xf32>\n" + text[end + len("    return\n"):]
    return text.replace("func.func @main() {", "func.func @main() -> memref<4xf32> {").replace(
        "  func.func private @printMemrefF32(memref<*xf32>)\n", "")


def with_body(text):
    """source/source with the body of @rowMean in place of the file that it is the reference of."""
    body = re.search(r"func.func private @rowMean\(.*?\) \{\n(.*?)  return\n\}\n", text, re.S)[1]
    kept = {"x": "b", "mean": "mean", "columns": "columns"}
    body = re.sub(r"%(\w+)", lambda name: "%" + kept.get(name[1], "of_" + name[1]), body)
    return re.sub(r"(  mgpu.launch %d) args\(%b, %mean.*?(grid\(%rows\) block\(%threads\)).*?writes = \[1\]\}\n",
                  lambda found: f"{found[1]} {found[2]} {{\n{body}  }}\n", text, flags=re.S)


def read_changed(tune, folder, source, change):
    """The bundle of a program whose text is changed, and its path."""
    changed, path = os.path.join(folder, os.path.basename(source)), os.path.join(folder, "changed.mgpu")
    with open(source, encoding="utf-8") as file:
        text = change(file.read())
    with open(changed, "w", encoding="utf-8") as file:
        file.write(text)
    run(tune, "bundle", changed, "--no-tuned", "-o", path)
    return Bundle(path), path


def read_example(tune, folder, examples, name):
    """What the calls are to make, and the path of its bundle."""
    source, path = os.path.join(examples, name + ".mlir"), os.path.join(folder, "a.mgpu")
    if name == "gpu/dot":
        return read_changed(tune, folder, source, without_prints)
    words = [word for pair in EXAMPLES[name] for word in ("--arg", pair)] + OPTIONS.get(name, [])
    run(tune, "bundle", source, *words, "--no-tuned", "-o", path)
    bundle = Bundle(path)
    if name == "source/source":
        bundle.kernels[0] = read_changed(tune, folder, source, with_body)[0].kernels[0]
    return bundle, path


def check_plan(name, theirs, mine, shim):
    expected = theirs.plan
    if " matmul" in theirs.text:
        durations = {int(node): float(us) for node, us in re.findall(r"^step (\d+) .* for ([0-9.e+-]+)", theirs.plan, re.M)}
        calls = Calls(theirs, shim, durations)
        mine = calls.run().plan().text
        # A duration that was declared is `given`.
        expected = re.sub(r"^(step (\d+) .* for [0-9.e+-]+)",
                          lambda step: step[1] + " given" * (int(step[2]) in calls.launches), expected, flags=re.M)
    assert mine == expected, f"{name}: its plan has\n{differences(mine, expected)}"


def check(tune, folder, examples, shim, name):
    theirs, path = read_example(tune, folder, examples, name)
    g = Calls(theirs, shim).run()
    own = os.path.join(folder, "b.mgpu")
    g.save(own, cpu="x86-64-v3")
    mine = Bundle(own)
    assert plain(mine.text) == plain(theirs.text), f"{name}: its text has\n{differences(plain(mine.text), plain(theirs.text))}"
    check_plan(name, theirs, mine.plan, shim)
    given = {}
    with mgpu.load(path, f"host:{g.devices}") as program, mgpu.load(own, f"host:{g.devices}") as built:
        for k, (argument, about) in enumerate(program.arguments.items()):
            if about.bytes and argument in built.arguments and not about.is_result:
                kind, count = about.type.decode(), about.bytes // WIDTH[about.type.decode()]
                numbers = [((i + 1) * (k + 3) * 2654435761 >> 7) % 1000 for i in range(count)]
                given[argument] = mgpu._arrays.take(argument, [n / 1000 for n in numbers] if kind[0] == "f" else [n % 7 for n in numbers], kind, (count,))
                given[argument] = bytes(memoryview(given[argument]).cast("B"))
        all_of, found = results_of(program, given), results_of(built, given)
        expected = {key: value for key, value in all_of.items() if key in found}
    assert expected and found == expected, f"{name}: {[key for key in expected if found.get(key) != expected[key]]} have other bits"


def main():
    tune, examples, shim, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for name in names or (EXAMPLES if os.environ.get("MGPU_SWEEPS") == "all" else FEW):
            check(tune, folder, examples, shim, name)
            print(f"{name}: the text, the plan and the bits of the MLIR's")


if __name__ == "__main__":
    main()
