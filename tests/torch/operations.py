#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each operation of the Core ATen list that is read, and more, by itself, against torch.

Usage: operations.py MGPU_TUNE LIBMGT PACKAGE [NAME...]
It prints which are done, refused (core_aten.py has that list) and untested, as this torch lacks them or they give no values.
Floats are within BOUND of the largest number of their result, all others the same.
"""

import os
import sys
import warnings

os.environ["MGPU_TUNE"], os.environ["MGPU_LIBRARY"] = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path.insert(0, sys.argv[3])
try:
    import torch
except ImportError:
    print("skipped: there is no torch")
    sys.exit(1 if os.environ.get("MGPU_REQUIRE_TORCH") else 77)

import mgpu
import mgpu.torch
from core_aten import READ, REFUSED

BOUND, TOGETHER = 4e-6, 12

torch.manual_seed(5)
X, Y, Z = torch.randn(4, 6), torch.randn(4, 6), torch.rand(4, 6) + 0.5  # any numbers twice, positive ones
U = torch.rand(4, 6) * 1.8 - 0.9  # for functions of -1 to 1
I, J, B = torch.randint(-5, 6, (4, 6)), torch.randint(1, 6, (4, 6)), torch.rand(4, 6) > 0.5
IMAGE, LINE, SOLID = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8), torch.randn(2, 3, 8, 8, 8)
AT = torch.tensor([[0, 2, 5], [1, 1, 0], [3, 4, 2], [5, 0, 1]])
V, KERNEL = torch.randn(6), torch.randn(4, 3, 3, 3)
MOMENTS = torch.randn(3), torch.rand(3) + 0.5
DOWN, PLACES = torch.ops.aten.max_pool2d_with_indices(IMAGE, [2, 2])
NORM = torch.ops.aten.native_layer_norm(X, [6], V, V, 1e-5)
GROUPS = torch.ops.aten.native_group_norm(IMAGE, MOMENTS[0], MOMENTS[1], 2, 3, 64, 1, 1e-5)

UNARY = {X: "abs alias any ceil clone copy_ cos erf exp expm1 floor isinf isnan mean neg prod reciprocal relu round sigmoid sign sin sinh cosh tan tanh "
            "trunc gelu elu hardtanh leaky_relu",
         Z: "log log10 log1p log2 rsqrt sqrt", U: "asin acos atan asinh atanh", Z + 1: "acosh", B: "logical_not bitwise_not"}
BINARY = {(X, Y): "add.Tensor sub.Tensor mul.Tensor maximum minimum atan2 eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor",
          (X, Z): "div.Tensor fmod.Tensor remainder.Tensor", (Z, Y): "pow.Tensor_Tensor", (Z, 1.5): "pow.Tensor_Scalar", (1.5, X): "pow.Scalar",
          (X, 0.7): "add.Scalar sub.Scalar mul.Scalar div.Scalar fmod.Scalar remainder.Scalar eq.Scalar ne.Scalar lt.Scalar le.Scalar gt.Scalar ge.Scalar",
          (I, J): "bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor", (I, 5): "bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar",
          (B, X > Y): "logical_and logical_or logical_xor"}
# Arguments, and keyword arguments where the last is a dictionary.
OTHER = {
    "_adaptive_avg_pool2d": (IMAGE, [4, 2]), "_adaptive_avg_pool2d_backward": (torch.randn(2, 3, 4, 2), IMAGE), "_adaptive_avg_pool3d": (SOLID, [2, 4, 2]),
    "_log_softmax": (X, 1, False), "_softmax": (X, 0, False), "_to_copy": (X, {"dtype": torch.float64}), "adaptive_avg_pool1d": (LINE, [4]),
    "addmm": (V[:4], X, Y.t().contiguous()), "amax": (X, [1]), "amin": (X, [0], True), "any.dim": (B, 1), "as_strided": (X, [4, 6], [6, 1]),
    "avg_pool1d": (LINE, [2]), "avg_pool2d": (IMAGE, [3, 3], [2, 2], [1, 1]), "avg_pool3d": (SOLID, [2, 2, 2]),
    "avg_pool2d_backward": (torch.randn(2, 3, 4, 4), IMAGE, [2, 2], [2, 2], [0, 0], False, True, None), "argmax": (X, 1), "argmin": (X, 0), "bmm": (torch.randn(2, 3, 4), torch.randn(2, 4, 5)),
    "cat": ([X, Y], 1), "clamp": (X, -0.5, 0.5), "clamp.Tensor": (X, -Z, Z), "constant_pad_nd": (X, [1, 2, 0, 1], 0.5),
    "convolution": (IMAGE, KERNEL, V[:4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1), "cumsum": (X, 1), "diagonal": (X, 1),
    "convolution_backward": (torch.randn(2, 4, 4, 4), IMAGE, KERNEL, [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True] * 3),
    "div.Scalar_mode": (X, 0.7, {"rounding_mode": "floor"}), "div.Tensor_mode": (X, Z, {"rounding_mode": "trunc"}), "embedding": (X.t().contiguous(), AT),
    "embedding_dense_backward": (torch.randn(4, 3, 5), AT, 6, -1, False), "expand": (V, [3, 6]), "fill.Scalar": (X, 2.5), "flip": (X, [0, 1]), "full_like": (X, 1.5),
    "gather": (X, 1, AT), "index.Tensor": (X, [AT[:, 0] % 4, AT[:, 1]]), "index_put": (X, [torch.tensor([2, 0])], Y[:2]), "index_select": (X, 1, AT[0]),
    "max.dim": (X, 1), "min.dim": (X, 0, True), "max_pool2d_with_indices": (IMAGE, [3, 3], [2, 2], [1, 1]), "max_pool3d_with_indices": (SOLID, [2, 2, 2]),
    "max_pool2d_with_indices_backward": (DOWN * 2, IMAGE, [2, 2], [2, 2], [0, 0], [1, 1], False, PLACES), "mean.dim": (X, [0]), "mm": (X, Y.t().contiguous()),
    "native_group_norm": (IMAGE, MOMENTS[0], MOMENTS[1], 2, 3, 64, 1, 1e-5), "native_layer_norm": (X, [6], V, V, 1e-5),
    "native_group_norm_backward": (torch.randn(2, 3, 8, 8), IMAGE, GROUPS[1], GROUPS[2], MOMENTS[0], 2, 3, 64, 1, [True] * 3),
    "native_layer_norm_backward": (Y, X, [6], NORM[1], NORM[2], V, V, [True] * 3), "native_dropout": (X, 0.5, False), "permute": (IMAGE, [2, 0, 3, 1]), "prod.dim_int": (X, 1),
    "reflection_pad1d": (LINE, [2, 1]), "reflection_pad2d": (IMAGE, [1, 2, 3, 0]), "reflection_pad3d": (SOLID, [1, 2, 3, 0, 1, 1]), "replication_pad2d": (IMAGE, [1, 2, 3, 0]),
    "replication_pad3d": (SOLID, [1, 2, 3, 0, 1, 1]), "repeat": (X, [2, 1, 3]), "scatter.src": (X, 1, AT[:, :1], Y), "scatter.value": (X, 1, AT, 0.5),
    "scatter_add": (X, 1, AT, Y), "scatter_reduce.two": (X, 1, AT, Y, "amax"), "select.int": (X, 0, 2), "select_scatter": (X, V, 0, 1), "slice.Tensor": (X, 1, 1, 6, 2),
    "slice_scatter": (X, Y[:, :2], 1, 1, 3), "sort": (X, 1, True), "split_with_sizes": (X, [1, 3, 2], 1), "squeeze.dim": (X[:1], 0), "sum.dim_IntList": (X, [0, 1]),
    "topk": (X, 2, 1), "unsqueeze": (X, 1), "upsample_nearest2d.vec": (IMAGE, [16, 24], None), "upsample_bilinear2d.vec": (IMAGE, [16, 16], False, None),
    "var.correction": (X, [1], {"correction": 1}), "var.dim": (X, [0]), "view": (X, [2, 12]), "where.self": (B, X, Y),
}
# Numbers on which implementations differ, each with each. Left out are log1p, which torch 1.13 takes for infinite at 3.4e38, and fmod and
# remainder, which it takes for NaN by 1e-39.
ENDS = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -2.5, 3.4e38, 1e-39])
ENDS_X, ENDS_Y = (each.contiguous() for each in torch.broadcast_tensors(ENDS[:, None], ENDS[None, :]))
AT_ENDS = {ENDS_X: "abs ceil cos erf exp expm1 floor isinf isnan neg reciprocal relu round sigmoid sign sin sinh cosh tan tanh trunc gelu elu hardtanh "
                   "leaky_relu log log10 log2 rsqrt sqrt asin acos atan asinh atanh acosh",
           (ENDS_X, ENDS_Y): "add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum atan2 eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor "
                             "pow.Tensor_Tensor logical_and logical_or"}
# More than the list has: what modules are made of.
BEYOND = {
    "celu": (X, 0.7), "prelu": (IMAGE, MOMENTS[0]), "prelu_backward": (DOWN.new_ones(2, 3, 8, 8), IMAGE, MOMENTS[0]), "threshold": (X, 0.1, 0.2),
    "hardshrink": (X, 0.3), "hardshrink_backward": (Y, X, 0.3), "softshrink": (X, 0.3), "softshrink_backward": (Y, X, 0.3), "glu": (X, 1),
    "glu_backward": (Y[:, :3], X, 1), "mish": (X,), "mish_backward": (Y, X), "norm.Scalar": (X, 3), "norm.ScalarOpt_dim": (X, 1.5, [1], True),
    "linalg_vector_norm": (X, float("-inf"), [0], False), "avg_pool3d_backward": (torch.randn(2, 3, 4, 4, 4), SOLID, [3, 3, 3], [2, 2, 2], [1, 1, 1], False,
                                                                                    False, None),
    "upsample_nearest1d.vec": (LINE, [16], None), "upsample_nearest1d": (LINE, [24]), "upsample_linear1d.vec": (LINE, [12], False, None),
    "upsample_nearest1d_backward": (torch.randn(2, 3, 16), [16], [2, 3, 8]), "upsample_linear1d_backward": (torch.randn(2, 3, 12), [12], [2, 3, 8], True),
    "upsample_nearest2d_backward": (torch.randn(2, 3, 16, 24), [16, 24], [2, 3, 8, 8]),
    "upsample_bilinear2d_backward": (torch.randn(2, 3, 16, 12), [16, 12], [2, 3, 8, 8], False),
    "reflection_pad1d_backward": (torch.randn(2, 3, 11), LINE, [2, 1]), "reflection_pad2d_backward": (torch.randn(2, 3, 11, 11), IMAGE, [1, 2, 3, 0]),
    "reflection_pad3d_backward": (torch.randn(2, 3, 10, 9, 11), SOLID, [1, 2, 0, 1, 1, 1]), "sgn": (X,), "pixel_shuffle": (torch.randn(2, 8, 3, 3), 2), "pixel_unshuffle": (IMAGE, 4),
    "replication_pad1d_backward": (torch.randn(2, 3, 11), LINE, [2, 1]), "replication_pad2d_backward": (torch.randn(2, 3, 11, 11), IMAGE, [1, 2, 3, 0]),
    "replication_pad3d_backward": (torch.randn(2, 3, 10, 9, 11), SOLID, [1, 2, 0, 1, 1, 1]),
    "_prelu_kernel": (IMAGE, MOMENTS[0].reshape(1, 3, 1, 1)), "_prelu_kernel_backward": (torch.ones(2, 3, 8, 8), IMAGE, MOMENTS[0].reshape(1, 3, 1, 1)),
    "xlogy.Tensor": (torch.tensor([0.0, 0.0, 2.0, 0.5]), torch.tensor([0.0, float("nan"), 3.0, 0.0])), "xlogy.Scalar_Self": (1.5, X.abs()),
    "xlogy.Scalar_Other": (X, 2), "zero": (X,), "expand_copy": (MOMENTS[0], [2, 3]), "linspace": (0.0, 1.0, 5), "native_batch_norm": (IMAGE, MOMENTS[0], MOMENTS[1], None, None, True, 0.1, 1e-5),
}
CREATED = {"arange.start_step": (1, 9, 2), "full": ([2, 3], 1.5), "scalar_tensor": (2.5,)}


def calls():
    """Operation -> its arguments, keywords."""
    given = {name: [argument] for argument, names in UNARY.items() for name in names.split()}
    given.update({name: list(arguments) for arguments, names in BINARY.items() for name in names.split()})
    given.update({name: list(arguments) for name, arguments in {**OTHER, **BEYOND, **CREATED}.items()})
    return {name: (arguments[:-1], arguments[-1]) if isinstance(arguments[-1], dict) else (arguments, {}) for name, arguments in given.items()}


def calls_at_ends():
    return {name: (list(arguments) if isinstance(arguments, tuple) else [arguments], {})
            for arguments, names in AT_ENDS.items() for name in names.split()}


def operation(name):
    packet, _, overload = name.partition(".")
    try:
        return getattr(getattr(torch.ops.aten, packet), overload or "default")
    except (AttributeError, RuntimeError):
        return None


def together(names, given):
    """A function of all their tensors that gives all their results, and the tensors."""
    tensors, wheres = [], {}
    for name in names:
        for value in mgpu.torch._flat(given[name]):
            if isinstance(value, torch.Tensor) and id(value) not in wheres:
                wheres[id(value)] = len(tensors)
                tensors.append(value)

    def function(*values):
        def taken(each):
            if isinstance(each, list):
                return [taken(inner) for inner in each]
            return values[wheres[id(each)]] if isinstance(each, torch.Tensor) else each
        results = []
        for name in names:
            arguments, keywords = given[name]
            found = operation(name)(*map(taken, arguments), **keywords)
            kept = found[:1] if name == "native_dropout" else found
            results.append([each.clone() for each in mgpu.torch._flat(kept) if each is not None and each.numel()])
        return results

    return function, tensors


def is_traced(name, given):
    """Whether this torch has the operation, and traces it as what it is."""
    if operation(name) is None:
        return False
    function, tensors = together([name], given)
    try:
        graph = mgpu.torch.make_fx(mgpu.torch.functionalize(function, remove="mutations"))(*tensors)
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return any(node.target is operation(name) for node in graph.graph.nodes)


def fault_of(found, want):
    for k, (one, other) in enumerate(zip(found, want)):
        if not (one.isfinite() & other.isfinite()).all():
            odd = ~(one.isfinite() & other.isfinite())
            same = (one == other) | (one.isnan() & other.isnan())
            if not same[odd].all():
                at = int((odd & ~same).flatten().nonzero()[0])
                return f"element {at} of result {k} is {one.flatten()[at]}, not {other.flatten()[at]}"
            one, other = one.masked_fill(odd, 0), other.masked_fill(odd, 0)
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"result {k} is {tuple(one.shape)} of {one.dtype}, not {tuple(other.shape)} of {other.dtype}"
        gap = float((one.double() - other.double()).abs().max())
        if not gap <= (BOUND * max(float(other.double().abs().max()), 1.0) if other.is_floating_point() else 0):
            return f"result {k} is off by {gap:.3g}"
    return "" if len(found) == len(want) else f"{len(found)} results, not {len(want)}"


def compare(given, asked):
    """The operations that were compared, and how many differ."""
    names = [name for name in [*READ, *BEYOND] if name in given and (not asked or name in asked) and is_traced(name, given)]
    faults = 0
    for at in range(0, len(names), TOGETHER):
        group = names[at:at + TOGETHER]
        function, tensors = together(group, given)
        try:
            found = mgpu.compile(function, tensors, fallback=False)(*tensors)
        except mgpu.Error as error:
            faults += 1
            print(f"{' '.join(group)}: {str(error)[:600]}")
            continue
        for name, one, other in zip(group, found, function(*tensors)):
            fault = fault_of(one, other)
            if fault:
                faults += 1
                print(f"{name}: {fault}")
    return names, faults


def main():
    warnings.simplefilter("ignore")
    names, faults = compare(calls(), sys.argv[4:])
    ends, wrong = compare(calls_at_ends(), sys.argv[4:])
    untested = [name for name in READ if name not in names]
    more = [name for name in names if name in BEYOND]
    print(f"{len(names) - len(more)} done, {len(ends)} of them at ends of their range, {len(REFUSED)} refused, {len(untested)} untested: {' '.join(untested)}; beyond the list {len(more)} done: {' '.join(more)}")
    sys.exit("FAIL" if faults + wrong else 0)


if __name__ == "__main__":
    main()
