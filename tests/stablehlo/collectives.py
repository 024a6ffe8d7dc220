# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of random programs. Each is in a manual computation of its own, whose tensors have a device's part in
each entry of their first dimension."""

import functools

import numpy as np

from draw import ALL, FLOATS, WIDE_INTEGERS, combiner, same, type_of
from evaluate import KINDS
from operations import DRAWN, draws, folded, reducers

MOVED = [kind for kind in ALL if KINDS[kind].bits >= 8 or kind == "i1"]
REDUCED = WIDE_INTEGERS + FLOATS


def groups_of(p, partial=False):
    """The devices in groups of one size, in any order; `partial`: some may be in none."""
    count = p.mesh()
    size = p.rng.choice([k for k in range(1, count + 1) if count % k == 0])
    order = p.rng.sample(range(count), count)
    groups = [order[k:k + size] for k in range(0, count, size)]
    return groups[:p.rng.randint(1, len(groups))] if partial else groups


def attribute(rows):
    return f"dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


HANDLE = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def collective(p, name, kind, shape, out, compute, attributes, region=""):
    """`compute` gives what each device has of what each had; `kind` is that of the result."""
    count = p.mesh()
    args = [p.operand(kind, (count, *shape), True)] if shape is not None else []
    own = [type_of((1, *shape), kind)] if args else []
    part, made = type_of(shape, kind) if args else "", type_of(out, kind)
    split = "<@mesh, [{\"x\"}" + ", {}" * len(shape or ()) + "]>" if args else ""
    gives = "<@mesh, [{\"x\"}" + ", {}" * len(out) + "]>"
    attributes = f" <{{{attributes}}}>" if attributes else ""
    lines = []
    if args:
        lines.append(f'%c1 = "stablehlo.reshape"(%c0) : ({own[0]}) -> {part}')
    lines.append(f'%c2 = "stablehlo.{name}"({"%c1" if args else ""}){attributes}{region} : ({part}) -> {made}')
    lines.append(f'%c3 = "stablehlo.reshape"(%c2) : ({made}) -> {type_of((1, *out), kind)}')
    p.op(name, args, [(kind, (count, *out))],
         lambda have, a, k: same(have, compute(*a).astype(KINDS[kind].dtype), zeros=True))
    inner = f"%c0: {own[0]}" if args else ""
    left, types = p.lines[-1].split(" = ", 1)[0], p.lines[-1].rsplit(" : ", 1)[1]
    body = "".join(f"    {line}\n" for line in lines)
    p.lines[-1] = f"{left} = sdy.manual_computation({', '.join(v.name for v in args)}) in_shardings=[{split}] " \
                  f"out_shardings=[{gives}] manual_axes={{\"x\"}} ({inner}) {{\n{body}    sdy.return %c3 : " \
                  f"{type_of((1, *out), kind)}\n  }} : {types}"


def by_group(groups, out_of, x):
    """What `out_of(parts of a group, place in it)` gives, by device."""
    made = [None] * len(x)
    for group in groups:
        for k, device in enumerate(group):
            made[device] = out_of([x[other] for other in group], k)
    return np.stack(made)


@draws
def all_gather(p):
    kind, groups, shape = p.rng.choice(MOVED), groups_of(p), p.shape(1)
    axis = p.rng.randrange(len(shape))
    out = [size * (len(groups[0]) if k == axis else 1) for k, size in enumerate(shape)]
    collective(p, "all_gather", kind, shape, out, lambda x: by_group(groups, lambda all_, k: np.concatenate(all_, axis), x),
               f"all_gather_dim = {axis} : i64, replica_groups = {attribute(groups)}, {HANDLE}, use_global_device_ids")


@draws
def all_reduce(p):
    kind, groups, shape = p.rng.choice(REDUCED), groups_of(p), p.shape()
    name = p.rng.choice(reducers(kind))
    collective(p, "all_reduce", kind, shape, shape, lambda x: by_group(groups, lambda all_, k: reduced(name, kind, all_), x),
               f"replica_groups = {attribute(groups)}, {HANDLE}, use_global_device_ids", combiner(name, kind))


def reduced(name, kind, parts):
    return folded(name, kind, parts[0], np.stack(parts[1:], -1)) if len(parts) > 1 else parts[0]


@draws
def reduce_scatter(p):
    kind, groups, out = p.rng.choice(REDUCED), groups_of(p), p.shape(1)
    axis, name, size = p.rng.randrange(len(out)), p.rng.choice(reducers(kind)), len(groups[0])
    shape = [each * (size if k == axis else 1) for k, each in enumerate(out)]
    collective(p, "reduce_scatter", kind, shape, out, lambda x: by_group(
        groups, lambda all_, k: np.split(reduced(name, kind, all_), size, axis)[k], x),
        f"scatter_dimension = {axis} : i64, replica_groups = {attribute(groups)}, {HANDLE}, use_global_device_ids",
        combiner(name, kind))


@draws
def all_to_all(p):
    kind, groups, shape = p.rng.choice(MOVED), groups_of(p), list(p.shape(1))
    split, to, size = p.rng.randrange(len(shape)), p.rng.randrange(len(shape)), len(groups[0])
    shape[split] *= size
    out = list(shape)
    out[split] //= size
    out[to] *= size
    collective(p, "all_to_all", kind, shape, out, lambda x: by_group(groups, lambda all_, k: np.concatenate(
        [np.split(each, size, split)[k] for each in all_], to), x),
        f"split_dimension = {split} : i64, concat_dimension = {to} : i64, split_count = {size} : i64, "
        f"replica_groups = {attribute(groups)}, {HANDLE}")


@draws
def collective_broadcast(p):
    kind, groups, shape = p.rng.choice(MOVED), groups_of(p, partial=True), p.shape()

    def compute(x):
        made = np.zeros_like(x)
        for group in groups:
            made[group] = x[group[0]]
        return made
    collective(p, "collective_broadcast", kind, shape, shape, compute, f"replica_groups = {attribute(groups)}, {HANDLE}")


@draws
def collective_permute(p):
    kind, shape, count = p.rng.choice(MOVED), p.shape(), p.mesh()
    pairs = list(zip(p.rng.sample(range(count), count), p.rng.sample(range(count), count)))[:p.rng.randint(1, count)]

    def compute(x):
        made = np.zeros_like(x)
        for source, target in pairs:
            made[target] = x[source]
        return made
    collective(p, "collective_permute", kind, shape, shape, compute,
               f"source_target_pairs = {attribute([list(pair) for pair in pairs])}, {HANDLE}")


def number(p, name):
    count = p.mesh()
    collective(p, name, "ui32", None, (), lambda: np.arange(count) if name == "partition_id" else np.zeros(count), "")


DRAWN.extend(functools.partial(number, name=each) for each in ("partition_id", "replica_id"))
