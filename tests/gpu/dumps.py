#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What CUDA says of graphs that PyTorch captured, for importers and tests: a step like decoding's, forked
streams, one rank of NCCL.

Usage: dumps.py OUT.tar.gz [MGPU_TUNE BUNDLE_DIR]
For each: cudaGraphDebugDotPrint (of PyTorch's debug_dump), the data of CUDAGraph.get_graph_data() where there is
such a thing, and the records of CUPTI that PyTorch's profiler keeps of a replay. With the last two words also
the trace of a replay of ours. A JSON line for each; each has a process and may fail. Exit code 77 where there is no
PyTorch that sees the GPU, and ours was not asked for.
"""

import json
import os
import subprocess
import sys
import tempfile

from exports import attempt, failed, pack, put

SECONDS = 25
KINDS = ("decode", "forked", "nccl")
WIDTH, HEADS, LAYERS, CACHE = 256, 4, 2, 64


def decode_step(torch):
    """The work of a step: layers with a cache, by PyTorch's own kernels."""
    F = torch.nn.functional
    half = {"device": "cuda", "dtype": torch.bfloat16}
    weights = [[torch.randn(n, k, **half) / 16 for n, k in
                ((3 * WIDTH, WIDTH), (WIDTH, WIDTH), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH))] for _ in range(LAYERS)]
    caches = [[torch.randn(1, HEADS, CACHE, WIDTH // HEADS, **half) for _ in range(2)] for _ in range(LAYERS)]
    gain, x = torch.ones(WIDTH, **half), torch.randn(1, WIDTH, **half)
    table = torch.randn(1000, WIDTH, **half)

    def work():
        h = x
        for (qkv, out, up, down), (keys, values) in zip(weights, caches):
            q, k, v = F.linear(F.rms_norm(h, (WIDTH,), gain), qkv).view(3, 1, HEADS, 1, WIDTH // HEADS)
            keys[:, :, -1:].copy_(k)
            values[:, :, -1:].copy_(v)
            h = h + F.linear(F.scaled_dot_product_attention(q, keys, values).view(1, WIDTH), out)
            h = h + F.linear(F.silu(F.linear(F.rms_norm(h, (WIDTH,), gain), up)), down)
        return F.linear(h, table).argmax(-1)
    return work


def forked(torch):
    """Two streams beside the first, each with its own work, and a join."""
    x = torch.randn(512, 512, device="cuda")
    sides = [torch.cuda.Stream() for _ in range(2)]

    def work():
        main = torch.cuda.current_stream()
        made = [x @ x]
        for side in sides:
            side.wait_stream(main)
            with torch.cuda.stream(side):
                made.append((x @ x).relu_().sum(0))
        made.append(x.exp())
        for side in sides:
            main.wait_stream(side)
        host = made[1] + made[2] + made[3][0]
        made[0].zero_()
        return host.clone()
    return work


def nccl(torch):
    import torch.distributed as dist
    path = tempfile.mktemp(prefix="mgpu-dumps-")
    dist.init_process_group("nccl", init_method=f"file://{path}", rank=0, world_size=1,
                            device_id=torch.device("cuda:0"))
    x = torch.ones(1 << 16, device="cuda")
    dist.all_reduce(x)

    def work():
        y = x * 2
        dist.all_reduce(y)
        out = torch.empty_like(y)
        dist.all_gather_into_tensor(out, y)
        return out + 1
    return work


def graph_of(torch, work):
    """The captured graph, kept so that it can be asked what is in it."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            work()
    torch.cuda.synchronize()
    try:
        graph = torch.cuda.CUDAGraph(keep_graph=True)
    except TypeError:
        graph = torch.cuda.CUDAGraph()
    graph.enable_debug_mode()
    with torch.cuda.graph(graph):
        work()
    return graph


def dump(kind, folder):
    import torch
    if not torch.cuda.is_available() or not hasattr(torch, "randn"):
        raise ImportError("PyTorch sees no GPU")
    graph = graph_of(torch, {"decode": decode_step, "forked": forked, "nccl": nccl}[kind](torch))

    def dot(path):
        graph.debug_dump(f"{path}.dot")
        return [os.path.basename(path) + ".dot"]

    def data(path):
        if not hasattr(graph, "get_graph_data"):
            raise AttributeError("there is no get_graph_data; there is " + " ".join(
                each for each in dir(graph) if not each.startswith("__")))
        return [put(f"{path}.txt", repr(graph.get_graph_data()))]

    def records(path):
        from torch.profiler import ProfilerActivity, profile
        if hasattr(graph, "instantiate"):
            graph.instantiate()
        graph.replay()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
            for _ in range(3):
                graph.replay()
            torch.cuda.synchronize()
        seen.export_chrome_trace(f"{path}.json")
        return [os.path.basename(path) + ".json"]

    # The dump first: PyTorch gives up the graph once it is instantiated, where it does not keep it.
    for name, write in (("dot", dot), ("data", data), ("records", records)):
        attempt(folder, f"torch-{kind}-{name}", write)


def ours(tune, bundles, folder):
    names = [name for name in ("decode-2", "decode-2-pdl", "digits-main")
             if os.path.exists(f"{bundles}/{name}.mgpu")]
    for name in names:
        def write(path, name=name):
            target = "cuda:0/4" if name == "digits-main" else "cuda:0"
            done = subprocess.run([tune, "run", f"{bundles}/{name}.mgpu", "--random", "--target", target, "--no-tuned",
                                   "--trace", f"{path}.json", *(["--arg=token=1", "--arg=position=3"] if "decode" in name else [])],
                                  capture_output=True, text=True, timeout=SECONDS, check=False)
            if done.returncode != 0:
                raise RuntimeError(done.stderr[-400:])
            return [os.path.basename(path) + ".json"]

        attempt(folder, f"ours-{name}", write)


def main():
    if sys.argv[1] == "--one":
        dump(sys.argv[2], sys.argv[3])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        running = {kind: subprocess.Popen([sys.executable, os.path.abspath(__file__), "--one", kind, folder],
                                          stderr=subprocess.PIPE, text=True) for kind in KINDS}
        if len(sys.argv) > 3:
            ours(sys.argv[2], sys.argv[3], folder)
        absent = 0
        for kind, is_absent, error in failed(running, SECONDS):
            absent += is_absent
            print(json.dumps({"dump": kind, "ok": None if is_absent else False, "error": error}), flush=True)
        if os.listdir(folder):
            pack(folder, os.path.abspath(sys.argv[1]))
    return 77 if absent == len(KINDS) and len(sys.argv) <= 3 else 0


if __name__ == "__main__":
    sys.exit(main())
