# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of large.py: a kernel of each class at a size that fills a GPU.

All arrays are resident, so that a replay is the kernels alone, and no kernel reads what it wrote
before, so that each replay computes the same. Inputs are small whole numbers where sums have to
be exact in any order: below 2^24 in f32.
"""

import math

HEAD = """mgpu.device_config @config #mgpu.device_config<numDevices = 1>
{maps}
func.func @main({arguments}) {{
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %dev = mgpu.get_device %c0 : !mgpu.device
"""


def count_of(shape):
    return math.prod(shape)


class Array:
    """An argument: its name, shape and element type, and what it holds: the half width of the whole
    numbers it is filled with (`ints`), `below` for indices from 0, or nothing for a result."""

    def __init__(self, name, shape, element, ints=0, below=0):
        self.name, self.shape, self.element, self.ints, self.below = name, tuple(shape), element, ints, below

    @property
    def type(self):
        return f"memref<{''.join(f'{size}x' for size in self.shape)}{self.element}>"

    @property
    def tensor(self):
        return self.type.replace("memref", "tensor")

    @property
    def is_input(self):
        return bool(self.ints or self.below)

    @property
    def bytes(self):
        return count_of(self.shape) * {"f32": 4, "i32": 4, "bf16": 2}[self.element]


def buffers(arrays, body, maps=(), scratch=()):
    """A program on buffers. %dNAME is an array on the device."""
    lines = []
    for array in arrays:
        lines.append(f"%d{array.name} = mgpu.alloc %dev : !mgpu.device -> {array.type}")
        lines.append(f"mgpu.memcpy %d{array.name}, %{array.name}, %dev, %host : {array.type}, {array.type}, "
                     "!mgpu.device, !mgpu.device")
    for array in scratch:
        lines.append(f"%d{array.name} = mgpu.alloc %dev : !mgpu.device -> {array.type}")
    lines += body
    for array in arrays:
        if not array.is_input:
            lines.append(f"mgpu.memcpy %{array.name}, %d{array.name}, %host, %dev : {array.type}, {array.type}, "
                         "!mgpu.device, !mgpu.device")
    arguments = ", ".join(f'%{each.name}: {each.type} {{mgpu.role = "resident"}}' for each in arrays)
    return (HEAD.format(maps="\n".join(maps), arguments=arguments) + "".join(f"  {line}\n" for line in lines)
            + "  return\n}\n")


def named(arrays):
    """(names, types) as linalg has them."""
    return ", ".join(f"%d{each.name}" for each in arrays) + " : " + ", ".join(each.type for each in arrays)


def fill(array, value="%zero : f32"):
    return f"linalg.fill ins({value}) outs({named([array])})"


def generic(maps, loops, inputs, outputs, body):
    kinds = ", ".join(f'"{"reduction" if each == "r" else "parallel"}"' for each in loops)
    arguments = [f"%in{k}: {each.element}" for k, each in enumerate(inputs)]
    arguments += [f"%out{k}: {each.element}" for k, each in enumerate(outputs)]
    taken = f"ins({named(inputs)}) " if inputs else ""
    return [f"linalg.generic {{indexing_maps = [{', '.join('#' + each for each in maps)}], iterator_types = [{kinds}]}} "
            f"{taken}outs({named(outputs)}) {{", f"^bb0({', '.join(arguments)}):", *body, "}"]


MATRIX = ["#all = affine_map<(i, j) -> (i, j)>", "#rows = affine_map<(i, j) -> (i)>",
          "#columns = affine_map<(i, j) -> (j)>", "#vector = affine_map<(i) -> (i)>", "#none = affine_map<(i) -> ()>",
          "#turned = affine_map<(i, j) -> (j, i)>"]


def elementwise(n, m, element):
    a, b, c, y = (Array(name, (n, m), element, 8 if name != "y" else 0) for name in "abcy")
    return [a, b, c, y], buffers([a, b, c, y], generic(["all"] * 4, "pp", [a, b, c], [y], [
        f"%p = arith.mulf %in0, %in1 : {element}", f"%r = arith.addf %p, %in2 : {element}",
        f"linalg.yield %r : {element}"]), MATRIX)


def softmax(n, m):
    x, y = Array("x", (n, m), "f32", 4), Array("y", (n, m), "f32")
    return [x, y], buffers([x, y], [
        f"linalg.softmax dimension(1) ins({named([x])}) outs({named([y])})"])


def sums(x, out, square=False, mean=None):
    """The sum of a row's elements, or of the squares of them (less the mean)."""
    body = []
    value = "%in0"
    if mean:
        body.append("%less = arith.subf %in0, %in1 : f32")
        value = "%less"
    if square:
        body.append(f"%square = arith.mulf {value}, {value} : f32")
        value = "%square"
    body += [f"%next = arith.addf %out0, {value} : f32", "linalg.yield %next : f32"]
    inputs = [x, mean] if mean else [x]
    return generic(["all"] + ["rows"] * len(inputs), "pr", inputs, [out], body)


def norm(n, m, layer):
    """Layer norm, or RMS norm, with a gain."""
    x, g, y = Array("x", (n, m), "f32", 4), Array("g", (m,), "f32", 4), Array("y", (n, m), "f32")
    mean, squares = Array("mean", (n,), "f32"), Array("squares", (n,), "f32")
    body = [f"%width = arith.constant {float(m)} : f32", "%epsilon = arith.constant 1.0e-5 : f32"]
    scratch = [mean, squares] if layer else [squares]
    body += [fill(each) for each in scratch]
    if layer:
        body += sums(x, mean)
        body += generic(["vector"], "p", [], [mean], ["%q = arith.divf %out0, %width : f32", "linalg.yield %q : f32"])
    body += sums(x, squares, square=True, mean=mean if layer else None)
    inputs = [x, g, squares] + ([mean] if layer else [])
    value = "%in0"
    last = []
    if layer:
        last.append("%less = arith.subf %in0, %in3 : f32")
        value = "%less"
    last += ["%v = arith.divf %in2, %width : f32", "%moved = arith.addf %v, %epsilon : f32",
             "%scale = math.rsqrt %moved : f32", f"%t = arith.mulf {value}, %scale : f32",
             "%r = arith.mulf %t, %in1 : f32", "linalg.yield %r : f32"]
    body += generic(["all", "columns", "rows"] + (["rows"] if layer else []) + ["all"], "pp", inputs, [y], last)
    return [x, g, y], buffers([x, g, y], body, MATRIX, scratch)


def transpose(n):
    x, y = Array("x", (n, n), "f32", 100), Array("y", (n, n), "f32")
    return [x, y], buffers([x, y], [f"linalg.transpose ins({named([x])}) outs({named([y])}) permutation = [1, 0]"])


def total(n):
    x, y = Array("x", (n,), "f32", 4), Array("y", (), "f32")
    return [x, y], buffers([x, y], [fill(y)] + generic(["vector", "none"], "r", [x], [y], [
        "%next = arith.addf %out0, %in0 : f32", "linalg.yield %next : f32"]), MATRIX)


def column_sums(n, m):
    x, y = Array("x", (n, m), "f32", 4), Array("y", (m,), "f32")
    return [x, y], buffers([x, y], [fill(y)] + generic(["all", "columns"], "rp", [x], [y], [
        "%next = arith.addf %out0, %in0 : f32", "linalg.yield %next : f32"]), MATRIX)


def decode(n, k, m, by_rows):
    """M vectors by a matrix of weights, bf16 with sums of f32."""
    w = Array("w", (n, k) if by_rows else (k, n), "bf16", 8)
    x, y = Array("x", (m, k), "bf16", 8), Array("y", (m, n), "f32")
    maps = ["#x = affine_map<(m, n, k) -> (m, k)>", "#y = affine_map<(m, n, k) -> (m, n)>",
            f"#w = affine_map<(m, n, k) -> ({'n, k' if by_rows else 'k, n'})>"]
    return [w, x, y], buffers([w, x, y], [fill(y)] + generic(["x", "w", "y"], "ppr", [x, w], [y], [
        "%a = arith.extf %in0 : bf16 to f32", "%b = arith.extf %in1 : bf16 to f32", "%p = arith.mulf %a, %b : f32",
        "%next = arith.addf %out0, %p : f32", "linalg.yield %next : f32"]), maps)


def product(m, n, k, element):
    a, b = Array("a", (m, k), element, 8), Array("b", (k, n), element, 8)
    y = Array("y", (m, n), "f32")
    return [a, b, y], buffers([a, b, y], [fill(y), f"linalg.matmul ins({named([a, b])}) outs({named([y])})"])


def attention(heads, tokens, width):
    """softmax(q k' / sqrt(width)) v of heads one by one, bf16 with scores of f32."""
    q, k, v = (Array(name, (heads, tokens, width) if name != "k" else (heads, width, tokens), "bf16", 2)
               for name in "qkv")
    y = Array("y", (heads, tokens, width), "f32")
    scores, weights = (Array(name, (heads, tokens, tokens), "f32") for name in ("scores", "weights"))
    short = Array("short", (heads, tokens, tokens), "bf16")
    maps = ["#cube = affine_map<(h, i, j) -> (h, i, j)>"]
    body = [f"%share = arith.constant {width ** -0.5!r} : f32", fill(scores), fill(y),
            f"linalg.batch_matmul ins({named([q, k])}) outs({named([scores])})"]
    body += generic(["cube"], "ppp", [], [scores], ["%s = arith.mulf %out0, %share : f32", "linalg.yield %s : f32"])
    body.append(f"linalg.softmax dimension(2) ins({named([scores])}) outs({named([weights])})")
    body += generic(["cube", "cube"], "ppp", [weights], [short], ["%s = arith.truncf %in0 : f32 to bf16",
                                                                 "linalg.yield %s : bf16"])
    body.append(f"linalg.batch_matmul ins({named([short, v])}) outs({named([y])})")
    return [q, k, v, y], buffers([q, k, v, y], body, maps, [scores, weights, short])


def tensors(arrays, body, result, moved=()):
    """A function over tensors; its result is r0. `moved` are copied to the device in each replay."""
    inputs = [each for each in arrays if each.is_input]
    role = lambda each: "" if each in moved else ' {mgpu.role = "resident"}'
    arguments = ", ".join(f"%{each.name}: {each.tensor}{role(each)}" for each in inputs)
    text = f"func.func @main({arguments}) -> {result.tensor} {{\n"
    return text + "".join(f"  {line}\n" for line in body) + f"  return %r : {result.tensor}\n}}\n"


def convolution(batch, size, channels):
    shape = (batch, size, size, channels)
    x, w = Array("x", shape, "bf16", 4), Array("w", (3, 3, channels, channels), "bf16", 4)
    y = Array("r0", shape, "bf16")
    return [x, w, y], tensors([x, w], [
        "%r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        "window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
        f"({x.tensor}, {w.tensor}) -> {y.tensor}"], y)


def embedding(tokens, vocabulary, width):
    table, ids = Array("table", (vocabulary, width), "bf16", 100), Array("ids", (tokens, 1), "i32", below=vocabulary)
    y = Array("r0", (tokens, width), "bf16")
    return [table, ids, y], tensors([table, ids], [
        '%r = "stablehlo.gather"(%table, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
        f"slice_sizes = array<i64: 1, {width}>}}> : ({table.tensor}, {ids.tensor}) -> {y.tensor}"], y)


def scatter_add(rows, vocabulary, width):
    updates = Array("u", (rows, width), "f32", 8)
    table, ids = Array("table", (vocabulary, width), "f32", 100), Array("ids", (rows, 1), "i32", below=vocabulary)
    y = Array("r0", (vocabulary, width), "f32")
    return [table, ids, updates, y], tensors([table, ids, updates], [
        '%r = "stablehlo.scatter"(%table, %ids, %u) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
        "index_vector_dim = 1>}> ({", "^bb0(%one: tensor<f32>, %other: tensor<f32>):",
        "  %s = stablehlo.add %one, %other : tensor<f32>", "  stablehlo.return %s : tensor<f32>",
        f"}}) : ({table.tensor}, {ids.tensor}, {updates.tensor}) -> {y.tensor}"], y,
        # What is scattered into is written in place, also where it is resident.
        moved=[table])


def argmax(rows, length):
    """Where the largest of a row is first."""
    x, y = Array("x", (rows, length), "f32", 1 << 20), Array("r0", (rows,), "i32")
    whole = f"tensor<{rows}x{length}xi32>"
    return [x, y], tensors([x], [
        f"%at = stablehlo.iota dim = 1 : {whole}", "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>",
        "%first = stablehlo.constant dense<0> : tensor<i32>",
        f'%most, %r = "stablehlo.reduce"(%x, %at, %low, %first) <{{dimensions = array<i64: 1>}}> ({{',
        "^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):",
        "  %more = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "  %same = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "  %before = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "  %tie = stablehlo.and %same, %before : tensor<i1>", "  %takes = stablehlo.or %more, %tie : tensor<i1>",
        "  %v = stablehlo.select %takes, %a, %b : tensor<i1>, tensor<f32>",
        "  %k = stablehlo.select %takes, %i, %j : tensor<i1>, tensor<i32>",
        "  stablehlo.return %v, %k : tensor<f32>, tensor<i32>",
        f"}}) : ({x.tensor}, {whole}, tensor<f32>, tensor<i32>) -> (tensor<{rows}xf32>, {y.tensor})"], y)


def sort(rows, length):
    x, y = Array("x", (rows, length), "f32", 1 << 20), Array("r0", (rows, length), "f32")
    return [x, y], tensors([x], [
        '%r = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({',
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
        "  %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "  stablehlo.return %less : tensor<i1>", f"}}) : ({x.tensor}) -> {y.tensor}"], y)


def top(rows, length, k):
    x, y = Array("x", (rows, length), "f32", 1 << 20), Array("r0", (rows, k), "f32")
    return [x, y], tensors([x], [
        f"%r, %i = chlo.top_k(%x, k = {k}) : {x.tensor} -> ({y.tensor}, tensor<{rows}x{k}xi32>)"], y)
