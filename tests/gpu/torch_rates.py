#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch takes for the work of large.py, and what a copy within the GPU moves.

Usage: torch_rates.py SECONDS [less]
A JSON line for each case: `us`, the median of the GPU's times of ROUNDS calls, by events; the copy has
`gb_per_s`, with what is read and what is written. Values are whole numbers as in large.py, because a product of
other values takes other power. Exit code 77 where there is no PyTorch or it sees no GPU.
"""

import json
import statistics
import sys
import time

import large

ROUNDS = 20


def time_of(torch, call):
    for _ in range(3):
        call()
    times = []
    for _ in range(ROUNDS):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        call()
        after.record()
        after.synchronize()
        times.append(1e3 * before.elapsed_time(after))
    return times


def values(torch, array):
    if array.below:
        return torch.randint(0, array.below, array.shape, device="cuda", dtype=torch.int32)
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[array.element]
    return torch.randint(-array.ints, array.ints + 1, array.shape, device="cuda").to(kind)


def call_of(torch, name, v):
    """The call of PyTorch's that does what the case does."""
    F = torch.nn.functional
    if name.startswith("elementwise"):
        return lambda: torch.addcmul(v["c"], v["a"], v["b"])
    if name.startswith("product"):
        return lambda: torch.matmul(v["a"], v["b"])
    if name.startswith("decode-nk"):
        return lambda: F.linear(v["x"], v["w"])
    if name.startswith("decode-kn"):
        return lambda: torch.matmul(v["x"], v["w"])
    if name == "attention":
        q, k, w = v["q"][None], v["k"].transpose(1, 2).contiguous()[None], v["v"][None]
        return lambda: F.scaled_dot_product_attention(q, k, w)
    if name == "convolution":
        x = v["x"].permute(0, 3, 1, 2)  # channels last in memory
        w = v["w"].permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        return lambda: F.conv2d(x, w, padding=1)
    return {"softmax": lambda: torch.softmax(v["x"], -1),
            "layer-norm": lambda: F.layer_norm(v["x"], v["g"].shape, v["g"]),
            "rms-norm": lambda: F.rms_norm(v["x"], v["g"].shape, v["g"]),
            "transpose": lambda: v["x"].t().contiguous(),
            "sum": lambda: v["x"].sum(),
            "column-sum": lambda: v["x"].sum(0),
            "embedding": lambda: v["table"][v["ids"][:, 0]],
            "scatter-add": lambda: v["table"].index_add(0, v["ids"][:, 0], v["u"]),
            "argmax": lambda: v["x"].argmax(-1),
            "sort": lambda: torch.sort(v["x"], -1, stable=True),
            "top-8": lambda: torch.topk(v["x"], 8, -1)}[name]


def copy(torch, is_small):
    one, other = (torch.ones((1 << 12) if is_small else (1 << 28), dtype=torch.float32, device="cuda") for _ in range(2))
    us = statistics.median(time_of(torch, lambda: one.copy_(other)))
    return {"case": "copy", "ok": True, "us": us, "bytes": 2 * 4 * one.numel(),
            "gb_per_s": 2 * 4 * one.numel() / us / 1e3}


def main():
    try:
        import torch
        if not torch.cuda.is_available() or not hasattr(torch, "randint"):
            raise ImportError("it sees no GPU")
    except ImportError as problem:
        print(f"no PyTorch: {problem}", file=sys.stderr)
        return 77
    until, is_small = time.monotonic() + float(sys.argv[1]), "less" in sys.argv[2:]
    torch.backends.cuda.matmul.allow_tf32 = False
    print(json.dumps({**copy(torch, is_small), "torch": torch.__version__}), flush=True)
    for name, case in large.CASES.items():
        if time.monotonic() > until:
            print(json.dumps({"case": name, "ok": None, "skipped": "no time was left"}), flush=True)
            continue
        try:
            arrays, _ = case.make(*large.sizes_of(name, is_small))
            given = {array.name: values(torch, array) for array in arrays if array.is_input}
            times = time_of(torch, call_of(torch, name, given))
            line = {"case": name, "ok": True, "us": statistics.median(times), "least_us": min(times)}
            del given
        except (RuntimeError, TypeError, AttributeError) as problem:
            # What PyTorch does not do is no failure of ours.
            line = {"case": name, "ok": None, "error": str(problem)[:300]}
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
