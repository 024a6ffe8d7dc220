#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes an mpmd program: LAYERS residual layers in STAGES, two devices each, for MICROBATCHES.

    bench/suites/pipeline.py [STAGES=8 [MICROBATCHES=64 [LAYERS=32]]] > pipeline.mlir
"""
import sys

STAGES, MICROBATCHES, LAYERS = ([int(a) for a in sys.argv[1:]] + [8, 64, 32][len(sys.argv) - 1:])
EACH = LAYERS // STAGES
X, W = "tensor<8x64xf32>", "tensor<64x64xf32>"

topology = ", ".join(f'<"m{s}" : <["d"=2]>>' for s in range(STAGES))
print(f"#topology = #mpmd.topology<{topology}>")
for s in range(STAGES):
    print(f'!x{s} = !mpmd.mesh_tensor<"m{s}", {X}, sharding=<@m{s}, [{{"d"}}, {{}}]>>')
    print(f'!w{s} = !mpmd.mesh_tensor<"m{s}", {W}>')
arguments = [f"%x{m}: !x0" for m in range(MICROBATCHES)] + [f"%w{k}: !w{k // EACH}" for k in range(LAYERS)]
results = ", ".join([f"!x{STAGES - 1}"] * MICROBATCHES)
print(f"func.func @main({', '.join(arguments)}) -> ({results}) attributes {{topology = #topology}} {{")
for m in range(MICROBATCHES):
    value = f"%x{m}"
    for s in range(STAGES):
        weights = [f"%w{k}" for k in range(s * EACH, (s + 1) * EACH)]
        names = "".join(f", %k{i}: {W}" for i in range(EACH))
        print(f'%h{m}_{s} = mpmd.fragment<mesh="m{s}", origin=["stage{s}"]> '
              f"({', '.join([value] + weights)}) (%y0: {X}{names}) {{")
        for i in range(EACH):
            print(f"  %p{i} = stablehlo.dot %y{i}, %k{i} : ({X}, {W}) -> {X}")
            print(f"  %y{i + 1} = stablehlo.add %y{i}, %p{i} : {X}")
        print(f"  mpmd.return %y{EACH} : {X}")
        print(f"}} : ({', '.join([f'!x{s}'] + [f'!w{s}'] * EACH)}) -> !x{s}")
        value = f"%h{m}_{s}"
        if s + 1 < STAGES:
            print(f"%t{m}_{s} = mpmd.transfer {value} : (!x{s}) -> !x{s + 1}")
            value = f"%t{m}_{s}"
print(f"return {', '.join(f'%h{m}_{STAGES - 1}' for m in range(MICROBATCHES))} : {results}\n}}")
