#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the kernels of a step, as the published program runs them, as a file of nodes (mgpu-dag/2).

A list says what each kernel reads, writes and computes, and no time. Where a page does not say its kernels, the list
is a reading of the program that was measured, and `READINGS` says how.

Usage: kernel_lists.py KIND MODEL [DEVICES [BYTES_OF_A_WEIGHT [BATCH]]] > list.json
KIND is decode, fused-decode, turbomind, prefill-128, prefill-2048, training or mpt.
"""
import json
import sys
from functools import partial

from models import MODELS

READINGS = {
    "decode": "gpt-fast's model.py under torch.compile: products of one row become kernels that multiply and sum, "
              "norms their own reductions, and attention three kernels; the output layer is whole on each device; experts are "
              "read where they are, after a product, a softmax, a top-k of two kernels and a division that choose them",
    "fused-decode": "the page says 100 kernels a step: six a layer (query, key and value; attention; output; gate and "
                    "up; down in parts; their sum) and four at the ends",
    "turbomind": "lmdeploy's TurboMind: a norm that adds what came before, one product for query, key and value, rotation "
                 "and attention in one kernel, and NCCL's all-reduces; the output layer has a part on each device",
    "prefill": "TensorRT-LLM with its attention plugin: rotation writes the cache, attention is one kernel, norms add what "
               "came before, gate and up are two products, all-reduces are NCCL's, and logits are of the last position",
    "training": "torchtitan at the commit that the page names, layers under torch.compile: weights are gathered before "
                "use, forward and backward, and copied out of the buffer; every other product is computed again; keys and "
                "values are written for each head of queries; the loss is not compiled and works on f32; gradients are "
                "copied to f32 and reduced; AdamW is not fused",
    "mpt": "llm-foundry's model, not compiled, without activation checkpointing: weights are gathered in f32 and become "
           "bf16 at their use; the output layer is the embedding; the loss is one kernel each way; AdamW is not fused",
}
POSITIONS = {"training": 8192, "mpt": 2048, "prefill-128": 128, "prefill-2048": 2048}  # of a sequence
TOKENS = 112  # positions of the cache that decoding reads: a prompt of 5, 100 new ones, rounded up to 8
# FlashAttention-2 on H100 with heads of 128 and 8192 positions: 333 TFLOP/s forward with the causal mask and 370 without
# it, 318 backward without it (https://arxiv.org/abs/2407.08608, figures 5 and 6). Backward is taken to lose as much by
# the mask. A node's operations are those that its time takes at the machine's flops_share of 989 TFLOP/s.
ATTENTION_SHARES, UTILISATION = (333 / 989, 318 * 333 / 370 / 989), 0.6


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


def times_weights(out, name, rows, columns, size, batch=1):
    """A matrix of weights by vectors of bf16: one in the compiler's own kernels, more on tensor cores."""
    out.kernel(name, rows * columns * size + 2 * columns * batch, 2 * rows * batch, 2 * rows * columns * batch,
               **({"op": "matmul"} if batch > 1 else {}))


def experts(out, layer, m, size, tokens):
    """The experts that each token chooses, whose weights each token reads."""
    rows, each = m.inner / out.devices, m.experts * tokens
    times_weights(out, f"router.{layer}", 8, m.hidden, size, tokens)
    for name in ("softmax", "top_k.0", "top_k.1", "divide"):
        out.kernel(f"router_{name}.{layer}", 16 * tokens, 16 * tokens)
    for name, n, k in (("gate", rows, m.hidden), ("up", rows, m.hidden), ("down", m.hidden, rows)):
        times_weights(out, f"{name}.{layer}", each * n, k, size)
    out.kernel(f"mix.{layer}", 2 * each * m.hidden, 2 * m.hidden * tokens)


def decode(m, devices=1, size=2, batch=1):
    out = List(devices)
    t, D, B = devices, m.hidden, batch
    out.kernel("embedding", 2 * D * B, 2 * D * B)
    for layer in range(m.layers):
        cache = B * TOKENS * m.groups * m.width * 2 / t
        heads = m.heads * m.width / t
        scores = 4 * B * TOKENS * m.heads / t
        out.kernel(f"norm.{layer}", 4 * D * B, 4 * B)
        times_weights(out, f"qkv.{layer}", m.qkv / t, D, size, B)
        out.kernel(f"rotate.{layer}", 2 * B * m.qkv / t, 2 * B * m.qkv / t)
        out.kernel(f"scores.{layer}", cache + 2 * B * heads, scores, 2 * B * TOKENS * heads)
        out.kernel(f"softmax.{layer}", scores, scores)
        out.kernel(f"values.{layer}", cache + scores, 2 * B * heads, 2 * B * TOKENS * heads)
        times_weights(out, f"output.{layer}", D, heads, size, B)
        out.collective("all_reduce", f"sum.{layer}", 2 * D * B)
        out.kernel(f"inner_norm.{layer}", 4 * D * B, 4 * B)
        if m.experts > 1:
            experts(out, layer, m, size, B)
        else:
            times_weights(out, f"gate.{layer}", m.inner / t, D, size, B)
            times_weights(out, f"up.{layer}", m.inner / t, D, size, B)
            times_weights(out, f"down.{layer}", D, m.inner / t, size, B)
        out.collective("all_reduce", f"inner_sum.{layer}", 2 * D * B)
    out.kernel("last_norm", 4 * D * B, 4 * B)
    times_weights(out, "logits", m.vocabulary, D, size, B)
    for name in ("top_k.0", "top_k.1", "top_k.2", "cut", "softmax", "draw", "choose"):
        out.kernel(name, 4 * m.vocabulary * B, 4 * m.vocabulary * B)
    return out


def fused_decode(m, devices=1, size=2, batch=1):
    out = List(devices)
    D, cache = m.hidden, 96 * m.groups * m.width * 2 * 2  # half way from 32 to 159 positions
    out.kernel("embedding", 2 * D, 2 * D)
    for layer in range(m.layers):
        times_weights(out, f"qkv.{layer}", m.qkv, D, size)
        out.kernel(f"attention.{layer}", cache, 2 * D, 4 * 96 * m.heads * m.width)
        times_weights(out, f"output.{layer}", D, m.heads * m.width, size)
        times_weights(out, f"gate_up.{layer}", 2 * m.inner, D, size)
        times_weights(out, f"down.{layer}", D, m.inner, size)
        out.kernel(f"down_sum.{layer}", 16 * D, 2 * D)
    out.kernel("last_norm", 4 * D, 2 * D)
    times_weights(out, "logits", m.vocabulary, D, size)
    out.kernel("choose", 4 * m.vocabulary, 4)
    return out


def turbomind(m, devices=1, size=2, batch=1):
    out = List(devices)
    t, D, B, positions = devices, m.hidden, batch, 65  # half way from a prompt of one to 129
    out.kernel("embedding", 2 * D * B, 2 * D * B)
    for layer in range(m.layers):
        heads = m.heads * m.width / t
        out.kernel(f"norm.{layer}", 4 * D * B, 4 * D * B)
        times_weights(out, f"qkv.{layer}", m.qkv / t, D, size, B)
        out.kernel(f"attention.{layer}", B * positions * m.groups * m.width * 4 / t + 2 * B * m.qkv / t, 2 * B * heads,
                   4 * B * positions * heads)
        times_weights(out, f"output.{layer}", D, heads, size, B)
        out.collective("all_reduce", f"sum.{layer}", 2 * D * B)
        out.kernel(f"inner_norm.{layer}", 4 * D * B, 4 * D * B)
        times_weights(out, f"gate.{layer}", m.inner / t, D, size, B)
        times_weights(out, f"up.{layer}", m.inner / t, D, size, B)
        out.kernel(f"silu.{layer}", 4 * B * m.inner / t, 2 * B * m.inner / t)
        times_weights(out, f"down.{layer}", D, m.inner / t, size, B)
        out.collective("all_reduce", f"inner_sum.{layer}", 2 * D * B)
    out.kernel("last_norm", 4 * D * B, 2 * D * B)
    times_weights(out, "logits", m.vocabulary / t, D, size, B)
    out.collective("all_gather", "gather_logits", 4 * m.vocabulary * B)
    for name in ("penalty", "top_k.0", "top_k.1", "stop"):
        out.kernel(name, 4 * m.vocabulary * B, 4 * m.vocabulary * B)
    return out


class Training:
    """A step of torchtitan at the commit that its page names: float is f32, the model's products are bf16."""

    def __init__(self, m, devices, batch, positions):
        self.m, self.out, self.T, self.again = m, List(devices), batch * positions, True
        self.half = 2 * self.T * m.hidden  # activations between layers, bf16
        self.queries = 2 * self.T * m.heads * m.width
        self.attention = 4 * self.T * positions / 2 * m.heads * m.width
        self.layer = sum(n * k for _, n, k in self.linears())
        self.outer = (1 if m.tied else 2) * m.vocabulary * m.hidden  # weights of embedding and output layer
        self.own = (m.layers * self.layer + self.outer) / devices
        self.ends = []

    def linears(self):
        """Name, columns and inner dimension of a layer's products, in their order."""
        m = self.m
        D, heads, groups = m.hidden, m.heads * m.width, m.groups * m.width
        return (("q", heads, D), ("k", groups, D), ("v", groups, D), ("output", D, heads), ("gate", m.inner, D),
                ("up", m.inner, D), ("down", D, m.inner))

    def product(self, name, n, k):
        self.out.kernel(name, 2 * (self.T * k + k * n), 2 * self.T * n, 2 * self.T * n * k, op="matmul")

    def attend(self, name, read, written, times, share):
        self.out.kernel(name, read, written, times * self.attention * UTILISATION / share, op="matmul")

    def gather(self, name, weights, deps):
        """Weights from all devices: a device's part becomes bf16, and the whole is copied to a tensor each."""
        own = weights / self.out.devices
        self.out.kernel(f"{name}.part", 4 * own, 2 * own)
        gathered = self.out.collective("all_gather", name, 2 * weights, deps)
        self.out.last = self.out.last + [each for each in [gathered] if each is not None]
        self.out.kernel(f"{name}.copy", 2 * weights, 2 * weights)

    def reduce(self, name, weights):
        """Gradients in one buffer of f32, which the devices' stream waits for, and their sum."""
        self.out.kernel(f"{name}.copy", 2 * weights, 4 * weights)
        self.ends.append(self.out.collective("reduce_scatter", name, 4 * weights, deps=self.out.last))

    def forward(self, name, keeps):
        """A layer, or the part of it that is computed again: all but every other product and attention."""
        half, qkv = self.half, 2 * self.T * self.m.qkv
        after = {"v": ("rotate", qkv, 3 * self.queries),  # keys and values are written for each head of queries
                 "output": ("inner_norm", 2 * half, 2 * half),
                 "up": ("silu", 4 * self.T * self.m.inner, 2 * self.T * self.m.inner)}
        self.out.kernel(f"{name}.norm", half, half)
        for k, (part, n, inner) in enumerate(self.linears()):
            if keeps or k % 2:
                self.product(f"{name}.{part}", n, inner)
            if part in after:
                kind, read, written = after[part]
                self.out.kernel(f"{name}.{kind}", read, written)
            if part == "v" and keeps:
                self.attend(f"{name}.attention", 3 * self.queries, self.queries, 1, ATTENTION_SHARES[0])
        self.out.kernel(f"{name}.sum", 2 * half, half)

    def backward(self, name):
        half, inner = self.half, self.T * self.m.inner
        for part, n, k in reversed(self.linears()):
            self.product(f"{name}.{part}.of_input", n, k)
            self.product(f"{name}.{part}.of_weights", n, k)
            if part == "down":
                self.out.kernel(f"{name}.silu", 6 * inner, 4 * inner)
            elif part == "gate":
                self.out.kernel(f"{name}.inner_norm", 4 * half, half)
            elif part == "output":
                self.attend(f"{name}.attention", 5 * self.queries, 3 * self.queries, 2.5, ATTENTION_SHARES[1])
                self.out.kernel(f"{name}.rotate", 3 * self.queries, 2 * self.T * self.m.qkv)
        self.out.kernel(f"{name}.norm", 5 * half, half)

    def loss(self):
        """The output layer and the loss, which are not compiled: logits become f32."""
        logits, D, V = self.T * self.m.vocabulary, self.m.hidden, self.m.vocabulary
        self.product("logits", V, D)
        for name, read, written in (("to_f32", 2, 4), ("log_softmax", 4, 4), ("loss_gradient", 0, 4),
                                    ("log_softmax_gradient", 8, 4), ("to_bf16", 4, 2)):
            self.out.kernel(name, read * logits, written * logits)
        self.product("logits.of_input", V, D)
        self.product("logits.of_weights", V, D)

    def optimiser(self):
        """AdamW and the clipping before it, operation by operation over all weights of the device."""
        for name, read, written in (("norm_of_gradients", 1, 0), ("clip", 1, 1), ("decay", 1, 1), ("momentum", 2, 1),
                                    ("square", 1, 1), ("add_square", 2, 1), ("root", 1, 1), ("correct", 1, 1),
                                    ("epsilon", 1, 1), ("update", 3, 1)):
            self.out.kernel(name, 4 * read * self.own, 4 * written * self.own, self.own)
            if name == "norm_of_gradients":
                self.out.collective("all_reduce", "sum_of_norms", 4)

    def step(self):
        layers, out = range(self.m.layers), self.out
        self.gather("gather", self.outer, deps=None)
        out.kernel("embedding", self.half, self.half)
        start = out.last
        for layer in layers:
            self.gather(f"gather.{layer}", self.layer, deps=start)
            self.forward(f"forward.{layer}", True)
        self.loss()
        before = out.last
        for layer in reversed(layers):
            asked, before = before, out.last  # a layer's weights are asked for when the one before begins
            if layer != layers[-1]:  # the last one's are still there
                self.gather(f"gather_again.{layer}", self.layer, deps=asked)
            if self.again:
                self.forward(f"again.{layer}", False)
            self.backward(f"backward.{layer}")
            self.reduce(f"reduce.{layer}", self.layer)
        self.reduce("reduce", self.outer)
        out.last = out.last + [each for each in self.ends if each is not None]
        self.optimiser()
        return out


class Mpt(Training):
    """A step of llm-foundry without activation checkpointing, not compiled: weights are gathered in f32 and become bf16 at
    their use, the embedding is the output layer too, and the loss is one kernel each way."""

    def __init__(self, m, devices, batch, positions):
        super().__init__(m, devices, batch, positions)
        self.again = False

    def linears(self):
        D, F = self.m.hidden, self.m.inner
        return ("qkv", 3 * D, D), ("output", D, D), ("up", F, D), ("down", D, F)

    def gather(self, name, weights, deps):
        self.out.last = self.out.last + [self.out.collective("all_gather", name, 4 * weights, deps)]

    def reduce(self, name, weights):
        """Gradients become f32, and bf16 again for their sum."""
        self.out.kernel(f"{name}.to_f32", 2 * weights, 4 * weights)
        self.out.kernel(f"{name}.to_bf16", 4 * weights, 2 * weights)
        self.ends.append(self.out.collective("reduce_scatter", name, 2 * weights, deps=self.out.last))

    def forward(self, name, keeps):
        half, inner = self.half, 2 * self.T * self.m.inner
        self.out.kernel(f"{name}.to_bf16", 4 * self.layer, 2 * self.layer)
        for part, n, k in self.linears():
            if part in ("qkv", "up"):
                self.out.kernel(f"{name}.{part}.norm", half, half)
            self.product(f"{name}.{part}", n, k)
            if part == "qkv":
                self.attend(f"{name}.attention", 3 * half, half, 1, ATTENTION_SHARES[0])
            elif part == "up":
                self.out.kernel(f"{name}.gelu", inner, inner)
            else:
                self.out.kernel(f"{name}.{part}.sum", 2 * half, half)

    def backward(self, name):
        half, inner = self.half, 2 * self.T * self.m.inner
        for part, n, k in reversed(self.linears()):
            if part == "qkv":
                self.attend(f"{name}.attention", 5 * half, 3 * half, 2.5, ATTENTION_SHARES[1])
            elif part == "up":
                self.out.kernel(f"{name}.gelu", 2 * inner, inner)
            self.product(f"{name}.{part}.of_input", n, k)
            self.product(f"{name}.{part}.of_weights", n, k)
            if part in ("qkv", "up"):
                self.out.kernel(f"{name}.{part}.norm", 2 * half, half)
                self.out.kernel(f"{name}.{part}.sum", 2 * half, half)

    def loss(self):
        logits, D, V = self.T * self.m.vocabulary, self.m.hidden, self.m.vocabulary
        self.product("logits", V, D)
        self.out.kernel("loss", 2 * logits, 0)
        self.out.kernel("loss_gradient", 2 * logits, 2 * logits)
        self.product("logits.of_input", V, D)
        self.product("logits.of_weights", V, D)


class Prefill(Training):
    """A prompt by TensorRT-LLM, with a part of each product on each device."""

    def step(self):
        m, out, t, half = self.m, self.out, self.out.devices, self.half
        out.kernel("embedding", half, half)
        for layer in range(m.layers):
            qkv, inner = 2 * self.T * m.qkv / t, 2 * self.T * m.inner / t
            out.kernel(f"norm.{layer}", 2 * half, 2 * half)
            self.product(f"qkv.{layer}", m.qkv / t, m.hidden)
            out.kernel(f"rotate.{layer}", qkv, qkv)
            self.attend(f"attention.{layer}", qkv, self.queries / t, 1 / t, ATTENTION_SHARES[0])
            self.product(f"output.{layer}", m.hidden, m.heads * m.width / t)
            out.collective("all_reduce", f"sum.{layer}", half)
            out.kernel(f"inner_norm.{layer}", 2 * half, 2 * half)
            self.product(f"gate.{layer}", m.inner / t, m.hidden)
            self.product(f"up.{layer}", m.inner / t, m.hidden)
            out.kernel(f"silu.{layer}", 2 * inner, inner)
            self.product(f"down.{layer}", m.hidden, m.inner / t)
            out.collective("all_reduce", f"inner_sum.{layer}", half)
        out.kernel("last_norm", 4 * m.hidden, 2 * m.hidden)
        times_weights(out, "logits", m.vocabulary / t, m.hidden, 2)
        out.collective("all_gather", "gather_logits", 4 * m.vocabulary)
        out.kernel("choose", 4 * m.vocabulary, 4)
        return out


def training(m, devices=8, size=2, batch=2):
    return Training(m, devices, batch, POSITIONS["training"]).step()


def mpt(m, devices=8, size=2, batch=6):
    return Mpt(m, devices, batch, POSITIONS["mpt"]).step()


def prefill(positions, m, devices=1, size=2, batch=1):
    return Prefill(m, devices, batch, positions).step()


MAKERS = {"decode": decode, "fused-decode": fused_decode, "graph-decode": decode, "turbomind": turbomind,
          "training": training, "mpt": mpt,
          **{kind: partial(prefill, POSITIONS[kind]) for kind in ("prefill-128", "prefill-2048")}}


def make(kind, model, *numbers):
    return MAKERS[kind](MODELS[model], *numbers)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in MAKERS or sys.argv[2] not in MODELS:
        sys.exit(f"{__doc__}\nMODEL is one of {', '.join(MODELS)}")
    numbers = [int(word) for word in sys.argv[3:]]
    print(make(*sys.argv[1:3], *numbers).text(" ".join(sys.argv[1:])))
