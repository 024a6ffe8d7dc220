#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a StableHLO program with one of its layers repeated to stdout.

The layer takes the value FROM and gives TO; each copy has weights of its own, which are new arguments of @main.
Of pt_bert.mlir, `repeat_layers.py pt_bert.mlir %262 %485 --times 150` has 36,000 operations.
"""
import argparse
import re

NAME = re.compile(r"%\w+")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("taken", metavar="FROM")
    parser.add_argument("given", metavar="TO")
    parser.add_argument("--times", type=int, default=150)
    args = parser.parse_args()
    with open(args.file, encoding="utf-8") as file:
        lines = file.read().split("\n")
    main_at = next(k for k, line in enumerate(lines) if " @main(" in line)
    begin = next(k for k, line in enumerate(lines) if re.match(rf"\s*{args.taken} = ", line)) + 1
    end = next(k for k, line in enumerate(lines) if re.match(rf"\s*{args.given} = ", line)) + 1
    layer = lines[begin:end]
    made = [NAME.search(line)[0] for line in layer]
    types = dict(re.findall(r"(%\w+): (tensor<[^>]*>)", lines[main_at]))
    weights = sorted({name for line in layer for name in NAME.findall(line)} & types.keys())
    out, arguments, now = lines[:end], [], args.given
    for copy in range(args.times):
        names = {name: f"%copy{copy}_{name[1:]}" for name in made + weights}
        names[args.taken] = now
        arguments += [f"{names[name]}: {types[name]}" for name in weights]
        out += [NAME.sub(lambda name: names.get(name[0], name[0]), line) for line in layer]
        now = names[args.given]
    out += [NAME.sub(lambda name: now if name[0] == args.given else name[0], line) for line in lines[end:]]
    out[main_at] = lines[main_at].replace("@main(", f"@main({', '.join(arguments)}{', ' if arguments else ''}", 1)
    print("\n".join(out))


main()
