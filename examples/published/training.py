#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a step of training as a tensor program with layouts: each device has its sequences and a part of the rows of each
weight, of which it gathers all before use, forward and again backward. A layer is computed again before its gradients, which
are added up over the devices and of which each keeps its part, for AdamW (without the correction of the first steps).

Products are of bf16 or f32; weights, gradients and the optimiser's numbers are f32. The embedding is left out: the program is
given activations, and the class of each position as an integer. Results are the part of each position in the mean loss, then
each weight with its two moments, from the output layer back.

Usage: training.py MODEL [--devices N] [--type bf16|f32] [--batch N] [--positions N] [--layers N ...] > step.mlir
--batch is of each device. The other options replace a size of the model, as for steps.py.
"""
import re

from steps import SILU, Step, parsed

RATE, DECAY, FIRST, SECOND, EPSILON = 3e-4, 0.1, 0.9, 0.95, 1e-8


class TrainingStep(Step):
    def __init__(self, m, devices, kind, positions, batch):
        super().__init__(m, devices, kind, positions)
        self.B, self.T = batch, batch * positions
        self.trained, self.order, self.maps = [], [], {}

    # A map is named by its loops and the dimensions of the tensor: "tnk_tk" is (t, n, k) -> (t, k).
    @property
    def MAPS(self):
        return "".join(f"#{name} = affine_map<({', '.join(name.split('_')[0])}) -> ({', '.join(name.split('_')[1])})>\n"
                       for name in self.maps)

    def loop(self, words, inputs, body, start="0.0", kind="f32"):
        """`words` are the dimensions of each input and of the result, as "tk nk tn"."""
        *dims, out = words.split()
        loops = [*out, *dict.fromkeys(each for each in "".join(dims) if each not in out)]
        names = [f"{''.join(loops)}_{each}" for each in (*dims, out)]
        self.maps.update(dict.fromkeys(names))
        sizes = {dim: size for each, (_, shape, *_) in zip(dims, inputs) for dim, size in zip(each, shape)}
        result = self.generic(names, ["r" if each not in out else "p" for each in loops], inputs,
                              tuple(sizes[each] for each in out), body, start, kind)
        return result

    def product(self, words, a, b):
        """The sum of products over what the result does not have; both become of the type of products first."""
        a, b, names = self.narrow(a), self.narrow(b), ("%a0", "%a1")
        wide = ""
        if self.weights == "bf16":
            wide, names = self.wide_of(0) + self.wide_of(1), ("%w0", "%w1")
        return self.loop(words, [a, b], f"""{wide}
            %p = arith.mulf {names[0]}, {names[1]} fastmath<contract> : f32
            %r = arith.addf %out, %p fastmath<contract> : f32""")

    def wide_of(self, k):
        return f"%w{k} = arith.extf %a{k} : bf16 to f32\n"

    def ordered(self, x, words):
        """With its dimensions in another order: `words` are both, as "bgrsd bsgrd"."""
        old, new = words.split()
        order = [old.index(each) for each in new]
        shape, empty, name = tuple(x[1][each] for each in order), self.new(), self.new()
        self.line(f"{empty} = tensor.empty() : {self.tensor(shape)}")
        self.line(f"{name} = linalg.transpose ins({x[0]} : {self.tensor(x[1])}) outs({empty} : {self.tensor(shape)}) "
                  f"permutation = {order}")
        return name, shape

    def factor(self, body):
        """The body with %y, its number, in the type of products, and with %w0 for %a0 where that is of this type."""
        if self.weights == "f32":
            return body.replace("%w0", "%a0").replace("%y =", "%r =")
        return (self.wide_of(0) if "%w0" in body else "") + body + "\n%r = arith.truncf %y : f32 to bf16"

    def narrow(self, x):
        dims = "abcdef"[:len(x[1])]
        if self.weights == "f32" or len(x) > 2:
            return x
        return self.loop(f"{dims} {dims}", [x], "%r = arith.truncf %a0 : f32 to bf16", kind="bf16")

    def each(self, body, *inputs):
        """Element by element."""
        dims = "abcdef"[:len(inputs[0][1])]
        return self.loop(" ".join([dims] * (len(inputs) + 1)), inputs, body)

    def add(self, *parts):
        total = parts[0]
        for each in parts[1:]:
            total = self.each("%r = arith.addf %a0, %a1 : f32", total, each)
        return total

    def sums(self, words, *inputs):
        names = [f"%a{k}" for k in range(len(inputs))]
        body, last = "", names[0]
        for k, name in enumerate(names[1:]):
            body += f"%p{k} = arith.mulf {last}, {name} : f32\n"
            last = f"%p{k}"
        return self.loop(words, inputs, body + f"%r = arith.addf %out, {last} : f32")

    def shaped(self, x, shape):
        """By splitting or joining dimensions: `shape` refines the old one, or is refined by it."""
        few, many = sorted((x[1], tuple(shape)), key=len)
        groups, at = [], 0
        for size in few:
            group, product = [], 1
            while product < size or not group:
                product *= many[at]
                group.append(at)
                at += 1
            groups.append(group)
        name, kind = self.new(), x[2] if len(x) > 2 else "f32"
        if len(shape) > len(x[1]):
            self.line(f"{name} = tensor.expand_shape {x[0]} {groups} output_shape {list(shape)} : {self.tensor(x[1], kind)} "
                      f"into {self.tensor(shape, kind)}")
        else:
            self.line(f"{name} = tensor.collapse_shape {x[0]} {groups} : {self.tensor(x[1], kind)} into "
                      f"{self.tensor(shape, kind)}")
        return name, tuple(shape), *x[2:]

    def weight(self, name, *shape):
        """This device's rows, with its two moments; the program's arguments are whole."""
        places = []
        for each in (name, f"{name}_mean", f"{name}_square"):
            places.append(self.argument(each, shape, 0))
        self.trained.append((name, shape, places))
        return name

    def gathered(self, name):
        own = self.narrow(next(places[0] for known, _, places in self.trained if known == name))
        if self.t == 1:
            return own
        kind, shape = self.weights, (own[1][0] * self.t, *own[1][1:])
        value, empty = self.new(), self.new()
        self.line(f"{empty} = tensor.empty() : {self.tensor(shape, kind)}")
        self.line(f"{value} = spmd.all_gather ins({own[0]} : {self.tensor(own[1], kind)}) outs({empty} : "
                  f"{self.tensor(shape, kind)}) axis = 0 -> {self.tensor(shape, kind)}")
        return value, shape, *own[2:]

    def reduced(self, name, gradient):
        """AdamW with the sum of the devices' gradients, of this device's rows."""
        position, (_, shape, places) = next((k, each) for k, each in enumerate(self.trained) if each[0] == name)
        if self.t > 1:
            part = (gradient[1][0] // self.t, *gradient[1][1:])
            value, empty = self.new(), self.new()
            self.line(f"{empty} = tensor.empty() : {self.tensor(part)}")
            self.line(f"{value} = spmd.reduce_scatter sum ins({gradient[0]} : {self.tensor(gradient[1])}) outs({empty} : "
                      f"{self.tensor(part)}) axis = 0 -> {self.tensor(part)}")
            gradient = value, part
        self.order.append(name)
        w, mean, square = places

        def mixed(share, of):
            return f"""
                %keep = arith.constant {share:.9e} : f32
                %new = arith.constant {1 - share:.9e} : f32
                %old = arith.mulf %a0, %keep : f32
                {of}
                %r = arith.addf %old, %take : f32"""
        mean = self.each(mixed(FIRST, "%take = arith.mulf %a1, %new : f32"), mean, gradient)
        square = self.each(mixed(SECOND, "%s = arith.mulf %a1, %a1 : f32\n%take = arith.mulf %s, %new : f32"), square, gradient)
        w = self.each(f"""
            %rate = arith.constant {RATE:.9e} : f32
            %decay = arith.constant {DECAY:.9e} : f32
            %epsilon = arith.constant {EPSILON:.9e} : f32
            %root = math.sqrt %a2 : f32
            %below = arith.addf %root, %epsilon : f32
            %step = arith.divf %a1, %below : f32
            %shrink = arith.mulf %a0, %decay : f32
            %both = arith.addf %step, %shrink : f32
            %moved = arith.mulf %both, %rate : f32
            %r = arith.subf %a0, %moved : f32""", w, mean, square)
        for k, each in enumerate((w, mean, square)):
            self.result(*each, shape, self.first + 3 * position + k)

    def scale(self, x):
        """1 / sqrt of the mean of squares of each row."""
        squares = self.sums("tk tk t", x, x)
        return self.each(f"""
            %share = arith.constant {1 / self.m.hidden:.9e} : f32
            %epsilon = arith.constant 1.0e-5 : f32
            %mean = arith.mulf %a0, %share : f32
            %moved = arith.addf %mean, %epsilon : f32
            %r = math.rsqrt %moved : f32""", squares)

    def norm(self, x, scale, w):
        return self.loop("tk t k tk", [x, scale, w], """
            %n = arith.mulf %a0, %a1 : f32
            %r = arith.mulf %n, %a2 : f32""")

    def norm_gradients(self, dy, x, scale, w):
        """The gradients of x and of the weights."""
        inner = self.sums("tk tk k t", dy, x, w)
        dx = self.loop("tk tk k t t tk", [dy, x, w, scale, inner], f"""
            %share = arith.constant {1 / self.m.hidden:.9e} : f32
            %p = arith.mulf %a0, %a2 : f32
            %q = arith.mulf %p, %a3 : f32
            %r2 = arith.mulf %a3, %a3 : f32
            %r3 = arith.mulf %r2, %a3 : f32
            %m = arith.mulf %a4, %share : f32
            %s = arith.mulf %r3, %m : f32
            %c = arith.mulf %a1, %s : f32
            %r = arith.subf %q, %c : f32""")
        return dx, self.sums("tk tk t k", dy, x, scale)

    def turned(self, x, heads, back=False):
        """Heads turned by their position, or back: x is (positions, heads * width)."""
        d, T = self.m.width, self.T
        x, halves = self.shaped(x, (T, heads, d)), []
        half = (T, heads, d // 2)
        for at in (0, d // 2):
            halves.append((self.new(), half))
            self.line(f"{halves[-1][0]} = tensor.extract_slice {x[0]}[0, 0, {at}] [{T}, {heads}, {d // 2}] [1, 1, 1] : "
                      f"{self.tensor(x[1])} to {self.tensor(half)}")
        whole = x
        for at, order in ((0, (0, 1)), (d // 2, (1, 0))):
            sign = "subf" if (at == 0) != back else "addf"
            part = self.loop("thj thj tj tj thj", [halves[order[0]], halves[order[1]], self.cos, self.sin], f"""
                %c = arith.mulf %a0, %a2 : f32
                %s = arith.mulf %a1, %a3 : f32
                %r = arith.{sign} %c, %s : f32""")
            name = self.new()
            self.line(f"{name} = tensor.insert_slice {part[0]} into {whole[0]}[0, 0, {at}] [{T}, {heads}, {d // 2}] [1, 1, 1] : "
                      f"{self.tensor(half)} into {self.tensor(x[1])}")
            whole = name, x[1]
        return whole

    def queries(self, x):
        m = self.m
        return self.shaped(x, (self.B, self.S, m.groups, m.heads // m.groups, m.width))

    def attended(self, q, k, v):
        """The shares of each key, and their sums of values."""
        scores = self.product("bsgrd bugd bgrsu", q, k)
        masked = self.loop("bgrsu bgrsu", [scores], f"""
            %scale = arith.constant {self.m.width ** -0.5:.9e} : f32
            %never = arith.constant -1.0e30 : f32
            %s = linalg.index 3 : index
            %u = linalg.index 4 : index
            %is = arith.cmpi ule, %u, %s : index
            %p = arith.mulf %a0, %scale : f32
            %r = arith.select %is, %p, %never : f32""")
        most = self.loop("bgrsu bgrs", [masked], "%r = arith.maximumf %out, %a0 : f32", "0xFF800000")
        powers = self.loop("bgrsu bgrs bgrsu", [masked, most], "%s = arith.subf %a0, %a1 : f32\n%r = math.exp %s : f32")
        total = self.sums("bgrsu bgrs", powers)
        shares = self.loop("bgrsu bgrs bgrsu", [powers, total], self.factor("%y = arith.divf %a0, %a1 : f32"), kind=self.weights)
        return shares, self.ordered(self.product("bgrsu bugd bgrsd", shares, v), "bgrsd bsgrd")

    def attention_gradients(self, da, shares, a, q, k, v):
        # Whatever has a number for each pair of positions stays as it is; the small factors are turned.
        da, turned = (self.ordered(each, "bsgrd bgrsd") for each in (da, q))
        dv = self.ordered(self.product("bgrsd bgrsu bgdu", da, shares), "bgdu bugd")
        of_shares = self.product("bgrsd bugd bgrsu", da, v)
        inner = self.sums("bgrsd bsgrd bgrs", da, a)
        ds = self.loop("bgrsu bgrsu bgrs bgrsu", [shares, of_shares, inner], self.factor(f"""
            %scale = arith.constant {self.m.width ** -0.5:.9e} : f32
            %d = arith.subf %a1, %a2 : f32
            %p = arith.mulf %w0, %d : f32
            %y = arith.mulf %p, %scale : f32"""), kind=self.weights)
        dq = self.ordered(self.product("bgrsu bugd bgrsd", ds, k), "bgrsd bsgrd")
        return dq, self.ordered(self.product("bgrsd bgrsu bgdu", turned, ds), "bgdu bugd"), dv

    def forward(self, layer, x):
        """The layer's result, and what its gradients need."""
        m, T = self.m, self.T
        w = {name: self.gathered(name + str(layer)) for name in ("wq", "wk", "wv", "wo", "wgate", "wup", "wdown", "norm", "inner_norm")}
        kept = {"x": x, "w": w, "scale": self.scale(x)}
        n = kept["n"] = self.norm(x, kept["scale"], self.wide(w["norm"]))
        q, k, v = (self.product("tk nk tn", n, w[name]) for name in ("wq", "wk", "wv"))
        keys = (self.B, self.S, m.groups, m.width)
        q, k = self.queries(self.shaped(self.turned(q, m.heads), (T, m.heads * m.width))), self.turned(k, m.groups)
        k, v = (self.shaped(self.shaped(each, (T, m.groups * m.width)), keys) for each in (k, v))
        shares, a = self.attended(q, k, v)
        kept.update(q=q, k=k, v=v, shares=shares, a=a)
        kept["flat"] = self.shaped(a, (T, m.heads * m.width))
        h = kept["h"] = self.add(x, self.product("tk nk tn", kept["flat"], w["wo"]))
        kept["inner_scale"] = self.scale(h)
        n2 = kept["n2"] = self.norm(h, kept["inner_scale"], self.wide(w["inner_norm"]))
        kept["gate"], kept["up"] = (self.product("tk nk tn", n2, w[name]) for name in ("wgate", "wup"))
        z = kept["z"] = self.each(SILU + "%r = arith.mulf %silu, %a1 : f32", kept["gate"], kept["up"])
        return self.add(h, self.product("tk nk tn", z, w["wdown"])), kept

    def wide(self, x):
        return x if len(x) == 2 else self.loop("k k", [x], "%r = arith.extf %a0 : bf16 to f32")

    def backward(self, layer, dy, x):
        m, T = self.m, self.T
        _, kept = self.forward(layer, x)  # again: nothing but x was kept
        w = kept["w"]

        def trained(name, gradient):
            self.reduced(name + str(layer), gradient)

        def linear(name, dy, x):
            trained(name, self.product("tn tk nk", dy, x))
            return self.product("tn nk tk", dy, w[name])
        dz = linear("wdown", dy, kept["z"])
        du = self.each(SILU + "%r = arith.mulf %silu, %a1 : f32", kept["gate"], dz)
        dg = self.each(SILU + """
            %below1 = arith.divf %one, %below : f32
            %rest = arith.subf %one, %below1 : f32
            %turn = arith.mulf %silu, %rest : f32
            %slope = arith.addf %below1, %turn : f32
            %p = arith.mulf %a1, %a2 : f32
            %r = arith.mulf %p, %slope : f32""", kept["gate"], kept["up"], dz)
        dn2 = self.add(linear("wgate", dg, kept["n2"]), linear("wup", du, kept["n2"]))
        dh, of_norm = self.norm_gradients(dn2, kept["h"], kept["inner_scale"], self.wide(w["inner_norm"]))
        trained("inner_norm", of_norm)
        dh = self.add(dy, dh)
        da = self.queries(linear("wo", dh, kept["flat"]))
        dq, dk, dv = self.attention_gradients(da, kept["shares"], kept["a"], kept["q"], kept["k"], kept["v"])
        dq, dk = (self.shaped(self.turned(self.shaped(each, (T, heads * m.width)), heads, True), (T, heads * m.width))
                  for each, heads in ((dq, m.heads), (dk, m.groups)))
        dv = self.shaped(dv, (T, m.groups * m.width))
        dn = self.add(*(linear(name, each, kept["n"]) for name, each in (("wq", dq), ("wk", dk), ("wv", dv))))
        dx, of_norm = self.norm_gradients(dn, x, kept["scale"], self.wide(w["norm"]))
        trained("norm", of_norm)
        return self.add(dh, dx)

    def loss(self, x, classes):
        """The loss of each position, and the gradient of x."""
        share, scale, norm, head = 1 / (self.T * self.t), self.scale(x), *map(self.gathered, ("last_norm", "whead"))
        n = self.norm(x, scale, self.wide(norm))
        logits = self.product("tk nk tn", n, head)
        most = self.loop("tn t", [logits], "%r = arith.maximumf %out, %a0 : f32", "0xFF800000")
        powers = self.loop("tn t tn", [logits, most], "%s = arith.subf %a0, %a1 : f32\n%r = math.exp %s : f32")
        total = self.sums("tn t", powers)
        own = "%k = linalg.index 1 : index\n%c = arith.index_cast %k : index to i32\n%is = arith.cmpi eq, %c, {} : i32\n"
        mine = self.loop("tn t t", [logits, (*classes, "i32")], own.format("%a1") + """
            %none = arith.constant 0.0 : f32
            %own = arith.select %is, %a0, %none : f32
            %r = arith.addf %out, %own : f32""")
        losses = self.each(f"""
            %share = arith.constant {share:.9e} : f32
            %log = math.log %a1 : f32
            %all = arith.addf %a0, %log : f32
            %d = arith.subf %all, %a2 : f32
            %r = arith.mulf %d, %share : f32""", most, total, mine)
        d = self.loop("tn t t tn", [powers, total, (*classes, "i32")], own.format("%a2") + f"""
            %share = arith.constant {share:.9e} : f32
            %none = arith.constant 0.0 : f32
            %one = arith.constant 1.0 : f32
            %hit = arith.select %is, %one, %none : f32
            %p = arith.divf %a0, %a1 : f32
            %e = arith.subf %p, %hit : f32
            %r = arith.mulf %e, %share : f32""")
        self.result(*losses, (self.T * self.t,))
        self.reduced("whead", self.product("tn tk nk", d, n))
        dx, of_norm = self.norm_gradients(self.product("tn nk tk", d, head), x, scale, self.wide(norm))
        self.reduced("last_norm", of_norm)
        return dx

    def text(self):
        m, T = self.m, self.T
        x = self.argument("x", (T * self.t, m.hidden), 0)
        classes = self.argument("classes", (T * self.t,), 0, "i32")
        self.cos, self.sin = (self.argument(name, (T, m.width // 2)) for name in ("cos", "sin"))
        self.first = len(self.arguments)
        for layer in range(m.layers):
            for name, rows, columns in (("wq", m.heads * m.width, m.hidden), ("wk", m.groups * m.width, m.hidden),
                                        ("wv", m.groups * m.width, m.hidden), ("wo", m.hidden, m.heads * m.width),
                                        ("wgate", m.inner, m.hidden), ("wup", m.inner, m.hidden),
                                        ("wdown", m.hidden, m.inner)):
                self.weight(name + str(layer), rows, columns)
            self.weight(f"norm{layer}", m.hidden)
            self.weight(f"inner_norm{layer}", m.hidden)
        self.weight("last_norm", m.hidden)
        self.weight("whead", m.vocabulary, m.hidden)
        between = [x]
        for layer in range(m.layers):
            between.append(self.forward(layer, between[-1])[0])
        d = self.loss(between[-1], classes)
        for layer in reversed(range(m.layers)):
            d = self.backward(layer, d, between[layer])
        return self.program()


def make(words=None):
    _, given, m = parsed(words, __doc__, lambda parser: (parser.add_argument("--type", choices=("bf16", "f32"), default="bf16"),
                                                      parser.add_argument("--batch", type=int, default=2)), 8192)
    return TrainingStep(m, given.devices, given.type, given.positions, given.batch)


if __name__ == "__main__":
    print(make().text(), end="")
