#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 33 programs whose times on the host are predicted (predict_host.py), as StableHLO, linalg or an example.

Each belongs to classes: "small" (below 20 us), "functions" (exp, tanh, ... take much of it), "memory" (larger
than a last-level cache of 32 MiB) and "devices" (several). The model of the host was made without the programs
that are held out.
"""
import dataclasses

F32 = "f32"


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    classes: tuple
    text: str = ""      # of a program of its own
    example: str = ""   # else a file of examples/
    options: tuple = () # of run and plan alike
    held: bool = False  # held out


def tensor(*sizes, of=F32):
    return f"tensor<{'x'.join(map(str, (*sizes, of)))}>"


def function(arguments, result, *lines):
    """`arguments` by name; the last line's value is the result."""
    given = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    last = lines[-1].split(" = ")[0]
    body = "\n".join("  " + line for line in lines)
    return f"func.func @main({given}) -> {result} {{\n{body}\n  return {last} : {result}\n}}\n"


def chain(sizes, *operations):
    """Each operation of one operand takes the value before, of two the value before and x."""
    kind, lines, last = tensor(*sizes), [], "%x"
    for k, operation in enumerate(operations):
        two = operation in ("add", "multiply", "subtract", "divide", "maximum", "power")
        lines.append(f"%{k} = stablehlo.{operation} {last}{', %x' if two else ''} : {kind}")
        last = f"%{k}"
    return function({"x": kind}, kind, *lines)


def binary(operation, *sizes):
    kind = tensor(*sizes)
    return function({"x": kind, "y": kind}, kind, f"%r = stablehlo.{operation} %x, %y : {kind}")


def product(m, n, k, of=F32):
    a, b, c = tensor(m, k, of=of), tensor(k, n, of=of), tensor(m, n, of=of)
    return function({"a": a, "b": b}, c,
                    f"%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}")


def transpose(rows, columns):
    x, y = tensor(rows, columns), tensor(columns, rows)
    return function({"x": x}, y, f"%r = stablehlo.transpose %x, dims = [1, 0] : ({x}) -> {y}")


def row_sum(rows, columns, axis=1):
    x, y = tensor(rows, columns), tensor(rows if axis else columns)
    return function({"x": x}, y, "%z = stablehlo.constant dense<0.0> : tensor<f32>",
                    f"%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [{axis}] : "
                    f"({x}, tensor<f32>) -> {y}")


def softmax(rows, columns):
    x, r = tensor(rows, columns), tensor(rows)
    wide = f"dims = [0] : ({r}) -> {x}"
    return function({"x": x}, x, "%least = stablehlo.constant dense<0xFF800000> : tensor<f32>",
                    "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
                    f"%m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : "
                    f"({x}, tensor<f32>) -> {r}",
                    f"%mb = stablehlo.broadcast_in_dim %m, {wide}", f"%d = stablehlo.subtract %x, %mb : {x}",
                    f"%e = stablehlo.exponential %d : {x}",
                    f"%s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : "
                    f"({x}, tensor<f32>) -> {r}",
                    f"%sb = stablehlo.broadcast_in_dim %s, {wide}", f"%p = stablehlo.divide %e, %sb : {x}")


def layer_norm(rows, columns):
    x, r = tensor(rows, columns), tensor(rows)
    wide = f"dims = [0] : ({r}) -> {x}"
    return function({"x": x}, x, "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
                    f"%n = stablehlo.constant dense<{float(columns)}> : {r}",
                    f"%eps = stablehlo.constant dense<1.0e-5> : {r}",
                    f"%s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : "
                    f"({x}, tensor<f32>) -> {r}", f"%mean = stablehlo.divide %s, %n : {r}",
                    f"%mb = stablehlo.broadcast_in_dim %mean, {wide}", f"%d = stablehlo.subtract %x, %mb : {x}",
                    f"%q = stablehlo.multiply %d, %d : {x}",
                    f"%qs = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [1] : "
                    f"({x}, tensor<f32>) -> {r}", f"%v = stablehlo.divide %qs, %n : {r}",
                    f"%ve = stablehlo.add %v, %eps : {r}", f"%i = stablehlo.rsqrt %ve : {r}",
                    f"%ib = stablehlo.broadcast_in_dim %i, {wide}", f"%y = stablehlo.multiply %d, %ib : {x}")


def gelu(*sizes):
    x = tensor(*sizes)
    return function({"x": x}, x, f"%half = stablehlo.constant dense<0.5> : {x}",
                    f"%one = stablehlo.constant dense<1.0> : {x}",
                    f"%root = stablehlo.constant dense<0.70710678> : {x}", f"%a = stablehlo.multiply %x, %root : {x}",
                    f"%e = chlo.erf %a : {x} -> {x}", f"%b = stablehlo.add %e, %one : {x}",
                    f"%c = stablehlo.multiply %x, %half : {x}", f"%r = stablehlo.multiply %c, %b : {x}")


def rotary(tokens, half):
    """Turns pairs of features by an angle for each token and pair."""
    x = tensor(tokens, half)
    return function({"x": x, "y": x, "t": x}, x, f"%c = stablehlo.cosine %t : {x}", f"%s = stablehlo.sine %t : {x}",
                    f"%a = stablehlo.multiply %x, %c : {x}", f"%b = stablehlo.multiply %y, %s : {x}",
                    f"%r = stablehlo.subtract %a, %b : {x}")


def gather(rows, columns, taken):
    x, i, y = tensor(rows, columns), tensor(taken, 1, of="i32"), tensor(taken, columns)
    n = tensor(taken, of="i32")
    return function({"x": x}, y, f"%n = stablehlo.iota dim = 0 : {n}",
                    f"%step = stablehlo.constant dense<7919> : {n}", f"%rows = stablehlo.constant dense<{rows}> : {n}",
                    f"%far = stablehlo.multiply %n, %step : {n}", f"%at = stablehlo.remainder %far, %rows : {n}",
                    f"%i = stablehlo.reshape %at : ({n}) -> {i}",
                    '%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
                    "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
                    f"array<i64: 1, {columns}>}}> : ({x}, {i}) -> {y}")


def perceptron(batch, width, inner):
    """Two layers of a network, tanh between them."""
    x, a, h, b = tensor(batch, width), tensor(width, inner), tensor(batch, inner), tensor(inner, width)
    dot = "stablehlo.dot_general {}, {}, contracting_dims = [1] x [0] : ({}, {}) -> {}"
    return function({"x": x, "a": a, "b": b}, x, "%h = " + dot.format("%x", "%a", x, a, h),
                    f"%t = stablehlo.tanh %h : {h}", "%y = " + dot.format("%t", "%b", h, b, x))


def collective(operation, devices, rows, columns):
    """Each device has its rows; they are summed, or all of them are gathered."""
    full, part = tensor(rows * devices, columns), tensor(rows, columns)
    out = part if operation == "all_reduce sum" else full
    axis = "" if operation == "all_reduce sum" else "axis = 0 "
    layout = f"#rows = #spmd.layout<mesh = [{devices}], split = [[0], []]>\n"
    return layout + (f"func.func @main(%x: {full} {{spmd.layout = #rows}}) -> {out} {{\n"
                     f"  %s = spmd.full_to_shard %x : {full} to {part}\n"
                     f"  %e = tensor.empty() : {out}\n"
                     f"  %r = spmd.{operation} ins(%s : {part}) outs(%e : {out}) {axis}-> {out}\n"
                     f"  return %r : {out}\n}}\n")


RATE = ("--arg=rate=0.01",)

PROGRAMS = [
    # Those of examples/, and of kernels that every network has.
    Program("saxpy", ("small", "devices"), example="saxpy/saxpy.mlir", options=("--arg=a=2",)),
    Program("mlp", ("small", "devices"), example="mlp/mlp.mlir"),
    Program("heat", ("devices",), example="heat/heat.mlir"),
    Program("mandelbrot", (), example="mandelbrot/mandelbrot.mlir"),
    Program("digits", (), example="digits/digits.mlir", options=RATE),
    Program("attention", ("functions",), example="attention/attention.mlir"),
    Program("tensor-attention", ("functions", "devices"), example="tensor/attention.mlir"),
    Program("data-parallel", ("small", "devices"), example="tensor/data-parallel.mlir", options=RATE),
    Program("mlp-step", ("small",), example="stablehlo/mlp-step.mlir"),
    Program("product-512", (), product(512, 512, 512)),
    Program("softmax-1024", ("functions",), softmax(1024, 1024)),
    Program("add-4M", ("memory",), binary("add", 4 << 20)),
    Program("bert-layer", ("functions",), example="../bench/suites/bert_layer.mlir"),
    # Below 20 us.
    Program("add-1K", ("small",), binary("add", 1024)),
    Program("product-64", ("small",), product(64, 64, 64)),
    Program("sum-32x128", ("small",), row_sum(32, 128), held=True),
    Program("transpose-32", ("small",), transpose(32, 32), held=True),
    Program("gelu-2K", ("small", "functions"), gelu(2048), held=True),
    # Rich in functions.
    Program("exp-1M", ("functions",), chain((1 << 20,), "exponential")),
    Program("tanh-log-256K", ("functions",), chain((1 << 18,), "tanh", "multiply", "log")),
    Program("gelu-512K", ("functions",), gelu(512, 1024), held=True),
    Program("rotary-1K", ("functions",), rotary(1024, 64), held=True),
    Program("layernorm-512", ("functions",), layer_norm(512, 1024), held=True),
    # Larger than the last-level cache.
    Program("add-16M", ("memory",), binary("add", 16 << 20), held=True),
    Program("transpose-4096", ("memory",), transpose(4096, 4096)),
    Program("sum-4096", ("memory",), row_sum(4096, 4096)),
    Program("sum-columns-4096", ("memory",), row_sum(4096, 4096, axis=0), held=True),
    Program("vector-4096", ("memory",), product(1, 4096, 4096)),
    Program("gather-64K", ("memory",), gather(1 << 17, 128, 1 << 16)),
    Program("perceptron-2048", ("memory", "functions"), perceptron(8, 2048, 4096), held=True),
    # Several devices.
    Program("all-reduce-1M", ("devices",), collective("all_reduce sum", 4, 1024, 1024)),
    Program("tensor-parallel", ("devices",), example="tensor/tensor-parallel.mlir", options=RATE, held=True),
    Program("fully-sharded", ("small", "devices"), example="tensor/fully-sharded.mlir", options=RATE, held=True),
]
