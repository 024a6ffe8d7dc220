#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel of each class at a size that fills a GPU (large_programs.py): its results against NumPy's,
its time against the bytes and operations that it needs.

Usage: large.py --bundle MGPU_TUNE OUT_DIR [less] [CASE...]
       large.py GPU_REPLAYS BUNDLE_DIR SECONDS [CASE...]
       large.py --predict MGPU_TUNE BUNDLE_DIR TOPOLOGY
--bundle writes a bundle for each case and form, and large.json beside them: the sizes (small ones with
`less`) and what plan predicts on SIM, written down before anything is measured.
The second prints a JSON line for each case and form, each case in processes of their own with a limit of
its own: a failure is a line (`ok` false), and no more begins after SECONDS. Times are the GPU's:
`span_us` of a whole replay, `kernels_us` the sum of its kernels. A program without arrays that are copied in
a replay is judged by the first, since that has everything in it.
--predict prints the sums that plan predicts on a topology that `calibrate` wrote.
Exit code 77 without NumPy, 1 where a result was wrong.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import time

import large_programs as programs

try:
    import numpy
except ImportError:  # --bundle and --predict need none
    numpy = None

SIM = "sim:dgx-h100"
ARCH = "sm_90"
# Products of f16 and bf16 by each form; all others are off.
FORMS = {name: ",".join(f"{each}={'on' if each == name else 'off'}" for each in ("mma", "wgmma", "cublaslt"))
         for name in ("threads", "mma", "wgmma", "cublaslt")}
BESIDE = [["cublaslt", "threads"], ["cublaslt", "mma"], ["cublaslt", "wgmma"]]
ONE = [[""]]

# What makes the program; its sizes, and small ones; operations of floating point by the sizes; the forms that are
# measured beside each other in one process; the most seconds for each of these processes.
Case = collections.namedtuple("Case", "make sizes less flops groups limit", defaults=(ONE, 12))


def product_flops(m, n, k, *_):
    return 2 * m * n * k


CASES = {
    "product-bf16": Case(programs.product, (4096, 4096, 4096, "bf16"), (128, 128, 64, "bf16"), product_flops, BESIDE, 8),
    "product-f32": Case(programs.product, (4096, 4096, 4096, "f32"), (128, 128, 64, "f32"), product_flops),
    "elementwise-f32": Case(programs.elementwise, (16384, 4096, "f32"), (64, 128, "f32"), lambda n, m, _: 2 * n * m),
    "elementwise-bf16": Case(programs.elementwise, (16384, 4096, "bf16"), (64, 128, "bf16"), lambda n, m, _: 2 * n * m),
    "decode-nk-1": Case(programs.decode, (8192, 8192, 1, True), (64, 1024, 1, True), product_flops),
    "decode-nk-4": Case(programs.decode, (8192, 8192, 4, True), (64, 1024, 4, True), product_flops),
    "decode-nk-16": Case(programs.decode, (8192, 8192, 16, True), (64, 1024, 16, True), product_flops),
    "decode-kn-1": Case(programs.decode, (8192, 8192, 1, False), (512, 256, 1, False), product_flops),
    "decode-kn-4": Case(programs.decode, (8192, 8192, 4, False), (512, 256, 4, False), product_flops),
    "decode-kn-16": Case(programs.decode, (8192, 8192, 16, False), (512, 256, 16, False), product_flops),
    "softmax": Case(programs.softmax, (8192, 4096), (64, 256), lambda n, m: 4 * n * m),
    "layer-norm": Case(programs.norm, (8192, 4096, True), (64, 256, True), lambda n, m, _: 7 * n * m),
    "rms-norm": Case(programs.norm, (8192, 4096, False), (64, 256, False), lambda n, m, _: 4 * n * m),
    "transpose": Case(programs.transpose, (8192,), (128,), lambda n: 0),
    "sum": Case(programs.total, (1 << 26,), (1 << 14,), lambda n: n),
    "column-sum": Case(programs.column_sums, (16384, 4096), (256, 128), lambda n, m: n * m),
    "attention": Case(programs.attention, (16, 4096, 128), (2, 64, 32), lambda h, t, d: 4 * h * t * t * d,
                      [["cublaslt"]], 20),
    "embedding": Case(programs.embedding, (4096, 32000, 4096), (16, 64, 64), lambda *_: 0),
    "convolution": Case(programs.convolution, (16, 56, 64), (2, 8, 8), lambda b, s, c: 18 * b * s * s * c * c),
    "scatter-add": Case(programs.scatter_add, (4096, 32000, 1024), (64, 32, 64), lambda r, _, w: r * w),
    "argmax": Case(programs.argmax, (64, 128256), (8, 256), lambda *_: 0),
    "sort": Case(programs.sort, (1024, 1024), (4, 64), lambda *_: 0),
    "top-8": Case(programs.top, (64, 128256, 8), (4, 64, 8), lambda *_: 0),
}
# Rounds at most, and seconds for them; two or three rounds where one takes long.
ROUNDS, ROUND_SECONDS = 20, 0.8


def sizes_of(name, is_small):
    return CASES[name].less if is_small else CASES[name].sizes


def forms_of(name):
    return sorted({form for group in CASES[name].groups for form in group})


def bundle_of(folder, name, form):
    return f"{folder}/large-{name}{form and '-' + form}.mgpu"


def bytes_of(name, sizes, arrays):
    """Each input read once, each result written once; of a table that is looked up in, the rows."""
    if name == "embedding":
        tokens, _, width = sizes
        return 2 * 2 * tokens * width + 4 * tokens
    return sum(array.bytes for array in arrays)


def predict(tune, bundle, topology):
    """Microseconds of all kernels, as plan predicts them on `topology`."""
    with tempfile.TemporaryDirectory() as folder:
        dag = f"{folder}/dag.json"
        done = subprocess.run([tune, "plan", bundle, "--target", topology, "--budget", "0", "--dag", dag],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return {"error": done.stderr.strip()[-300:]}
        with open(dag, encoding="utf-8") as file:
            nodes = json.load(file)["nodes"]
    return {"us": sum(node.get("duration_us", 0) for node in nodes if node["kind"] == "kernel")}


def write_bundles(tune, out, is_small, names):
    os.makedirs(out, exist_ok=True)
    said = {"sim": SIM, "less": is_small, "predicted": {}, "failed": {}}
    for name in names or CASES:
        _, text = CASES[name].make(*sizes_of(name, is_small))
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/{name}.mlir"
            with open(path, "w", encoding="utf-8") as file:
                file.write("// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n" + text)
            for form in forms_of(name):
                bundle = bundle_of(out, name, form)
                done = subprocess.run([tune, "bundle", path, "--arch", ARCH, "--cpu", "x86-64-v2", "-o", bundle,
                                       *([f"--variant={FORMS[form]}"] if form else [])],
                                      capture_output=True, text=True, check=False)
                key = f"{name} {form}".strip()
                if done.returncode != 0:  # a row of the result, not the end of it
                    said["failed"][key] = done.stderr.strip()[-1000:]
                    print(f"{key}: {done.stderr.strip()}", file=sys.stderr)
                    continue
                said["predicted"][key] = predict(tune, bundle, SIM)
                print(key, os.path.getsize(bundle), said["predicted"][key], flush=True)
    with open(f"{out}/large.json", "w", encoding="utf-8") as file:
        json.dump(said, file, indent=1)
    return 1 if said["failed"] else 0


# What arrays hold, and what they must.

def given(array, seed):
    """The values as numbers, and the bytes."""
    draw = numpy.random.default_rng(seed)
    count = programs.count_of(array.shape)
    if array.below:
        values = draw.integers(0, array.below, count, dtype=numpy.int32)
        return values.reshape(array.shape), values
    kind = numpy.int8 if array.ints < 128 else numpy.int32
    values = draw.integers(-array.ints, array.ints + 1, count, dtype=kind).astype(numpy.float32)
    stored = values if array.element == "f32" else (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
    return values.reshape(array.shape), stored


def read(path, array):
    raw = numpy.fromfile(path, {"f32": numpy.float32, "i32": numpy.int32, "bf16": numpy.uint16}[array.element])
    if array.element == "bf16":
        raw = (raw.astype(numpy.uint32) << 16).view(numpy.float32)
    return raw.reshape(array.shape)


def rounded(values):
    """To bf16, ties to even, as f32."""
    bits = values.astype(numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & numpy.uint32(0xFFFF0000)).view(numpy.float32)


def softmax_of(x):
    powers = numpy.exp(x - x.max(-1, keepdims=True), dtype=numpy.float64)
    return powers / powers.sum(-1, keepdims=True)


def norm_of(x, g, is_layer):
    x = x.astype(numpy.float64)
    if is_layer:
        x = x - x.mean(-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * g


def attention_of(v):
    """The result of two heads, which is enough to know."""
    heads = slice(0, 2)
    scores = numpy.matmul(v["q"][heads], v["k"][heads]) * numpy.float32(v["q"].shape[-1] ** -0.5)
    return numpy.matmul(rounded(softmax_of(scores)), v["v"][heads])


def convolved(x, w):
    batch, size, _, channels = x.shape
    padded = numpy.zeros((batch, size + 2, size + 2, channels), numpy.float32)
    padded[:, 1:-1, 1:-1] = x
    out = numpy.zeros(x.shape[:3] + (w.shape[-1],), numpy.float32)
    for i in range(3):
        for j in range(3):
            out += padded[:, i:i + size, j:j + size] @ w[i, j]
    return rounded(out)


def scattered(v):
    out = v["table"].copy()
    numpy.add.at(out, v["ids"][:, 0], v["u"])
    return out


def expected_of(name, v):
    """The result, and how far from it one may be, as a share of its largest number."""
    exp = 2.0 ** -18  # as examples.TOLERANCE
    if name.startswith("elementwise"):
        return v["a"] * v["b"] + v["c"], 0
    if name.startswith("product"):
        return v["a"] @ v["b"], 0
    if name.startswith("decode-nk"):
        return v["x"] @ v["w"].T, 0
    if name.startswith("decode-kn"):
        return v["x"] @ v["w"], 0
    return {"softmax": lambda: (softmax_of(v["x"]), exp),
            "layer-norm": lambda: (norm_of(v["x"], v["g"], True), exp),
            "rms-norm": lambda: (norm_of(v["x"], v["g"], False), exp),
            "transpose": lambda: (v["x"].T, 0),
            "sum": lambda: (v["x"].sum(dtype=numpy.float64), 0),
            "column-sum": lambda: (v["x"].sum(0, dtype=numpy.float64), 0),
            # A weight may be rounded to bf16 the other way.
            "attention": lambda: (attention_of(v), 2.0 ** -8),
            "embedding": lambda: (v["table"][v["ids"][:, 0]], 0),
            "convolution": lambda: (convolved(v["x"], v["w"]), 0),
            "scatter-add": lambda: (scattered(v), 0),
            "argmax": lambda: (v["x"].argmax(-1), 0),
            "sort": lambda: (numpy.sort(v["x"], -1), 0),
            "top-8": lambda: (-numpy.sort(numpy.partition(-v["x"], 8, -1)[:, :8], -1), 0)}[name]()


def memory():
    """A folder in memory, where there is room for the arrays of a case."""
    try:
        there = os.statvfs("/dev/shm")
        return "/dev/shm" if there.f_bavail * there.f_frsize > 8 << 30 and os.access("/dev/shm", os.W_OK) else None
    except OSError:
        return None


def judge(got, expected, tolerance):
    if got.shape != expected.shape:  # some of it was looked at
        got = got[:expected.shape[0]]
    apart = numpy.abs(got.astype(numpy.float64) - expected).max()
    largest = max(float(numpy.abs(expected).max()), 1e-30)
    out = {"ok": bool(apart <= tolerance * largest), "tolerance": tolerance}
    if not out["ok"]:
        wrong = ~(numpy.abs(got.astype(numpy.float64) - expected) <= tolerance * largest)
        out.update(furthest=float(apart / largest) if numpy.isfinite(apart) else "no number",
                   wrong_share=float(wrong.mean()), first_wrong=[int(each) for each in numpy.argwhere(wrong)[0]])
    return out


def rates(name, sizes, arrays, line):
    """What the time means: bytes and operations each second."""
    kernels = [node["us"] for node in line.get("nodes", []) if node["kernel"]]
    if kernels:
        line["kernels_us"] = sum(kernels)
        line["kernels"] = len(kernels)
    has_copies = any(not node["kernel"] for node in line.get("nodes", []))
    us = line.get("kernels_us") if has_copies else line["span_us"][0]
    line.update(us=us, bytes=bytes_of(name, sizes, arrays), flops=CASES[name].flops(*sizes))
    if us:
        line["gb_per_s"] = line["bytes"] / us / 1e3
        line["tflop_per_s"] = line["flops"] / us / 1e6
    if len(line.get("nodes", [])) > 12:
        del line["nodes"]


class Measuring:
    def __init__(self, replays, folder, seconds):
        self.replays, self.folder, self.until = replays, folder, time.monotonic() + seconds
        with open(f"{folder}/large.json", encoding="utf-8") as file:
            self.said = json.load(file)
        self.work = tempfile.TemporaryDirectory(dir=memory())
        self.is_right = True

    def report(self, line):
        self.is_right &= line["ok"] is not False
        print(json.dumps(line), flush=True)

    def case(self, name):
        sizes = sizes_of(name, self.said["less"])
        arrays, _ = CASES[name].make(*sizes)
        values, words = {}, []
        inputs = [array for array in arrays if array.is_input]
        for seed, array in enumerate(inputs):
            values[array.name], stored = given(array, seed + 1)
            path = f"{self.work.name}/{array.name}.bin"
            stored.tofile(path)
            words.append(f"{array.name}=raw:{array.element}:{'x'.join(map(str, array.shape))}:{path}")
        result = next(array for array in arrays if not array.is_input)
        out = f"{self.work.name}/out.bin"
        expected = None
        for group in CASES[name].groups:
            start = time.monotonic()
            lines, why = self.run(name, group, [*words, f"{result.name}>{out}"])
            for k, form in enumerate(group):
                line = {"case": name, **({"form": form} if form else {}), "ok": False,
                        "predicted_us": self.said["predicted"].get(f"{name} {form}".strip(), {}).get("us"),
                        **(lines[k] if k < len(lines) else {"error": why})}
                if "error" not in line:
                    expected = expected or expected_of(name, values)
                    line.update(judge(read(f"{out}.{k}" if k else out, result), *expected))
                    rates(name, sizes, arrays, line)
                line["seconds"] = round(time.monotonic() - start, 1)
                self.report(line)
        for path in os.listdir(self.work.name):
            os.remove(f"{self.work.name}/{path}")

    def run(self, name, group, words):
        """The lines of gpu-replays, and why one is missing."""
        bundles = [bundle_of(self.folder, name, form) for form in group]
        there = [path for path in bundles if os.path.exists(path)]
        if len(there) != len(bundles):
            return [], "no bundle: " + str(self.said["failed"])[-600:]
        limit = min(CASES[name].limit, self.until - time.monotonic()) if not self.said["less"] else 100
        if limit < 1:
            return [], "no time was left"
        command = [self.replays, "spans", "1" if self.said["less"] else str(ROUNDS), str(ROUND_SECONDS), "nodes",
                   *(["bare"] if "cublaslt" in group else []), *words, "--", *bundles]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return [], f"it had not ended after {limit:.0f} s"
        lines = [json.loads(each) for each in done.stdout.splitlines() if each.startswith("{")]
        return lines, f"exit code {done.returncode}: {done.stderr.strip()[-600:]}"


def measure(replays, folder, seconds, names):
    if numpy is None:
        print("skipped: there is no NumPy", file=sys.stderr)
        return 77
    measuring = Measuring(replays, folder, float(seconds))
    for name in names or CASES:
        if measuring.until - time.monotonic() < 1:
            measuring.report({"case": name, "ok": None, "skipped": "no time was left"})
            continue
        try:
            measuring.case(name)
        except (OSError, ValueError, KeyError, MemoryError) as problem:
            measuring.report({"case": name, "ok": False, "error": repr(problem)[:600]})
    return 0 if measuring.is_right else 1


def main():
    words = sys.argv[1:]
    if words[:1] == ["--bundle"]:
        names = [each for each in words[3:] if each != "less"]
        return write_bundles(words[1], words[2], "less" in words[3:], names)
    if words[:1] == ["--predict"]:
        for name in CASES:
            for form in forms_of(name):
                bundle = bundle_of(words[2], name, form)
                if os.path.exists(bundle):
                    print(json.dumps({"case": name, "form": form, **predict(words[1], bundle, f"sim:{words[3]}")}),
                          flush=True)
        return 0
    return measure(words[0], words[1], words[2], words[3:])


if __name__ == "__main__":
    sys.exit(main())
