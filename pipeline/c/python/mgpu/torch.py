# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of PyTorch as programs of mgpu (docs/from-pytorch.md).

    import mgpu.torch
    compiled = mgpu.torch.compile(module, (x,))
    y = compiled(x)

A module is traced to a graph of ATen operations, saved as torch.export.save would (a .pt2, written here, so
that torch 1.13 can do it too), compiled by `mgpu-tune bundle`, and replayed in this process.
"""

import contextlib
import html
import inspect
import operator
import re
import shutil
import warnings
from typing import Any, Callable, Collection, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

import mgpu
from mgpu._torch_graphs import Refused, why_not
from mgpu._torch_optimizers import optimizer_step
from mgpu._torch_programs import Layout, Program, Regions, SizesOfValues, command

try:
    from torch.func import functionalize, grad_and_value
except ImportError:  # before 2.0
    from functorch import functionalize, grad_and_value


def _call(module: torch.nn.Module, tensors: Dict[str, torch.Tensor], inputs: Sequence[Any]) -> Any:
    """The module with other parameters and buffers, wherever they are used: torch's functional_call leaves
    tied ones, and the list of weights of recurrent modules, as they are."""
    known = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    swapped = {id(known[name]): tensor for name, tensor in tensors.items()}
    held, lists = [], []
    for owner in module.modules():
        for store in (owner._parameters, owner._buffers):
            for key, value in store.items():
                if id(value) in swapped:
                    held.append((store, key, value))
    try:
        for store, key, value in held:
            store[key] = swapped[id(value)]
        for owner in module.modules():
            if isinstance(owner, torch.nn.RNNBase):
                lists.append((owner, owner._flat_weights))
                owner.__dict__["_flat_weights"] = [getattr(owner, name) for name in owner._flat_weights_names]
        return module(*inputs)
    finally:
        for store, key, value in held:
            store[key] = value
        for owner, weights in lists:
            owner.__dict__["_flat_weights"] = weights


def _flat(value: Any) -> List[Any]:
    return pytree.tree_flatten(value)[0]


_TENSOR, _CONSTANTS = torch.Tensor, (type(None), bool, int, float, str, torch.dtype, torch.device)


def _tensors(value: Any) -> List[torch.Tensor]:
    return [leaf for leaf in _flat(value) if isinstance(leaf, torch.Tensor)]


def _pattern(leaves: Sequence[Any]) -> List[Any]:
    """The leaves of a tree with _TENSOR for each tensor."""
    return [_TENSOR if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def _filled(pattern: Sequence[Any], tensors: Sequence[torch.Tensor]) -> List[Any]:
    given = iter(tensors)
    return [next(given) if leaf is _TENSOR else leaf for leaf in pattern]


class Compiled:
    """A module as one program, or, where mgpu does not read an operation, as several with torch between
    them; `reasons` has a line for each operation that torch runs. Call it as the module."""

    def __init__(self, function: Callable, weights: Dict[str, torch.Tensor], inputs: Sequence[Any], target: str, fallback: bool,
                 layout: Optional[Layout] = None, names: Sequence[str] = ()):
        if torch.get_default_dtype() is not torch.float32:
            raise Refused(f"torch's default type is {torch.get_default_dtype()}: graphs are read in which it is torch.float32")
        leaves, self._inputs = pytree.tree_flatten(tuple(inputs))
        for leaf in leaves:
            if not isinstance(leaf, (_TENSOR, *_CONSTANTS)):
                raise mgpu.UsageError(f"an input is {type(leaf).__name__}: give tensors, or numbers and names, which are then part of the program")
        self._is_plain = all([isinstance(each, torch.Tensor) for each in inputs])
        self._given, tensors = _pattern(leaves), [tensor.detach() for tensor in _tensors(leaves)]
        self._outputs: Any = None
        self._results: List[Any] = []

        def flat(given: Sequence[torch.Tensor], arguments: Sequence[torch.Tensor]) -> List[torch.Tensor]:
            results = function(dict(zip(weights, given)), pytree.tree_unflatten(_filled(self._given, arguments), self._inputs))
            leaves, self._outputs = pytree.tree_flatten(results)
            self._results = _pattern(leaves)
            return _tensors(leaves)

        self._weights = weights
        self._publish: Callable[[], None] = lambda: None  # what sync() does beside
        self._program: Optional[Program] = None
        self._parts: Optional[Callable] = None
        self.reasons: List[str] = list(dict.fromkeys(filter(None, map(why_not, [*weights.values(), *tensors]))))
        if self.reasons and not fallback:
            raise Refused(self.reasons[0])
        try:
            graph = _traced(flat, weights.values(), tensors)
        except RuntimeError as error:
            flat(*_copies(weights.values(), tensors))  # raises what is the function's own fault
            if not fallback:
                raise Refused(f"torch cannot trace it: {error}") from error
            self._run_in_torch(f"torch cannot trace it ({str(error).splitlines()[0]})", flat)
            return
        _name_inputs(graph, len(weights), names)
        self._compile(graph, tensors, target, fallback, layout, flat)

    def _run_in_torch(self, reason: str, flat: Callable) -> None:
        count = len(self._weights)
        self.reasons = [f"{reason}, so that torch runs all of it"]

        def run(*given: torch.Tensor) -> List[torch.Tensor]:
            values = [each.detach() if each.requires_grad else each for each in given]  # the function may take gradients itself
            return [each.detach() if each.requires_grad else each for each in flat(values[:count], values[count:])]

        self._parts = run

    def _compile(self, graph: torch.fx.GraphModule, tensors: Sequence[torch.Tensor], target: str, fallback: bool,
                 layout: Optional[Layout], flat: Callable) -> None:
        """As one program, unless there are `reasons`; those that are found are added."""
        refused: Set[str] = set()
        built: Dict[Tuple[str, ...], Program] = {}
        while self._parts is None and self._program is None:
            try:
                if self.reasons:
                    self._parts = Regions(graph, refused, [*self._weights.values(), *tensors], target, built)
                else:
                    self._program = Program(graph, self._weights, tensors, target, layout)
            except SizesOfValues as reason:
                self._run_in_torch(str(reason), flat)
            except Refused as reason:
                owner = reason.node and _owner(graph, reason.node)
                if not fallback or not owner or owner in refused:
                    raise
                refused.add(owner)
                self.reasons.append(str(reason))

    def __call__(self, *inputs: Any) -> Any:
        tensors = self._taken(inputs)
        if self._program is not None:
            results = self._program(*tensors)
        else:
            results = self._parts(*[weight.detach() for weight in self._weights.values()], *tensors)
        return pytree.tree_unflatten(_filled(self._results, results), self._outputs)

    def _taken(self, inputs: Sequence[Any]) -> List[torch.Tensor]:
        """The tensors of a call, which is of the form that it was compiled for."""
        if self._is_plain and len(inputs) == len(self._given) and all([isinstance(each, torch.Tensor) for each in inputs]):
            return list(inputs)
        leaves, form = pytree.tree_flatten(tuple(inputs))
        known = self._inputs.children_specs
        if len(inputs) != len(known):
            raise mgpu.UsageError(f"it was compiled for {len(known)} inputs, and {len(inputs)} are given")
        for k, (one, other) in enumerate(zip(known, form.children_specs)):
            if one != other:
                raise mgpu.UsageError(f"input {k} has another form than it was compiled for: its keys and their order, or how many it has")
        for one, leaf in zip(self._given, leaves):
            if one is _TENSOR and not isinstance(leaf, torch.Tensor):
                raise mgpu.UsageError(f"it was compiled for a tensor where {type(leaf).__name__} is given: give a tensor")
            isNan = isinstance(one, float) and isinstance(leaf, float) and one != one and leaf != leaf
            if one is not _TENSOR and not isNan and (type(leaf) is not type(one) or leaf != one):
                given = "a tensor" if isinstance(leaf, torch.Tensor) else repr(leaf)
                raise mgpu.UsageError(f"it was compiled for {one!r}, and is given {given}: compile it again for that")
        return _tensors(leaves)

    def _whole(self) -> Program:
        if self._program is None:
            raise mgpu.UnsupportedError(f"it is several programs, as torch runs a part of it: {self.reasons[0]}")
        return self._program

    def sync(self) -> None:
        """Copies the weights, buffers and optimiser's state that the program has changed to where they came
        from."""
        if self._program is not None:
            for name, value in self._program.state().items():
                with torch.no_grad():
                    self._weights[name].copy_(value)
            self._publish()

    def plan(self) -> str:
        """The plan in words."""
        return self._whole().program.explain()

    def tune(self, budget: float = 20) -> None:
        """Searches for faster kernels and a faster plan for as many seconds, and takes what it finds."""
        whole = self._whole()
        database = f"{whole.folder}/tuning.db"
        weights = [word for name in whole.inputs for word in ("--arg", f"{name}={'zeros' if not whole.inputs[name].is_floating_point() else 'random:1'}")]
        self.sync()
        command("tune", whole.file, "--target", whole.target, *whole.layout, "--budget", str(budget), "--db", database, *weights)
        whole.build("--db", database)

    def save(self, path: str) -> None:
        """The program as a bundle, which needs neither torch nor a compiler."""
        shutil.copyfile(self._whole().bundle, path)

    def report(self) -> str:
        """One line of what it is, and one for each operation that torch runs."""
        if self._program is None:
            return "\n".join(["programs of mgpu with torch between them, for:", *self.reasons])
        return f"one program of mgpu on {self._program.target}, {len(self._program.weights)} weights\n{self.plan()}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.report())}</pre>"


@contextlib.contextmanager
def _composites():
    """Modules of transformers call their operations one by one, not one that is fused for inference: by the
    switch of torch 2, or as they do with autocast."""
    if hasattr(torch.backends, "mha"):
        known = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
    else:
        known, torch.is_autocast_enabled = torch.is_autocast_enabled, lambda: True
    try:
        yield
    finally:
        if hasattr(torch.backends, "mha"):
            torch.backends.mha.set_fastpath_enabled(known)
        else:
            torch.is_autocast_enabled = known


def _copies(*lists: Iterable[torch.Tensor]) -> List[List[torch.Tensor]]:
    return [[tensor.detach().clone() for tensor in each] for each in lists]


def _traced(flat: Callable, weights: Iterable[torch.Tensor], tensors: Iterable[torch.Tensor]) -> torch.fx.GraphModule:
    """The graph of a function of two lists of tensors, at whose end the inputs that change are written. The function is given
    copies, and so are its results: torch 1.13 gives old values of views, and of tensors that became others' contents."""
    shapes = [tensor.shape for tensor in [*weights, *tensors]]

    def copied(given: Sequence[torch.Tensor], arguments: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        inputs = [[each.clone() for each in given], [each.clone() for each in arguments]]
        results, inputs = flat(*inputs), sum(inputs, [])
        if [each.shape for each in inputs] != shapes:
            raise RuntimeError("the shape of an input changes")
        return [each.clone() for each in [*inputs, *results]]

    with _composites():
        graph = make_fx(functionalize(copied, remove="mutations"))(*_copies(weights, tensors))
    _write_inputs(graph.graph)
    _clean(graph)
    return graph


def _write_inputs(graph: torch.fx.Graph) -> None:
    """The inputs' last values, which are the first results, become writes where they are others than the first."""
    end = next(node for node in graph.nodes if node.op == "output")
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    for node in inputs:
        first = next(iter(node.users))
        first.replace_all_uses_with(node)
    values = pytree.tree_flatten(end.args[0])[0]
    for node, value in zip(inputs, values):
        if value.args[0] is not node:
            with graph.inserting_before(end):
                graph.call_function(torch.ops.aten.copy_.default, (node, value))
    end.args = (values[len(inputs):],)


def _clean(graph: torch.fx.GraphModule) -> None:
    """Without nodes whose results nobody takes, but for writes into inputs."""
    for node in reversed(list(graph.graph.nodes)):
        isWrite = node.target is torch.ops.aten.copy_.default or node.target is torch.ops.aten.native_batch_norm.default
        if node.op in ("call_function", "get_attr") and not node.users and not isWrite:
            graph.graph.erase_node(node)
    graph.recompile()


def _name_inputs(graph: torch.fx.GraphModule, first: int, names: Sequence[str]) -> None:
    """Gives the placeholders from `first` on their names, longer ones where a node has them."""
    taken = {node.name for node in graph.graph.nodes}
    for node, name in zip([node for node in graph.graph.nodes if node.op == "placeholder"][first:], names):
        while name in taken:
            name += "_input"
        node.name = name
        taken.add(name)


def _owner(graph: torch.fx.GraphModule, name: str) -> str:
    """The node that computes `name`: what is taken of several results is computed by what gives them."""
    for node in graph.graph.nodes:
        if node.name == name:
            return node.args[0].name if node.target is operator.getitem else name
    return re.sub(r"_(unused_\d+|mean|var)$", "", name)


def _input_names(module: Callable, inputs: Sequence[Any], weights: Collection[str], hasLabels: bool = False) -> List[str]:
    """The names of the tensors in the inputs: those of forward's parameters, with a number where one has several."""
    try:
        parameters = inspect.signature(getattr(module, "forward", module)).parameters.values()
    except (TypeError, ValueError):  # of C's functions
        parameters = []
    known = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    known = known[:len(inputs) - hasLabels] + [f"input{k}" for k in range(len(known), len(inputs) - hasLabels)] + ["target"] * hasLabels
    names: List[str] = []
    for name, value in zip(known, inputs):
        count = len(_tensors(value))
        for each in [name] if isinstance(value, torch.Tensor) else [f"{name}_{k}" for k in range(count)]:
            isTaken = each in weights or each in names or re.fullmatch(r"r\d+", each)  # results are r0, r1, ...
            names.append(f"{each}_input" if isTaken else each)
    return names


def compile(module: Callable, example_inputs: Sequence[Any], target: str = "host", train: Optional[torch.optim.Optimizer] = None,
            loss: Optional[Callable] = None, fallback: bool = True, devices: Union[int, Dict[str, int]] = 1,
            data_parallel: bool = False, shard: Optional[Dict[Union[str, int], Any]] = None) -> Compiled:
    """A module (or function) compiled for tensors like `example_inputs`. With `train` it is a training step:
    a call gives the loss, and parameters, buffers and the optimiser's state change in the program (sync()
    brings them back). The module then returns the loss, or `loss(output, last input)` is it. What mgpu does
    not read runs in torch, unless `fallback` is off.

    On several `devices` (a number, or axes and sizes, as {"data": 2, "model": 2}) the whole module is one
    program. `data_parallel` cuts each input along its first dimension, over the first axis; `shard` says of
    weights by name (`*` is any letters), and of inputs by number, which dimension all devices cut, or for each
    dimension None or an axis: {"*.weight": 0, 0: ("data", None)}. The rest follows from these. The results are
    those of one device, in which sums may be in another order; a batch norm's statistics are of the whole
    batch."""
    if not isinstance(example_inputs, (list, tuple)):
        raise mgpu.UsageError("example_inputs is a tuple of what the module is called with: (x,) where that is one tensor")
    options: Dict[str, Any] = {"target": target, "fallback": fallback and train is None}
    if devices != 1 or data_parallel or shard:
        layout = Layout(devices, data_parallel, shard)
        options = {"target": f"host:{layout.count}" if target == "host" else target, "fallback": False, "layout": layout}
    if not isinstance(module, torch.nn.Module):
        return Compiled(lambda _, inputs: module(*inputs), {}, example_inputs, names=_input_names(module, example_inputs, ()), **options)
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    if train is None:
        return Compiled(lambda weights, inputs: _call(module, weights, tuple(inputs)), {**parameters, **buffers},
                        example_inputs, names=_input_names(module, example_inputs, {**parameters, **buffers}), **options)
    state, update = optimizer_step(train, parameters)

    def step(weights: Dict[str, torch.Tensor], inputs: Sequence[Any]) -> torch.Tensor:
        def value(given: Dict[str, torch.Tensor]) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
            held = {name: weights[name].clone() for name in buffers}  # which the module may change
            if loss is None:
                return _call(module, {**given, **held}, tuple(inputs)), held
            return loss(_call(module, {**given, **held}, tuple(inputs[:-1])), inputs[-1]), held

        trained = {name: weights[name] for name in parameters if parameters[name].requires_grad}
        fixed = {name: weights[name] for name in parameters if not parameters[name].requires_grad}
        gradients, (result, held) = grad_and_value(lambda given: value({**given, **fixed}), has_aux=True)(trained)
        for name, buffer in held.items():
            weights[name].copy_(buffer)
        update(weights, gradients)
        return result

    compiled = Compiled(step, {**parameters, **buffers, **state}, example_inputs,
                        names=_input_names(module, example_inputs, {**parameters, **buffers, **state}, loss is not None), **options)

    def publish() -> None:
        """Puts the state where the optimiser looks for it."""
        for key, value in state.items():
            name, _, field = key.rpartition(".")
            train.state[parameters[name]][field] = value.to(torch.float32) if field == "step" else value

    compiled._publish = publish
    return compiled


def from_dlpack(array: Any) -> torch.Tensor:
    """torch.from_dlpack() of a result, without a copy, also of truth values, which torch before 2 does not take."""
    if getattr(array, "type", None) != "i1":
        return torch.from_dlpack(array)
    return torch.from_dlpack(array.bits()).view(torch.bool)


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor]) -> Callable:
    """A backend of torch.compile: torch.compile(module, backend=mgpu.torch.backend). It takes graphs of
    torch.fx, make_fx and AOTAutograd, whose tensors are all arguments."""
    compiled = Compiled(lambda weights, inputs: torch.fx.GraphModule.__call__(graph, *inputs) if not weights else
                        _call(graph, weights, tuple(inputs)),
                        {**dict(graph.named_parameters()), **dict(graph.named_buffers())}, list(example_inputs), "host", True)
    for reason in compiled.reasons:
        warnings.warn(f"mgpu: {reason}; torch runs it")
    return compiled
