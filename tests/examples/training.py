#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step of examples/published at reduced size: its losses beside a reference in double, its gradients beside
differences of the reference's loss, four devices with parts of the weights beside one device, in f32 and with products
of bf16. Steps that follow each other lower the loss. The step that reads a prompt is compared with the same reference."""
import math
import re
import struct
import sys

from harness import Example, pairs, random_bits, read_npy, write_npy

example = Example("published")
sys.path.insert(0, example.folder)
import prompt  # noqa: E402
import training  # noqa: E402

SMALL = ("Llama-3.1-8B --layers 2 --hidden 16 --heads 4 --groups 2 --width 4 --inner 24 --vocabulary 20 "
         "--positions 6").split()
SEQUENCES = 4


def step(kind, devices):
    return training.make(SMALL + ["--type", kind, "--devices", str(devices), "--batch", str(SEQUENCES // devices)])


def arguments(m):
    """By name: (numbers, sizes). The moments are zero."""
    T, d = SEQUENCES * 6, m.width
    out = {"x": (None, (T, m.hidden)), "classes": ([random_bits(7, t) % m.vocabulary for t in range(T)], (T,))}
    for name, shape, of in re.findall(r"%(\w+): tensor<([\dx]+)x(f32|i32)>", step("f32", 1).text().split("@main(")[1].split(") -> (")[0]):
        if name not in ("classes", "cos", "sin"):
            out[name] = None, tuple(int(each) for each in shape.split("x"))
    for seed, (name, (numbers, sizes)) in enumerate(out.items()):
        if numbers is None:
            spread = 0 if name.endswith(("_mean", "_square")) else 2 / math.sqrt(sizes[-1]) if len(sizes) > 1 else 0.2
            middle = 1 if "norm" in name and spread else 0
            count = math.prod(sizes)
            out[name] = [middle + spread * (random_bits(seed, i) % 2001 / 1000 - 1) for i in range(count)], sizes
    angles = [[position / 50 ** (j / (d / 2)) for j in range(d // 2)] for position in range(6)]
    return out, {name: [f(a) for row in angles for a in row] for name, f in (("cos", math.cos), ("sin", math.sin))}


def run(kind, devices, values, turns, steps=1):
    """The losses and the results of the last step, by name: resident arguments keep what a step leaves in them."""
    made = step(kind, devices)
    example.file = example.path(f"training-{kind}-{devices}.mlir")
    with open(example.file, "w") as file:
        file.write(made.text())
    files = {}
    for name, (numbers, sizes) in values.items():
        files[name] = example.path(f"{name}.npy")
        write_npy(files[name], numbers, sizes, "<i4" if name == "classes" else "<f4")
    for name, numbers in turns.items():
        files[name] = example.path(f"{name}-{devices}.npy")
        write_npy(files[name], numbers * made.B, (made.T, made.m.width // 2), "<f4")
    names = ["losses"] + [name + end for name, _, _ in sorted(made.trained, key=lambda each: made.order.index(each[0]))
                          for end in ("", "_mean", "_square")]
    out = {name: example.path(f"{name}-out.npy") for name in names}
    example.command("run", example.file, "--target", f"host:{devices}", "--repeat", str(steps),
                    *pairs("--arg", (f"{name}={path}" for name, path in files.items())),
                    *pairs("--out", (f"r{k}={out[name]}" for k, name in enumerate(names))))
    return {name: read_npy(path)[0] for name, path in out.items()}


def logits(m, values, turns):
    """The logits of each position, in double."""
    def matrix(name):
        numbers, sizes = values[name]
        return [numbers[at:at + sizes[1]] for at in range(0, len(numbers), sizes[1])]

    def times(rows, name):
        return [[sum(a * b for a, b in zip(row, weights)) for weights in matrix(name)] for row in rows]

    def normal(rows, name):
        return [[e * g / math.sqrt(sum(each * each for each in row) / m.hidden + 1e-5) for e, g in zip(row, values[name][0])]
                for row in rows]

    def turned(row, position):
        half, out = m.width // 2, []
        c, s = (turns[name][position * half:(position + 1) * half] for name in ("cos", "sin"))
        for at in range(0, len(row), m.width):
            a, b = row[at:at + half], row[at + half:at + m.width]
            out += [p * x - q * y for p, q, x, y in zip(a, b, c, s)] + [q * x + p * y for p, q, x, y in zip(a, b, c, s)]
        return out

    def attend(q, k, v):
        out, d, shared = [], m.width, m.heads // m.groups
        for s, query in enumerate(q):
            out.append([])
            for h in range(m.heads):
                g = h // shared
                powers = [math.exp(sum(a * b for a, b in zip(query[h * d:h * d + d], k[u][g * d:g * d + d])) / math.sqrt(d))
                          for u in range(s + 1)]
                out[-1] += [sum(p * v[u][g * d + i] for u, p in enumerate(powers)) / sum(powers) for i in range(d)]
        return out

    def plus(a, b):
        return [[p + q for p, q in zip(x, y)] for x, y in zip(a, b)]

    out, rows, S = [], matrix("x"), 6
    for at in range(0, len(rows), S):
        x = rows[at:at + S]
        for layer in range(m.layers):
            n = normal(x, f"norm{layer}")
            q, k, v = (times(n, f"{name}{layer}") for name in ("wq", "wk", "wv"))
            q, k = ([turned(row, s) for s, row in enumerate(each)] for each in (q, k))
            x = plus(x, times(attend(q, k, v), f"wo{layer}"))
            n = normal(x, f"inner_norm{layer}")
            inner = [[g / (1 + math.exp(-g)) * u for g, u in zip(*both)]
                     for both in zip(times(n, f"wgate{layer}"), times(n, f"wup{layer}"))]
            x = plus(x, times(inner, f"wdown{layer}"))
        out += times(normal(x, "last_norm"), "whead")
    return out


def loss(m, values, turns):
    """The mean loss, in double."""
    losses = [math.log(sum(math.exp(each) for each in row)) - row[of]
              for row, of in zip(logits(m, values, turns), values["classes"][0])]
    return sum(losses) / len(losses)


def prompted(kind, devices, values, turns):
    """The first layer's keys and the logits of each sequence's last position, by the step that reads a prompt."""
    example.file = example.path(f"prompt-{kind}-{devices}.mlir")
    made = prompt.make(SMALL + ["--type", kind, "--devices", str(devices), "--batch", str(SEQUENCES)])
    with open(example.file, "w") as file:
        file.write(made.text())
    files, given = {}, {name: (of * made.B, (made.T, made.m.width // 2)) for name, of in turns.items()}
    given.update((name, of) for name, of in values.items() if name != "classes" and not name.endswith(("_mean", "_square")))
    for name, (numbers, sizes) in given.items():
        files[name], isBf16 = example.path(f"prompt-{kind}-{name}.npy"), kind == "bf16" and name[0] == "w"
        write_npy(files[name], [int.from_bytes(struct.pack(">f", each)[:2], "big") for each in numbers] if isBf16 else numbers,
                  sizes, "<V2" if isBf16 else "<f4")
    out = {name: example.path(f"prompt-{name}.npy") for name in ("r0", f"r{2 * made.m.layers}")}
    example.command("run", example.file, "--target", f"host:{devices}",
                    *pairs("--arg", (f"{name}={path}" for name, path in files.items())),
                    *pairs("--out", (f"{name}={path}" for name, path in out.items())))
    return [read_npy(path)[0] for path in out.values()]


def near(what, got, want, share):
    size = max(abs(each) for each in want)
    worst = max(abs(a - b) for a, b in zip(got, want))
    assert size > 0 and worst < share * size, f"{what}: {worst} beside values up to {size}"


m = step("f32", 1).m
values, turns = arguments(m)
one = run("f32", 1, values, turns)
assert abs(sum(one["losses"]) - loss(m, values, turns)) < 1e-5
for name, (numbers, sizes) in values.items():
    if name in one:
        at = random_bits(3, len(name)) % len(numbers)  # the first moment of a step from zero is a tenth of the gradient
        sides = []
        for moved in (1e-4, -1e-4):
            changed = [*numbers]
            changed[at] += moved
            sides.append(loss(m, {**values, name: (changed, sizes)}, turns))
        slope = (sides[0] - sides[1]) / 2e-4
        if not name.endswith(("_mean", "_square")):
            got = one[name + "_mean"][at] * 10
            assert abs(got - slope) < 1e-4 + 2e-3 * abs(slope), (name, at, got, slope)
four = run("f32", 4, values, turns)
for name, numbers in one.items():
    near(f"{name} of 4 devices", four[name], numbers, 2e-3)
narrow, whole = run("bf16", 4, values, turns), run("bf16", 1, values, turns)
near("losses of bf16 on 4 devices", narrow["losses"], whole["losses"], 0.02)
near("losses of bf16", whole["losses"], one["losses"], 0.1)
assert sum(run("f32", 4, values, turns, 20)["losses"]) < 0.97 * sum(one["losses"])

want = [each for row in logits(m, values, turns)[5::6] for each in row]
keys, last = prompted("f32", 1, values, turns)
near("logits of a prompt", last, want, 1e-5)
for name, got, of in zip(("keys", "logits"), prompted("f32", 2, values, turns), (keys, last)):
    near(f"{name} of a prompt on 2 devices", got, of, 1e-5)
near("logits of a prompt in bf16 on 2 devices", prompted("bf16", 2, values, turns)[1], want, 0.05)
print("training: ok")
