#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user may give mgpu.compile and do with what it returns: forms of inputs and results, tensors in any memory, changes of
inputs and buffers, parts in torch, and what is refused, against torch itself.

Usage: calls.py MGPU_TUNE LIBMGT PACKAGE [NAME...]
"""

import concurrent.futures
import copy
import ctypes
import glob
import io
import os
import shutil
import struct
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

os.environ["MGPU_TUNE"], os.environ["MGPU_LIBRARY"] = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sys.path.insert(0, sys.argv[3])
try:
    import torch
except ImportError:
    print("skipped: there is no torch")
    sys.exit(1 if os.environ.get("MGPU_REQUIRE_TORCH") else 77)

import hostile
import mgpu
import mgpu.torch
import numpy
from torch import nn
from torch.nn import functional as F

BOUND = 4e-6
torch.manual_seed(7)
X, Y = torch.randn(3, 4), torch.randn(3, 4)
LINEAR = nn.Linear(4, 2)


class Compared(unittest.TestCase):
    def same(self, found, want):
        found, want = mgpu.torch._flat(found), mgpu.torch._flat(want)
        self.assertEqual(len(found), len(want))
        for one, other in zip(found, want):
            if not isinstance(other, torch.Tensor):
                self.assertEqual(one, other)
                continue
            self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
            one, other = (each.to_dense() if each.is_sparse else each for each in (one, other))
            gap = float((one.detach().double() - other.detach().double()).abs().max()) if other.numel() else 0.0
            self.assertLessEqual(gap, BOUND * max(1.0, float(other.detach().double().abs().max()) if other.numel() else 1.0))

    def both(self, function, *inputs, parts=None):
        """The function, compiled and as it is, gives the same results and leaves its inputs the same; `parts` is a word of the
        one reason for which torch runs a part."""
        compiled = mgpu.compile(function, copy.deepcopy(inputs))
        for _ in range(2):
            ours, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
            for _ in range(2):
                self.same(compiled(*ours), function(*theirs))
                self.same(ours, theirs)
        self.assertEqual(len(compiled.reasons), 0 if parts is None else 1, compiled.reasons)
        self.assertIn(parts or "", "".join(compiled.reasons))
        self.assertNotIn(tempfile.gettempdir(), "".join(compiled.reasons))
        return compiled

    def refused(self, kind, words, function):
        with self.assertRaises(kind) as said:
            function()
        self.assertIn(words, str(said.exception))


class Forms(Compared):
    """Trees of inputs and results."""

    def test_results_that_are_no_tensors(self):
        self.both(lambda x: {"y": x + 1, "none": None, "more": (3, "name", [x])}, X)

    def test_one_result_twice_and_inputs_as_results(self):
        self.both(lambda x, y: (x, y * 2, x), X, Y)
        self.both(lambda x: (lambda y: (y, y))(x + 1), X)

    def test_no_inputs(self):
        self.both(lambda: torch.ones(3) * 2)

    def test_numbers_are_part_of_the_program(self):
        compiled = self.both(lambda x, factor, mask=None: x * factor if mask is None else x, X, 3, None)
        for words, inputs in (("compiled for 3, and is given 4", (X, 4, None)), ("given True", (X, True, None)),
                              ("given a tensor", (X, X, None)), ("for None", (X, 3, 1)), ("where int is given", (3, 3, None))):
            self.refused(mgpu.UsageError, words, lambda: compiled(*inputs))

    def test_a_nan_is_a_number_of_its_own(self):
        compiled = mgpu.compile(lambda x, least: x * 2 if least != least else x, (X, float("nan")))
        self.same(compiled(X, float("nan")), X * 2)
        for given in (0.0, None):
            self.refused(mgpu.UsageError, "compiled for nan", lambda: compiled(X, given))
        self.refused(mgpu.UsageError, "is given nan", lambda: mgpu.compile(lambda x, y: x * y, (X, 1.0))(X, float("nan")))

    def test_a_call_of_another_form(self):
        compiled = self.both(lambda d: d["a"] - d["b"], {"a": X, "b": Y})
        for given in ({"b": X, "a": Y}, {"a": X, "c": Y}, [X, Y]):
            self.refused(mgpu.UsageError, "another form", lambda: compiled(given))
        self.refused(mgpu.UsageError, "for 1 inputs, and 2 are given", lambda: compiled({"a": X, "b": Y}, X))
        self.refused(mgpu.UsageError, "compile it again", lambda: compiled({"a": X, "b": Y[:2]}))
        self.refused(mgpu.UsageError, "compile it again", lambda: compiled({"a": X, "b": Y.double()}))

    def test_what_is_no_tuple_or_no_tensor(self):
        self.refused(mgpu.UsageError, "(x,) where that is one tensor", lambda: mgpu.compile(LINEAR, X))
        self.refused(mgpu.UsageError, "an input is ndarray", lambda: mgpu.compile(LINEAR, (X.numpy(),)))

    def test_arguments_have_the_names_of_forward(self):
        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.x = nn.Linear(4, 2), nn.Parameter(torch.randn(4))

            def forward(self, x, input, parts, *more):  # pylint: disable=redefined-builtin
                return self.linear(x + self.x + input + parts[0] + parts[1] + more[0])

        compiled = self.both(Named(), X, Y, (X + 1, Y + 1), X + 2)
        with tempfile.TemporaryDirectory() as folder:
            compiled.save(f"{folder}/named.mgpu")
            with mgpu.load(f"{folder}/named.mgpu") as program:
                self.assertEqual(list(program.arguments), ["x", "linear.weight", "linear.bias", "x_input", "input", "parts_0", "parts_1",
                                                           "input3", "r0"])


class Memory(Compared):
    """Tensors in any memory."""

    def test_views_and_gaps(self):
        compiled = mgpu.compile(LINEAR, (X,))
        for x in (torch.randn(4, 3).t(), torch.randn(10, 4)[2:5], torch.randn(1, 4).expand(3, 4), torch.randn(3, 8)[:, ::2],
                  torch._neg_view(X), X.clone().requires_grad_()):
            self.same(compiled(x), LINEAR(x))

    def test_elements_that_begin_anywhere(self):
        memory = numpy.frombuffer(bytearray(60), dtype=numpy.float32, count=12, offset=3).reshape(3, 4)
        x = torch.from_numpy(memory)
        x.copy_(X)
        self.same(mgpu.compile(LINEAR, (X,))(x), LINEAR(X))

    def test_a_view_that_is_changed(self):
        def double(x):
            x.mul_(2)
            return x + 1

        memory = torch.randn(4, 3)
        want = memory.clone()
        self.same(mgpu.compile(double, (X,))(memory.t()), double(want.t()))
        self.same(memory, want)

    def test_types(self):
        for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
            x = torch.randint(-9, 9, (3, 4)).to(dtype)
            self.both(lambda x: (x * 2, x.sum(), x.float().mean(), x % 4, x > 0), x)
        self.both(lambda x, y: (x & ~y, x.any(0), (x == y).all()), X > 0, Y > 0)
        self.both(lambda x: x * 2.5, torch.tensor(2.0, dtype=torch.float64))
        self.both(lambda x: x * 2, torch.zeros(0, 3))
        self.both(lambda x: x * 2, torch.ones(3, 4, dtype=torch.bfloat16))

    def test_bags_of_one_size(self):
        ids = torch.randint(0, 10, (5, 3))
        for mode in ("sum", "mean"):
            self.both(nn.EmbeddingBag(10, 4, mode=mode), ids)
            mine = nn.EmbeddingBag(10, 4, mode=mode)
            theirs = copy.deepcopy(mine)
            loss, target = F.mse_loss, torch.randn(5, 4)
            step = mgpu.compile(mine, (ids, target), train=torch.optim.SGD(mine.parameters(), 0.5), loss=loss)
            for _ in range(2):
                value = loss(theirs(ids), target)
                self.same(step(ids, target), value)
                for weight in theirs.parameters():
                    weight.data -= 0.5 * torch.autograd.grad(value, weight)[0]
            step.sync()
            self.same(mine.weight, theirs.weight)
        shares = torch.rand(5, 3)
        self.both(lambda ids, shares: F.embedding_bag(ids, LINEAR.weight.t(), mode="sum", per_sample_weights=shares), ids % 4, shares)
        for size in (2, 3, 4):  # the last bag is smaller
            self.both(lambda ids: F.embedding_bag(ids, LINEAR.weight.t(), torch.arange(0, 6, size)), ids.flatten()[:6] % 4)

    def test_bags_with_a_last_offset(self):
        for mode in ("sum", "mean"):
            bags = nn.EmbeddingBag(10, 4, mode=mode, include_last_offset=True)
            self.both(bags, torch.tensor([1, 2, 3, 4, 9]), torch.tensor([0, 2, 2, 5]))

    def test_pixels_of_any_rank(self):
        for sizes in ((8, 3, 6), (2, 8, 3, 6), (3, 2, 4, 2, 3)):
            self.both(lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2)), torch.randn(sizes))
        self.both(lambda x: F.pixel_unshuffle(x, 3), torch.randn(2, 6, 9))

    def test_results_outlive_the_program(self):
        compiled = mgpu.compile(LINEAR, (X,))
        folder = compiled._whole().folder
        result = compiled(X)
        want = result.clone()
        del compiled
        self.assertFalse(glob.glob(folder))
        self.same(result, want)


    def test_dlpack_in_and_out(self):
        values = {"b": torch.tensor([True, False, True]), "h": torch.randn(2, 2).bfloat16(), "z": torch.zeros(0, 4), "f": X, "i": torch.arange(3),
                  "g": torch.randn(2).half(), "n": torch.tensor(2.5, dtype=torch.float64)}
        kinds = {"b": "3xi1", "h": "2x2xbf16", "z": "0x4xf32", "f": "3x4xf32", "i": "3xi64", "g": "2xf16", "n": "f64"}
        types = [f"tensor<{kind}>" for kind in kinds.values()]
        adds = [f"  %r{k} = stablehlo.add %{name}, %{name} : {type}\n" for k, (name, type) in enumerate(zip(kinds, types))]
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
            arguments, results = ", ".join(f"%{name}: {type}" for name, type in zip(kinds, types)), ", ".join(types)
            file.write(f"func.func @main({arguments}) -> ({results}) {{\n{''.join(adds)}"
                       f"  return {', '.join(f'%r{k}' for k in range(len(kinds)))} : {results}\n}}\n")
            file.flush()
            program = mgpu.open(file.name)
        found = program(**values)
        for k, value in enumerate(values.values()):
            result, live = found[f"r{k}"], program.array(f"r{k}")
            self.assertEqual(mgpu._arrays.take("r", Only(result), result.type, result.shape), result.tobytes())
            taken = [mgpu.torch.from_dlpack(each) for each in (result, live)]
            for each, array in zip(taken, (result, live)):
                self.same(each, value | value if value.dtype is torch.bool else value + value)
                self.assertTrue(value.numel() == 0 or each.data_ptr() == ctypes.addressof(array._owner))
        with unittest.mock.patch.object(torch.Tensor, "__array__", None):  # NumPy is not needed
            program.write("b", ~values["b"])
            program.write("b", Only(values["b"].view(torch.uint8)))
            with self.assertRaisesRegex(mgpu.UsageError, "gaps or another order"):
                program.write("b", torch.ones(3, 2, dtype=torch.bool)[:, 0])
        with self.assertRaisesRegex(mgpu.UsageError, "gaps or another order"):
            program.write("f", torch.randn(4, 3).t())
        with self.assertRaisesRegex(mgpu.UsageError, "'f': .*detach"):
            program.write("f", X.clone().requires_grad_())
        want = taken[0].clone()
        del program, result, live, found  # the tensors keep the memory
        self.same(taken, [want, want])


class Only:
    """An array that has nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        return self.array.__dlpack__()


class Changes(Compared):
    """Inputs and buffers that change."""

    def test_inputs(self):
        def through_a_view(x):
            row = x[0]
            row.add_(1)
            return x.sum(), row

        def swapped(x, y):
            kept = x.clone()
            x.copy_(y)
            y.copy_(kept)
            return x - y

        def both_changed(x, y):
            x.add_(y)
            y.mul_(x)
            return x @ y.t()

        self.both(through_a_view, X)
        self.both(swapped, X, Y)
        self.both(both_changed, X, Y)

    def test_results_that_are_views_of_what_changes(self):
        def two_views(x):
            rows, middle = x.view(4, 3), x.reshape(-1)[2:9]
            middle.mul_(3)
            rows[0] += 1
            return rows, middle, x.clone()

        self.both(two_views, X)
        self.both(lambda x, y: (x.copy_(y), y.zero_(), x + y), X, Y)
        self.both(lambda x, y: (x.copy_(y), y.mul_(2), x), X.to(torch.uint8), Y.to(torch.uint8), parts="uint8")
        self.both(lambda x, y: (y.copy_(x), x[0].copy_(torch.zeros(4)), torch.linalg.matrix_exp(x @ x.t()), x), X, Y, parts="matrix_exp")

    def test_statistics_that_are_inputs(self):
        self.both(lambda x, mean, var: F.batch_norm(x, mean, var, training=True), X, torch.randn(4), torch.rand(4))
        self.both(lambda x, mean, var: F.batch_norm(x, mean * 1, var * 1, training=True), X, torch.randn(4), torch.rand(4))

    def test_one_memory_twice(self):
        def added(x, y):
            x.add_(1)
            return x + y

        compiled = mgpu.compile(added, (X.clone(), Y.clone()))
        x = X.clone()
        self.refused(mgpu.UsageError, "overlap", lambda: compiled(x, x))
        self.both(lambda x, y: x * 2 + y, X, X)

    def test_results_as_inputs(self):
        compiled = mgpu.compile(lambda x, y: (x + y, x - y), (X, Y))
        ours, theirs = (X, Y), (X, Y)
        for _ in range(3):
            kept, ours, theirs = ours, compiled(*ours), (theirs[0] + theirs[1], theirs[0] - theirs[1])
            self.same(ours, theirs)
        self.same(compiled(kept[1], kept[1]), (kept[1] * 2, X * 0))
        changing = mgpu.compile(lambda x, y: x.add_(y) * 2, (X, Y))
        ours, theirs = [X.clone(), Y.clone()], [X.clone(), Y.clone()]
        for first in (0, 1, 0):
            self.same(changing(ours[first], ours[1 - first]), theirs[first].add_(theirs[1 - first]) * 2)
            self.same(ours, theirs)

    def test_state_and_an_input_that_changes(self):
        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros(4))

            def forward(self, x):
                self.count.add_(x.mean(0))
                return x.mul_(2) + self.count

        mine, theirs, x = Counting(), Counting(), torch.randn(8, 4)
        for options in ({}, {"devices": 2, "data_parallel": True}):
            compiled = mgpu.compile(mine, (x,), **options)
            self.assertEqual(compiled.reasons, [])
            for _ in range(3):
                ours, want = x.clone(), x.clone()
                self.same(compiled(ours), theirs(want))
                self.same(ours, want)
            compiled.sync()
            self.same(mine.count, theirs.count)

    def test_the_shape_of_an_input(self):
        compiled = mgpu.compile(lambda x: x.t_() * 2, (X,))
        self.assertIn("the shape of an input changes", compiled.reasons[0])
        x = X.clone()
        self.same([compiled(x), x], [X.t() * 2, X.t()])

    def test_calls_from_several_threads(self):
        for function in (lambda x: (x @ x.t()).tanh(), lambda x: torch.linalg.matrix_exp((x @ x.t()) * 0.01).tanh() + 1):
            compiled = mgpu.compile(function, (torch.randn(64, 64),))
            given = [torch.randn(64, 64) * 0.1 for _ in range(40)]
            with concurrent.futures.ThreadPoolExecutor(4) as threads:
                for x, found in zip(given, threads.map(compiled, given)):
                    self.same(found, function(x))


class Parts(Compared):
    """What mgpu does not read runs in torch, in the order of the graph."""

    def test_inputs_that_change_before_and_after(self):
        def mixed(x):
            x.mul_(2)
            y = torch.linalg.matrix_exp(x @ x.t() * 0.01)
            x.add_(1)
            return y + 1

        compiled = self.both(mixed, X, parts="matrix_exp")
        for use in (compiled.plan, compiled.tune, lambda: compiled.save("/nowhere")):
            self.refused(mgpu.UnsupportedError, "matrix_exp", use)
        self.assertIn("matrix_exp", compiled.report())
        self.assertIn("matrix_exp", compiled._repr_html_())

    def test_buffers(self):
        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.linear = nn.BatchNorm1d(4), nn.Linear(4, 4)
                self.register_buffer("count", torch.zeros(3))

            def forward(self, x):
                self.count.add_(x.mean(1))
                return torch.linalg.matrix_exp(self.norm(self.linear(x)) @ x.t() * 0.01) + self.count

        mine = Counting()
        theirs = copy.deepcopy(mine)
        compiled = mgpu.compile(mine, (X,))
        for _ in range(3):
            self.same(compiled(X), theirs(X))
        compiled.sync()
        self.same(list(mine.state_dict().values()), list(theirs.state_dict().values()))

    def test_one_memory_twice(self):
        def mixed(x, y):
            x.add_(1)
            return torch.linalg.matrix_exp(x @ x.t() * 0.01) + y.sum()

        compiled = self.both(mixed, X, Y, parts="matrix_exp")
        memory = torch.randn(6, 4)
        for pair in ((memory[:3], memory[:3]), (memory[:3], memory[2:5]), (memory[3:], memory[1:4])):
            want = memory.clone()
            self.refused(mgpu.UsageError, "overlap", lambda: compiled(*pair))
            self.same(memory, want)
        ours, theirs = memory.clone(), memory.clone()
        self.same(compiled(ours[:3], ours[3:]), mixed(theirs[:3], theirs[3:]))
        self.same(ours, theirs)
        self.both(lambda x, y: torch.linalg.matrix_exp(x @ y.t() * 0.01), X, X, parts="matrix_exp")

    def test_statistics_that_the_graph_makes(self):
        mine = nn.InstanceNorm1d(3, track_running_stats=True)
        theirs, x = copy.deepcopy(mine), torch.randn(2, 3, 5)
        compiled = mgpu.compile(mine, (x,))
        self.assertIn("running statistics", compiled.reasons[0])
        for _ in range(2):
            self.same(compiled(x), theirs(x))
        compiled.sync()
        self.same(list(mine.state_dict().values()), list(theirs.state_dict().values()))

    def test_several_results_and_constants(self):
        constant = torch.randn(2)

        def mixed(x):
            first, second = x.split(2, -1)
            return torch.erfinv(first.tanh() * 0.5) * constant + second.exp(), x.max(-1), torch.tensor([1.0, 2.0]) + second

        self.both(mixed, X, parts="erfinv")

    def test_elements_that_mgpu_does_not_read(self):
        self.both(lambda x: x.float() / 255 + 1, torch.arange(12, dtype=torch.uint8).reshape(3, 4), parts="torch.uint8")
        self.both(lambda x: (torch.fft.rfft(x.tanh()).abs() + 1).log(), X, parts="_fft_r2c")
        sparse = torch.eye(3).to_sparse()
        self.both(lambda x: torch.sparse.mm(x, torch.ones(3, 3)).tanh(), sparse, parts="sparse")
        self.both(lambda x: x.mul(9).abs().to(torch.uint8).float() + 1, X, parts="torch.uint8")
        self.both(lambda x: (torch.zeros(3, 4, dtype=torch.uint8) + x).tanh(), X, parts="torch.uint8")
        bits = torch.arange(12, dtype=torch.uint8).reshape(3, 4)
        self.both(lambda x: (x * bits).tanh(), X, parts="torch.uint8")
        self.both(lambda x: torch.view_as_real(x.to(torch.complex64) * 1j).tanh(), X, parts="torch.complex64")
        self.refused(mgpu.UnsupportedError, "uint8", lambda: mgpu.compile(lambda x: x + 1, (X.to(torch.uint8),), fallback=False))
        self.refused(mgpu.UsageError, "sparse", lambda: mgpu.compile(lambda x: x + 1, (torch.eye(3),))(sparse))

    def test_factors_that_give_no_whole_sizes(self):
        image = torch.randn(1, 2, 5, 7)
        for mode in ("nearest", "bilinear"):
            for factor in (2.0, 1.5, 2.3):
                y = F.interpolate(image, scale_factor=factor, mode=mode)
                sizes, name = list(y.shape[2:]), f"upsample_{mode}2d_backward"
                corners = [False] if mode == "bilinear" else []
                gradient = getattr(torch.ops.aten, name)
                parts = "factors" if factor != 2.0 else None
                self.both(lambda grad: gradient.default(grad, sizes, list(image.shape), *corners, factor, factor), y, parts=parts)
                if "vec" in gradient.overloads():
                    self.both(lambda grad: gradient.vec(grad, None, list(image.shape), *corners, [factor, factor]), y, parts=parts)

    def test_one_step_is_the_start(self):
        self.both(lambda: torch.linspace(2.0, 3.0, 1) + 0)

    def test_a_node_that_is_an_error(self):
        for words, kind, node in (("'model.pt2': node 'add' (aten.add): its sizes differ", mgpu.torch.Refused, "add"),
                                  ("'model.pt2': it has no graph", mgpu.InvalidError, None)):
            with unittest.mock.patch("mgpu._commands.run", side_effect=mgpu.InvalidError(words)), self.assertRaises(kind) as said:
                mgpu.torch.command("bundle", "model.pt2")
            self.assertEqual(getattr(said.exception, "node", None), node)

    def test_sizes_that_follow_from_values(self):
        def positive(x):
            return x[x > 0].sum() / x[x > 0].numel()

        compiled = mgpu.compile(positive, (X,))
        for x in (X, Y, X + 5):
            self.same(compiled(x), positive(x))
        self.assertIn("follows from values", compiled.reasons[0])
        self.refused(mgpu.UnsupportedError, "truth values", lambda: mgpu.compile(positive, (X,), fallback=False))

    def test_what_torch_cannot_trace(self):
        compiled = mgpu.compile(lambda x: x * 2 if x.sum() > 0 else x - 1, (X,))
        for x in (X.abs(), -X.abs()):
            self.same(compiled(x), x * 2 if x.sum() > 0 else x - 1)
        self.assertRegex(compiled.reasons[0], "cannot trace it .*, so that torch runs all of it")
        self.both(lambda x: x | 4, torch.arange(6), parts="cannot trace" if torch.__version__ < "2" else None)

        def slope(x):
            x = x.detach().requires_grad_()
            return torch.autograd.grad(x.sin().sum(), x)[0]

        compiled = mgpu.compile(slope, (X,))
        self.same(compiled(X.clone().requires_grad_()), X.cos())
        self.assertIn("cannot trace it", compiled.reasons[0])
        mine = nn.BatchNorm1d(4, momentum=None)
        theirs = copy.deepcopy(mine)
        compiled = mgpu.compile(mine, (X,))
        for x in (X, Y):
            self.same(compiled(x), theirs(x))
        self.same(list(mine.state_dict().values()), list(theirs.state_dict().values()))
        self.refused(mgpu.UnsupportedError, "cannot trace it", lambda: mgpu.compile(lambda x: x * int(x.sum()), (X,), fallback=False))
        for fallback in (False, True):
            self.refused(RuntimeError, "shapes cannot be multiplied", lambda: mgpu.compile(LINEAR, (torch.ones(3, 5),), fallback=fallback))

    def test_another_default_type(self):
        torch.set_default_dtype(torch.float64)
        try:
            self.refused(mgpu.UnsupportedError, "torch.float64", lambda: mgpu.compile(lambda x: x + torch.ones(4), (X,)))
        finally:
            torch.set_default_dtype(torch.float32)


class Uses(Compared):
    """plan, tune, save and report."""

    def test_forward(self):
        model = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        x = torch.randn(32, 64)
        compiled = mgpu.compile(model, (x,))
        compiled.tune(3)
        self.same(compiled(x), model(x))
        self.assertIn("one program of mgpu on host, 2 weights", compiled.report())
        self.assertTrue(compiled._repr_html_().startswith("<pre>one program"))
        self.assertIn("starts after", compiled.plan())
        with tempfile.TemporaryDirectory() as folder:
            compiled.save(f"{folder}/model.mgpu")
            with mgpu.load(f"{folder}/model.mgpu") as program:
                weights = {name: value.detach() for name, value in model.state_dict().items()}
                result = program(**weights, input=x)["r0"]
            self.same(torch.from_dlpack(result), model(x))

    def test_a_file_is_opened_with_its_weights(self):
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        compiled = mgpu.compile(model, (X,))
        with open(compiled._whole().file, "rb") as file:
            data = file.read()
        files = hostile.as_good(data)
        with tempfile.TemporaryDirectory() as folder:
            for name, other in [("as it is", data), *files]:
                with self.subTest(name), open(f"{folder}/model.pt2", "wb") as file:
                    file.write(other)
                    file.flush()
                    with mgpu.open(file.name) as program:
                        self.same(torch.from_dlpack(program(input=X)["r0"]), model(X))
            for change, words in ((("storage_offset", {"as_int": 9}), "outside"), (("strides", [{"as_int": -1}] * 2), "no valid"),
                                  (("sizes", [{"as_int": 1}] * 2), "the program has 8x4xf32")):
                with open(f"{folder}/model.pt2", "wb") as file:
                    file.write(hostile.config_changed(hostile.members(data), lambda about: about["tensor_meta"].__setitem__(*change)))
                self.refused(mgpu.InvalidError, words, lambda: mgpu.open(f"{folder}/model.pt2"))
            with open(f"{folder}/model.pt2", "wb") as file:
                file.write(hostile.config_changed(hostile.members(data), lambda about: about.__setitem__("use_pickle", True)))
            self.refused(mgpu.UnsupportedError, "pickled", lambda: mgpu.open(f"{folder}/model.pt2"))

    def test_a_weight_by_strides(self):
        whole = torch.arange(60.0)
        for sizes, strides, offset in (((4, 6), (1, 4), 3), ((3, 5), (0, 2), 7), ((2, 5), (1, 0), 1), ((4, 1), (9, 100), 2)):
            model = nn.Module()
            model.w, model.forward = nn.Parameter(torch.zeros(sizes)), lambda x: x + model.w
            x = torch.randn(sizes)
            compiled = mgpu.compile(model, (x,))
            with open(compiled._whole().file, "rb") as file:
                files = hostile.members(file.read())
            files["model/data/weights/weight_0"] = whole.numpy().tobytes() + b"x"
            change = {"strides": [{"as_int": each} for each in strides], "storage_offset": {"as_int": offset}}
            with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
                file.write(hostile.config_changed(files, lambda about: about["tensor_meta"].update(change)))
                file.flush()
                with mgpu.open(file.name) as program:
                    self.same(torch.from_dlpack(program(x=x)["r0"]), x + whole.as_strided(sizes, strides, offset))

    def test_a_search_in_the_middle_of_training(self):
        mine = nn.Linear(4, 2)
        theirs = copy.deepcopy(mine)
        optimizer, loss = torch.optim.Adam(theirs.parameters()), lambda y, _: (y * y).sum()
        compiled = mgpu.compile(mine, (X, X), train=torch.optim.Adam(mine.parameters()), loss=loss)
        for k in range(4):
            if k == 2:
                compiled.tune(2)
            optimizer.zero_grad()
            want = loss(theirs(X), X)
            want.backward()
            optimizer.step()
            self.same(compiled(X, X), want)
        compiled.sync()
        self.same(list(mine.parameters()), list(theirs.parameters()))

    def test_an_optimiser_of_another_module(self):
        other = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
        self.refused(mgpu.UsageError, "no parameter of the module", lambda: mgpu.compile(LINEAR, (X, X[:, :2]), train=other, loss=F.mse_loss))
        self.refused(mgpu.UnsupportedError, "RMSprop", lambda: mgpu.compile(
            LINEAR, (X, X[:, :2]), train=torch.optim.RMSprop(LINEAR.parameters()), loss=F.mse_loss))

    def test_devices(self):
        x = torch.randn(8, 4)
        compiled = mgpu.compile(LINEAR, (x,), devices=4, data_parallel=True)
        compiled.tune(2)
        self.same(compiled(x), LINEAR(x))
        self.same(mgpu.compile(LINEAR, (X,), devices=2, data_parallel=True)(X), LINEAR(X))  # 3 rows on two devices


def aligned(data):
    """The archive with each entry at a multiple of 64 bytes, as PyTorch writes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, contents in hostile.members(data).items():
            entry = zipfile.ZipInfo(name)
            gap = -(out.tell() + 30 + len(name) + 4) % 64
            entry.extra = struct.pack("<HH", 0x4246, gap) + bytes(gap)
            archive.writestr(entry, contents)
    return out.getvalue()


def anonymous_bytes():
    """Memory of this process that is no file's."""
    with open("/proc/self/smaps_rollup", encoding="utf-8") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("Anonymous:"))


class MappedWeights(Compared):
    """The weights of a file that is opened stay in it."""

    def setUp(self):
        torch.manual_seed(3)
        self.model, self.x = nn.Linear(4096, 4096), torch.randn(2, 4096)
        self.bytes = 4 * 4096 * 4096
        self.want = self.model(self.x).detach()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = f"{self.folder}/model.pt2"
        compiled = mgpu.compile(self.model, (self.x,))
        with open(compiled._whole().file, "rb") as file, open(self.path, "wb") as out:
            out.write(aligned(file.read()))

    def results(self, program):
        return torch.from_dlpack(program(input=self.x)["r0"]).clone()

    def test_they_take_no_memory(self):
        before = anonymous_bytes()
        programs = [mgpu.open(self.path, threads=1) for _ in range(2)]
        for program in programs:
            self.same(self.results(program), self.want)
        self.assertLess(anonymous_bytes() - before, self.bytes // 2)
        programs[0].close()
        self.same(self.results(programs[1]), self.want)

    def test_those_that_are_written(self):
        program = mgpu.open(self.path)
        program.write("bias", torch.zeros(4096))
        program.write("weight", torch.eye(4096))
        self.same(self.results(program), self.x)
        self.same(self.results(mgpu.open(self.path)), self.want)

    def test_a_file_that_is_cut(self):
        for at, loaded in ((0, True), (1 << 20, True), (1 << 20, False)):
            os.replace(shutil.copy(self.path, self.path + ".new"), self.path)
            other = shutil.copy(self.path, f"{self.folder}/other.pt2")
            program = mgpu.open(other)
            if loaded:
                self.same(self.results(program), self.want)
            os.truncate(other, at)
            self.refused(mgpu.InvalidError, "other.pt2' was written while", lambda: self.results(program))
            self.refused(mgpu.LostError, "was lost before", lambda: self.results(program))
            program.close()
        self.same(self.results(mgpu.open(self.path)), self.want)

    def test_a_file_that_is_written(self):
        program, begun = mgpu.open(self.path), mgpu.open(self.path)
        self.same(self.results(program), self.want)
        self.same(self.results(begun), self.want)
        with open(self.path, "r+b") as file:
            file.seek(self.bytes // 2)
            file.write(bytes(1 << 20))
        self.refused(mgpu.InvalidError, "was written while", lambda: self.results(program))
        self.refused(mgpu.InvalidError, "was written while", begun.replay_begin)
        self.refused(mgpu.InvalidError, "checksum", lambda: mgpu.open(self.path))

    def test_a_file_that_is_replaced(self):
        program = mgpu.open(self.path)
        os.replace(shutil.copy(self.path, self.path + ".new"), self.path)
        os.remove(self.path)
        self.same(self.results(program), self.want)
        self.refused(mgpu.Error, "", lambda: mgpu.load(self.path))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
