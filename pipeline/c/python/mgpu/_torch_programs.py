# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of mgpu that are made of graphs of ATen operations, whole ones and parts."""

import functools
import itertools
import math
import operator
import re
import shutil
import tempfile
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

import torch
from torch.utils import _pytree as pytree

import mgpu
from mgpu import _commands
from mgpu._torch_graphs import NAMES, Refused, Writer, attribute, changes_statistics, memory, whole, why_not


class SizesOfValues(mgpu.UnsupportedError):
    """A graph in which the size of a tensor follows from values: as it was traced, it is for one size."""


def command(word: str, file: str, *words: str) -> None:
    """A command of mgpu-tune for a file, whose name, which is nothing to its user, is left out of what is refused. A node
    that is an error here is refused too: torch may run it."""
    try:
        _commands.run([word, file, *words])
    except (mgpu.UnsupportedError, mgpu.InvalidError) as error:
        message = str(error).replace(f"'{file}': ", "")
        node = re.search(r"node '([^']+)'", message)
        if isinstance(error, mgpu.InvalidError) and not node:
            raise
        raise Refused(message, node and node[1]) from None


class Program:
    """A graph of ATen operations as an open program: tensors in, tensors out. Weights stay in it."""

    def __init__(self, graph: torch.fx.GraphModule, weights: Dict[str, torch.Tensor], inputs: Sequence[torch.Tensor], target: str,
                 layout: Optional["Layout"] = None):
        self.lock = threading.Lock()  # a call binds its tensors and replays
        self.folder = tempfile.mkdtemp(prefix="mgpu-torch-")
        self._cleanup = weakref.finalize(self, shutil.rmtree, self.folder, True)
        self.file, self.bundle, self.target = f"{self.folder}/model.pt2", f"{self.folder}/model.mgpu", target
        names = [node.name for node in graph.graph.nodes if node.op == "placeholder"][len(weights):]
        self.inputs = dict(zip(names, inputs))
        self.layout = layout.words(self.inputs) if layout else []
        writer = Writer(graph, weights, self.inputs)
        mutated = writer.write(self.file)
        self.weights = writer.weights
        self.changed = [writer.targets[node][1] for node in mutated if writer.targets[node][0] == "buffer"]
        self.numResults = writer.numResults
        self.changedInputs = [node for node in mutated if writer.targets[node][0] == "user_input"]
        self.build()

    def build(self, *words: str) -> None:
        """Compiles it, with options of `mgpu-tune bundle`, and gives it its weights."""
        command("bundle", self.file, "-o", self.bundle, "--target", self.target, *self.layout, *_commands.host_level(self.target), *words)
        self.program = mgpu.load(self.bundle, self.target)
        for name, tensor in self.weights.items():
            if name in self.program.arguments:
                self.program.write(name, memory(whole(tensor)))
        known = self.program.arguments
        self.results = [(name, NAMES[known[name].type.decode()], [known[name].shape[k] for k in range(known[name].rank)])
                        for name in (f"r{k}" for k in range(self.numResults))]

    def __call__(self, *inputs: torch.Tensor) -> List[torch.Tensor]:
        if len(inputs) != len(self.inputs):
            raise mgpu.UsageError(f"it was compiled for {len(self.inputs)} tensors, and {len(inputs)} are given")
        for (name, example), tensor in zip(self.inputs.items(), inputs):
            if not isinstance(tensor, torch.Tensor):
                raise mgpu.UsageError(f"'{name}' was compiled for a tensor, {tuple(example.shape)} of {example.dtype}, and is "
                                      f"given {type(tensor).__name__}: give a tensor")
            if tensor.shape != example.shape or tensor.dtype != example.dtype:
                raise mgpu.UsageError(f"'{name}' was compiled for {tuple(example.shape)} of {example.dtype}, and is given "
                                      f"{tuple(tensor.shape)} of {tensor.dtype}: compile it again for that")
            if why_not(tensor):
                raise mgpu.UsageError(f"'{name}': {why_not(tensor)}")
        _check_apart(self.changedInputs, dict(zip(self.inputs, inputs)))
        with self.lock:
            return self._replayed(inputs)

    def _replayed(self, inputs: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        outputs = [torch.empty(shape, dtype=dtype) for _, dtype, shape in self.results]
        for (name, _, _), output in zip(self.results, outputs):  # first, as an input may be a result of the last call
            self.program.bind(name, memory(output))
        for name, tensor in zip(self.inputs, inputs):
            if name in self.program.arguments:
                self.program.bind(name, memory(whole(tensor)))
        self.program.replay()
        count = len(outputs) - len(self.changedInputs)
        given = dict(zip(self.inputs, inputs))
        for name, value in zip(self.changedInputs, outputs[count:]):
            given[name].detach().copy_(value)
        return outputs[:count]

    def read(self, name: str, like: torch.Tensor) -> torch.Tensor:
        array = self.program.read(name)
        return torch.frombuffer(bytearray(array.tobytes()), dtype=like.dtype).reshape(like.shape)

    def state(self) -> Dict[str, torch.Tensor]:
        """What the program has changed of its weights, as it is now."""
        if self.changed:
            self.program.fetch()
        return {name: self.read(name, self.weights[name]) for name in self.changed}


class Layout:
    """The devices of a program as a mesh, and how its tensors are cut over them."""

    def __init__(self, devices: Union[int, Dict[str, int]], isDataParallel: bool, shard: Optional[Dict[Union[str, int], Any]]):
        self.axes = devices if isinstance(devices, dict) else {"data": devices}
        if not self.axes or any(not isinstance(size, int) or size < 1 for size in self.axes.values()):
            raise mgpu.UsageError(f"devices={devices!r}: it is a number from 1 on, or axes and their sizes, as {{'data': 2, 'model': 2}}")
        self.count = math.prod(self.axes.values())
        if self.count > 1 and not isDataParallel and not shard:
            raise mgpu.UsageError(f"devices={devices!r}: say how they share the work, by data_parallel=True or shard={{...}}")
        self.isDataParallel, self.shard = isDataParallel, shard or {}

    def _cut(self, key: Union[str, int], cut: Any) -> str:
        """The words of --shard for a dimension, which all devices cut, or the axes of each dimension."""
        if isinstance(cut, bool) or (isinstance(cut, int) and cut < 0):
            raise mgpu.UsageError(f"shard: {key!r} is cut along {cut!r}: a dimension is counted from 0 on")
        if isinstance(cut, int):
            cut = (None,) * cut + (tuple(self.axes),)
        dims = [each if isinstance(each, (tuple, list)) else [each] for each in cut or ()]
        if any(axis not in (*self.axes, None) for dim in dims for axis in dim):
            raise mgpu.UsageError(f"shard: {key!r} is cut by {cut!r}: give a dimension, or for each dimension None, an axis of "
                                  f"{', '.join(self.axes)}, or several")
        return ",".join("+".join(axis for axis in dim if axis) or "-" for dim in dims) or "-"

    def words(self, tensors: Dict[str, torch.Tensor]) -> List[str]:
        """Options of mgpu-tune, for a program whose inputs have these names."""
        if self.count == 1:
            return []
        inputs = list(tensors)
        first = (next(iter(self.axes)),)
        cuts = {name: self._cut(name, first) for name in inputs if tensors[name].dim() > 0} if self.isDataParallel else {}
        for key, cut in self.shard.items():
            if isinstance(key, int) and not -len(inputs) <= key < len(inputs):
                raise mgpu.UsageError(f"shard: there is no input {key}, of {len(inputs)}")
            cuts[inputs[key] if isinstance(key, int) else key] = self._cut(key, cut)
        mesh = ",".join(f"{axis}={size}" for axis, size in self.axes.items())
        return ["--mesh", mesh, *(word for key, cut in cuts.items() for word in ("--shard", f"{key}={cut}"))]


class Regions:
    """A graph in which the nodes `refused`, those that write into tensors, and those of tensors that mgpu does not read run in
    torch, the others in programs of mgpu, all in the graph's order. Making it raises Refused with one more node where a
    program has one. `built` has the programs of parts that were made before."""

    def __init__(self, graph: torch.fx.GraphModule, refused: Set[str], inputs: Sequence[torch.Tensor], target: str,
                 built: Dict[Tuple[str, ...], Program]):
        self.inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self.constants = {node: attribute(graph, node.target) for node in graph.graph.nodes if node.op == "get_attr"}
        self.results = pytree.tree_flatten(next(node for node in graph.graph.nodes if node.op == "output").args[0])[0]
        nodes = _with_parts(graph)
        self.changed = {each for node in nodes for each in _written(node) if each.op == "placeholder"}
        values = {**dict(zip(self.inputs, (tensor.detach().clone() for tensor in inputs))), **self.constants}
        inTorch = {node for node in nodes if not _is_read(node, values) or node.name in refused}
        inTorch |= {part for part in nodes if part.target is operator.getitem and part.args[0] in inTorch}
        self.steps: List[Callable[[Dict[Any, Any]], None]] = []
        for isTorch, run in itertools.groupby(nodes, inTorch.__contains__):
            self.steps += [functools.partial(_evaluate, node) for node in run] if isTorch else [_Region(list(run), values, target, built)]

    def __call__(self, *inputs: torch.Tensor) -> List[torch.Tensor]:
        values = {**dict(zip(self.inputs, inputs)), **self.constants}
        given = {node.name: tensor for node, tensor in zip(self.inputs, inputs)}
        _check_apart([node.name for node in self.changed], given)
        with torch.no_grad():
            for step in self.steps:
                step(values)
        return [values[node] for node in self.results]


def _check_apart(changed: Iterable[str], inputs: Dict[str, torch.Tensor]) -> None:
    """No input that is changed lies in the memory of another, as a graph is made for tensors of their own."""
    for name in changed:
        begin, end = _extent(inputs[name])
        for other, tensor in inputs.items():
            first, last = _extent(tensor)
            if other != name and begin < last and first < end:
                raise mgpu.UsageError(f"'{name}', which is changed, and '{other}' overlap in memory: give one of them a copy")


def _extent(tensor: torch.Tensor) -> Tuple[int, int]:
    """The addresses that a tensor's elements lie between."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.numel() == 0:
        return 0, 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


class _Region:
    """A part of a graph that mgpu runs."""

    def __init__(self, nodes: List[torch.fx.Node], values: Dict[Any, Any], target: str, built: Dict[Tuple[str, ...], Program]):
        inside, copies, part = set(nodes), {}, torch.fx.Graph()
        self.inputs = list(dict.fromkeys(each for node in nodes for each in node.all_input_nodes if each not in inside))
        self.results = [node for node in nodes if isinstance(values[node], torch.Tensor) and not inside.issuperset(node.users)]
        for node in self.inputs:
            copies[node] = part.placeholder(node.name)
        for node in nodes:
            copies[node] = part.node_copy(node, copies.__getitem__)
        part.output([copies[node] for node in self.results])
        key = tuple(node.name for node in nodes)
        if key not in built:
            built[key] = Program(torch.fx.GraphModule(torch.nn.Module(), part), {}, [values[node] for node in self.inputs], target)
        self.program = built[key]

    def __call__(self, values: Dict[Any, Any]) -> None:
        values.update(zip(self.results, self.program(*[values[node] for node in self.inputs])))


def _with_parts(graph: torch.fx.GraphModule) -> List[torch.fx.Node]:
    """The nodes that compute, each followed by those that take one of its results."""
    nodes: List[torch.fx.Node] = []
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            nodes += [node, *(user for user in node.users if user.target is operator.getitem)]
    return nodes


def _evaluate(node: torch.fx.Node, values: Dict[Any, Any]) -> None:
    """Runs a node in torch."""
    arguments, keywords = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
    values[node] = node.target(*arguments, **keywords)


def _is_write(node: torch.fx.Node) -> bool:
    return getattr(node.target, "__name__", "").split(".")[0].endswith("_")


def _written(node: torch.fx.Node) -> List[torch.fx.Node]:
    """The values that a node writes into."""
    return list(node.args[:1]) if _is_write(node) else list(node.args[3:5]) if changes_statistics(node) else []


def _is_read(node: torch.fx.Node, values: Dict[Any, Any]) -> bool:
    """Evaluates a node; whether mgpu may compile it, if it reads the operation."""
    with torch.no_grad():
        _evaluate(node, values)
    known = [each for value in (node, *node.all_input_nodes) for each in pytree.tree_flatten(values[value])[0]]
    tags = getattr(node.target, "tags", ())
    if torch.Tag.dynamic_output_shape in tags and not (node.target is torch.ops.aten.index.Tensor and
                                                       all(each.dtype is not torch.bool for each in known[1:])):
        raise SizesOfValues(f"node '{node.name}': the size of a result of {node.target} follows from values")
    return not _is_write(node) and not changes_statistics(node) and not any(isinstance(each, torch.Tensor) and why_not(each) for each in known)
