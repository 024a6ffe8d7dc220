#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replays beside torch.cuda.CUDAGraph of the same kernels.

Usage: torch_graphs.py BENCH_CUDA [MOST_NODES]
One JSON line for each shape: the GPU's time for a replay (`span`) and what the caller
waits (`call`: until it is done), ours and PyTorch's, the medians of ROUNDS samples taken in
turn, and their ratios. Ours are those of `BENCH_CUDA --serve`, a process beside this one,
which also gives the cubin: PyTorch captures launches of that very kernel.
Exit code 77 where there is no PyTorch or it sees no GPU.
"""

import contextlib
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS, PER_SAMPLE = 7, 10
SHAPES = [("chain", 1), ("chain", 16), ("chain", 256), ("chain", 2048),
          ("layers", 16), ("layers", 256), ("layers", 2048)]
WIDTH = 8  # of layers, as in bench/suites/cuda/StepProgram.cpp


class Ours:
    def __init__(self, bench):
        self.process = subprocess.Popen([bench, "--serve"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"bench-cuda --serve ended at '{line}': {self.process.wait()}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


class Driver:
    """The four calls of libcuda that a launch takes."""

    def __init__(self, cubin):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.image = open(cubin, "rb").read()
        library, kernel, self.function = (ctypes.c_void_p() for _ in range(3))
        self.check(self.cuda.cuLibraryLoadData(ctypes.byref(library), self.image, None, None, 0, None, None, 0))
        self.check(self.cuda.cuLibraryGetKernel(ctypes.byref(kernel), library, b"step"))
        self.check(self.cuda.cuKernelGetFunction(ctypes.byref(self.function), kernel))

    @staticmethod
    def check(code):
        if code != 0:
            sys.exit(f"a call of libcuda failed with {code}")

    def launch(self, stream, out, one, other):
        values = [ctypes.c_uint64(each) for each in (out, one, other)] + [(ctypes.c_uint32 * 12)()]
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values))
        self.check(self.cuda.cuLaunchKernel(self.function, 1, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(stream),
                                            pointers, None))


def words_of(kind, nodes):
    """What each node writes and reads, and how many words there are."""
    width = min(WIDTH, nodes) if kind == "layers" else 1
    steps = []
    for k in range(nodes):
        row = k // width * width
        steps.append((k + width, k, row + (k - row + 1) % width))
    return steps, nodes + width, width


def capture(torch, driver, kind, nodes):
    """The graph, its memory, and what the last word must be."""
    steps, count, width = words_of(kind, nodes)
    memory = torch.zeros(count, dtype=torch.int32, device="cuda")
    base = memory.data_ptr()
    graph = torch.cuda.CUDAGraph()
    main = torch.cuda.Stream()
    # A stream for each column, and an event behind each node that another column reads.
    sides = [main] + [torch.cuda.Stream() for _ in range(width - 1)]
    # Code is loaded at its first launch, which a capture forbids.
    driver.launch(main.cuda_stream, base, base, base)
    torch.cuda.synchronize()
    memory.zero_()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=main):
        for side in sides[1:]:
            side.wait_stream(main)
        behind = {}
        for out, one, other in steps:
            column = out % width
            if other != one and other in behind:
                sides[column].wait_event(behind[other])
            driver.launch(sides[column].cuda_stream, *(base + 4 * word for word in (out, one, other)))
            if width > 1:
                behind[out] = torch.cuda.Event()
                behind[out].record(sides[column])
        for side in sides[1:]:
            main.wait_stream(side)
    return graph, memory, (nodes + width - 1) // width


def sample(torch, graph):
    """Microseconds of a replay: the caller's and the GPU's."""
    calls, spans = [], []
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(PER_SAMPLE):
        start = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        calls.append(1e6 * (time.perf_counter() - start))
        before.record()
        graph.replay()
        after.record()
        torch.cuda.synchronize()
        spans.append(1e3 * before.elapsed_time(after))
    return statistics.median(calls), statistics.median(spans)


def main():
    try:
        import torch
        if not torch.cuda.is_available():
            raise ImportError("it sees no GPU")
    except ImportError as problem:
        print(f"no PyTorch: {problem}", file=sys.stderr)
        sys.exit(77)
    most = int(sys.argv[2]) if len(sys.argv) > 2 else max(nodes for _, nodes in SHAPES)
    ours = Ours(sys.argv[1])
    with contextlib.closing(ours), tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, "step.cubin")
        ours.ask(f"cubin {cubin}")
        torch.zeros(1, device="cuda")  # makes the context current
        driver = Driver(cubin)
        for kind, nodes in [each for each in SHAPES if each[1] <= most]:
            graph, memory, expected = capture(torch, driver, kind, nodes)
            times = {"torch_call_us": [], "torch_span_us": [], "call_us": [], "span_us": []}
            for number in range(ROUNDS + 1):
                call, span = sample(torch, graph)
                answer = ours.ask(f"sample {kind} {nodes}")
                if number == 0:
                    continue  # warms both up
                for key, value in (("torch_call_us", call), ("torch_span_us", span),
                                   ("call_us", answer["call_us"]), ("span_us", answer["span_us"])):
                    times[key].append(value)
            if int(memory[-1]) != expected:
                sys.exit(f"PyTorch's replay of {kind} {nodes} left {int(memory[-1])}, not {expected}")
            line = {"shape": kind, "nodes": nodes, "torch": torch.__version__}
            line.update({key: round(statistics.median(values), 3) for key, values in times.items()})
            line["span_over_torch"] = line["span_us"] / line["torch_span_us"]
            line["call_over_torch"] = line["call_us"] / line["torch_call_us"]
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
