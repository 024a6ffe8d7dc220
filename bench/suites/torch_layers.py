#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of models in torch eager and through mgpu.compile, on one processor: a table of CPU time for each call.

Usage: torch_layers.py [--rounds N] [--tune SECONDS] [NAME...], with MGPU_TUNE, MGPU_LIBRARY and PYTHONPATH as the package needs them

Both are called from Python with torch's tensors, in turns; a row is the median of N rounds (default 15), with the ratio
mgpu / torch and its quartiles. `step` is forward, backward and SGD. With --tune each program is tuned first.
"""

import argparse
import copy
import os
import statistics
import time

os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # before either counts its workers
import mgpu  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402


class Last(nn.Module):
    """The output of an LSTM without its state."""

    def __init__(self, width):
        super().__init__()
        self.cell = nn.LSTM(width, width, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0]


def encoder(width, heads):
    return nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, activation="gelu")


def layers():
    """Name -> module, input."""
    r = torch.randn
    return {
        "mlp 64x512": (nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)), r(64, 512)),
        "mlp 1x1024": (nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)), r(1, 1024)),
        "encoder 2x64x64": (encoder(64, 4), r(2, 64, 64)),
        "encoder 2x64x256": (encoder(256, 8), r(2, 64, 256)),
        "encoder 2x128x512": (encoder(512, 8), r(2, 128, 512)),
        "encoder 1x128x1024": (encoder(1024, 16), r(1, 128, 1024)),
        "convolutions 8x3x32x32": (nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                                                 nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(1),
                                                 nn.Linear(64 * 256, 10)), r(8, 3, 32, 32)),
        "lstm 16x32x128": (Last(128), r(16, 32, 128)),
        "normalisation 512x1024": (nn.Sequential(nn.LayerNorm(1024), nn.SiLU(), nn.Softmax(-1)), r(512, 1024)),
    }


class Loss(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x).square().mean()


def calls(module, x, train, tune):
    """Two functions that do the same."""
    if not train:
        module = module.eval()
        compiled = mgpu.compile(module, (x,), fallback=False)

        def eager():
            with torch.no_grad():
                module(x)
    else:
        mine, theirs = Loss(copy.deepcopy(module)).train(), Loss(module).train()
        compiled = mgpu.compile(mine, (x,), train=torch.optim.SGD(mine.parameters(), lr=1e-3), fallback=False)
        optimiser = torch.optim.SGD(theirs.parameters(), lr=1e-3)

        def eager():
            optimiser.zero_grad()
            theirs(x).backward()
            optimiser.step()
    if tune:
        compiled.tune(tune)
    return eager, lambda: compiled(x)


def seconds(function, count):
    start = time.process_time()
    for _ in range(count):
        function()
    return (time.process_time() - start) / count


def row(name, eager, ours, rounds):
    count = max(1, int(0.05 / max(seconds(eager, 3), 1e-5)))
    seconds(ours, 3)
    times = [(seconds(eager, count), seconds(ours, count)) for _ in range(rounds)]
    theirs, mine = (1e6 * statistics.median(column) for column in zip(*times))
    low, middle, high = statistics.quantiles([mine / theirs for theirs, mine in times], n=4)
    ratio = f"{middle:.2f} ({low:.2f} to {high:.2f})"
    print(f"| {name} | {theirs:,.0f} | {mine:,.0f} | {ratio if middle <= 1 else '**' + ratio + '**'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tune", type=float, default=0)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {mgpu.version().splitlines()[0]}\n\n| layer | torch us | mgpu us | mgpu / torch |\n|---|---|---|---|")
    for name, (module, x) in layers().items():
        if options.names and not any(each in name for each in options.names):
            continue
        for train in (False, True):
            row(name + (", step" if train else ""), *calls(copy.deepcopy(module), x, train, options.tune), options.rounds)


if __name__ == "__main__":
    main()
