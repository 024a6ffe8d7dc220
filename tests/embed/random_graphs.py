#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs, built in Python and interpreted in Python: what is replayed under shuffled plans is
what the calls in program order mean, to the bit.

Usage: random_graphs.py COUNT [FIRST_SEED [TARGET]], where TARGET is "host:{}" or "cuda:0/{}"
"""

import random
import sys

import mgpu

ROWS, COLUMNS = 4, 8
HOST = """
void mix(mgpu_block block, int64_t *y, const int64_t *x, int64_t a) {
  for (uint32_t t = 0; t < block.size.x; ++t) {
    uint32_t i = block.index.x * block.size.x + t;
    y[i] = (a * x[i] + 3 * y[i] + i) & 1023;
  }
}
void step(mgpu_block block, int64_t *y, const int64_t *trip) {
  for (uint32_t t = 0; t < block.size.x; ++t)
    y[t] = (5 * y[t] + *trip) & 1023;
}
"""

CUDA = """
extern "C" __global__ void mix(long long *y, const long long *x, long long a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = (a * x[i] + 3 * y[i] + i) & 1023;
}
extern "C" __global__ void step(long long *y, const long long *trip) {
  y[threadIdx.x] = (5 * y[threadIdx.x] + *trip) & 1023;
}
"""


class Model:
    """A buffer of the graph, and the numbers that it has."""

    def __init__(self, buffer):
        self.buffer = buffer
        self.values = [0] * (ROWS * COLUMNS)

    def rowsOf(self):
        return [self.values[r * COLUMNS:(r + 1) * COLUMNS] for r in range(ROWS)]

    def rows(self, first, count):
        return self.buffer[first:first + count], range(first * COLUMNS, (first + count) * COLUMNS)

    def columns(self, first, count):
        return self.buffer[:, first:first + count], [r * COLUMNS + c for r in range(ROWS) for c in range(first, first + count)]

    def part(self, draw):
        """A view of 8 elements, and where they are."""
        kind = draw.randrange(3)
        if kind == 0:
            return self.rows(draw.randrange(ROWS), 1)
        if kind == 1:
            return self.columns(draw.randrange(COLUMNS - 1), 2)
        first = draw.randrange(2)
        view = self.buffer.reshape(ROWS * COLUMNS)[first:first + 32:4]
        return view, range(first, first + 32, 4)


class Graph:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.devices = self.draw.randint(1, 4)
        self.g = mgpu.Graph(devices=self.devices, name=f"random{seed}")
        self.inputs, self.given = [], {}
        shape = (ROWS, COLUMNS)
        for k in range(2):
            model = Model(self.g.input(f"in{k}", shape, "i64"))
            model.values = [self.draw.randrange(1024) for _ in model.values]
            self.inputs.append(model)
            self.given[f"in{k}"] = [model.values[r * COLUMNS:(r + 1) * COLUMNS] for r in range(ROWS)]
        self.outputs = [Model(self.g.output(f"out{d}", shape, "i64")) for d in range(self.devices)]
        self.buffers = [[Model(self.g.empty(shape, "i64", device=d)) for _ in range(2)] for d in range(self.devices)]
        self.outside = {}  # memory of the caller's on a device, in place of the graph's
        for d in range(self.devices):
            if self.draw.random() < 0.3:
                self.outside[f"outside{d}"] = self.buffers[d][1] = Model(self.g.external(f"outside{d}", shape, "i64", device=d))
                self.given[f"outside{d}"] = [[0] * COLUMNS] * ROWS
        self.mix = self.g.kernel("mix", params=("rw", "r", "i64"), host=HOST, cuda=CUDA, block=8)
        self.step = self.g.kernel("step", params=("rw", "r"), host=HOST, cuda=CUDA, block=8)
        for models in self.buffers:  # nothing is read before it is written
            for model in models:
                self.copyWhole(model, self.draw.choice(self.inputs))
        for _ in range(self.draw.randint(3, 14)):
            self.draw.choice([self.copy, self.launch, self.fill, self.collective, self.collective])()
        if self.draw.random() < 0.5:
            self.loop()
        for d, out in enumerate(self.outputs):
            self.copyWhole(out, self.draw.choice(self.buffers[d]))

    def copyWhole(self, to, source):
        self.g.copy(to.buffer, source.buffer)
        to.values = list(source.values)

    def any(self):
        return self.draw.choice(self.draw.choice(self.buffers))

    def copy(self):
        to, source = self.any(), self.draw.choice([self.any(), self.any(), *self.inputs])
        if to is source:
            return
        (toView, toAt), (fromView, fromAt) = to.part(self.draw), source.part(self.draw)
        self.g.copy(toView, fromView)
        numbers = [source.values[k] for k in fromAt]
        for at, number in zip(toAt, numbers):
            to.values[at] = number

    def fill(self):
        model, number = self.any(), self.draw.randrange(1024)
        view, at = model.part(self.draw)
        self.g.fill(view, number)
        for k in at:
            model.values[k] = number

    def launch(self):
        device = self.draw.randrange(self.devices)
        y, x = self.buffers[device] if self.draw.random() < 0.5 else self.buffers[device][::-1]
        rows, first, other = self.draw.randint(1, ROWS), 0, 0
        first, other = self.draw.randint(0, ROWS - rows), self.draw.randint(0, ROWS - rows)
        a = self.draw.randrange(100)
        (yView, yAt), (xView, xAt) = y.rows(first, rows), x.rows(other, rows)
        self.mix(yView, xView, a, grid=rows)
        for i, (to, source) in enumerate(zip(yAt, xAt)):
            y.values[to] = (a * x.values[source] + 3 * y.values[to] + i) & 1023

    def members(self):
        ranks = self.draw.sample(range(self.devices), self.draw.randint(1, self.devices))
        return [self.buffers[d][self.draw.randrange(2)] for d in ranks], ranks

    def collective(self):
        kind = self.draw.choice(["all_reduce", "all_gather", "broadcast", "permute", "all_to_all", "send_recv"])
        models, ranks = self.members()
        n = len(models)
        buffers = [m.buffer for m in models]
        if kind == "all_reduce":
            op = self.draw.choice(["sum", "min", "max"])
            self.g.all_reduce(buffers, op=op)
            reduce = {"sum": sum, "min": min, "max": max}[op]
            result = [reduce(column) for column in zip(*(m.values for m in models))]
            for m in models:
                m.values = [v for v in result]
        elif kind == "all_gather" and ROWS % n == 0:
            size = ROWS // n
            self.g.all_gather([m.rows(k * size, size)[0] for k, m in enumerate(models)], buffers)
            result = [v for k, m in enumerate(models) for v in m.values[k * size * COLUMNS:(k + 1) * size * COLUMNS]]
            for m in models:
                m.values = list(result)
        elif kind == "broadcast":
            root = self.draw.randrange(n)
            self.g.broadcast(buffers, root=root)
            for m in models:
                m.values = list(models[root].values)
        elif kind == "permute":
            targets = self.draw.sample(range(n), n)
            pairs = [(s, t) for s, t in enumerate(targets) if self.draw.random() < 0.8]
            others = [self.buffers[d][1 - self.buffers[d].index(m)] for d, m in zip(ranks, models)]
            self.g.permute(buffers, [m.buffer for m in others], pairs)
            for m in others:
                m.values = [0] * len(m.values)
            for s, t in pairs:
                others[t].values = list(models[s].values)
        elif kind == "all_to_all" and ROWS % n == 0:
            self.g.all_to_all(buffers, buffers)
            size = ROWS // n * COLUMNS
            before = [m.values for m in models]
            for k, m in enumerate(models):
                m.values = [v for source in before for v in source[k * size:(k + 1) * size]]
        elif kind == "send_recv" and n >= 2:
            view, at = models[0].rows(1, 2)
            toView, toAt = models[1].rows(self.draw.randrange(3), 2)
            self.g.send_recv(view, toView)
            for to, source in zip(toAt, at):
                models[1].values[to] = models[0].values[source]

    def loop(self):
        trips, first, step = self.draw.randint(1, 9), self.draw.randint(-5, 5), self.draw.randint(-3, 3)
        device = self.draw.randrange(self.devices)
        y, x = self.buffers[device]
        with self.g.loop(trips, first, step) as trip:
            view, at = y.rows(1, 1)
            self.step(view, trip)
            self.g.copy(x.rows(0, 1)[0], view)
        for k in range(trips):
            for i in at:
                y.values[i] = (5 * y.values[i] + first + k * step) & 1023
        x.values[:COLUMNS] = [y.values[i] for i in at]

    def check(self, target, **options):
        with self.g.open(target.format(self.devices), **options) as program:
            for _ in range(2):  # a replay leaves nothing to the next
                made = program(**self.given)
            for d, out in enumerate(self.outputs):
                got = made[f"out{d}"].tolist()
                assert got == out.rowsOf(), f"{options} out{d}: {got}, not {out.rowsOf()}"
            for name, model in self.outside.items():
                got = program.read(name).tolist()
                assert got == model.rowsOf(), f"{options} {name}: {got}, not {model.rowsOf()}"


def main():
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    target = sys.argv[3] if len(sys.argv) > 3 else "host:{}"
    nodes = 0
    for seed in range(first, first + count):
        try:
            graph = Graph(seed)
            graph.check(target)
            graph.check(target, scheduler="shuffled", seed=seed, streams=3)
            nodes += graph.g.plan().text.count("\nstep ")
        except Exception:
            print(f"seed {seed}:", file=sys.stderr)
            raise
    assert nodes > 10 * count, nodes
    print(f"{count} random graphs of {nodes} nodes: replays have the bits of the calls in their order")


if __name__ == "__main__":
    main()
