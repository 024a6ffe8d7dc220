#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the step that reads a prompt (prefill) as a tensor program with layouts: the heads and the inner rows of a model in
the shape of Llama are spread over the devices, partial sums are added by all_reduce, and the output layer is whole.

The embedding is left out: the program is given activations, a row for each position of each user. Results are the keys and
values of each layer, for the cache, and the logits of each user's last position. Weights are bf16 or f32.

Usage: prompt.py MODEL [--devices N] [--type bf16|f32] [--batch N] [--positions N] [--layers N ...] > step.mlir
The other options replace a size of the model, as for steps.py.
"""
import dataclasses

from steps import parsed, refuse_uneven
from training import TrainingStep


class PromptStep(TrainingStep):
    def __init__(self, m, devices, kind, positions, batch):
        part = dataclasses.replace(m, heads=m.heads // devices, groups=m.groups // devices, inner=m.inner // devices)
        super().__init__(part, devices, kind, positions, batch)
        self.whole = m

    def gathered(self, name):
        """A device's part of a weight: rows of those that take whole activations, columns of those that give partial sums."""
        m, D = self.whole, self.m.hidden
        kind = name.rstrip("0123456789")
        rows, columns = {"wq": (m.heads * m.width, D), "wk": (m.groups * m.width, D), "wv": (m.groups * m.width, D),
                         "wo": (D, m.heads * m.width), "wgate": (m.inner, D), "wup": (m.inner, D),
                         "wdown": (D, m.inner), "whead": (m.vocabulary, D)}.get(kind, (D, None))
        if columns is None:
            return self.argument(name, (rows,))
        cut = {"wo": 1, "wdown": 1, "whead": None}.get(kind, 0)
        return *self.argument(name, (rows, columns), cut, self.weights), *([self.weights] if self.weights != "f32" else [])

    def add(self, x, part):
        return super().add(x, self.all_reduced(part))

    def text(self):
        m, B, T = self.m, self.B, self.T
        x = self.argument("x", (T, m.hidden))
        self.cos, self.sin = (self.argument(name, (T, m.width // 2)) for name in ("cos", "sin"))
        full = B, self.S, self.whole.groups, m.width
        for layer in range(m.layers):
            x, kept = self.forward(layer, x)
            for name in ("k", "v"):
                self.result(*kept[name][:2], full, cut=2)
        last = self.new()
        whole = self.shaped(x, (B, self.S, m.hidden))
        self.line(f"{last} = tensor.extract_slice {whole[0]}[0, {self.S - 1}, 0] [{B}, 1, {m.hidden}] [1, 1, 1] : "
                  f"{self.tensor(whole[1])} to {self.tensor((B, m.hidden))}")
        last = last, (B, m.hidden)
        logits = self.product("tk nk tn", self.norm(last, self.scale(last), self.gathered("last_norm")), self.gathered("whead"))
        self.result(*logits, logits[1])
        return self.program()


def make(words=None):
    parser, given, m = parsed(words, __doc__, lambda parser: (
        parser.add_argument("--type", choices=("bf16", "f32"), default="bf16"),
        parser.add_argument("--batch", type=int, default=1)), 2048)
    refuse_uneven(parser, given, m)
    return PromptStep(m, given.devices, given.type, given.positions, given.batch)


if __name__ == "__main__":
    print(make().text(), end="")
