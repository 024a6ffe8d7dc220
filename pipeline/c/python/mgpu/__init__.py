# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds, plans and replays graphs of several devices (docs/builder.md).

    import mgpu
    g = mgpu.Graph(devices=2)
    x, y = g.input("x", (8,)), g.output("y", (8,))
    add = g.kernel("add", params=("rw", "f32"), block=4, host=TEXT)
    for d in range(2):
        part = g.empty((4,), device=d)
        g.copy(part, x[4 * d:4 * d + 4])
        add(part, 1.0)
        g.copy(y[4 * d:4 * d + 4], part)
    program = g.open("host:2")
    print(program(x=[0, 1, 2, 3, 4, 5, 6, 7])["y"].tolist())
"""

from mgpu._library import AbsentError, Error, InternalError, InvalidError, LostError, UnsupportedError, UsageError, version
from mgpu.functions import register
from mgpu.graph import Buffer, Graph, Kernel, Plan, Tuned
from mgpu.program import Array, Counters, DeviceArray, Facts, Figures, NodeTime, Program, Ranks, load, metrics, open



def compile(module, example_inputs, **options):  # pylint: disable=redefined-builtin
    """mgpu.torch.compile(), which needs PyTorch."""
    from mgpu import torch
    return torch.compile(module, example_inputs, **options)


__version__ = version().split()[1]
__all__ = ["AbsentError", "Array", "Buffer", "Counters", "DeviceArray", "Error", "Facts", "Figures", "Graph", "InternalError", "InvalidError", "Kernel", "LostError", "NodeTime",
           "Plan", "Program", "Ranks", "Tuned", "UnsupportedError", "UsageError", "compile", "load", "metrics", "open", "register", "version"]
