#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of scatter, each judged by the specification: how updates and indices have their dimensions.

    scatters.py MGPU_TUNE

All forms are one program of random numbers, in which indices may be out of range and updates may meet.
Each has a reducer that adds and one that replaces, and its operand is read afterwards, too; a form whose
operand is donated or constant is one of its own.
"""

import random
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy (python3-numpy)")
    sys.exit(77)

from draw import Program
from operations import scatter_of
from random_programs import faults_of, run

# Shapes of operand, indices and updates, then window dimensions, inserted ones, where indices go, the
# dimension of an index, and batching dimensions of operand and indices.
FORMS = [
    ((8,), (3, 1), (3, 1), [1], [], [0], 1), ((8,), (1,), (3,), [0], [], [0], 0), ((8,), (1, 1), (1, 3), [1], [], [0], 1),
    ((8, 5), (6, 1), (6, 5), [1], [0], [0], 1),
    # Windows that indices move.
    ((8,), (3, 1), (3, 2), [1], [], [0], 1), ((8,), (3, 1), (3, 3), [1], [], [0], 1),
    ((8,), (3, 1), (2, 3), [0], [], [0], 1), ((8,), (3, 1), (3, 3), [0], [], [0], 1),
    ((8, 5), (3, 1), (3, 2, 5), [1, 2], [], [0], 1), ((8, 5), (3, 2), (3, 2, 2), [1, 2], [], [0, 1], 1),
    ((8, 5), (3, 1), (3, 8, 2), [1, 2], [], [1], 1), ((8, 5), (3, 2), (3, 2), [1], [0], [0, 1], 1),
    ((8, 5), (2,), (2, 3), [0, 1], [], [0, 1], 0),
    # Indices of several dimensions: the gradient of an embedding of [batch, position], for one.
    ((8, 5), (3, 2, 1), (3, 2, 5), [2], [0], [0], 2), ((8,), (3, 2, 1), (3, 2), [], [0], [0], 2),
    ((4, 5), (2, 3, 1), (2, 3, 5), [2], [0], [0], 2), ((8, 5), (3, 2), (3, 2, 5), [2], [0], [0], 2),
    ((4, 8, 5), (3, 2, 2), (3, 2, 4), [2], [0, 1], [0, 1], 2),
    ((2, 8), (2, 3, 1), (2, 3, 2), [2], [], [1], 2, [0], [0]),
    ((3, 4, 2), (2, 3, 2), (2, 3, 2, 2), [2, 3], [0], [1, 0], 2),
    ((2, 3, 4, 2), (2, 2, 3, 2), (2, 2, 3, 2, 2), [3, 4], [1], [2, 1], 3, [0], [1]),
    ((3, 4, 2), (2, 2, 3), (2, 3, 2), [2], [0, 1], [1, 0], 1)]


def spec_of(window, inserted, index_map, axis, batching=(), of_indices=()):
    return {"window_dims": window, "inserted": inserted, "index_map": index_map, "index_vector_dim": axis,
            "input_batching": list(batching), "indices_batching": list(of_indices)}


def program():
    rng, numbers = random.Random(1), np.random.default_rng(1)
    made = Program(rng, numbers, [])
    for operand, indices, updates, *rest in FORMS:
        for name, kind in (("add", "f32"), ("replace", "f32"), ("add", "i64")):
            where = made.argument("i32", indices, numbers.integers(-1, max(operand) + 1, indices))
            before = made.argument(kind, operand, small=True)
            scatter_of(made, [kind], [name], where, operand, updates, spec_of(*rest), operands=[before])
            made.exactly("negate", [before], kind, operand, np.negative)
    # Indices that do not meet, a constant operand, and one whose place the result takes.
    where = made.argument("i32", (3, 1), [[0], [3], [5]])
    scatter_of(made, ["f32"], ["add"], where, (8,), (3, 2), spec_of([1], [], [0], 1), unique=True)
    where = made.argument("i32", (2, 3, 1), [[[0], [1], [1]], [[3], [0], [9]]])
    zeros = made.exactly("constant", [], "f32", (4, 5), lambda: np.zeros((4, 5), np.float32),
                         "value = dense<0.0> : tensor<4x5xf32>")
    scatter_of(made, ["f32"], ["add"], where, (4, 5), (2, 3, 5), spec_of([2], [0], [0], 2), operands=[zeros])
    state = made.argument("f32", (4, 5), small=True)
    [result] = scatter_of(made, ["f32"], ["add"], where, (4, 5), (2, 3, 5), spec_of([2], [0], [0], 2), operands=[state])
    made.donated = (state.name[1:], result.name)
    for value in made.values:
        made.give(value)
    return made


def main():
    made = program()
    with tempfile.TemporaryDirectory() as folder:
        code, said, found = run(sys.argv[1], folder, made)
    faults = list(faults_of(made, found))
    print("\n".join(faults))
    if code or "warning" in said:
        print(f"exit {code}: {said[-2000:]}")
    print(f"{len(made.judged)} operations, {len(faults)} faults")
    return 1 if code or faults or "warning" in said else 0


if __name__ == "__main__":
    sys.exit(main())
