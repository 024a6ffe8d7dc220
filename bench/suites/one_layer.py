#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one layer of a StableHLO program as a program of its own to stdout.

The layer takes the value FROM and gives TO, as for repeat_layers.py. What else it reads, and constants are not,
becomes an argument, in the order of its first use: `one_layer.py pt_bert.mlir %262 %485`.
"""
import argparse
import re

NAME = re.compile(r"%\w+")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("taken", metavar="FROM")
    parser.add_argument("given", metavar="TO")
    args = parser.parse_args()
    with open(args.file, encoding="utf-8") as file:
        lines = file.read().split("\n")
    main_at = next(k for k, line in enumerate(lines) if " @main(" in line)
    ends = [k for k, line in enumerate(lines) if k > main_at and line == "  }"]
    defined = {NAME.search(line)[0]: (k, line) for k, line in enumerate(lines[:ends[0]])
               if re.match(r"\s*%\w+ = ", line) and k > main_at}
    begin, end = defined[args.taken][0] + 1, defined[args.given][0] + 1
    layer = lines[begin:end]
    types = dict(re.findall(r"(%\w+): (tensor<[^>]*>)", lines[main_at]))
    own, constants, arguments = set(), [], []
    for line in layer:
        made, _, right = line.partition(" = ")
        for name in NAME.findall(right):
            if name in own:
                continue
            own.add(name)
            if name in defined and "stablehlo.constant" in defined[name][1]:
                constants.append(defined[name][1])
            else:
                line_of = defined[name][1] if name in defined else ""
                arguments.append((name, types.get(name) or re.findall(r"tensor<[^>]*>", line_of)[-1]))
        own.add(made.strip())
    result = re.findall(r"tensor<[^>]*>", defined[args.given][1])[-1]
    # A name that is a number would read as that of another argument.
    renamed = {name: f"%in_{name[1:]}" for name, _ in arguments if name[1:].isdigit()}
    arguments = [(renamed.get(name, name), kind) for name, kind in arguments]
    layer = [NAME.sub(lambda name: renamed.get(name[0], name[0]), line) for line in layer]
    print("module {")
    print(f"  func.func @main({', '.join(f'{name}: {kind}' for name, kind in arguments)}) -> {result} {{")
    print("\n".join(constants + layer))
    print(f"    return {args.given} : {result}")
    print("\n".join(lines[ends[0]:]))


main()
