#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in the forms that torch-mlir's pipeline to linalg on tensors writes, as they are, against NumPy.

Usage: linalg.py MGPU_TUNE SOURCE [NAME...]
Each function of CASES below computes in f64 what a program of tests/torch/linalg, or the example, gives.
"""

import math
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from numpy.lib.stride_tricks import sliding_window_view as windows
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

BOUND = 2e-6  # of the largest number, for sums of up to 72 products in f32
TYPES = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i1": np.uint8, "bf16": np.uint16}

erf = np.vectorize(math.erf)


def narrow(values):
    """The bits of the bf16 that is nearest."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def wide(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolve(x, kernel, stride=1, dilation=1):
    """NCHW by FCHW."""
    height, width = ((size - 1) * dilation + 1 for size in kernel.shape[2:])
    seen = windows(x, (height, width), (2, 3))[:, :, ::stride, ::stride, ::dilation, ::dilation]
    return np.einsum("nchwij,fcij->nfhw", seen, kernel)


def padded(x, value=0.0):
    return np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=value)


def mlp(x, text):
    weights = {name: np.frombuffer(bytes.fromhex(digits)[4:], np.float32).astype(float)
               for name, digits in re.findall(r'(torch_tensor_\w+)\.float32: "0x(\w+)"', text)}
    hidden = x @ weights["torch_tensor_6_4_torch"].reshape(6, 4).T + weights["torch_tensor_6_torch"]
    hidden = hidden * (0.5 * (1 + erf(hidden / math.sqrt(2))))
    return [hidden @ weights["torch_tensor_3_6_torch"].reshape(3, 6).T + weights["torch_tensor_3_torch"]]


def convolutions(x, kernel, mean, scale, shift, variance, weights, last):
    scale, shift, variance = (each[:, None, None] for each in (scale, shift, variance))
    y = convolve(padded(x), kernel, 2) / np.sqrt(variance + 1e-5) * scale + shift  # the bias is the mean
    pooled = windows(padded(np.maximum(y, 0), -np.inf), (3, 3), (2, 3))[:, :, ::2, ::2].max((-2, -1))
    return [pooled.reshape(2, 72) @ weights + last, pooled.mean((2, 3), keepdims=True)]


def groups(x, kernel, bias, depthwise):
    halves = [convolve(x[:, 2 * k:2 * k + 2], kernel[3 * k:3 * k + 3], 1, 2) for k in range(2)]
    each = [convolve(x[:, k:k + 1], depthwise[k:k + 1]) for k in range(4)]
    return [np.concatenate(halves, 1) + bias[:, None, None], np.concatenate(each, 1)]


def transposed(x, kernel):
    y = np.zeros((2, 3, 11, 11))
    for i in range(5):
        for j in range(5):
            y[:, :, 2 * i:2 * i + 3, 2 * j:2 * j + 3] += np.einsum("nc,cfij->nfij", x[:, :, i, j], kernel)
    return [y[:, :, 1:, 1:]]


def attention(q, k, v, mask):
    q, k, v = (each.reshape(2, 5, 3, 4).transpose(0, 2, 1, 3) for each in (q, k, v))
    scores = np.where(mask != 0, -np.inf, q @ k.swapaxes(-1, -2) / 2)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return [(shares / shares.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 12)]


def layer_norm(x, scale, shift):
    return [(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift]


def embedding(table, ids, x, columns):
    return [table[ids], np.take_along_axis(x, columns, 1)]


def slices(gates, cell, bias):
    i, f, g, o = np.split(gates + bias, 4, 1)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    hidden = sigmoid(o) * np.tanh(cell)
    return [hidden, cell, np.concatenate([hidden, cell], 1), np.stack([hidden[0], cell[2]])]


def numbers(x, rows, a):
    count = np.arange(6) * 3 + 2
    return [(x * x).sum() + 0.1 * a, count, rows.argmax(1), (x > 0).astype(np.uint8), np.log1p(abs(np.sqrt(np.floor(count * 0.5)) + x))]


def casts(x, kernel, a, b):
    y = [convolve(x[:, 2 * k:2 * k + 2], kernel[2 * k:2 * k + 2]) for k in range(2)]
    return [np.concatenate(y, 1), a @ b]


def upsampled(x):
    return [x.repeat(2, 2).repeat(2, 3), windows(padded(x), (3, 3), (2, 3)).sum((-2, -1))
            / windows(padded(np.ones_like(x)), (3, 3), (2, 3)).sum((-2, -1))]


def adaptive_pool(x, left, text):
    ends = [(k * 7 // 3, -(-(k + 1) * 7 // 3)) for k in range(3)]
    pooled = np.stack([np.stack([x[:, :, a:b, c:d].mean((2, 3)) for c, d in ends], -1) for a, b in ends], -2).reshape(2, 27)
    mask = np.frombuffer(bytes.fromhex(re.search(r'bool: "0x(\w+)"', text)[1])[4:], np.uint8)
    return [pooled, np.where(mask, pooled, left)]


CASES = {"mlp": mlp, "adaptive-pool": adaptive_pool, "convolutions": convolutions, "groups": groups, "transposed": transposed, "attention": attention,
         "layer-norm": layer_norm, "embedding": embedding, "slices": slices, "numbers": numbers, "casts": casts,
         "upsampled": upsampled}
# Whole numbers are below this.
LIMITS = {("embedding", 1): 10, ("embedding", 3): 5}
# A program's body -> exit code, words of the sentence.
REFUSED = {
    "tm_tensor.scan": ("""(%arg0: tensor<4x8xf32>, %arg1: tensor<4xf32>) -> tensor<4x8xf32> {
      %0:2 = tm_tensor.scan dimension(1) inclusive(true) ins(%arg0 : tensor<4x8xf32>) outs(%arg0, %arg1 : tensor<4x8xf32>, tensor<4xf32>) {
      ^bb0(%arg2: f32, %arg3: f32):
        %1 = arith.addf %arg2, %arg3 : f32
        tm_tensor.yield %1 : f32
      } -> tensor<4x8xf32>, tensor<4xf32>
      return %0#0 : tensor<4x8xf32>""", 5, "operation 'tm_tensor.scan' is of the dialect 'tm_tensor'"),
    "torch": ("""(%arg0: !torch.vtensor<[3,4],f32>) -> !torch.vtensor<[3,4],f32> {
      %0 = torch.aten.tanh %arg0 : !torch.vtensor<[3,4],f32> -> !torch.vtensor<[3,4],f32>
      return %0 : !torch.vtensor<[3,4],f32>""", 5, "is of the dialect 'torch'"),
    "a dynamic size": ("""(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> {
      return %arg0 : tensor<?x4xf32>""", 5, "its shape must be static"),
    "a seed that is used": ("""(%arg0: tensor<4xf32>) -> tensor<i64> {
      %0 = ml_program.global_load @global_seed : tensor<i64>
      return %0 : tensor<i64>""", 5, "dialect 'ml_program'"),
    "elements of another size": ("""(%arg0: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.constant dense_resource<two> : tensor<4xf32>
      return %0 : tensor<4xf32>""", 1, "'two' at the end of the file have 8 bytes, and 'tensor<4xf32>' has 16"),
}


def arguments_of(name, text, random):
    """The values of the function's arguments, whose types are in its first line, and of weights that were left out."""
    given = []
    types = re.findall(r"%arg\d+: tensor<((?:\d+x)*)(\w+)>", re.search(r"func\.func.*", text)[0].split(") ->")[0])
    types += re.findall(r"<__elided__> : tensor<((?:\d+x)*)(\w+)>", text)
    for k, (shape, element) in enumerate(types):
        sizes = [int(size) for size in shape.split("x")[:-1]]
        if element == "i1":
            value = np.triu(np.ones(sizes, np.uint8), 1)
        elif element == "i64":
            value = random.integers(0, LIMITS[name, k], sizes)
        else:
            value = random.standard_normal(sizes).astype(np.float32)
            if name == "convolutions" and k == 5:
                value = abs(value)
            if element == "bf16":
                value = wide(narrow(value))
        given.append((value, element))
    return given


def fault_of(tune, source, name, scratch):
    path = f"{source}/examples/torch/linalg-mlp.mlir" if name == "mlp" else f"{source}/tests/torch/linalg/{name}.mlir"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    given = arguments_of(name, text, np.random.default_rng(len(name)))
    words = [tune, "run", path]
    for k, (value, element) in enumerate(given):
        path = f"{scratch}/arg{k}.bin"
        (narrow(value) if element == "bf16" else value).tofile(path)
        words += ["--arg", f"{k}=raw:{element}:{'x'.join(map(str, value.shape))}:{path}"]
    wanted = CASES[name](*(value.astype(float) if element in ("f32", "bf16") else value for value, element in given),
                         *([text] if "dense_resource" in text else []))
    for k in range(len(wanted)):
        words += ["--out", f"r{k}={scratch}/r{k}.npy"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr.strip()[:600]}"
    for k, want in enumerate(wanted):
        found = np.load(f"{scratch}/r{k}.npy")
        bound = BOUND
        if name == "casts" and k == 1:
            found, bound = wide(found.view(np.uint16)), 2 ** -8
        want = np.asarray(want)
        if found.shape != want.shape:
            return f"result {k} has shape {found.shape}, not {want.shape}"
        gap = float(np.max(np.abs(found.astype(float) - want)))
        if not gap <= (bound * float(np.max(np.abs(want))) if want.dtype == float else 0):
            return f"result {k} is off by {gap:.3g} where the largest number is {float(np.max(np.abs(want))):.3g}"
    return ""


def refusal_fault(tune, scratch, body, code, words):
    with open(f"{scratch}/refused.mlir", "w", encoding="utf-8") as file:
        file.write("module {\n  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>\n  func.func @forward"
                   + body + '\n  }\n}\n{-#\n  dialect_resources: { builtin: { two: "0x040000000000803F00000040" } }\n#-}\n')
    done = subprocess.run([tune, "check", file.name], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != code or words not in done.stderr:
        return f"exit code {done.returncode}: {done.stderr.strip()[:600]}"
    return ""


def main():
    tune, source = sys.argv[1:3]
    faults = 0
    names = sys.argv[3:] or [*CASES, *REFUSED]
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            fault = fault_of(tune, source, name, scratch) if name in CASES else refusal_fault(tune, scratch, *REFUSED[name])
        if fault:
            faults += 1
            print(f"{name}: {fault}")
    print(f"{len(names)} programs of torch-mlir's forms: all but {faults} give what NumPy computes, or the sentence that refuses them")
    sys.exit("FAIL" if faults else 0)


if __name__ == "__main__":
    main()
