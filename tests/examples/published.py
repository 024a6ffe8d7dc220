#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decode step of examples/published at reduced size: a reference in double, then 2, 4 and 8 devices beside one
device with weights of f32, 8 with bf16 and int8. At full size: the page of predictions is what its command makes, and its
errors are below what docs/predicted.md promises."""
import math
import os
import re
import subprocess
import sys

from harness import Example, pairs, random_bits, read_npy, write_npy

example = Example("published")
sys.path.insert(0, example.folder)
import predict  # noqa: E402
import steps  # noqa: E402

SMALL = ("Llama-2-7B --layers 2 --hidden 64 --heads 16 --groups 8 --width 8 --inner 128 --vocabulary 96 "
         "--positions 16").split()
TYPES = {"f32": "<f4", "bf16": "<V2", "i8": "|i1"}


def arguments(kind):
    """Small whole numbers, which all types have, by name; and their files."""
    text, values, files = steps.make(SMALL + ["--weights", kind]).text().split("@main(")[1].split(") -> (")[0], {}, {}
    for seed, (name, shape, of) in enumerate(re.findall(r"%(\w+): tensor<([\dx]+)x(\w+)>", text)):
        sizes = tuple(int(each) for each in shape.split("x"))
        numbers = [random_bits(seed, i) % 7 - 3 for i in range(math.prod(sizes))]
        if of == "f32":
            numbers = [each / 8 for each in numbers]
        values[name] = numbers
        if of == "bf16":
            numbers = [{0: 0, 1: 0x3F80, 2: 0x4000, 3: 0x4040}[abs(each)] | (0x8000 if each < 0 else 0) for each in numbers]
        files[name] = example.path(f"{kind}-{name}.npy")
        write_npy(files[name], numbers, sizes, TYPES[of])
    return values, files


def run(kind, devices, files):
    """Logits and the first layer's keys."""
    example.file = example.path(f"step-{kind}-{devices}.mlir")
    with open(example.file, "w") as file:
        file.write(steps.make(SMALL + ["--weights", kind, "--devices", str(devices)]).text())
    out = {name: example.path(f"{kind}-{devices}-{name}.npy") for name in ("r0", "r4")}
    example.command("run", example.file, "--target", f"host:{devices}",
                    *pairs("--arg", (f"{name}={path}" for name, path in files.items())),
                    *pairs("--out", (f"{name}={path}" for name, path in out.items())))
    return read_npy(out["r4"])[0], read_npy(out["r0"])[0]


def reference(m, S, values):
    """Logits in double."""
    def product(name, rows, vector):
        n = len(vector)
        scale = values.get(name + "_scale", [1] * rows)
        return [scale[r] * sum(w * v for w, v in zip(values[name][r * n:(r + 1) * n], vector)) for r in range(rows)]

    def normal(name, x):
        factor = 1 / math.sqrt(sum(e * e for e in x) / m.hidden + 1e-5)
        return [e * factor * g for e, g in zip(x, values[name])]

    def rotated(heads):
        half, out = m.width // 2, []
        for at in range(0, len(heads), m.width):
            a, b = heads[at:at + half], heads[at + half:at + m.width]
            out += [p * c - q * s for p, q, c, s in zip(a, b, values["cos"], values["sin"])]
            out += [q * c + p * s for p, q, c, s in zip(a, b, values["cos"], values["sin"])]
        return out

    def attend(layer, n):
        q, k, v = (product(f"{name}{layer}", heads * m.width, n)
                   for name, heads in (("wq", m.heads), ("wk", m.groups), ("wv", m.groups)))
        q, k, out, d = rotated(q), rotated(k), [], m.width
        for h in range(m.heads):
            g = h // (m.heads // m.groups)
            rows = lambda name, new: [values[f"{name}{layer}"][(g * S + t) * d:(g * S + t + 1) * d]
                                      for t in range(S - 1)] + [new[g * d:(g + 1) * d]]
            scores = [sum(a * b for a, b in zip(q[h * d:(h + 1) * d], key)) / math.sqrt(d) for key in rows("keys", k)]
            powers = [math.exp(s - max(scores)) for s in scores]
            out += [sum(p * r[i] for p, r in zip(powers, rows("values", v))) / sum(powers) for i in range(d)]
        return out

    x = values["x"]
    for layer in range(m.layers):
        attended = attend(layer, normal(f"norm{layer}", x))
        x = [a + b for a, b in zip(x, product(f"wo{layer}", m.hidden, attended))]
        n = normal(f"inner_norm{layer}", x)
        gate, up = (product(f"{name}{layer}", m.inner, n) for name in ("wgate", "wup"))
        inner = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
        x = [a + b for a, b in zip(x, product(f"wdown{layer}", m.hidden, inner))]
    return product("whead", m.vocabulary, normal("last_norm", x))


def compare(what, got, want):
    size = max(abs(each) for each in want)
    worst = max(abs(a - b) for a, b in zip(got, want))
    assert size > 0.1 and worst < 2e-4 * size, f"{what}: {worst} beside values up to {size}"


for kind in TYPES:
    values, files = arguments(kind)
    step = steps.make(SMALL + ["--weights", kind])
    logits, keys = run(kind, 1, files)
    compare(f"{kind}, one device", logits, reference(step.m, step.S, values))
    for devices in (2, 4, 8) if kind == "f32" else (8,):
        there, kept = run(kind, devices, files)
        compare(f"{kind}, logits of {devices} devices", there, logits)
        compare(f"{kind}, keys of {devices} devices", kept, keys)

wrong = subprocess.run([sys.executable, os.path.join(example.folder, "steps.py"), "Llama-3.2-1B", "--devices", "3"],
                       capture_output=True, text=True)
assert wrong.returncode == 2 and "do not divide" in wrong.stderr, wrong.stderr

wrong = subprocess.run([sys.executable, os.path.join(example.folder, "steps.py"), "Mixtral-8x7B"], capture_output=True, text=True)
assert wrong.returncode == 2 and "invalid choice: 'Mixtral-8x7B'" in wrong.stderr, wrong.stderr

found, kept, pair = predict.main(example.tune, "--check")
errors = sorted(abs(predict.error(found[each][1], found[each][0])) for each in predict.BAR)
assert errors[len(errors) // 2] < 0.1 and errors[-1] < 0.2, errors
for row in ("6", "7", "13"):  # intervals hold the measurement and are narrow
    of, _, least, most, _ = found[row]
    assert least <= predict.measured_us(of) <= most <= 1.5 * least, (row, least, most)
measured, predicted = predict.gain(pair)
assert abs(predicted / measured - 1) < 0.3, (measured, predicted)
apart = sorted(abs(predict.error(each[1], each[0])) for each in kept.values())
assert apart[len(apart) // 2] < 0.15 and apart[-1] < 0.35, apart
for words, a, b in predict.RATIOS:
    wrong = predict.ratio(found, a, b)[1] / predict.ratio(found, a, b)[0] - 1
    assert abs(wrong) < (0.15 if "int8" in words else 0.1), (words, wrong)
print("published: ok")
