# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of any length, each of one kind, whose check should cost so many times as much as it is
times as long."""

HEAD = "func.func @main({}) -> tensor<{}xf32> {{\n"


def matmuls(count):
    """A chain of linalg.matmul and arith.maximumf."""
    lines = [HEAD.format("%x: tensor<8x8xf32>, %w: tensor<8x8xf32>", "8x8"),
             "  %zero = arith.constant dense<0.0> : tensor<8x8xf32>\n"]
    last = "%x"
    for k in range(count // 2):
        lines.append(f"  %m{k} = linalg.matmul ins({last}, %w : tensor<8x8xf32>, tensor<8x8xf32>)"
                     " outs(%zero : tensor<8x8xf32>) -> tensor<8x8xf32>\n"
                     f"  %r{k} = arith.maximumf %m{k}, %zero : tensor<8x8xf32>\n")
        last = f"%r{k}"
    return "".join(lines) + f"  return {last} : tensor<8x8xf32>\n}}\n"


def dots(count):
    """A chain of stablehlo.dot_general and stablehlo.maximum."""
    lines = [HEAD.format("%x: tensor<8x8xf32>, %w: tensor<8x8xf32>", "8x8"),
             "  %zero = stablehlo.constant dense<0.0> : tensor<8x8xf32>\n"]
    last = "%x"
    for k in range(count // 2):
        lines.append(f"  %m{k} = stablehlo.dot_general {last}, %w, contracting_dims = [1] x [0] :"
                     " (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
                     f"  %r{k} = stablehlo.maximum %m{k}, %zero : tensor<8x8xf32>\n")
        last = f"%r{k}"
    return "".join(lines) + f"  return {last} : tensor<8x8xf32>\n}}\n"


def tree(count):
    """Pairs of pairs of products, each leaf with a constant of its own."""
    lines = [HEAD.format("%x: tensor<8x8xf32>", "8x8")]
    made, number = [], 0
    for k in range(count // 3):
        lines.append(f"  %c{k} = stablehlo.constant dense<{k}.5> : tensor<8x8xf32>\n"
                     f"  %a{k} = stablehlo.add %x, %c{k} : tensor<8x8xf32>\n")
        made.append(f"%a{k}")
    while len(made) > 1:
        above = []
        for a, b in zip(made[::2], made[1::2]):
            lines.append(f"  %d{number} = stablehlo.dot_general {a}, {b}, contracting_dims = [1] x [0] :"
                         " (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n")
            above.append(f"%d{number}")
            number += 1
        made = above + ([made[-1]] if len(made) % 2 else [])
    return "".join(lines) + f"  return {made[0]} : tensor<8x8xf32>\n}}\n"


def elementwise(count):
    """A chain of sums and products, elements by elements."""
    lines = [HEAD.format("%x: tensor<64xf32>, %y: tensor<64xf32>", "64")]
    last = "%x"
    for k in range(count):
        lines.append(f"  %v{k} = stablehlo.{'add' if k % 2 else 'multiply'} {last}, %y : tensor<64xf32>\n")
        last = f"%v{k}"
    return "".join(lines) + f"  return {last} : tensor<64xf32>\n}}\n"


def softmax(count):
    """Layers of a product and a softmax of its rows, in eleven operations."""
    lines = [HEAD.format("%x: tensor<8x8xf32>, %w: tensor<8x8xf32>", "8x8"),
             "  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
             "  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"]
    last = "%x"
    square, row = "tensor<8x8xf32>", "tensor<8xf32>"
    for k in range(count // 8):
        lines.append(
            f"  %m{k} = stablehlo.dot_general {last}, %w, contracting_dims = [1] x [0] :"
            f" ({square}, {square}) -> {square}\n"
            f"  %t{k} = stablehlo.reduce(%m{k} init: %low) applies stablehlo.maximum across dimensions = [1] :"
            f" ({square}, tensor<f32>) -> {row}\n"
            f"  %u{k} = stablehlo.broadcast_in_dim %t{k}, dims = [0] : ({row}) -> {square}\n"
            f"  %s{k} = stablehlo.subtract %m{k}, %u{k} : {square}\n"
            f"  %e{k} = stablehlo.exponential %s{k} : {square}\n"
            f"  %z{k} = stablehlo.reduce(%e{k} init: %zero) applies stablehlo.add across dimensions = [1] :"
            f" ({square}, tensor<f32>) -> {row}\n"
            f"  %b{k} = stablehlo.broadcast_in_dim %z{k}, dims = [0] : ({row}) -> {square}\n"
            f"  %q{k} = stablehlo.divide %e{k}, %b{k} : {square}\n")
        last = f"%q{k}"
    return "".join(lines) + f"  return {last} : tensor<8x8xf32>\n}}\n"


KINDS = {made.__name__: made for made in (matmuls, dots, tree, elementwise, softmax)}
