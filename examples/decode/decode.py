#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one step of decoding, for one sequence, of a model in the shape of Llama: decode.mlir is
what it writes without options. Each layer is seven launches, and the whole step three more.

A launch computes what an earlier one could have computed once, where that is cheaper than a launch:
the scale of an RMS norm is summed up in each row of the product behind it. The new keys and values
go to the cache at the end of the step; attention reads them where the products left them.
"""
import argparse

TEXT = """// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Written by decode.py, which says what it does: {layers} layers, hidden {D}, {H} heads of {d} with {G} for
// keys and values, inner {F}, vocabulary {V}, a cache of {S} positions.
mgpu.device_config @config #mgpu.device_config<numDevices = 1>

#i = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
#hj = affine_map<(h, j) -> (h, j)>
#j = affine_map<(h, j) -> (j)>
#hjk = affine_map<(h, j, k) -> (h, j, k)>
#of_hj = affine_map<(h, j, k) -> (h, j)>
#k_of_hj = affine_map<(h, j, k) -> (k)>
#nk = affine_map<(n, k) -> (n, k)>
#n = affine_map<(n, k) -> (n)>
#k = affine_map<(n, k) -> (k)>
#gt = affine_map<(g, t) -> (g, t)>
#key = affine_map<(g, t, i) -> (g, t, i)>
#of_group = affine_map<(g, t, i) -> (g, i)>
#score = affine_map<(g, t, i) -> (g, t)>
#weight = affine_map<(g, r, i, t) -> (g, r, t)>
#value = affine_map<(g, r, i, t) -> (g, t, i)>
#new_value = affine_map<(g, r, i, t) -> (g, i)>
#out = affine_map<(g, r, i, t) -> (g, r, i)>

// The rows of wqkv are those of queries, keys and values, by heads; those of wup gate and inner
// product. Products are of bf16 and f32, in f32.
func.func @main(%token: i32 {{mgpu.role = "dynamic"}}, %position: i32 {{mgpu.role = "dynamic"}},
                %embedding: {embedding} {{mgpu.role = "resident"}},
                %wqkv: {wqkv} {{mgpu.role = "resident"}},
                %wo: {wo} {{mgpu.role = "resident"}},
                %wup: {wup} {{mgpu.role = "resident"}},
                %wdown: {wdown} {{mgpu.role = "resident"}},
                %norms: {norms} {{mgpu.role = "resident"}},
                %frequencies: {frequencies} {{mgpu.role = "resident"}},
                %keys: {cache} {{mgpu.role = "resident"}},
                %values: {cache} {{mgpu.role = "resident"}},
                %logits: {logits}) {{
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
{sizes}  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %never = arith.constant 0xFF800000 : f32 // -infinity
  %scale = arith.constant {scale} : f32 // 1 / sqrt({d})
  %share = arith.constant {share} : f32 // 1 / {D}
  %epsilon = arith.constant 1.0e-5 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %dev = mgpu.get_device %c0 : !mgpu.device
"""


class Writer:
    def __init__(self, sizes):
        self.__dict__.update(vars(sizes))
        self.text = []
        D, H, G, d, F, V, S, L = self.D, self.H, self.G, self.d, self.F, self.V, self.S, self.layers
        self.types = {
            "embedding": f"memref<{V}x{D}xbf16>", "wqkv": f"memref<{L}x{H + 2 * G}x{d}x{D}xbf16>",
            "wo": f"memref<{L}x{D}x{H * d}xbf16>", "wup": f"memref<{L}x2x{F}x{D}xbf16>",
            "wdown": f"memref<{L}x{D}x{F}xbf16>", "norms": f"memref<{2 * L + 1}x{D}xbf16>",
            "frequencies": f"memref<{d // 2}xf32>", "cache": f"memref<{L}x{G}x{S}x{d}xbf16>",
            "logits": f"memref<{V}xf32>"}
        self.heads_type = f"memref<{L}x{H + 2 * G}x{d}xf32>"

    def line(self, text):
        self.text.append("  " + text + "\n")

    @staticmethod
    def offset(at):
        return f", offset: {at}" if at else ""

    def alloc(self, name, shape):
        self.line(f"%{name} = mgpu.alloc %dev : !mgpu.device -> {shape}")

    def copy(self, to, origin, shape, up):
        ends = "%dev, %host" if up else "%host, %dev"
        self.line(f"mgpu.memcpy %{to}, %{origin}, {ends} : {shape}, {shape}, !mgpu.device, !mgpu.device")

    def part(self, name, of, shape, at, sizes, result):
        """A view of so much of a buffer, without dimensions of size 1."""
        ones = ", ".join("1" for _ in at)
        view = lambda of: ", ".join(str(each) for each in of)
        self.line(f"%{name} = memref.subview %{of}[{view(at)}] [{view(sizes)}] [{ones}] : {shape} to {result}")

    def fill(self, name, shape):
        self.line(f"linalg.fill ins(%zero : f32) outs(%{name} : {shape})")

    def generic(self, maps, loops, inputs, outputs, body):
        """`inputs` and `outputs` are pairs of names and types, `body` text over %in0, ..., %out0, ..."""
        kinds = ", ".join(f'"{"reduction" if each == "r" else "parallel"}"' for each in loops)
        group = lambda pairs: f"{', '.join('%' + name for name, _ in pairs)} : {', '.join(shape for _, shape in pairs)}"
        element = lambda shape: shape.split("<")[1].split(",")[0].split(">")[0].split("x")[-1]
        arguments = ", ".join([f"%in{k}: {element(shape)}" for k, (_, shape) in enumerate(inputs)] +
                              [f"%out{k}: {element(shape)}" for k, (_, shape) in enumerate(outputs)])
        self.line(f"linalg.generic {{indexing_maps = [{', '.join('#' + each for each in maps)}], "
                  f"iterator_types = [{kinds}]}}")
        taken = f"ins({group(inputs)}) " if inputs else ""
        self.line(f"    {taken}outs({group(outputs)}) {{")
        self.line(f"^bb0({arguments}):")
        for each in body.strip().split("\n"):
            self.line("  " + each.strip())
        self.line("}")

    def squares(self, name, shape, maps, loops):
        """The sum of the squares of x, in each row of a product."""
        self.generic(maps, loops, [("x", f"memref<{self.D}xf32>")], [(name, shape)], """
            %square = arith.mulf %in0, %in0 : f32
            %next = arith.addf %out0, %square : f32
            linalg.yield %next : f32""")

    def product(self, name, shape, weights, norm, maps, loops):
        """Rows of weights by x, of which a norm is taken: what is left to do is to divide by it."""
        self.generic(maps, loops, [weights, ("x", f"memref<{self.D}xf32>"), norm], [(name, shape)], """
            %w = arith.extf %in0 : bf16 to f32
            %g = arith.extf %in2 : bf16 to f32
            %normal = arith.mulf %in1, %g : f32
            %term = arith.mulf %w, %normal : f32
            %next = arith.addf %out0, %term : f32
            linalg.yield %next : f32""")

    RMS = """
            %mean = arith.mulf %in0, %share : f32
            %moved = arith.addf %mean, %epsilon : f32
            %rms = math.rsqrt %moved : f32"""

    def norm(self, name, number):
        shape = f"memref<{self.D}xbf16, strided<[1]{self.offset(number * self.D)}>>"
        self.part(name, "dnorms", self.types["norms"], [number, 0], [1, self.D], shape)
        return name, shape

    def heads(self, layer):
        """Queries, keys and values, with their positions in them."""
        D, H, G, d, A = self.D, self.H, self.G, self.d, self.H + 2 * self.G
        norm = self.norm(f"norm{layer}", 2 * layer)
        pairs = f"memref<{A}x{d // 2}xf32>"
        half = lambda at: f"memref<{A}x{d // 2}xf32, strided<[{d}, 1]{self.offset(at)}>>"
        outs = []
        for k, name in enumerate(("a", "b")):
            weights = f"memref<{A}x{d // 2}x{D}xbf16, strided<[{d * D}, {D}, 1]{self.offset(layer * A * d * D + k * d // 2 * D)}>>"
            self.part(f"w{name}{layer}", "dwqkv", self.types["wqkv"], [layer, 0, k * d // 2, 0], [1, A, d // 2, D], weights)
            shape = half(layer * A * d + k * d // 2)
            self.part(f"head{name}{layer}", "heads", self.heads_type, [layer, 0, k * d // 2], [1, A, d // 2], shape)
            self.alloc(f"{name}{layer}", pairs)
            outs.append(((f"head{name}{layer}", shape), (f"w{name}{layer}", weights)))
        self.alloc(f"squares{layer}", pairs)
        for name in ("squares", "a", "b"):
            self.fill(f"{name}{layer}", pairs)
        self.squares(f"squares{layer}", pairs, ["k_of_hj", "of_hj"], "ppr")
        for name, (_, weights) in zip("ab", outs):
            self.product(f"{name}{layer}", pairs, weights, norm, ["hjk", "k_of_hj", "k_of_hj", "of_hj"], "ppr")
        # Values are not turned, and queries are scaled.
        self.generic(["hj", "hj", "hj", "j", "hj", "hj"], "pp",
                     [(f"squares{layer}", pairs), (f"a{layer}", pairs), (f"b{layer}", pairs),
                      ("dfrequencies", self.types["frequencies"])], [outs[0][0], outs[1][0]], self.RMS + """
            %head = linalg.index 0 : index
            %at = arith.sitofp %position : i32 to f32
            %angle = arith.mulf %at, %in3 : f32
            %cos = math.cos %angle : f32
            %sin = math.sin %angle : f32
            %isValue = arith.cmpi sge, %head, %keysEnd : index
            %isQuery = arith.cmpi slt, %head, %queriesEnd : index
            %c = arith.select %isValue, %one, %cos : f32
            %s = arith.select %isValue, %zero, %sin : f32
            %times = arith.select %isQuery, %scale, %one : f32
            %factor = arith.mulf %rms, %times : f32
            %a = arith.mulf %in1, %factor : f32
            %b = arith.mulf %in2, %factor : f32
            %ac = arith.mulf %a, %c : f32
            %bs = arith.mulf %b, %s : f32
            %as = arith.mulf %a, %s : f32
            %bc = arith.mulf %b, %c : f32
            %first = arith.subf %ac, %bs : f32
            %last = arith.addf %bc, %as : f32
            linalg.yield %first, %last : f32, f32""")

    def attention(self, layer):
        H, G, d, S, R = self.H, self.G, self.d, self.S, self.H // self.G
        A = H + 2 * G
        offset = lambda head: self.offset((layer * A + head) * d)
        new = lambda at: f"memref<{G}x{d}xf32, strided<[{d}, 1]{offset(at)}>>"
        for name, at in (("key", H), ("value", H + G)):
            self.part(f"{name}{layer}", "heads", self.heads_type, [layer, at, 0], [1, G, d], new(at))
        cache = f"memref<{G}x{S}x{d}xbf16, strided<[{S * d}, {d}, 1]{self.offset(layer * G * S * d)}>>"
        for name in ("keys", "values"):
            self.part(f"{name}{layer}", f"d{name}", self.types["cache"], [layer, 0, 0, 0], [1, G, S, d], cache)
        scores, rows = f"memref<{G}x{R}x{S}xf32>", f"memref<{H}x{S}xf32>"
        for name in ("scores", "weights"):
            self.alloc(f"{name}{layer}", scores)
        # A key is read once for the heads that share it.
        queries, results = [], []
        for r in range(R):
            query = f"memref<{G}x{d}xf32, strided<[{R * d}, 1]{offset(r)}>>"
            self.line(f"%q{layer}_{r} = memref.subview %heads[{layer}, {r}, 0] [1, {G}, {d}] [1, {R}, 1] : "
                      f"{self.heads_type} to {query}")
            score = f"memref<{G}x{S}xf32, strided<[{R * S}, 1]{self.offset(r * S)}>>"
            self.part(f"score{layer}_{r}", f"scores{layer}", scores, [0, r, 0], [G, 1, S], score)
            queries.append((f"q{layer}_{r}", query))
            results.append((f"score{layer}_{r}", score))
        for name, shape in results:
            self.fill(name, shape)
        # What lies in the cache from the position on is nothing yet; behind it the new one does not count.
        either = """
            %t = linalg.index {} : index
            %at = arith.index_cast %position : i32 to index
            %isPast = arith.cmpi slt, %t, %at : index
            %old = arith.extf %in0 : bf16 to f32
            %given = arith.select %isPast, %old, %in1 : f32"""
        each = lambda text: "".join(text.replace("$", str(r)) for r in range(R))
        together = lambda name: ", ".join(f"%{name}{r}" for r in range(R)) + " : " + ", ".join(["f32"] * R)
        self.generic(["key", "of_group"] + ["of_group"] * R + ["score"] * R, "ppr",
                     [(f"keys{layer}", cache), (f"key{layer}", new(H))] + queries, results,
                     either.format(1) + "".join(f"""
            %term{r} = arith.mulf %in{r + 2}, %given : f32
            %next{r} = arith.addf %out{r}, %term{r} : f32""" for r in range(R)) + f"""
            linalg.yield {together("next")}""")
        self.generic(["gt"] * R, "pp", [], results, """
            %t = linalg.index 1 : index
            %at = arith.index_cast %position : i32 to index
            %isPast = arith.cmpi sle, %t, %at : index""" + each("""
            %score$ = arith.select %isPast, %out$, %never : f32""") + f"""
            linalg.yield {together("score")}""")
        for name in ("scores", "weights"):
            self.line(f"%{name}Rows{layer} = memref.collapse_shape %{name}{layer} [[0, 1], [2]] : {scores} into {rows}")
        self.line(f"linalg.softmax dimension(1) ins(%scoresRows{layer} : {rows}) outs(%weightsRows{layer} : {rows})")
        out = f"memref<{G}x{R}x{d}xf32>"
        self.alloc(f"attended{layer}", out)
        self.fill(f"attended{layer}", out)
        self.generic(["value", "new_value", "weight", "out"], "pppr",
                     [(f"values{layer}", cache), (f"value{layer}", new(H + G)), (f"weights{layer}", scores)],
                     [(f"attended{layer}", out)], either.format(3) + """
            %term = arith.mulf %in2, %given : f32
            %next = arith.addf %out0, %term : f32
            linalg.yield %next : f32""")
        self.line(f"%flatAttended{layer} = memref.collapse_shape %attended{layer} [[0, 1, 2]] : {out} into memref<{H * d}xf32>")
        self.residual(f"wo{layer}", "dwo", self.types["wo"], layer, H * d, f"flatAttended{layer}")

    def residual(self, name, of, shape, layer, length, vector):
        D = self.D
        weights = f"memref<{D}x{length}xbf16, strided<[{length}, 1]{self.offset(layer * D * length)}>>"
        self.part(name, of, shape, [layer, 0, 0], [1, D, length], weights)
        self.generic(["nk", "k", "n"], "pr", [(name, weights), (vector, f"memref<{length}xf32>")],
                     [("x", f"memref<{D}xf32>")], """
            %w = arith.extf %in0 : bf16 to f32
            %term = arith.mulf %w, %in1 : f32
            %next = arith.addf %out0, %term : f32
            linalg.yield %next : f32""")

    def inner(self, layer):
        D, F = self.D, self.F
        norm = self.norm(f"innerNorm{layer}", 2 * layer + 1)
        rows = f"memref<{F}xf32>"
        for name in ("innerSquares", "gate", "up", "inner"):
            self.alloc(f"{name}{layer}", rows)
        for name in ("innerSquares", "gate", "up"):
            self.fill(f"{name}{layer}", rows)
        self.squares(f"innerSquares{layer}", rows, ["k", "n"], "pr")
        for k, name in enumerate(("gate", "up")):
            weights = f"memref<{F}x{D}xbf16, strided<[{D}, 1]{self.offset((2 * layer + k) * F * D)}>>"
            self.part(f"w{name}{layer}", "dwup", self.types["wup"], [layer, k, 0, 0], [1, 1, F, D], weights)
            self.product(f"{name}{layer}", rows, (f"w{name}{layer}", weights), norm, ["nk", "k", "k", "n"], "pr")
        self.generic(["i", "i", "i", "i"], "p", [(f"innerSquares{layer}", rows), (f"gate{layer}", rows), (f"up{layer}", rows)],
                     [(f"inner{layer}", rows)], self.RMS + """
            %gate = arith.mulf %in1, %rms : f32
            %up = arith.mulf %in2, %rms : f32
            %minus = arith.negf %gate : f32
            %power = math.exp %minus : f32
            %below = arith.addf %power, %one : f32
            %silu = arith.divf %gate, %below : f32
            %inner = arith.mulf %silu, %up : f32
            linalg.yield %inner : f32""")
        self.residual(f"wdown{layer}", "dwdown", self.types["wdown"], layer, F, f"inner{layer}")

    def ends(self):
        """The logits, and the new keys and values into the cache."""
        D, V, L, G, d, H = self.D, self.V, self.layers, self.G, self.d, self.H
        rows = self.types["logits"]
        norm = self.norm("lastNorm", 2 * L)
        for name in ("lastSquares", "dlogits"):
            self.alloc(name, rows)
            self.fill(name, rows)
        self.squares("lastSquares", rows, ["k", "n"], "pr")
        self.product("dlogits", rows, ("dembedding", self.types["embedding"]), norm, ["nk", "k", "k", "n"], "pr")
        self.generic(["i", "i"], "p", [("lastSquares", rows)], [("dlogits", rows)], self.RMS + """
            %logit = arith.mulf %out0, %rms : f32
            linalg.yield %logit : f32""")
        self.line(f"scf.parallel (%l, %g, %i) = (%c0, %c0, %c0) to (%layers, %groups, %width) step (%c1, %c1, %c1) {{")
        self.line("  %at = arith.index_cast %position : i32 to index")
        for name, first in (("keys", "queriesEnd"), ("values", "keysEnd")):
            self.line(f"  %{name}Head = arith.addi %g, %{first} : index")
            self.line(f"  %{name}New = memref.load %heads[%l, %{name}Head, %i] : {self.heads_type}")
            self.line(f"  %{name}Short = arith.truncf %{name}New : f32 to bf16")
            self.line(f"  memref.store %{name}Short, %d{name}[%l, %g, %at, %i] : {self.types['cache']}")
        self.line("}")
        self.copy("logits", "dlogits", rows, False)
        for name in ("keys", "values"):
            self.copy(name, f"d{name}", self.types["cache"], False)

    def write(self):
        D, H, G, d, L = self.D, self.H, self.G, self.d, self.layers
        for name in ("embedding", "wqkv", "wo", "wup", "wdown", "norms", "frequencies", "keys", "values"):
            shape = self.types["cache" if name in ("keys", "values") else name]
            self.alloc("d" + name, shape)
            self.copy("d" + name, name, shape, True)
        self.alloc("x", f"memref<{D}xf32>")
        self.line("scf.parallel (%i) = (%c0) to (%hidden) step (%c1) {")
        self.line("  %row = arith.index_cast %token : i32 to index")
        self.line(f"  %e = memref.load %dembedding[%row, %i] : {self.types['embedding']}")
        self.line("  %wide = arith.extf %e : bf16 to f32")
        self.line(f"  memref.store %wide, %x[%i] : memref<{D}xf32>")
        self.line("}")
        self.alloc("heads", self.heads_type)
        for layer in range(L):
            self.text.append(f"\n  // Layer {layer}.\n")
            self.heads(layer)
            self.attention(layer)
            self.inner(layer)
        self.text.append("\n  // The result.\n")
        self.ends()
        sizes = "".join(f"  %{name} = arith.constant {value} : index\n" for name, value in
                        (("hidden", D), ("layers", L), ("groups", G), ("width", d), ("queriesEnd", H), ("keysEnd", H + G)))
        head = TEXT.format(**{**vars(self), **self.types}, sizes=sizes, scale=repr(d ** -0.5), share=repr(1 / D))
        return head + "".join(self.text) + "  return\n}\n"


def sizes(words=None):
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("layers", 16), ("hidden", 2048), ("heads", 32), ("groups", 8), ("width", 64), ("inner", 8192),
                          ("vocabulary", 128256), ("positions", 1024)):
        parser.add_argument("--" + name, type=int, default=default, dest={
            "layers": "layers", "hidden": "D", "heads": "H", "groups": "G", "width": "d", "inner": "F",
            "vocabulary": "V", "positions": "S"}[name])
    return parser.parse_args(words)


if __name__ == "__main__":
    print(Writer(sizes()).write(), end="")
