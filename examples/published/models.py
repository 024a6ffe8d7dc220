#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shapes of the models, from their published configurations."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    layers: int
    hidden: int
    heads: int
    groups: int  # heads of keys and values
    width: int  # of a head
    inner: int
    vocabulary: int
    tied: bool = False  # the output layer is the embedding
    experts: int = 1  # of a layer's inner products that a token takes

    @property
    def qkv(self):
        return (self.heads + 2 * self.groups) * self.width


MODELS = {
    # MPT has two products in place of gate, up and down, of which the inner one is wide.
    "MPT-7B": Model(32, 4096, 32, 32, 128, 16384, 50368, True),
    "MPT-13B": Model(40, 5120, 40, 40, 128, 20480, 50368, True),
    "Llama-2-7B": Model(32, 4096, 32, 32, 128, 11008, 32000),
    "Llama-2-70B": Model(80, 8192, 64, 8, 128, 28672, 32000),
    "Mixtral-8x7B": Model(32, 4096, 32, 8, 128, 14336, 32000, experts=2),
    "Llama-3.2-1B": Model(16, 2048, 32, 8, 64, 8192, 128256),
    "Llama-3.1-8B": Model(32, 4096, 32, 8, 128, 14336, 128256),
    "Qwen3-8B": Model(36, 4096, 32, 8, 128, 12288, 151936),
}
