#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two steps of decoding by a small model, the second behind the first's keys and values, are those of
a reference in double, as near as f32 is. The whole model is planned for a machine that is not here:
launches and bytes of a step."""
import importlib.util
import json
import math
import struct
import sys

from harness import Example, random_bits, read_npy, write_npy

example = Example("decode")
spec = importlib.util.spec_from_file_location("writer", example.folder + "/decode.py")
writer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(writer)


def program(name, words):
    sizes = writer.sizes(words)
    path = example.path(name + ".mlir")
    with open(path, "w") as file:
        file.write(writer.Writer(sizes).write())
    return sizes, path


SMALL = ("--layers 2 --hidden 256 --heads 8 --groups 2 --width 32 --inner 512 --vocabulary 300 --positions 64").split()
m, example.file = program("small", SMALL)
A, R, half = m.H + 2 * m.G, m.H // m.G, m.d // 2
shapes = {"embedding": (m.V, m.D), "wqkv": (m.layers, A, m.d, m.D), "wo": (m.layers, m.D, m.H * m.d),
          "wup": (m.layers, 2, m.F, m.D), "wdown": (m.layers, m.D, m.F), "norms": (2 * m.layers + 1, m.D),
          "keys": (m.layers, m.G, m.S, m.d), "values": (m.layers, m.G, m.S, m.d)}
FIRST, TOKENS = 20, (7, 150)  # the position of the first token


def bf16(value):
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def wide(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


files, given = {}, {}
for seed, (name, shape) in enumerate(shapes.items()):
    count = math.prod(shape)
    # Whole numbers of few bits, so that bf16 has them.
    scale = {"norms": 1 / 64, "keys": 1 / 32, "values": 1 / 64, "embedding": 1 / 32}.get(name, 1 / 512)
    numbers = [(random_bits(seed, i) % 129 - 64) * scale + (1 if name == "norms" else 0) for i in range(count)]
    bits = [bf16(each) for each in numbers]
    if name in ("keys", "values"):  # nothing that counts lies behind the position
        bits = [each if i // m.d % m.S < FIRST else 0x7FC0 for i, each in enumerate(bits)]
    files[name] = example.path(name + "-given.npy")
    write_npy(files[name], bits, shape, "<V2")
    given[name] = [wide(each) for each in bits]
given["frequencies"] = [10000.0 ** -(j / half) for j in range(half)]
files["frequencies"] = example.write("frequencies", given["frequencies"], (half,))


def rows(weights, first, count, vector):
    n = len(vector)
    return [sum(w * v for w, v in zip(weights[(first + r) * n:(first + r + 1) * n], vector)) for r in range(count)]


def normal(x, number):
    factor = 1 / math.sqrt(sum(e * e for e in x) / m.D + 1e-5)
    return [e * factor * g for e, g in zip(x, given["norms"][number * m.D:(number + 1) * m.D])]


def attend(layer, position, heads):
    out = []
    for h in range(m.H):
        g = h // R
        at = lambda t: ((layer * m.G + g) * m.S + t) * m.d
        past = lambda name, new: [given[name][at(t):at(t) + m.d] for t in range(position)] + [heads[new + g]]
        scores = [sum(p * q for p, q in zip(heads[h], key)) / math.sqrt(m.d) for key in past("keys", m.H)]
        powers = [math.exp(s - max(scores)) for s in scores]
        out += [sum(p * v[i] for p, v in zip(powers, past("values", m.H + m.G))) / sum(powers) for i in range(m.d)]
    return out


def step(token, position):
    x = given["embedding"][token * m.D:(token + 1) * m.D]
    made = []
    for layer in range(m.layers):
        flat = rows(given["wqkv"], layer * A * m.d, A * m.d, normal(x, 2 * layer))
        heads = [flat[h * m.d:(h + 1) * m.d] for h in range(A)]
        for h in range(m.H + m.G):
            turned = [(math.cos(position * f), math.sin(position * f)) for f in given["frequencies"]]
            a, b = heads[h][:half], heads[h][half:]
            heads[h] = [p * c - q * s for p, q, (c, s) in zip(a, b, turned)] + \
                       [q * c + p * s for p, q, (c, s) in zip(a, b, turned)]
        x = [e + y for e, y in zip(x, rows(given["wo"], layer * m.D, m.D, attend(layer, position, heads)))]
        gate, up = (rows(given["wup"], (2 * layer + k) * m.F, m.F, normal(x, 2 * layer + 1)) for k in range(2))
        inner = [a / (1 + math.exp(-a)) * b for a, b in zip(gate, up)]
        x = [e + y for e, y in zip(x, rows(given["wdown"], layer * m.D, m.D, inner))]
        made.append(heads)
    for layer, heads in enumerate(made):
        for name, first in (("keys", m.H), ("values", m.H + m.G)):
            for g in range(m.G):
                at = ((layer * m.G + g) * m.S + position) * m.d
                given[name][at:at + m.d] = [wide(bf16(e)) for e in heads[first + g]]
    return rows(given["embedding"], 0, m.V, normal(x, 2 * m.layers))


example.check()
words = [f"--arg={name}={path}" for name, path in files.items()]
outs = [f"--out=logits={example.path('logits0.npy')}", f"--out=logits@2={example.path('logits1.npy')}"]
example.command("run", example.file, "--target", "host:1", *words, f"--arg=token={TOKENS[0]}",
                f"--arg=token@2={TOKENS[1]}", f"--arg=position={FIRST}", f"--arg=position@2={FIRST + 1}", *outs)
for k, token in enumerate(TOKENS):
    expected = step(token, FIRST + k)
    found, shape = read_npy(example.path(f"logits{k}.npy"))
    assert tuple(shape) == (m.V,), shape
    worst = max(abs(f - e) for f, e in zip(found, expected))
    size = max(abs(e) for e in expected)
    # A key rounded to bf16 the other way moves a score by 2^-8 of one of its terms.
    if not (size > 1 and worst <= 2e-3 * size):
        sys.exit(f"step {k}: off by {worst} of {size}")
    print(f"step {k}: {m.V} logits within {worst / size:.2g} of the largest")

# The whole model. A launch for the token, seven a layer, one for the logits, one for the cache.
m, example.file = program("whole", [])
dag = example.path("whole.dag.json")
example.command("plan", example.file, "--target", "sim:dgx-h200", "--budget", "1", "--arg", "token=1",
                "--arg", "position=1000", "--dag", dag)
with open(dag) as file:
    nodes = json.load(file)["nodes"]
kernels = [node for node in nodes if node["kind"] == "kernel"]
touched = sum(node.get("bytes_read", 0) + node.get("bytes_written", 0) for node in kernels)
heads = m.H + 2 * m.G
weights = m.layers * (heads * m.d * m.D + m.D * m.H * m.d + 3 * m.F * m.D) + m.V * m.D
compulsory = 2 * (weights + 2 * m.layers * m.G * m.S * m.d)
took = sum(node["duration_us"] for node in kernels)
print(f"{len(kernels)} kernels, predicted {took:.0f} us, touch {touched / 1e9:.4f} GB, {touched / compulsory:.4f} of what they must")
assert len(kernels) <= 115, len(kernels)
# Each launch comes near what its bytes take; narrow accesses would double it.
assert took <= 900, took
assert compulsory <= touched <= 1.02 * compulsory, (touched, compulsory)
