#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a tensor-parallel network as an mgpu program to stdout.

Each layer is y = all_reduce(relu(y * w1) * w2) of `rows` x `width` values; each
device has hidden / devices columns of w1 and rows of w2, here all the same ones.
Row sums end it. Grids are (columns / block, rows).
"""
import argparse


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in [("devices", 8), ("rows", 2048), ("width", 4096),
                        ("hidden", 4096), ("layers", 2), ("block", 64)]:
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    devices, rows, width = args.devices, args.rows, args.width
    mine, block = args.hidden // args.devices, args.block
    if args.hidden % devices or width % block or mine % block:
        parser.error("devices must divide hidden; block must divide width and "
                     "hidden / devices")
    full, part = f"memref<{rows}x{width}xf32>", f"memref<{rows}x{mine}xf32>"
    up, down = f"memref<{width}x{mine}xf32>", f"memref<{mine}x{width}xf32>"
    sums = f"memref<{rows}xf32>"
    out = []
    line = out.append

    def each(text):
        for d in range(devices):
            line("  " + text.replace("@", str(d)))

    line("mgpu.device_config @config "
         f"#mgpu.device_config<numDevices = {devices}>")
    weights = ", ".join(
        f'%w{k}_{l}: {t} {{mgpu.role = "resident"}}'
        for l in range(args.layers) for k, t in ((1, up), (2, down)))
    line(f'func.func @main(%x: {full} {{mgpu.role = "resident"}}, {weights}, '
         f'%out: {sums} {{mgpu.role = "output"}}) {{')
    line("  %cm1 = arith.constant -1 : index")
    for value in sorted({0, 1, block, mine, width, rows, width // block,
                         mine // block, *range(devices)}):
        line(f"  %c{value} = arith.constant {value} : index")
    line("  %zero = arith.constant 0.0 : f32")
    line("  %host = mgpu.get_device %cm1 : !mgpu.device")
    each("%d@ = mgpu.get_device %c@ : !mgpu.device")
    each("%s@ = mgpu.create_stream %d@ : !mgpu.device -> !mgpu.stream")
    names = ", ".join(f"%d{d}" for d in range(devices))
    types = ", ".join(["!mgpu.device"] * devices)
    line(f"  %comm = mgpu.create_communicator {names} : {types} -> "
         "!mgpu.communicator")

    def alloc(name, kind):
        each(f"%{name}_@ = mgpu.alloc %d@ : !mgpu.device -> {kind}")

    def upload(name, source, kind):
        alloc(name, kind)
        each(f"mgpu.memcpy %{name}_@, %{source}, %d@, %host stream %s@ : "
             f"!mgpu.stream : {kind}, {kind}, !mgpu.device, !mgpu.device")

    def matmul(to, to_kind, left, left_kind, right, right_kind, columns, inner,
               relu):
        for d in range(devices):
            line(f"  mgpu.launch %d{d} grid(%c{columns // block}, %c{rows}) "
                 f"block(%c{block}) stream %s{d} {{")
            line("    %i = gpu.block_id y")
            line("    %bx = gpu.block_id x")
            line("    %tx = gpu.thread_id x")
            line(f"    %base = arith.muli %bx, %c{block} : index")
            line("    %j = arith.addi %base, %tx : index")
            line(f"    %sum = scf.for %k = %c0 to %c{inner} step %c1 "
                 "iter_args(%acc = %zero) -> (f32) {")
            line(f"      %l = memref.load %{left}_{d}[%i, %k] : {left_kind}")
            line(f"      %r = memref.load %{right}_{d}[%k, %j] : {right_kind}")
            line("      %p = arith.mulf %l, %r : f32")
            line("      %next = arith.addf %acc, %p : f32")
            line("      scf.yield %next : f32")
            line("    }")
            value = "%sum"
            if relu:
                line("    %relu = arith.maximumf %sum, %zero : f32")
                value = "%relu"
            line(f"    memref.store {value}, %{to}_{d}[%i, %j] : {to_kind}")
            line("  }")

    upload("y", "x", full)
    for l in range(args.layers):
        for k, kind in ((1, up), (2, down)):
            upload(f"a{k}_{l}", f"w{k}_{l}", kind)
        alloc(f"h_{l}", part)
        alloc(f"z_{l}", full)
    y = "y"
    for l in range(args.layers):
        matmul(f"h_{l}", part, y, full, f"a1_{l}", up, mine, width, True)
        matmul(f"z_{l}", full, f"h_{l}", part, f"a2_{l}", down, width, mine,
               False)
        each(f"mgpu.all_reduce %z_{l}_@, %z_{l}_@, %comm, sum stream %s@ : "
             f"!mgpu.stream : {full}, {full}, !mgpu.communicator")
        y = f"z_{l}"
    alloc("r", sums)
    for d in range(devices):
        line(f"  mgpu.launch %d{d} grid(%c{rows}) block(%c1) stream %s{d} {{")
        line("    %i = gpu.block_id x")
        line(f"    %sum = scf.for %k = %c0 to %c{width} step %c1 "
             "iter_args(%acc = %zero) -> (f32) {")
        line(f"      %v = memref.load %{y}_{d}[%i, %k] : {full}")
        line("      %next = arith.addf %acc, %v : f32")
        line("      scf.yield %next : f32")
        line("    }")
        line(f"    memref.store %sum, %r_{d}[%i] : {sums}")
        line("  }")
    line(f"  mgpu.memcpy %out, %r_0, %host, %d0 stream %s0 : !mgpu.stream : "
         f"{sums}, {sums}, !mgpu.device, !mgpu.device")
    each("mgpu.sync_stream %s@ : !mgpu.stream")
    line("  return")
    line("}")
    print("\n".join(out))


if __name__ == "__main__":
    main()
