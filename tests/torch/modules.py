#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourteen modules of torch.nn through mgpu.compile, forward and as training steps, against torch itself; also as .pt2 files,
and cut along their batch over four devices.

Usage: modules.py MGPU_TUNE LIBMGT PACKAGE [NAME...]
Each result is within its bound: FORWARD or TRAINING of the largest number of its tensor. Sums of at most some
hundred products in another order, and functions that are within 2 units in the last place, give less. The
share of results whose bits are equal is printed. A file gives the bits of the module, and of whole numbers, whose sums are
exact, four devices give those of one. With MGPU_REQUIRE_TORCH a Python without torch fails.
"""

import copy
import itertools
import os
import subprocess
import sys
import tempfile

os.environ["MGPU_TUNE"], os.environ["MGPU_LIBRARY"] = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path[:0] = sys.argv[3], os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/suites")
try:
    import torch
except ImportError:
    print("skipped: there is no torch")
    sys.exit(1 if os.environ.get("MGPU_REQUIRE_TORCH") else 77)

import mgpu
import mgpu.torch
import numpy
from torch import nn
from torch.nn import functional as F
from torch_modules import Adversary, Cross, Decoder, Experts, Labels

FORWARD, TRAINING = 4e-6, 2e-5
STEPS = 3


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.last = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 4)

    def forward(self, x):
        return self.last(self.cell(x)[0])


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.last = nn.EmbeddingBag(20, 8, mode="mean"), nn.Linear(8, 3)

    def forward(self, ids, offsets):
        return self.last(self.bag(ids, offsets))


class Pools(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(F.avg_pool2d(F.max_pool2d(x, 3, 2, 1), 2, ceil_mode=True), (3, 2))


class Weighted(nn.Module):
    """A module without weights becomes one with them."""

    def __init__(self, module, channels):
        super().__init__()
        self.first, self.module = nn.Conv2d(channels, channels, 1), module

    def forward(self, x):
        return self.module(self.first(x))


def modules():
    """Name -> module, inputs, whether its result is a loss."""
    r = torch.randn
    ids = torch.randint(0, 20, (12,))
    return {
        "mlp": (nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8), nn.SiLU()), (r(6, 16),)),
        "convolutional": (nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                        nn.Linear(128, 5)), (r(4, 3, 8, 8),)),
        "lstm": (Recurrent(), (r(4, 3, 8),)),
        "encoder": (nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), (r(4, 6, 16),)),
        "decoder": (Decoder(16, 2, keeps=True), (r(4, 1, 16), r(4, 2, 5, 8), r(4, 2, 5, 8))),
        "cross-attention": (Cross(16, 2), (r(4, 4, 16), r(4, 7, 16))),
        "experts": (Experts(8), (r(6, 8),)),
        "group-norm": (nn.Sequential(nn.Conv2d(4, 8, 3, groups=2), nn.GroupNorm(2, 8), nn.ELU()), (r(4, 4, 6, 6),)),
        "embedding-bag": (Bags(), (ids, torch.tensor([0, 3, 7, 8]))),
        "transposed": (nn.Sequential(nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), nn.Hardswish()), (r(4, 4, 5, 5),)),
        "pools": (Weighted(Pools(), 3), (r(4, 3, 15, 13),)),
        "dropout": (nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Softplus()), (r(4, 8),)),
        "labels": (Labels(10, 5, ignore_index=1), (r(7, 10), torch.tensor([0, 1, 2, 3, 4, 1, 0]))),
        "adversary": (Adversary(4, 16, 6), (r(5, 4), r(5, 6))),
    }


class Judge:
    def __init__(self):
        self.equal = self.count = 0
        self.worst = 0.0

    def compare(self, found, want):
        found, want = found.detach(), want.detach()
        if found.shape != want.shape or found.dtype != want.dtype:
            raise AssertionError(f"a result is {tuple(found.shape)} of {found.dtype}, not {tuple(want.shape)} of {want.dtype}")
        self.equal += int((found == want).sum())
        self.count += want.numel()
        if want.numel():
            largest = max(float(want.abs().max()), 1e-6)
            self.worst = max(self.worst, float((found.double() - want.double()).abs().max()) / largest)

    def end(self, what, bound):
        ok = self.worst <= bound
        print(f"{what}: {self.equal} of {self.count} equal, largest difference {self.worst:.2g}{'' if ok else ' IS TOO LARGE'}", flush=True)
        return ok


def flat(value):
    return mgpu.torch._flat(value)


def shown(how):
    return f" with {how}" if how else ""


def same_in_file(compiled, inputs, want):
    """The command line gives the bits of `want` from the file that the module was written to."""
    program = compiled._whole()
    with tempfile.TemporaryDirectory() as folder:
        words = [os.environ["MGPU_TUNE"], "run", program.file]
        kinds = {torch.float32: "f32", torch.int64: "i64"}
        for name, value in zip(program.inputs, flat(inputs)):
            value.numpy().tofile(f"{folder}/{name}")
            words += ["--arg", f"{name}=raw:{kinds[value.dtype]}:{'x'.join(map(str, value.shape))}:{folder}/{name}"]
        results = flat(want)
        for k in range(len(results)):
            words += ["--out", f"r{k}={folder}/r{k}.npy"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise AssertionError(f"its file: exit code {done.returncode}: {done.stderr.strip()[-400:]}")
        for k, result in enumerate(results):
            if not torch.equal(torch.from_numpy(numpy.load(f"{folder}/r{k}.npy")), result.detach()):
                raise AssertionError(f"its file gives other numbers for result {k}")


def forward(name, module, inputs, **how):
    module = copy.deepcopy(module).eval()
    compiled = mgpu.compile(module, inputs, fallback=False, **how)
    judge = Judge()
    if not how:
        same_in_file(compiled, inputs, compiled(*inputs))
    for draw in range(2):
        given = [each if draw == 0 or not each.is_floating_point() else torch.randn_like(each) for each in inputs]
        with torch.no_grad():
            want = module(*given)
        for one, other in zip(flat(compiled(*given)), flat(want)):
            judge.compare(one, other)
    return judge.end(f"{name}, forward{shown(how)}", FORWARD)


def optimiser(name, parameters):
    if name in ("mlp", "labels"):
        return torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0.1)
    if name in ("lstm", "adversary"):  # not attention, whose key biases have no gradient but noise
        return torch.optim.Adam(parameters, lr=1e-2)
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-2)


def training(name, module, inputs, **how):
    """Some steps of both; dropout of random numbers is refused in training, so that one has it in eval()."""
    mine = copy.deepcopy(module).train(name != "dropout")
    theirs = copy.deepcopy(mine)

    def loss(output):
        # Each element has a weight of its own: the squares after a norm have no gradient but noise.
        return sum((each * each * torch.arange(each.numel()).reshape(each.shape) / each.numel()).mean() for each in flat(output))

    isLoss = name in ("labels", "adversary")
    opt = optimiser(name, theirs.parameters())

    class Loss(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, *given):
            output = self.inner(*given)
            return output if isLoss else loss(output)

    wrapped = Loss(mine)
    compiled = mgpu.compile(wrapped, inputs, train=optimiser(name, wrapped.parameters()), **how)
    judge = Judge()
    if not how:
        again = mgpu.compile(wrapped, inputs, train=optimiser(name, wrapped.parameters()))
        same_in_file(compiled, inputs, again(*inputs))
    for _ in range(STEPS):
        opt.zero_grad()
        want = Loss(theirs)(*inputs)
        want.backward()
        opt.step()
        judge.compare(compiled(*inputs), want)
    compiled.sync()
    ours, others = {**dict(mine.named_parameters()), **dict(mine.named_buffers())}, {**dict(theirs.named_parameters()), **dict(theirs.named_buffers())}
    for key, value in others.items():
        judge.compare(ours[key], value)
    return judge.end(f"{name}, {STEPS} steps{shown(how)}", TRAINING)


# Modules over several devices.
PARALLEL = {"devices": 4, "data_parallel": True}
SHARDED = {"mlp": [{"devices": 4, "shard": {"*0.weight": 0, "*2.weight": 1}},
                   {"devices": {"data": 2, "model": 2}, "data_parallel": True, "shard": {"*.weight": ("model", None), 0: ("data", None)}}]}


def whole_numbers():
    """A training step of whole numbers gives the same bits on one device and on four."""
    module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x = torch.randint(-3, 4, (8, 8)).float()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randint(-2, 3, parameter.shape))
    states = []
    for how in ({}, PARALLEL):
        mine = copy.deepcopy(module)
        step = mgpu.compile(mine, (x, x), train=torch.optim.SGD(mine.parameters(), lr=2 ** -6), loss=lambda y, _: (y * 2).sum(), **how)
        loss = step(x, x)
        step.sync()
        states.append([loss, *(parameter.detach() for parameter in mine.parameters())])
    same = all(torch.equal(one, four) for one, four in zip(*states))
    print(f"whole numbers on four devices: {'the bits of one' if same else 'NOT the bits of one'}")
    return same


def state_returns():
    """After sync() torch goes on where the program was, its optimiser's state included."""
    module, x = nn.Linear(8, 4), torch.randn(6, 8)
    loss, ok = (lambda y, _: (y * y).sum()), True
    for make in (lambda p: torch.optim.Adam(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9)):
        mine, theirs = copy.deepcopy(module), copy.deepcopy(module)
        opts = [make(each.parameters()) for each in (mine, theirs)]
        step = mgpu.compile(mine, (x, x), train=opts[0], loss=loss)
        for _ in range(3):
            step(x, x)
        step.sync()
        for each, opt, count in ((mine, opts[0], 2), (theirs, opts[1], 5)):
            for _ in range(count):
                opt.zero_grad()
                loss(each(x), x).backward()
                opt.step()
        ok &= all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(mine.parameters(), theirs.parameters()))
    print(f"the optimiser's state after sync(): {'as torch has it' if ok else 'another'}")
    return ok


def refusals():
    """What says that devices and cuts do not fit."""
    module, x = nn.Linear(4, 2), torch.zeros(8, 4)
    ok = True
    for how, error, words in (({"devices": 0}, mgpu.UsageError, "devices=0"), ({"devices": 4}, mgpu.UsageError, "share the work"),
                              ({"devices": 4, "shard": {"weight": -1}}, mgpu.UsageError, "counted from 0 on"),
                              ({"devices": 4, "shard": {"weigt": 0}}, mgpu.Error, "did you mean 'weight'"),
                              ({"devices": 4, "shard": {"weight": ("model",)}}, mgpu.UsageError, "an axis of data"),
                              ({"devices": 4, "shard": {"weight": 2}}, mgpu.Error, "the argument has 2 dimensions"),
                              ({"devices": 4, "shard": {1: 0}}, mgpu.UsageError, "no input 1"),
                              ({"devices": 16, "data_parallel": True}, mgpu.UnsupportedError, "16 parts")):
        try:
            mgpu.compile(module, (x,), **how)
            print(f"{how} is not refused")
            ok = False
        except error as said:
            if words not in str(said):
                print(f"{how}: {said}")
                ok = False
    return ok


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    ok = True
    for name, (module, inputs) in modules().items():
        if sys.argv[4:] and name not in sys.argv[4:]:
            continue
        for test, how in itertools.product((forward, training), [{}, PARALLEL, *SHARDED.get(name, [])]):
            try:
                ok &= test(name, module, inputs, **how)
            except Exception as error:  # pylint: disable=broad-except
                print(f"{name}, {test.__name__}{shown(how)}: {type(error).__name__}: {str(error)[-600:]}", flush=True)
                if os.environ.get("MGPU_TRACE"):
                    raise
                ok = False
    ok &= bool(sys.argv[4:]) or (refusals() and whole_numbers() and state_returns())
    sys.exit(0 if ok else "FAIL")


if __name__ == "__main__":
    main()
