#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of decoding (examples/decode) on a GPU, with and without kernels that begin early.

Usage: decode_steps.py --bundle MGPU_TUNE EXAMPLES_DIR OUT_DIR [less]
       decode_steps.py GPU_REPLAYS MGPU_TUNE BUNDLE_DIR SECONDS
Two layers of the model's width, with fewer words, must give the host's logits; the whole model is timed.
A JSON line for each bundle. `less` makes small models. The weights are made here, of whole numbers times a
scale that keeps every layer's values near 1. Exit code 77 without NumPy, 1 where a result is wrong.
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import large

numpy = large.numpy

CHECKED = ["--layers", "2", "--vocabulary", "8000"]
SMALL = ("--hidden 64 --heads 4 --groups 2 --width 16 --inner 64 --vocabulary 40 --positions 32").split()
MODELS = {"decode-2": CHECKED, "decode-16": []}
TOKEN, POSITION, SMALL_POSITION = 7, 1000, 20
# A key rounded to bf16 the other way moves a score by 2^-8 of one of its terms (tests/examples/decode.py).
TOLERANCE = 2e-3
# Weights repeat after so many, a prime: drawing billions takes longer than the rest.
BLOCK = 4194301


def writer_of(examples):
    spec = importlib.util.spec_from_file_location("writer", f"{examples}/decode/decode.py")
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    return writer


def write_bundles(tune, examples, out, is_small):
    writer = writer_of(examples)
    said = {"less": is_small, "predicted": {}, "sizes": {}, "sim": large.SIM}
    for name, words in MODELS.items():
        if is_small:
            words = ["--layers", "2" if name == "decode-2" else "1", *SMALL]
        sizes = writer.sizes(words)
        said["sizes"][name] = vars(sizes)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/{name}.mlir"
            with open(path, "w", encoding="utf-8") as file:
                file.write(writer.Writer(sizes).write())
            for form in ("", "pdl"):
                bundle = f"{out}/{name}{form and '-' + form}.mgpu"
                subprocess.run([tune, "bundle", path, "--arch", large.ARCH, "--cpu", "x86-64-v2", "-o", bundle,
                                *(["--variant=pdl"] if form else [])], check=True)
        said["predicted"][name] = large.predict(tune, bundle, large.SIM)
    with open(f"{out}/decode.json", "w", encoding="utf-8") as file:
        json.dump(said, file, indent=1)


def values_of(sizes, folder):
    """The words that give each array, by small whole numbers and a scale."""
    D, H, G, d, F, V, S, L = (sizes[key] for key in ("D", "H", "G", "d", "F", "V", "S", "layers"))
    shapes = {"embedding": (V, D), "wqkv": (L, H + 2 * G, d, D), "wo": (L, D, H * d), "wup": (L, 2, F, D),
              "wdown": (L, D, F), "norms": (2 * L + 1, D), "keys": (L, G, S, d), "values": (L, G, S, d)}
    words = []
    for seed, (name, shape) in enumerate(shapes.items()):
        scale = {"norms": 1 / 64, "keys": 1 / 32, "values": 1 / 64, "embedding": 1 / 32}.get(
            name, 2.0 ** -round(math.log2(32 * math.sqrt(shape[-1]))))
        count = math.prod(shape)
        draw = numpy.random.default_rng(seed).integers(-64, 65, min(count, BLOCK), dtype=numpy.int8)
        numbers = draw.astype(numpy.float32) * numpy.float32(scale) + numpy.float32(name == "norms")
        stored = (large.rounded(numbers).view(numpy.uint32) >> 16).astype(numpy.uint16)
        path = f"{folder}/{name}.bin"
        with open(path, "wb") as file:
            for done in range(0, count, BLOCK):
                stored[:count - done].tofile(file)
        words.append(f"{name}=raw:bf16:{'x'.join(map(str, shape))}:{path}")
    frequencies = (10000.0 ** -(numpy.arange(d // 2) / (d // 2))).astype(numpy.float32)
    frequencies.tofile(f"{folder}/frequencies.bin")
    return words + [f"frequencies=raw:f32:{d // 2}:{folder}/frequencies.bin"]


def run(command, limit):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(limit, 1), check=False)
    except subprocess.TimeoutExpired:
        return "", f"it had not ended after {limit:.0f} s"
    return done.stdout, "" if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr.strip()[-600:]}"


def lines_of(name, text, why, said, count):
    found = [json.loads(each) for each in text.splitlines() if each.startswith("{")]
    lines = []
    for k, form in enumerate(("", "pdl")[:count]):
        line = {"model": name, "form": form or "plain", "ok": False, "predicted_us": said["predicted"][name].get("us"),
                **(found[k] if k < len(found) else {"error": why or "it printed no line"})}
        if line.get("nodes"):
            line["kernels"] = sum(node["kernel"] for node in line["nodes"])
            line["kernels_us"] = sum(node["us"] for node in line["nodes"] if node["kernel"])
            if name == "decode-16":
                line["nodes"] = line["nodes"][:24]
        lines.append(line)
    return lines


def check(replays, tune, folder, said, until):
    """Two layers: the host's logits, as near as f32 is."""
    sizes = said["sizes"]["decode-2"]
    bundles = [f"{folder}/decode-2.mgpu", f"{folder}/decode-2-pdl.mgpu"]
    position = SMALL_POSITION if said["less"] else POSITION
    with tempfile.TemporaryDirectory(dir=large.memory()) as work:
        words = [*values_of(sizes, work), f"token={TOKEN}", f"position={position}"]
        _, why = run([tune, "run", bundles[0], "--target", "host:1", "--no-tuned", "--out", f"logits={work}/host.npy",
                      *(f"--arg={word}" for word in words)], until - time.monotonic())
        if why:
            return [{"model": "decode-2", "ok": False, "error": f"on the host: {why}"}]
        expected = numpy.load(f"{work}/host.npy")
        text, why = run([replays, "spans", "1" if said["less"] else "20", "1", *words, f"logits>{work}/logits.bin", "--", *bundles],
                        until - time.monotonic())
        lines = lines_of("decode-2", text, why, said, 2)
        for k, line in enumerate(lines):
            path = f"{work}/logits.bin{f'.{k}' if k else ''}"
            if "error" not in line and os.path.exists(path):
                line.update(large.judge(numpy.fromfile(path, numpy.float32), expected, TOLERANCE))
        return lines


def main():
    words = sys.argv[1:]
    if words[0] == "--bundle":
        write_bundles(*words[1:4], "less" in words[4:])
        return 0
    if numpy is None:
        print("skipped: there is no NumPy", file=sys.stderr)
        return 77
    replays, tune, folder, seconds = words
    until = time.monotonic() + float(seconds)
    with open(f"{folder}/decode.json", encoding="utf-8") as file:
        said = json.load(file)
    is_right = True
    lines = check(replays, tune, folder, said, until)
    for line in lines:
        print(json.dumps(line), flush=True)
        is_right &= line["ok"]
    position = SMALL_POSITION if said["less"] else POSITION
    with tempfile.TemporaryDirectory(dir=large.memory()) as work:
        text, why = run([replays, "spans", "1" if said["less"] else "100", "2", "nodes",
                         *values_of(said["sizes"]["decode-16"], work), f"token={TOKEN}", f"position={position}",
                         f"logits>{work}/logits.bin", "--", f"{folder}/decode-16.mgpu", f"{folder}/decode-16-pdl.mgpu"],
                        until - time.monotonic())
    for line in lines_of("decode-16", text, why, said, 2):
        # The two programs must at least agree.
        line["ok"] = "error" not in line and "logits" not in line.get("differs_from_first", [])
        print(json.dumps(line), flush=True)
        is_right &= line["ok"]
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
