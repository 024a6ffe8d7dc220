#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Thirty graphs made at random of ATen's operations, and the backend with graphs of torch.fx, make_fx and
functorch, against torch itself.

Usage: graphs.py MGPU_TUNE LIBMGT PACKAGE [FIRST COUNT]
Floats are within BOUND of the largest number of their tensor, whole numbers and truth values the same.
"""

import os
import random
import sys
import warnings

os.environ["MGPU_TUNE"], os.environ["MGPU_LIBRARY"] = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path.insert(0, sys.argv[3])
try:
    import torch
except ImportError:
    print("skipped: there is no torch")
    sys.exit(1 if os.environ.get("MGPU_REQUIRE_TORCH") else 77)

import mgpu
import mgpu.torch
from torch.nn import functional as F

# Some ten operations, each within 2 units in the last place, and differences of near numbers.
BOUND = 2e-5

UNARY = [torch.exp, torch.tanh, torch.sigmoid, torch.abs, torch.neg, torch.erf, torch.sin, torch.cos, torch.floor, torch.sign, torch.relu,
         torch.square, lambda x: x.clamp(-0.5, 1.5), lambda x: (x.abs() + 1).log(), lambda x: (x.abs() + 0.5).rsqrt(), F.gelu, F.silu, F.elu,
         F.softplus, F.hardswish, lambda x: F.leaky_relu(x, 0.1), torch.atan, torch.expm1, lambda x: x ** 3, lambda x: 1.5 - x,
         lambda x: torch.remainder(x, 0.7), lambda x: torch.trunc(x * 3), lambda x: (x * 2.5).round(), lambda x: torch.fmod(x, 0.3)]
BINARY = [torch.add, torch.sub, torch.mul, lambda x, y: x / (y.abs() + 1), torch.maximum, torch.minimum, lambda x, y: torch.where(x > y, x, y * 2),
          lambda x, y: torch.add(x, y, alpha=0.3), torch.atan2, lambda x, y: torch.lerp(x, y, 0.3), lambda x, y: torch.masked_fill(x, y > 0, 0.25),
          lambda x, y: torch.addcmul(x, x, y, value=0.5)]
REDUCE = [lambda x: x.sum(-1, keepdim=True), lambda x: x.mean(0, keepdim=True), lambda x: x.amax(-1, keepdim=True), lambda x: x.softmax(-1),
          lambda x: x.log_softmax(0), lambda x: x.var(-1, keepdim=True), lambda x: x.cumsum(-1), lambda x: x.sort(-1)[0],
          lambda x: x.max(-1, keepdim=True)[0], lambda x: x.logsumexp(-1, keepdim=True), lambda x: F.layer_norm(x, x.shape[-1:]),
          lambda x: x.std(0, keepdim=True), lambda x: x.topk(2, -1)[0], lambda x: x.argmax(-1, keepdim=True).to(x.dtype),
          lambda x: (x > 0).any(-1, keepdim=True).to(x.dtype), lambda x: x.prod(-1, keepdim=True)]
SHAPE = [lambda x: x.t() if x.dim() == 2 else x.transpose(0, 1), lambda x: x.reshape(-1), lambda x: x.flip(0), lambda x: x[..., ::2],
         lambda x: torch.cat([x, x * 2], 0), lambda x: torch.stack([x, x + 1], -1), lambda x: x.unsqueeze(1), lambda x: x.roll(1, 0),
         lambda x: F.pad(x, (1, 2), value=0.5), lambda x: x.repeat(2, *[1] * (x.dim() - 1)), lambda x: x[0], lambda x: x.chunk(2, -1)[0],
         lambda x: x.index_select(0, torch.tensor([0, x.shape[0] - 1, 0])), lambda x: x.tril() if x.dim() >= 2 else x,
         lambda x: x.gather(-1, (x > 0).long().clamp(max=x.shape[-1] - 1))]


def fits(x, y):
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(x.shape), reversed(y.shape)))


def random_function(seed):
    """A function of two tensors: the same operations in each call."""
    def function(x, y):
        draw = random.Random(seed)
        values = [x, y]
        for _ in range(draw.randint(6, 12)):
            value = draw.choice(values)
            kind = draw.choice(["unary", "unary", "binary", "binary", "reduce", "shape", "product"])
            if value.dim() == 0 or value.dim() > 4 or value.numel() > 4000 or 0 in value.shape:
                kind = "unary"
            if kind == "binary":
                other = draw.choice([each for each in values if fits(value, each)])
                values.append(draw.choice(BINARY)(value, other))
            elif kind == "product":
                partners = [each for each in values if each.dim() >= 1 and value.dim() >= 1 and each.shape[-1] == value.shape[-1]
                            and (each.dim() == 1 or value.dim() <= 2 and each.dim() == 2)]
                other = draw.choice(partners) if partners else value.reshape(-1)
                values.append(value @ (other.t() if other.dim() == 2 else other) if partners else value * 2)
            else:
                if kind == "shape" or (kind == "reduce" and value.shape[-1] < 2) or (kind == "reduce" and value.shape[0] < 2):
                    values.append(draw.choice(SHAPE)(value))
                else:
                    values.append(draw.choice(UNARY if kind == "unary" else REDUCE)(value))
            values[-1] = values[-1].clamp(-1e3, 1e3)
        return values[-1], values[-2]
    return function


def compare(what, found, want):
    found, want = mgpu.torch._flat(found), mgpu.torch._flat(want)
    if len(found) != len(want):
        print(f"{what}: {len(found)} results, not {len(want)}")
        return False
    for one, other in zip(found, want):
        if one.shape != other.shape or one.dtype != other.dtype:
            print(f"{what}: {tuple(one.shape)} of {one.dtype}, not {tuple(other.shape)} of {other.dtype}")
            return False
        gap = float((one.double() - other.double()).abs().max()) if one.numel() else 0.0
        most = max(float(other.double().abs().max()), 1.0) if other.numel() else 1.0
        if not gap <= (BOUND * most if other.is_floating_point() else 0):
            print(f"{what}: the largest difference is {gap:.3g} of {most:.3g}")
            return False
    return True


def random_graphs(first, count):
    good = 0
    for seed in range(first, first + count):
        torch.manual_seed(seed)
        function, inputs = random_function(seed), (torch.randn(4, 6), torch.randn(4, 6))
        try:
            good += compare(f"graph {seed}", mgpu.compile(function, inputs, fallback=False)(*inputs), function(*inputs))
        except mgpu.Error as error:
            print(f"graph {seed}: {error}")
    print(f"{good} of {count} random graphs give what torch computes")
    return good == count


class Counter(torch.nn.Module):
    """Changes its buffer, has two results, and an operation that is not read."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)
        self.register_buffer("count", torch.zeros(6))

    def forward(self, x):
        self.count.add_(x.mean(0))
        y = self.linear(x).relu()
        return y + self.count, y.sum(-1)


def backends():
    from functorch.compile import aot_function
    from torch.fx.experimental.proxy_tensor import make_fx
    ok = True
    x, y = torch.randn(4, 6), torch.randn(4, 6)

    def function(x, y):
        return (x @ y.t()).softmax(-1), (x - y).tanh()

    for name, graph in (("make_fx", make_fx(function)(x, y)), ("torch.fx", torch.fx.symbolic_trace(function))):
        ok &= compare(f"backend of {name}", mgpu.torch.backend(graph, [x, y])(x, y), function(x, y))
    aot = aot_function(function, fw_compiler=mgpu.torch.backend, bw_compiler=mgpu.torch.backend)
    given, plain = ([each.clone().requires_grad_() for each in (x, y)] for _ in range(2))
    found, want = aot(*given), function(*plain)
    for results in (found, want):
        (results[0] * results[0]).sum().add(results[1].sum()).backward()
    ok &= compare("aot_function", [*found, *(each.grad for each in given)], [*want, *(each.grad for each in plain)])

    # A module that changes a buffer of its own.
    torch.manual_seed(1)
    mine, theirs = Counter(), Counter()
    theirs.load_state_dict(mine.state_dict())
    compiled = mgpu.compile(mine, (x,))
    for _ in range(2):
        found, want = compiled(x), theirs(x)
    ok &= compare("a changed buffer", found, want)
    compiled.sync()
    ok &= compare("the buffer", mine.count, theirs.count)

    # A function that changes its input.
    def fill(x):
        x.mul_(2)
        return x + 1

    ours, other = x.clone(), x.clone()
    compiled = mgpu.compile(fill, (x.clone(),))
    ok &= compare("a changed input", [compiled(ours), ours], [fill(other), other])

    # An operation that mgpu does not read runs in torch, between two programs.
    def mixed(x):
        return torch.linalg.matrix_exp((x @ x.t()) * 0.1).tanh()

    compiled = mgpu.compile(mixed, (x,))
    ok &= compare("regions", compiled(x), mixed(x))
    if len(compiled.reasons) != 1 or "matrix_exp" not in compiled.reasons[0]:
        print(f"regions: the reasons are {compiled.reasons}")
        ok = False
    try:
        mgpu.compile(mixed, (x,), fallback=False)
        print("without fallback nothing was refused")
        ok = False
    except mgpu.UnsupportedError:
        pass
    print(f"backends: {'as torch computes' if ok else 'FAIL'}")
    return ok


def main():
    warnings.simplefilter("ignore")
    first, count = (int(word) for word in sys.argv[4:6]) if len(sys.argv) > 5 else (1, 30)
    ok = random_graphs(first, count)
    ok &= backends()
    sys.exit(0 if ok else "FAIL")


if __name__ == "__main__":
    main()
