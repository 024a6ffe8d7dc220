#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of models in torch eager and through mgpu.compile, on one processor: a table of CPU time for each call.

Usage: torch_layers.py [--rounds N] [--tune SECONDS] [--onnxruntime NODE_MODULES] [NAME...], with MGPU_TUNE, MGPU_LIBRARY and
PYTHONPATH as the package needs them

Both are called from Python with torch's tensors, in turns; a row is the median of N rounds (default 15), with the ratios of
mgpu to the others and their quartiles. `step` is forward, backward and SGD. With --tune each program is tuned first.
ONNX Runtime has a turn too where `npm install onnxruntime-node` has put it into NODE_MODULES; it runs what torch.onnx exports
of the layer, and has no step.
"""

import argparse
import copy
import os
import re
import statistics
import subprocess
import tempfile
import time
import warnings

os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # before either counts its workers
import mgpu  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch_modules import Adversary, Cross, Decoder, Experts, Labels  # noqa: E402


class Last(nn.Module):
    """The output of an LSTM without its state."""

    def __init__(self, width):
        super().__init__()
        self.cell = nn.LSTM(width, width, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0]


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.last = nn.EmbeddingBag(10000, 128, mode="mean"), nn.Linear(128, 64)

    def forward(self, ids):
        return self.last(self.bag(ids))


class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.most, self.mean = nn.Conv2d(16, 16, 1), nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2)

    def forward(self, x):
        return self.mean(self.most(self.first(x)))


def encoder(width, heads):
    return nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, activation="gelu")


def layers():
    """Name -> module, inputs."""
    r, ids = torch.randn, torch.randint
    return {
        "mlp 64x512": (nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)), (r(64, 512),)),
        "mlp 1x1024": (nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)), (r(1, 1024),)),
        "encoder 2x64x64": (encoder(64, 4), (r(2, 64, 64),)),
        "encoder 2x64x256": (encoder(256, 8), (r(2, 64, 256),)),
        "encoder 2x128x512": (encoder(512, 8), (r(2, 128, 512),)),
        "encoder 1x128x1024": (encoder(1024, 16), (r(1, 128, 1024),)),
        "convolutions 8x3x32x32": (nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                                                 nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(1),
                                                 nn.Linear(64 * 256, 10)), (r(8, 3, 32, 32),)),
        "lstm 16x32x128": (Last(128), (r(16, 32, 128),)),
        "decoder 8x256, 127 tokens": (Decoder(256, 8), (r(8, 1, 256), r(8, 8, 127, 32), r(8, 8, 127, 32))),
        "cross-attention 2x64x256": (Cross(256, 8), (r(2, 64, 256), r(2, 96, 256))),
        "experts 64x256": (Experts(256), (r(64, 256),)),
        "group norm 4x32x32x32": (nn.Sequential(nn.Conv2d(32, 32, 3, padding=1, groups=4), nn.GroupNorm(8, 32), nn.ELU()),
                                  (r(4, 32, 32, 32),)),
        "embedding bag 64x20": (Bags(), (ids(0, 10000, (64, 20)),)),
        "transposed 4x32x16x16": (nn.Sequential(nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.Hardswish()), (r(4, 32, 16, 16),)),
        "pools 8x16x32x32": (Pools(), (r(8, 16, 32, 32),)),
        "dropout 64x512": (nn.Sequential(nn.Linear(512, 512), nn.Dropout(0.5), nn.Softplus()).eval(), (r(64, 512),)),
        "labels 64x256": (Labels(256, 1000), (r(64, 256), ids(0, 1000, (64,)))),
        "adversary 32": (Adversary(64, 256, 784), (r(32, 64), r(32, 784))),
        "normalisation 512x1024": (nn.Sequential(nn.LayerNorm(1024), nn.SiLU(), nn.Softmax(-1)), (r(512, 1024),)),
    }


class Loss(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs):
        return self.inner(*inputs).square().mean()


def calls(module, inputs, train, tune):
    """Two functions that do the same."""
    if not train:
        module = module.eval()
        compiled = mgpu.compile(module, inputs, fallback=False)

        def eager():
            with torch.no_grad():
                module(*inputs)
    else:
        mine, theirs = Loss(copy.deepcopy(module)), Loss(module)
        compiled = mgpu.compile(mine, inputs, train=torch.optim.SGD(mine.parameters(), lr=1e-3), fallback=False)
        optimiser = torch.optim.SGD(theirs.parameters(), lr=1e-3)

        def eager():
            optimiser.zero_grad()
            theirs(*inputs).backward()
            optimiser.step()
    if tune:
        compiled.tune(tune)
    return eager, lambda: compiled(*inputs)


class OnnxRuntime:
    """The layer in a process of ONNX Runtime, which inherits the processor."""

    def __init__(self, module, inputs, modules):
        with tempfile.TemporaryDirectory() as folder:
            model, result = f"{folder}/model.onnx", f"{folder}/result"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(module.eval(), inputs, model, opset_version=17)
            words = []
            for k, value in enumerate(inputs):
                value.numpy().tofile(f"{folder}/{k}")
                words.append(f"{str(value.dtype).split('.')[1]}:{'x'.join(map(str, value.shape))}:{folder}/{k}")
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnxruntime_calls.js")
            self.process = subprocess.Popen(["node", script, model, result, *words], text=True, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, env={**os.environ, "NODE_PATH": modules})
            self.version = self.process.stdout.readline().strip()
            if not self.version:
                raise SystemExit("ONNX Runtime did not run the layer")
            with torch.no_grad():
                want = module(*inputs)
            found = torch.from_file(result, size=want.numel()).reshape(want.shape)
            if not torch.allclose(found, want, atol=1e-4, rtol=1e-4):
                raise SystemExit("ONNX Runtime computes something else")

    def seconds(self, count):
        print(count, file=self.process.stdin, flush=True)
        return 1e-6 * float(self.process.stdout.readline())

    def close(self):
        self.process.communicate()


def seconds(function, count):
    start = time.process_time()
    for _ in range(count):
        function()
    return (time.process_time() - start) / count


def ratio(mine, theirs):
    """The median of the ratios of each round, with quartiles; bold where mgpu takes longer."""
    low, middle, high = statistics.quantiles([one / other for one, other in zip(mine, theirs)], n=4)
    text = f"{middle:.2f} ({low:.2f} to {high:.2f})"
    return text if middle <= 1 else f"**{text}**"


def row(name, eager, ours, runtime, rounds):
    count = max(1, int(0.05 / max(seconds(eager, 3), 1e-5)))
    sides = [lambda: seconds(eager, count), lambda: seconds(ours, count)]
    if runtime:
        sides.append(lambda: runtime.seconds(count))
    for side in sides:
        side()
    times = list(zip(*([side() for side in sides] for _ in range(rounds))))
    cells = [f"{1e6 * statistics.median(column):,.0f}" for column in times]
    ratios = [ratio(times[1], theirs) for theirs in (times[0], *times[2:])]
    if not runtime:
        cells.append("-"), ratios.append("-")
    print(f"| {name} | {cells[0]} | {cells[2]} | {cells[1]} | {' | '.join(ratios)} |", flush=True)


def linear_algebra():
    """The library that torch's products are from, which decides its times: /etc/alternatives says which."""
    torch.ones(64, 64) @ torch.ones(64, 64)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if re.search(r"/lib(openblas|blas|mkl|blis)[^/]*$", line)}
    return ", ".join(sorted(paths))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tune", type=float, default=0)
    parser.add_argument("--onnxruntime", metavar="NODE_MODULES")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__} with {linear_algebra()}, {mgpu.version().splitlines()[0]}\n\n"
          "| layer | torch us | ONNX Runtime us | mgpu us | mgpu / torch | mgpu / ONNX Runtime |\n|---|---|---|---|---|---|")
    version = None
    for name, (module, inputs) in layers().items():
        if options.names and not any(each in name for each in options.names):
            continue
        for train in (False, True):
            runtime = OnnxRuntime(copy.deepcopy(module), inputs, options.onnxruntime) if options.onnxruntime and not train else None
            row(name + (", step" if train else ""), *calls(copy.deepcopy(module), inputs, train, options.tune), runtime, options.rounds)
            if runtime:
                version = runtime.version
                runtime.close()
    if version:
        print(f"\nONNX Runtime {version}")


if __name__ == "__main__":
    main()
