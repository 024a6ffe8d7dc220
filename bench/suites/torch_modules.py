# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules that torch_layers.py times and tests/torch/modules.py compares."""
import torch
from torch import nn


class Decoder(nn.Module):
    """One token more, with the keys and values of those before; it gives the new ones back where it `keeps` them."""

    def __init__(self, width, heads, keeps=False):
        super().__init__()
        self.qkv, self.out, self.shape = nn.Linear(width, 3 * width), nn.Linear(width, width), (1, heads, width // heads)
        self.keeps = keeps

    def forward(self, x, keys, values):
        q, k, v = (part.reshape(-1, *self.shape).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        shares = (q @ keys.transpose(-1, -2) / self.shape[-1] ** 0.5).softmax(-1)
        y = self.out((shares @ values).transpose(1, 2).reshape(x.shape))
        return (y, keys, values) if self.keeps else y


class Cross(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(width, heads, batch_first=True), nn.LayerNorm(width)

    def forward(self, x, memory):
        return self.norm(x + self.attention(x, memory, memory, need_weights=False)[0])


class Experts(nn.Module):
    """Each row goes to the best 2 of 4 experts, weighted."""

    def __init__(self, width):
        super().__init__()
        self.gate, self.experts = nn.Linear(width, 4), nn.ModuleList(nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        best, index = self.gate(x).topk(2, -1)
        shares = torch.zeros(x.shape[0], 4).scatter(1, index, best.softmax(-1))
        return sum(shares[:, k:k + 1] * expert(x).relu() for k, expert in enumerate(self.experts))


class Labels(nn.Module):
    def __init__(self, width, classes, **options):
        super().__init__()
        self.linear, self.options = nn.Linear(width, classes), options

    def forward(self, x, labels):
        return nn.functional.cross_entropy(self.linear(x), labels, **self.options)


class Adversary(nn.Module):
    """The loss of a generator and a discriminator that sees both."""

    def __init__(self, noise, hidden, width):
        super().__init__()
        self.make = nn.Sequential(nn.Linear(noise, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, width), nn.Tanh())
        self.judge = nn.Sequential(nn.Linear(width, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1))

    def forward(self, noise, real):
        loss = nn.functional.binary_cross_entropy_with_logits
        fake = self.judge(self.make(noise))
        return loss(fake, torch.ones_like(fake)) + loss(self.judge(real), torch.ones_like(fake))
