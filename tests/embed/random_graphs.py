#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs, built in Python and computed in NumPy: what is replayed under shuffled plans, from the
builder and from a bundle of it, is what the calls in program order mean, to the bit.

Usage: random_graphs.py COUNT [FIRST_SEED [TARGET]], where TARGET is "host:{}" or "cuda:0/{}"
"""

import os
import random
import sys
import tempfile

import mgpu

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

ROWS, COLUMNS = 4, 8
SHAPE = (ROWS, COLUMNS)
# By element: NumPy's type, C's, and CUDA's.
TYPES = {"i64": (np.int64, "int64_t", "long long"), "i32": (np.int32, "int32_t", "int"), "f64": (np.float64, "double", "double")}
HOST = """
void mix(mgpu_block block, T *y, const T *x, int64_t a) {
  for (uint32_t t = 0; t < block.size.x; ++t) {
    uint32_t i = block.index.x * block.size.x + t;
    y[i] = (T)((a * (uint64_t)x[i] + 3 * (uint64_t)y[i] + i) & 1023);
  }
}
void step(mgpu_block block, T *y, const int64_t *trip) {
  for (uint32_t t = 0; t < block.size.x; ++t)
    y[t] = (T)((5 * (uint64_t)y[t] + *trip) & 1023);
}
"""

CUDA = """
extern "C" __global__ void mix(T *y, const T *x, long long a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = (T)((a * (unsigned long long)x[i] + 3 * (unsigned long long)y[i] + i) & 1023);
}
extern "C" __global__ void step(T *y, const long long *trip) {
  y[threadIdx.x] = (T)((5 * (unsigned long long)y[threadIdx.x] + *trip) & 1023);
}
"""


class Model:
    """A buffer of the graph, and the numbers that it has. A part of one is the same expression of both."""

    def __init__(self, buffer, kind):
        self.buffer, self.values = buffer, np.zeros(SHAPE, TYPES[kind][0])

    def of(self, part):
        return part(self.buffer), part(self.values)

    def rows(self, first, count):
        return self.of(lambda x: x[first:first + count])

    def part(self, draw):
        """A view of 8 elements."""
        kind, row, column, first = draw.randrange(3), draw.randrange(ROWS), draw.randrange(COLUMNS - 1), draw.randrange(4)
        if kind == 0:
            return self.rows(row, 1)
        if kind == 1:
            return self.of(lambda x: x[:, column:column + 2])
        return self.of(lambda x: x.reshape(ROWS * COLUMNS)[first:first + 29:4])


def stacked(axis, count):
    """The parts of an array along an axis."""
    size = SHAPE[axis] // count
    return [(slice(None),) * axis + (slice(k * size, k * size + size),) for k in range(count)]


class Graph:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.kind = self.draw.choice(list(TYPES))
        self.devices = self.draw.randint(1, 4)
        self.g = mgpu.Graph(devices=self.devices, name=f"random{seed}")
        self.inputs, self.given = [], {}
        for k in range(2):
            model = Model(self.g.input(f"in{k}", SHAPE, self.kind), self.kind)
            model.values[:] = [[self.draw.randrange(1024) for _ in range(COLUMNS)] for _ in range(ROWS)]
            self.inputs.append(model)
            self.given[f"in{k}"] = model.values
        self.outputs = [Model(self.g.output(f"out{d}", SHAPE, self.kind), self.kind) for d in range(self.devices)]
        self.buffers = [[Model(self.g.empty(SHAPE, self.kind, device=d), self.kind) for _ in range(2)] for d in range(self.devices)]
        self.outside = {}  # memory of the caller's on a device, in place of the graph's
        for d in range(self.devices):
            if self.draw.random() < 0.3:
                name = f"outside{d}"
                self.outside[name] = self.buffers[d][1] = Model(self.g.external(name, SHAPE, self.kind, device=d), self.kind)
        forms = {"host": HOST.replace("T", TYPES[self.kind][1]), "cuda": CUDA.replace("T", TYPES[self.kind][2]), "block": 8}
        self.mix = self.g.kernel("mix", params=("rw", "r", "i64"), **forms)
        self.step = self.g.kernel("step", params=("rw", "r"), **forms)
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
        to.values[:] = source.values

    def any(self):
        return self.draw.choice(self.draw.choice(self.buffers))

    def copy(self):
        to, source = self.any(), self.draw.choice([self.any(), self.any(), *self.inputs])
        if to is source:
            return
        (toView, toAt), (fromView, fromAt) = to.part(self.draw), source.part(self.draw)
        self.g.copy(toView, fromView)
        toAt[...] = fromAt.reshape(toAt.shape)

    def fill(self):
        view, at = self.any().part(self.draw)
        number = self.draw.randrange(1024)
        self.g.fill(view, number)
        at[...] = number

    def launch(self):
        device = self.draw.randrange(self.devices)
        y, x = self.buffers[device] if self.draw.random() < 0.5 else self.buffers[device][::-1]
        rows = self.draw.randint(1, ROWS)
        (yView, yAt), (xView, xAt) = (each.rows(self.draw.randint(0, ROWS - rows), rows) for each in (y, x))
        a = self.draw.randrange(100)
        self.mix(yView, xView, a, grid=rows)
        number = np.arange(rows * COLUMNS).reshape(rows, COLUMNS)
        yAt[:] = (a * xAt.astype(np.int64) + 3 * yAt.astype(np.int64) + number) & 1023

    def collective(self):
        ranks = self.draw.sample(range(self.devices), self.draw.randint(1, self.devices))
        models = [self.buffers[d][self.draw.randrange(2)] for d in ranks]
        others = [self.buffers[d][1 - self.buffers[d].index(m)] for d, m in zip(ranks, models)]
        kinds = [self.allReduce, self.broadcast, self.permute]
        if ROWS % len(models) == 0:
            kinds += [self.allGather, self.reduceScatter, self.allToAll]
        if len(models) >= 2:
            kinds += [self.sendRecv]
        self.draw.choice(kinds)(models, others)

    def reduction(self, models):
        op = self.draw.choice(["sum", "min", "max"] if self.kind == "f64" else ["sum", "prod", "min", "max"])
        reduce = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}[op]
        return op, reduce.reduce([m.values for m in models])

    def allReduce(self, models, others):
        op, result = self.reduction(models)
        targets = self.draw.choice([models, others])
        self.g.all_reduce([m.buffer for m in models], op=op, out=[m.buffer for m in targets])
        for m in targets:
            m.values[:] = result

    def reduceScatter(self, models, others):
        (op, result), axis = self.reduction(models), self.draw.randrange(2)
        parts = stacked(axis, len(models))
        self.g.reduce_scatter([m.buffer for m in models], [m.buffer[part] for m, part in zip(others, parts)], op=op, axis=axis)
        for m, part in zip(others, parts):
            m.values[part] = result[part]

    def allGather(self, models, _):
        axis = self.draw.randrange(2)
        parts = stacked(axis, len(models))
        self.g.all_gather([m.buffer[part] for m, part in zip(models, parts)], [m.buffer for m in models], axis=axis)
        result = np.concatenate([m.values[part] for m, part in zip(models, parts)], axis)
        for m in models:
            m.values[:] = result

    def allToAll(self, models, others):
        axis = self.draw.randrange(2)
        targets = self.draw.choice([models, others])
        self.g.all_to_all([m.buffer for m in models], [m.buffer for m in targets], split=axis)
        parts = stacked(axis, len(models))
        results = [np.concatenate([m.values[part] for m in models], axis) for part in parts]
        for m, result in zip(targets, results):
            m.values[:] = result

    def broadcast(self, models, _):
        root = self.draw.randrange(len(models))
        self.g.broadcast([m.buffer for m in models], root=root)
        for m in models:
            m.values[:] = models[root].values

    def permute(self, models, others):
        targets = self.draw.sample(range(len(models)), len(models))
        pairs = [(s, t) for s, t in enumerate(targets) if self.draw.random() < 0.8]
        self.g.permute([m.buffer for m in models], [m.buffer for m in others], pairs)
        for m in others:
            m.values[:] = 0
        for s, t in pairs:
            others[t].values[:] = models[s].values

    def sendRecv(self, models, _):
        (view, at), (toView, toAt) = models[0].rows(1, 2), models[1].rows(self.draw.randrange(3), 2)
        self.g.send_recv(view, toView)
        toAt[:] = at

    def loop(self):
        """What is declared inside is each trip's; after the loop it has what the last one left."""
        trips, first, step = self.draw.randint(1, 9), self.draw.randint(-5, 5), self.draw.randint(-3, 3)
        device = self.draw.randrange(self.devices)
        y, x = self.buffers[device]
        with self.g.loop(trips, first, step) as trip:
            inside, unused = (Model(self.g.empty(SHAPE, self.kind, device=device), self.kind) for _ in range(2))
            (view, at), (ownView, ownAt), (toView, toAt) = y.rows(1, 1), inside.rows(2, 1), x.rows(0, 1)
            self.step(view, trip)
            self.g.copy(inside.buffer, y.buffer)
            self.step(ownView, trip)
            self.g.copy(toView, ownView)
        for number in (first + k * step for k in range(trips)):
            at[:] = (5 * at.astype(np.int64) + number) & 1023
            inside.values[:] = y.values
            ownAt[:] = (5 * ownAt.astype(np.int64) + number) & 1023
            toAt[:] = ownAt
        if self.draw.random() < 0.5:
            self.copyWhole(unused, inside)
            self.copyWhole(x, unused)

    def compare(self, program, about):
        for _ in range(2):  # a replay leaves nothing to the next
            made = program(**self.given, **{name: np.zeros_like(model.values) for name, model in self.outside.items()})
        for d, out in enumerate(self.outputs):
            np.testing.assert_array_equal(made[f"out{d}"], out.values, f"{about}: out{d}")
        for name, model in self.outside.items():
            np.testing.assert_array_equal(program.read(name), model.values, f"{about}: {name}")

    def check(self, target, **options):
        with self.g.open(target.format(self.devices), **options) as program:
            self.compare(program, options)

    def checkBundle(self, target, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "random.mgpu")
            self.g.save(path, **options)
            with mgpu.load(path, target.format(self.devices)) as program:
                self.compare(program, f"bundle {options}")


def main():
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    target = sys.argv[3] if len(sys.argv) > 3 else "host:{}"
    nodes = 0
    for seed in range(first, first + count):
        try:
            graph = Graph(seed)
            graph.check(target)
            graph.check(target, scheduler="shuffled", seed=seed, streams=3)
            if seed % 8 == 0 and target.startswith("host"):
                graph.checkBundle(target, scheduler="shuffled", seed=seed + 1, cpu="x86-64-v2")
            nodes += graph.g.plan().text.count("\nstep ")
        except Exception:
            print(f"seed {seed}:", file=sys.stderr)
            raise
    assert nodes > 10 * count, nodes
    print(f"{count} random graphs of {nodes} nodes: replays have the bits of the calls in their order")


if __name__ == "__main__":
    main()
