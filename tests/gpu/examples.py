#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every example on a GPU must give the bits it gives on the host target.

But those of CLOSE, which call a function that is not the same on a GPU to the last bit:
they must come close to the host's results, and within the many replays of --replays they
must repeat the GPU's own bits (ManyReplays.cpp).

The tensor-core forms of matrix products (products.mlir) must give the host's bits, on
numbers whose sums are exact: mma.sync, and wgmma on sm_90, of which each is off by default until it has, on
some GPU; and cuBLASLt, where it is. Kernels that begin early (pdl, sm_90) must give the bits of those that
do not, and are off by default unless they have and were not slower.

Usage: examples.py MGPU_TUNE FOLDER [REPEAT]
       examples.py --replays COUNT SECONDS GPU_REPLAYS MGPU_TUNE FOLDER
       examples.py --under TOOL MGPU_TUNE FOLDER
       examples.py --bundle MGPU_TUNE EXAMPLES_DIR OUT_DIR [ELEMENTS]
FOLDER is examples/, or what --bundle wrote, which needs no compiler where it runs.
--replays replays each example COUNT times on each target (gpu-replays), for at most SECONDS;
--under runs each twice under a tool that says what is wrong (compute-sanitizer). ELEMENTS is
the size of the arrays of elementwise.mlir.
Exit code 77, which ctest counts as skipped, without a GPU or NVRTC; unless MGPU_REQUIRE_GPU is set.
Prints one JSON line for each run: example, target, microseconds of a replay.
What came of each variant is stored in the database (`mgpu-tune db variant`), where it is looked up
when a GPU's default is chosen.
"""

import array
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

EXAMPLES = [("saxpy", "main", {"a": "2.5"}), ("heat", "main", {}), ("mandelbrot", "main", {}),
            ("mlp", "main", {}), ("attention", "main", {}), ("ops", "main", {}), ("exchange", "main", {}),
            ("digits", "main", {"rate": "0.5"}), ("digits", "eval", {})]
# Programs with a function that docs/numerics.md's table allows a GPU to round otherwise, and
# how results repeat on one GPU: "same" after each replay, or "again" in a second run, where
# training carries its state, and what differs in a last bit, from replay to replay.
CLOSE = {("attention", "main"): "same", ("digits", "main"): "again"}
# How far from the host's, as a share of the largest number of the array. Their function is exp,
# 1 unit of 2^-23 off on the host and 2 on a GPU: 3 between them, 6 for the quotient of a
# softmax. Five times that is for the sums behind it; of 48 terms one left out is far more.
TOLERANCE = 2.0 ** -18
# Where random numbers will not do: of these, training makes NaN within ten thousand steps, whose
# bits a GPU has others of.
DATA = {("digits", "main"): {"x": "digits.csv.gz:0-63@0-1435", "y": "digits.csv.gz:64@0-1435",
                             "b1": "zeros", "b2": "zeros"}}

ARCHS = "sm_80,sm_90,sm_100"
# Variants that compute products, and the architecture each is for; none: all of ARCHS.
FORMS = {"mma": None, "wgmma": "sm_90", "cublaslt": None}
# Examples of kernels that follow each other, which may begin early on EARLY_ARCHS.
CHAINS = [("mlp", "main"), ("attention", "main"), ("digits", "main")]
EARLY_ARCHS, EARLY_REPEAT = "sm_90,sm_100", 30
# What compute-sanitizer says, in small letters, where it cannot work with a GPU at all.
NO_TOOL = "device not supported"
HERE = os.path.dirname(os.path.abspath(__file__))
PRODUCTS = os.path.join(HERE, "products.mlir")


# Resident arrays that no replay writes: there is nothing to compare.
KEPT = {("mlp", "main"): {"w1", "w2"}, ("digits", "main"): {"x", "y"}}


def given(scalars):
    return [f"--arg={name}={value}" for name, value in scalars.items()]


def program(folder, name, entry, scalars, variant=""):
    """The words that name a program: its bundle, where there is one, or its source."""
    bundle = f"{folder}/{name}-{entry}{variant and '-' + variant}.mgpu"
    if os.path.exists(bundle):
        return [bundle]
    return [f"{folder}/{name}/{name}.mlir", "--entry", entry, *given(scalars),
            *([f"--variant={variant}"] if variant else [])]


def only(form):
    """The option by which that form alone computes products."""
    return "--variant=" + ",".join(each if each == form else f"{each}=off" for each in FORMS)


def values_of(folder, name, entry, arrays):
    """A value for each array: real data where there is, else random numbers."""
    values = {array: f"random:{seed}" for seed, array in enumerate(arrays)}
    for array, value in DATA.get((name, entry), {}).items():
        beside = f"{folder}/{value}"
        inside = f"{folder}/{name}/{value}"
        values[array] = value if ":" not in value else \
            beside if os.path.exists(beside.partition(":")[0]) else inside
    return values


def write_elementwise(tune, out, elements):
    """The bundle whose kernels bench-cuda measures."""
    with open(f"{HERE}/elementwise.mlir", encoding="utf-8") as file:
        text = file.read()
    if elements:
        blocks = int(elements) // 256
        text = text.replace("67108864", str(256 * blocks)).replace("262144", str(blocks))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/elementwise.mlir"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run([tune, "bundle", path, "-o", f"{out}/elementwise.mgpu"], check=True)


def write_bundles(tune, examples, out, elements=None):
    os.makedirs(out, exist_ok=True)
    for name, entry, scalars in EXAMPLES:
        subprocess.run([tune, "bundle", f"{examples}/{name}/{name}.mlir", "--entry", entry,
                        *given(scalars), "--arch", ARCHS, "-o", f"{out}/{name}-{entry}.mgpu"],
                       check=True)
        if (name, entry) in CHAINS:
            subprocess.run([tune, "bundle", f"{examples}/{name}/{name}.mlir", "--entry", entry, *given(scalars),
                            "--variant=pdl", "--arch", EARLY_ARCHS, "-o", f"{out}/{name}-{entry}-pdl.mgpu"],
                           check=True)
    for form, archs in FORMS.items():
        subprocess.run([tune, "bundle", PRODUCTS, only(form), "--arch",
                        archs or ARCHS, "-o", f"{out}/products-{form}.mgpu"], check=True)
    # Without cubins: what a first replay costs where they are compiled, or in the database.
    subprocess.run([tune, "bundle", f"{examples}/mlp/mlp.mlir", "-o", f"{out}/mlp-texts.mgpu"],
                   check=True)
    # With the sizes of a GPU, which the build writes.
    calibrate = f"{os.path.dirname(os.path.abspath(tune))}/../pipeline/calibrate-gpu.mlir"
    subprocess.run([tune, "bundle", calibrate, "--arch", ARCHS, "-o", f"{out}/calibrate.mgpu"],
                   check=True)
    shutil.copy(f"{examples}/digits/digits.csv.gz", out)
    write_elementwise(tune, out, elements)


def run(tune, *words):
    return subprocess.run([tune, *words], capture_output=True, text=True, check=False)


def machine(tune):
    """The architectures of the GPUs, if there is a compiler, and which libraries are there."""
    report = json.loads(run(tune, "doctor", "--json").stdout)
    gpus = [gpu["arch"] for gpu in report.get("gpus", []) if "version" in report["nvrtc"]]
    return gpus, {key for key in ("nccl", "cublaslt") if "version" in report[key]}


def find_gpus(tune):
    """What machine() says, where there is a GPU; ends the script where there is none."""
    gpus, libraries = machine(tune)
    if gpus:
        return gpus, libraries
    if os.environ.get("MGPU_REQUIRE_GPU"):
        sys.exit("there is no GPU, or no NVRTC: see mgpu-tune doctor")
    print("skipped: no GPU or no NVRTC")
    sys.exit(77)


def signature(tune, words):
    """The number of devices, the names of the arguments and of all arrays."""
    checked = run(tune, "check", *words)
    if checked.returncode != 0:
        sys.exit(f"check {words[0]}: {checked.stderr}")
    devices = int(re.search(r"ok: (\d+) devices?\b", checked.stdout).group(1))
    arrays = re.findall(r"^  (argument|result) (\S+): (\S*x\S+) ", checked.stdout, re.M)
    return devices, [name for kind, name, _ in arrays if kind == "argument"], \
        [name for _, name, _ in arrays]


def sides_of(tune, folder, name, entry, scalars):
    """What signature() says of an example, with values of its arguments and what a replay writes of its arrays."""
    devices, arguments, arrays = signature(tune, program(folder, name, entry, scalars))
    return devices, values_of(folder, name, entry, arguments), \
        [each for each in arrays if each not in KEPT.get((name, entry), ())]


def replay(tune, words, arrays, outputs, target, repeat, folder):
    """The bytes of every array afterwards, and the median time of a replay. `arrays` has the
    values of each."""
    words = [*words, "--no-tuned", "--target", target, "--repeat", str(repeat), "--json"]
    for name, value in arrays.items():
        words += ["--arg", f"{name}={value}"]
    for name in outputs:
        words += ["--out", f"{name}={folder}/{name}.npy"]
    done = run(tune, "run", *words)
    if done.returncode != 0:
        return None, f"exit code {done.returncode}: {done.stderr.strip()}"
    data = {}
    for name in outputs:
        with open(f"{folder}/{name}.npy", "rb") as array:
            data[name] = array.read()
    return data, json.loads(done.stdout)["replay_us"]["median"]


def is_close(one, other):
    """Two .npy files of f32 whose sums were added in another order, as NCCL does."""
    if b"'<f4'" not in one[:128] or one[:128] != other[:128]:
        return one == other
    values = [array.array("f", each[128:]) for each in (one, other)]
    return all(abs(a - b) <= 1e-4 * max(1, abs(a), abs(b)) for a, b in zip(*values))


def furthest(one, other):
    """How far apart two .npy files of f32 are at most, as a share of the largest number of
    `other`; infinite where they are other arrays, other types that differ, or no numbers."""
    if one == other:
        return 0.0
    if b"'<f4'" not in one[:128] or one[:128] != other[:128]:
        return math.inf
    values, wanted = (array.array("f", each[128:]) for each in (one, other))
    if len(values) != len(wanted) or not all(map(math.isfinite, [*values, *wanted])):
        return math.inf
    most = max(map(abs, wanted))
    return max(abs(a - b) for a, b in zip(values, wanted)) / most if most else math.inf


def judge(example, target, devices, got, expected):
    """What a line says of results beside the host's: `ok`, how they were compared and, where they
    differ, which."""
    wrong = [name for name in expected if got[name] != expected[name]]
    line = {"compared": "bits", "ok": not wrong}
    if target == "cuda" and devices > 2:  # NCCL adds in an order of its own
        wrong = [name for name in wrong if not is_close(got[name], expected[name])]
        line = {"compared": "order of sums", "ok": not wrong}
    elif example in CLOSE:
        line = {"compared": "close", "host_bits": not wrong,
                "furthest": max(furthest(got[name], expected[name]) for name in expected)}
        line["ok"] = line["furthest"] <= TOLERANCE
        if math.isinf(line["furthest"]):
            line["furthest"] = "no number"  # JSON has no infinity
    return {**line, "differ": wrong} if not line["ok"] else line


def write_ones(path, shape, element, seed):
    """-1 and 1, of which sums are exact in every type."""
    draw, count = random.Random(seed), 1
    for size in shape:
        count *= size
    one = {"f16": b"\x00\x3c", "bf16": b"\x80\x3f", "f32": struct.pack("<f", 1)}[element]
    minus = one[:-1] + bytes([one[-1] | 128])
    kind = {"f16": "<f2", "bf16": "|V2", "f32": "<f4"}[element]
    head = str({"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(b"".join(draw.choice((one, minus)) for _ in range(count)))


def check_products(tune, folder, target, form):
    """One JSON line: a tensor-core form on `target` beside the host's body."""
    bundle = f"{folder}/products-{form}.mgpu"
    is_bundle = os.path.exists(bundle)
    words = [bundle if is_bundle else PRODUCTS]
    report = run(tune, "check", *words).stdout
    with tempfile.TemporaryDirectory() as work:
        arrays = {}
        for seed, (name, shape, element) in enumerate(
                re.findall(r"^  argument (\S+): ((?:\d+x)+)(\w+) ", report, re.M)):
            arrays[name] = f"{work}/{name}-in.npy"
            write_ones(arrays[name], [int(size) for size in shape.split("x")[:-1]], element, seed)
        outputs = ["c", "z", "r"]
        expected, why = replay(tune, words, arrays, outputs, "host:1", 1, work)
        if expected is None:
            sys.exit(f"products on the host: {why}")
        chosen = [] if is_bundle or target.startswith("host") else [only(form)]
        got, figure = replay(tune, [*words, *chosen], arrays, outputs, target, 1, work)
    wrong = [] if got is None else [k for k in outputs if got[k] != expected[k]]
    line = {"example": "products", "form": form, "target": target,
            "ok": got is not None and not wrong}
    line.update({"error": figure} if got is None else {"differ": wrong} if wrong
                else {"replay_us": figure})
    print(json.dumps(line), flush=True)
    if target.startswith("cuda"):
        store(tune, line)
    return line["ok"]


def store(tune, line):
    """From now on the variant is by default what the line says of it on this GPU. What did not run says nothing of
    its results, so nothing is stored."""
    if "error" in line:
        return
    figures = ["--replay-us", str(line["replay_us"])] if line["ok"] else ["--failed", f"{line['differ']} differ"]
    if line["ok"] and "without_us" in line:
        figures += ["--without-us", str(line["without_us"])]
    stored = run(tune, "db", "variant", line["form"], "--target", line["target"], *figures)
    if stored.returncode != 0:
        print(json.dumps({"example": line["example"], "form": line["form"], "not stored": stored.stderr}))


def check_early(tune, folder):
    """One JSON line: chains of kernels that begin early beside the same that do not, on one GPU. Both must give the
    same bits; the times are sums of the medians."""
    line = {"example": "chains", "form": "pdl", "target": "cuda:0", "ok": True, "replay_us": 0, "without_us": 0}
    for name, entry, scalars in EXAMPLES:
        if (name, entry) not in CHAINS or not line["ok"]:
            continue
        devices, arrays, outputs = sides_of(tune, folder, name, entry, scalars)
        expected = None
        for variant, key in (("", "without_us"), ("pdl", "replay_us")):
            with tempfile.TemporaryDirectory() as work:
                got, figure = replay(tune, program(folder, name, entry, scalars, variant), arrays, outputs,
                                     targets_of(devices)[0], EARLY_REPEAT, work)
            if got is None:
                line.update(ok=False, error=f"{name}: {figure}")
                break
            line[key] += figure
            expected = expected or got
            if got != expected:
                line.update(ok=False, differ=[f"{name}: {each}" for each in outputs if got[each] != expected[each]])
    print(json.dumps(line), flush=True)
    store(tune, line)
    return line["ok"]


def targets_of(devices):
    return ["cuda:0" if logical == 1 else f"cuda:0/{logical}"
            for logical in sorted({max(devices, each) for each in (1, 2, 4)})]


def replay_often(count, seconds, replays, tune, folder):
    """The lines of gpu-replays for each example."""
    code = 0
    for name, entry, scalars in EXAMPLES:
        words = program(folder, name, entry, scalars)
        devices, arrays, _ = signature(tune, words)
        given_values = {} if len(words) == 1 else dict(scalars)
        given_values.update(values_of(folder, name, entry, arrays))
        bound = [f"{key}={value}" for key, value in given_values.items()]
        how = CLOSE.get((name, entry))
        rule = f"{how}:{TOLERANCE}" if how else "bits"
        done = subprocess.run([replays, words[0], count, seconds, entry, rule, *bound, "--",
                               *targets_of(devices)], check=False)
        code = max(code, done.returncode)
    return code


def run_under(tool, tune, folder):
    """A line for each example, run under `tool`; 77 where it does not work with the GPU."""
    code = 0
    for name, entry, scalars in EXAMPLES:
        words = program(folder, name, entry, scalars)
        devices, arrays, _ = signature(tune, words)
        given_arrays = given(values_of(folder, name, entry, arrays))
        done = subprocess.run([*tool.split(), tune, "run", *words, *given_arrays, "--no-tuned",
                               "--target", targets_of(devices)[0], "--repeat", "2"],
                              capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode != 0 and NO_TOOL in said.lower():
            print(said[-1500:], file=sys.stderr)
            return 77
        line = {"example": name, "entry": entry, "tool": " ".join(tool.split()[1:3]),
                "ok": done.returncode == 0}
        if not line["ok"]:
            line["said"] = said[-1500:]
            code = 1
        print(json.dumps(line), flush=True)
    return code


def main():
    if sys.argv[1] == "--bundle":
        write_bundles(*sys.argv[2:])
        return
    if sys.argv[1] == "--replays":
        find_gpus(sys.argv[5])
        sys.exit(replay_often(*sys.argv[2:]))
    if sys.argv[1] == "--under":
        find_gpus(sys.argv[3])
        sys.exit(run_under(*sys.argv[2:]))
    tune, examples = sys.argv[1], sys.argv[2]
    repeat = int(sys.argv[3]) if len(sys.argv) > 3 else 2
    gpus, libraries = find_gpus(tune)
    failures = 0
    for form, arch in FORMS.items():
        if form == "cublaslt" and form not in libraries:
            print(json.dumps({"example": "products", "form": form, "skipped": "no cuBLASLt"}))
        elif arch in (None, gpus[0]):
            failures += not check_products(tune, examples, "cuda:0", form)
        else:
            print(json.dumps({"example": "products", "form": form, "skipped": f"not {arch}"}))
    if gpus[0] in EARLY_ARCHS.split(","):
        failures += not check_early(tune, examples)
    else:
        print(json.dumps({"example": "chains", "form": "pdl", "skipped": f"not {EARLY_ARCHS}"}))
    for name, entry, scalars in EXAMPLES:
        words = program(examples, name, entry, scalars)
        devices, arrays, outputs = sides_of(tune, examples, name, entry, scalars)
        with tempfile.TemporaryDirectory() as folder:
            expected, why = replay(tune, words, arrays, outputs, f"host:{devices}", repeat,
                                   folder)
            if expected is None:
                sys.exit(f"{name} on the host: {why}")
            targets = targets_of(devices)
            if "nccl" in libraries and 1 < devices <= len(gpus):
                targets.append("cuda")
            for target in targets:
                got, figure = replay(tune, words, arrays, outputs, target, repeat, folder)
                line = {"example": name, "entry": entry, "target": target, "repeat": repeat}
                if got is None:
                    line.update(ok=False, error=figure)
                else:
                    line.update(judge((name, entry), target, devices, got, expected), replay_us=figure)
                failures += not line["ok"]
                print(json.dumps(line), flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
