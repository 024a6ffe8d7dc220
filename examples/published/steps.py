#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one step of decoding as a tensor program with layouts: the heads and the inner rows of a model in the shape of
Llama are spread over the devices, and partial sums are added by all_reduce; the output layer is whole on each device.

The new key and value take the last position of the cache. Weights are bf16 or f32, or int8 with a scale for each row,
which are dequantised in the product.

Usage: steps.py MODEL [--devices N] [--weights bf16|f32|i8] [--positions N] [--layers N ...] > step.mlir
The other options replace a size of the model: --hidden, --heads, --groups, --width, --inner, --vocabulary.
"""
import argparse
import dataclasses

from models import MODELS

MAPS = """#v = affine_map<(n) -> (n)>
#zero = affine_map<(n) -> ()>
#nk = affine_map<(n, k) -> (n, k)>
#n = affine_map<(n, k) -> (n)>
#k = affine_map<(n, k) -> (k)>
#hj = affine_map<(h, j) -> (h, j)>
#h = affine_map<(h, j) -> (h)>
#j = affine_map<(h, j) -> (j)>
#grtd = affine_map<(g, r, t, d) -> (g, r, d)>
#gtd = affine_map<(g, r, t, d) -> (g, t, d)>
#grt = affine_map<(g, r, t, d) -> (g, r, t)>
#full = affine_map<(g, r, t) -> (g, r, t)>
#row = affine_map<(g, r, t) -> (g, r)>
"""

SILU = """
            %one = arith.constant 1.0 : f32
            %minus = arith.negf %a0 : f32
            %power = math.exp %minus : f32
            %below = arith.addf %power, %one : f32
            %silu = arith.divf %a0, %below : f32
"""


class Step:
    MAPS = MAPS

    def __init__(self, m, devices, weights, positions):
        self.m, self.t, self.weights, self.S = m, devices, weights, positions
        self.lines, self.arguments, self.results, self.values = [], [], [], 0
        self.constants = {}

    def new(self):
        self.values += 1
        return f"%v{self.values}"

    def line(self, text):
        self.lines.append("  " + text)

    @staticmethod
    def tensor(shape, kind="f32"):
        return f"tensor<{''.join(f'{each}x' for each in shape)}{kind}>"

    def argument(self, name, shape, cut=None, kind="f32"):
        """A device's part of an argument, cut along a dimension; whole where `cut` is None."""
        full = self.tensor(shape, kind)
        isCut = cut is not None and self.t > 1
        attributes = ["spmd.layout = " + self.layout(len(shape), cut)] if isCut else []
        if name not in ("x", "cos", "sin", "classes"):
            attributes.append("mgpu.role = \"resident\"")
        self.arguments.append(f"%{name}: {full}" + (f" {{{', '.join(attributes)}}}" if attributes else ""))
        if not isCut:
            return f"%{name}", tuple(shape)
        part = tuple(each // self.t if k == cut else each for k, each in enumerate(shape))
        value = self.new()
        self.line(f"{value} = spmd.full_to_shard %{name} : {full} to {self.tensor(part, kind)}")
        return value, part

    def layout(self, rank, cut):
        split = ", ".join("[0]" if k == cut else "[]" for k in range(rank))
        return f"#spmd.layout<mesh = [{self.t}], split = [{split}]>"

    def fill(self, shape, value="0.0", kind="f32"):
        name = "%c" + str(len(self.constants))
        return self.constants.setdefault((shape, value, kind), name)

    def generic(self, maps, loops, inputs, shape, body, start="0.0", kind="f32"):
        """`inputs` are (value, shape, element type); `body` is of %a0, %a1, ... and %out, and gives %r."""
        kinds = ", ".join("\"reduction\"" if each == "r" else "\"parallel\"" for each in loops)
        result, out = self.new(), self.tensor(shape, kind)
        self.line(f"{result} = linalg.generic {{indexing_maps = [{', '.join('#' + each for each in maps)}], "
                  f"iterator_types = [{kinds}]}}")
        self.line(f"    ins({', '.join(each[0] for each in inputs)} : "
                  f"{', '.join(self.tensor(each[1], each[2] if len(each) > 2 else 'f32') for each in inputs)}) "
                  f"outs({self.fill(shape, start, kind)} : {out}) {{")
        blocks = ", ".join(f"%a{k}: {each[2] if len(each) > 2 else 'f32'}" for k, each in enumerate(inputs))
        self.line(f"^bb0({blocks}, %out: {kind}):")
        for each in body.strip().split("\n"):
            self.line("  " + each.strip())
        self.line(f"  linalg.yield %r : {kind}")
        self.line(f"}} -> {out}")
        return (result, shape) if kind == "f32" else (result, shape, kind)

    def reshape(self, value, shape):
        """To more or fewer dimensions, by the outermost or the innermost one."""
        name, old = self.new(), value[1]
        few, many = sorted((old, shape), key=len)
        groups = str([[k for k in range(len(many) - len(few) + 1)]] + [[k + len(many) - len(few)] for k in range(1, len(few))])
        if len(shape) > len(old):
            self.line(f"{name} = tensor.expand_shape {value[0]} {groups} output_shape {list(shape)} : "
                      f"{self.tensor(old)} into {self.tensor(shape)}")
        else:
            self.line(f"{name} = tensor.collapse_shape {value[0]} {groups} : {self.tensor(old)} into {self.tensor(shape)}")
        return name, shape

    def product(self, name, rows, columns, vector, cut=None):
        """A matrix of weights, cut along its rows (0) or columns (1), by a vector."""
        matrix, shape = self.argument(name, (rows, columns), cut, self.weights)
        wide = {"bf16": "arith.extf %a0 : bf16 to f32", "i8": "arith.sitofp %a0 : i8 to f32",
                "f32": "arith.addf %a0, %a0 : f32"}[self.weights]
        weight = "%a0" if self.weights == "f32" else "%w"
        out = self.generic(("nk", "k", "n"), "pr", [(matrix, shape, self.weights), vector], (shape[0],),
                           ("" if weight == "%a0" else f"%w = {wide}\n") +
                           f"%p = arith.mulf {weight}, %a1 : f32\n%r = arith.addf %out, %p : f32")
        if self.weights == "i8":
            scale = self.argument(name + "_scale", (rows,), 0 if cut == 0 else None)
            out = self.pointwise("%r = arith.mulf %a0, %a1 : f32", out, scale)
        return out

    def pointwise(self, body, *inputs):
        return self.generic(["v"] * (len(inputs) + 1), "p", inputs, inputs[0][1], body)

    def norm(self, name, x):
        D = self.m.hidden
        squares = self.generic(("v", "zero"), "r", [x], (), "%s = arith.mulf %a0, %a0 : f32\n%r = arith.addf %out, %s : f32")
        weight = self.argument(name, (D,))
        return self.generic(("v", "zero", "v", "v"), "p", [x, squares, weight], (D,), f"""
            %share = arith.constant {1 / D!r} : f32
            %epsilon = arith.constant 1.0e-5 : f32
            %mean = arith.mulf %a1, %share : f32
            %moved = arith.addf %mean, %epsilon : f32
            %rms = math.rsqrt %moved : f32
            %n = arith.mulf %a0, %rms : f32
            %r = arith.mulf %n, %a2 : f32""")

    def all_reduced(self, part):
        if self.t == 1:
            return part
        value, shape = self.new(), self.tensor(part[1])
        self.line(f"{value} = spmd.all_reduce sum ins({part[0]} : {shape}) outs({part[0]} : {shape}) -> {shape}")
        return value, part[1]

    def summed(self, x, part):
        """x and the parts of all devices."""
        return self.pointwise("%r = arith.addf %a0, %a1 : f32", x, self.all_reduced(part))

    def rotated(self, heads, cos, sin):
        """Heads with their position: the two halves of each are turned."""
        H, d = heads[1]
        halves = []
        for at in (0, d // 2):
            name = self.new()
            self.line(f"{name} = tensor.extract_slice {heads[0]}[0, {at}] [{H}, {d // 2}] [1, 1] : {self.tensor((H, d))} to "
                      f"{self.tensor((H, d // 2))}")
            halves.append((name, (H, d // 2)))
        whole = heads
        for at, sign, order in ((0, "subf", (0, 1)), (d // 2, "addf", (1, 0))):
            half = self.generic(("hj", "hj", "j", "j", "hj"), "pp", [halves[order[0]], halves[order[1]], cos, sin],
                                (H, d // 2), f"""
                %c = arith.mulf %a0, %a2 : f32
                %s = arith.mulf %a1, %a3 : f32
                %r = arith.{sign} %c, %s : f32""")
            name = self.new()
            self.line(f"{name} = tensor.insert_slice {half[0]} into {whole[0]}[0, {at}] [{H}, {d // 2}] [1, 1] : "
                      f"{self.tensor((H, d // 2))} into {self.tensor((H, d))}")
            whole = name, heads[1]
        return whole

    def cached(self, name, new):
        """The cache with the new heads at its last position, which it keeps."""
        m, S = self.m, self.S
        cache, (G, _, d) = self.argument(name, (m.groups, S, m.width), 0)
        position, value, kind = len(self.arguments) - 1, self.new(), self.tensor((G, S, d))
        self.line(f"{value} = tensor.insert_slice {new[0]} into {cache}[0, {S - 1}, 0] [{G}, 1, {d}] [1, 1, 1] : "
                  f"{self.tensor(new[1])} into {kind}")
        self.result(value, (G, S, d), (m.groups, S, m.width), position)
        return value, (G, S, d)

    def result(self, value, shape, full, alias=None, cut=0):
        attributes = [] if alias is None else [f"spmd.alias = {alias}"]
        if shape != full:
            attributes.insert(0, "spmd.layout = " + self.layout(len(full), cut))
            name = self.new()
            self.line(f"{name} = spmd.shard_to_full {value} : {self.tensor(shape)} to {self.tensor(full)}")
            value = name
        self.results.append((value, self.tensor(full), f" {{{', '.join(attributes)}}}" if attributes else ""))

    def attention(self, layer, x, cos, sin):
        m, S = self.m, self.S
        n = self.norm(f"norm{layer}", x)
        q, k, v = (self.product(f"{name}{layer}", heads * m.width, m.hidden, n, 0)
                   for name, heads in (("wq", m.heads), ("wk", m.groups), ("wv", m.groups)))
        G, R, d = m.groups // self.t, m.heads // m.groups, m.width
        queries = self.rotated(self.reshape(q, (G * R, d)), cos, sin)
        keys = self.cached(f"keys{layer}", self.rotated(self.reshape(k, (G, d)), cos, sin))
        values = self.cached(f"values{layer}", self.reshape(v, (G, d)))
        queries = self.reshape(queries, (G, R, d))
        scores = self.generic(("grtd", "gtd", "grt"), "pppr", [queries, keys], (G, R, S), f"""
            %scale = arith.constant {d ** -0.5!r} : f32
            %q = arith.mulf %a0, %scale : f32
            %p = arith.mulf %q, %a1 : f32
            %r = arith.addf %out, %p : f32""")
        most = self.generic(("full", "row"), "ppr", [scores], (G, R), "%r = arith.maximumf %out, %a0 : f32", "0xFF800000")
        powers = self.generic(("full", "row", "full"), "ppp", [scores, most], (G, R, S),
                              "%s = arith.subf %a0, %a1 : f32\n%r = math.exp %s : f32")
        total = self.generic(("full", "row"), "ppr", [powers], (G, R), "%r = arith.addf %out, %a0 : f32")
        shares = self.generic(("full", "row", "full"), "ppp", [powers, total], (G, R, S), "%r = arith.divf %a0, %a1 : f32")
        attended = self.generic(("grt", "gtd", "grtd"), "pprp", [shares, values], (G, R, d),
                                "%p = arith.mulf %a0, %a1 : f32\n%r = arith.addf %out, %p : f32")
        flat = self.reshape(self.reshape(attended, (G * R, d)), (G * R * d,))
        return self.summed(x, self.product(f"wo{layer}", m.hidden, m.heads * d, flat, 1))

    def inner(self, layer, x):
        m = self.m
        n = self.norm(f"inner_norm{layer}", x)
        gate, up = (self.product(f"{name}{layer}", m.inner, m.hidden, n, 0) for name in ("wgate", "wup"))
        hidden = self.pointwise(SILU + "%r = arith.mulf %silu, %a1 : f32", gate, up)
        return self.summed(x, self.product(f"wdown{layer}", m.hidden, m.inner, hidden, 1))

    def text(self):
        m = self.m
        x = self.argument("x", (m.hidden,))
        cos, sin = (self.argument(name, (m.width // 2,)) for name in ("cos", "sin"))
        for layer in range(m.layers):
            x = self.inner(layer, self.attention(layer, x, cos, sin))
        logits = self.product("whead", m.vocabulary, m.hidden, self.norm("last_norm", x))
        self.result(*logits, logits[1])
        return self.program()

    def program(self):
        fills = "".join(f"  {name} = arith.constant dense<{value}> : {self.tensor(shape, kind)}\n"
                        for (shape, value, kind), name in self.constants.items())
        kinds = ", ".join(kind + attributes for _, kind, attributes in self.results)
        returned = f"{', '.join(each[0] for each in self.results)} : {', '.join(each[1] for each in self.results)}"
        return (f"// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n{self.MAPS}\n"
                f"func.func @main({', '.join(self.arguments)}) -> ({kinds}) {{\n{fills}" + "\n".join(self.lines) +
                f"\n  return {returned}\n}}\n")


def parsed(words, about, more, positions):
    """The options and the model with the sizes that they replace; `more` adds options."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=[name for name, m in MODELS.items() if not m.tied and m.experts == 1])
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--positions", type=int, default=positions)
    more(parser)
    sizes = [each.name for each in dataclasses.fields(MODELS["Llama-2-7B"]) if each.type is int and each.name != "experts"]
    for name in sizes:
        parser.add_argument("--" + name, type=int)
    given = parser.parse_args(words)
    m = dataclasses.replace(MODELS[given.model], **{name: getattr(given, name) for name in sizes if getattr(given, name)})
    return parser, given, m


def refuse_uneven(parser, given, m):
    if m.groups % given.devices or m.inner % given.devices:
        parser.error(f"--devices {given.devices}: the {m.groups} heads of keys and the {m.inner} inner rows do not divide by it")


def make(words=None):
    parser, given, m = parsed(words, __doc__, lambda parser: parser.add_argument(
        "--weights", choices=("bf16", "f32", "i8"), default="bf16"), 112)
    refuse_uneven(parser, given, m)
    return Step(m, given.devices, given.weights, given.positions)


if __name__ == "__main__":
    print(make().text(), end="")
