#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the kernels of a step, as the published program runs them, as a file of nodes (mgpu-dag/2).

A list says what each kernel reads, writes and computes, and no time. Where a page does not say its kernels, the list
is a reading of the program that was measured, and `READINGS` says how.

Usage: kernel_lists.py decode|fused-decode|training MODEL [DEVICES] [BYTES_OF_A_WEIGHT] > list.json
"""
import json
import sys

from models import MODELS

READINGS = {
    "decode": "gpt-fast's model.py under torch.compile: products of one row become kernels that multiply and sum, "
              "norms their own reductions, and attention three kernels; the output layer is whole on each device",
    "fused-decode": "the page says 100 kernels a step: six a layer (query, key and value; attention; output; gate and "
                    "up; down in parts; their sum) and four at the ends",
    "training": "torchtitan's model with torch.compile: each layer's weights are gathered before use, forward and "
                "backward; every second product is computed again; gradients are reduced in f32",
}
TOKENS = 112  # positions of the cache that decoding reads: a prompt of 5, 100 new ones, rounded up to 8
UTILISATION = 0.35, 0.6  # what attention reaches of tensor cores on H100, and the machine's flops_share


class List:
    def __init__(self, devices):
        self.devices, self.nodes, self.last = devices, [], []

    def add(self, kind, name, deps=None, **facts):
        node = {"id": len(self.nodes), "kind": kind, "name": name, "deps": self.last if deps is None else deps, **facts}
        self.nodes.append(node)
        if deps is None:
            self.last = [node["id"]]
        return node["id"]

    def kernel(self, name, read, written=0, flops=0, **more):
        return self.add("kernel", name, flops=int(flops), bytes_read=int(read), bytes_written=int(written),
                        out_bytes=int(max(written, 1)), **more)

    def collective(self, kind, name, size, deps=None):
        if self.devices > 1:
            return self.add(kind, name, deps, bytes=int(size), group=self.devices, out_bytes=int(size))
        return None

    def text(self, name):
        return json.dumps({"format": "mgpu-dag/2", "name": name, "devices": self.devices, "spmd": True,
                           "resident_bytes": 0, "nodes": self.nodes})


def vector(out, name, rows, columns, size):
    """A matrix of weights by one vector of bf16."""
    out.kernel(name, rows * columns * size + 2 * columns, 2 * rows, 2 * rows * columns)


def decode(m, devices=1, size=2):
    out = List(devices)
    t, D = devices, m.hidden
    out.kernel("embedding", 2 * D, 2 * D)
    for layer in range(m.layers):
        cache = TOKENS * m.groups * m.width * 2 / t
        heads = m.heads * m.width / t
        out.kernel(f"norm.{layer}", 4 * D, 4)
        vector(out, f"qkv.{layer}", m.qkv / t, D, size)
        out.kernel(f"rotate.{layer}", 2 * m.qkv / t, 2 * m.qkv / t)
        out.kernel(f"scores.{layer}", cache + 2 * heads, 4 * TOKENS * m.heads / t, 2 * TOKENS * heads)
        out.kernel(f"softmax.{layer}", 4 * TOKENS * m.heads / t, 4 * TOKENS * m.heads / t)
        out.kernel(f"values.{layer}", cache + 4 * TOKENS * m.heads / t, 2 * heads, 2 * TOKENS * heads)
        vector(out, f"output.{layer}", D, heads, size)
        out.collective("all_reduce", f"sum.{layer}", 2 * D)
        out.kernel(f"inner_norm.{layer}", 4 * D, 4)
        vector(out, f"gate.{layer}", m.inner / t, D, size)
        vector(out, f"up.{layer}", m.inner / t, D, size)
        vector(out, f"down.{layer}", D, m.inner / t, size)
        out.collective("all_reduce", f"inner_sum.{layer}", 2 * D)
    out.kernel("last_norm", 4 * D, 4)
    vector(out, "logits", m.vocabulary, D, size)
    for name in ("top_k.0", "top_k.1", "top_k.2", "cut", "softmax", "draw", "choose"):
        out.kernel(name, 4 * m.vocabulary, 4 * m.vocabulary)
    return out


def fused_decode(m, devices=1, size=2):
    out = List(devices)
    D, cache = m.hidden, 96 * m.groups * m.width * 2 * 2  # half way from 32 to 159 positions
    out.kernel("embedding", 2 * D, 2 * D)
    for layer in range(m.layers):
        vector(out, f"qkv.{layer}", m.qkv, D, size)
        out.kernel(f"attention.{layer}", cache, 2 * D, 4 * 96 * m.heads * m.width)
        vector(out, f"output.{layer}", D, m.heads * m.width, size)
        vector(out, f"gate_up.{layer}", 2 * m.inner, D, size)
        vector(out, f"down.{layer}", D, m.inner, size)
        out.kernel(f"down_sum.{layer}", 16 * D, 2 * D)
    out.kernel("last_norm", 4 * D, 2 * D)
    vector(out, "logits", m.vocabulary, D, size)
    out.kernel("choose", 4 * m.vocabulary, 4)
    return out


def training(m, devices=8, size=2, batch=2, positions=8192):
    out = List(devices)
    T, D, F = batch * positions, m.hidden, m.inner
    half, attention = 2 * T * D, 4 * T * positions / 2 * m.heads * m.width * UTILISATION[1] / UTILISATION[0]

    def product(name, n, k, again=1):
        for each in range(again):
            out.kernel(f"{name}.{each}", 2 * (T * k + k * n), 2 * T * n, 2 * T * n * k, op="matmul")

    def forward(name, keep):
        """The products whose results are not kept are computed again."""
        out.kernel(f"{name}.norm", half, half)
        for k, (part, n, inner) in enumerate((("qkv", m.qkv, D), ("output", D, m.heads * m.width), ("gate", F, D),
                                              ("up", F, D), ("down", D, F))):
            if keep or k % 2:
                product(f"{name}.{part}", n, inner)
            if part == "qkv":
                out.kernel(f"{name}.rotate", 2 * T * m.qkv, 2 * T * m.qkv)
                if keep:
                    out.kernel(f"{name}.attention", 2 * T * m.qkv, half, attention, op="matmul")
            elif part == "output":
                out.kernel(f"{name}.inner_norm", 2 * half, 2 * half)
            elif part == "up":
                out.kernel(f"{name}.silu", 4 * T * F, 2 * T * F)
        out.kernel(f"{name}.sum", 2 * half, half)

    weights = m.layer_weights * size
    out.kernel("embedding", half, half)
    gathered = [out.collective("all_gather", f"gather.{k}", weights, deps=[]) for k in range(m.layers)]
    for layer in range(m.layers):
        out.last = out.last + [gathered[layer]]
        forward(f"forward.{layer}", True)
    for name in ("logits", "logits_gradient", "head_gradient"):
        product(name, m.vocabulary, D)
    out.kernel("loss", 2 * T * m.vocabulary, 2 * T * m.vocabulary)
    out.kernel("loss_gradient", 2 * T * m.vocabulary, 2 * T * m.vocabulary)
    ends = [out.collective("reduce_scatter", "reduce.head", 2 * 4 * m.vocabulary * D, deps=out.last)]
    for layer in reversed(range(m.layers)):
        again = out.collective("all_gather", f"gather_again.{layer}", weights, deps=out.last[:1])
        out.last = out.last[:1] + [again]
        forward(f"again.{layer}", False)
        for part, n, inner in (("down", D, F), ("up", F, D), ("gate", F, D), ("output", D, m.heads * m.width),
                               ("qkv", m.qkv, D)):
            product(f"backward.{layer}.{part}", n, inner, 2)
        out.kernel(f"backward.{layer}.silu", 6 * T * F, 4 * T * F)
        out.kernel(f"backward.{layer}.attention", 4 * T * m.qkv, 2 * T * m.qkv, 2.5 * attention, op="matmul")
        out.kernel(f"backward.{layer}.norms", 4 * half, 2 * half)
        ends.append(out.collective("reduce_scatter", f"reduce.{layer}", 2 * weights, deps=out.last))
    out.last = out.last + ends
    own = (m.layers * m.layer_weights + 2 * m.vocabulary * D) / devices
    out.kernel("norm_of_gradients", 4 * own, 4)
    out.collective("all_reduce", "sum_of_norms", 4)
    out.kernel("adamw", 16 * own, 12 * own, 12 * own)
    return out


MAKERS = {"decode": decode, "fused-decode": fused_decode, "training": training}


def make(kind, model, devices=1, size=2):
    return MAKERS[kind](MODELS[model], devices, size)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in MAKERS or sys.argv[2] not in MODELS:
        sys.exit(f"{__doc__}\nMODEL is one of {', '.join(MODELS)}")
    numbers = [int(word) for word in sys.argv[3:]]
    print(make(*sys.argv[1:3], *numbers).text(" ".join(sys.argv[1:])))
