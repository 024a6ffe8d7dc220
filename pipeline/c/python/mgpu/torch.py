# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of PyTorch as programs of mgpu (docs/from-pytorch.md).

    import mgpu.torch
    compiled = mgpu.torch.compile(module, (x,))
    y = compiled(x)

A module is traced to a graph of ATen operations, saved as torch.export.save would (a .pt2, written here, so
that torch 1.13 can do it too), compiled by `mgpu-tune bundle`, and replayed in this process.
"""

import contextlib
import ctypes
import functools
import html
import itertools
import json
import math
import operator
import os
import re
import shutil
import tempfile
import warnings
import weakref
import zipfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.split_module import split_module
from torch.utils import _pytree as pytree

import mgpu
from mgpu import _commands

try:
    from torch.func import functionalize, grad_and_value
except ImportError:  # before 2.0
    from functorch import functionalize, grad_and_value

# PyTorch's numbers of types in a .pt2, and mgpu's names of them.
_DTYPES = {torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5, torch.float16: 6, torch.float32: 7, torch.float64: 8,
           torch.bool: 12, torch.bfloat16: 13}
_NAMES = {"i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16,
          "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}


class Refused(mgpu.UnsupportedError):
    """What mgpu does not compile; `node` is the graph's node where it is one."""

    def __init__(self, message: str, node: Optional[str] = None):
        super().__init__(message)
        self.node = node


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


# Graphs as .pt2 files.

def _meta(tensor: torch.Tensor) -> Dict[str, Any]:
    if tensor.dtype not in _DTYPES:
        raise Refused(f"a tensor has elements of {tensor.dtype}, which mgpu does not read")
    sizes = [{"as_int": size} for size in tensor.shape]
    strides = [{"as_int": stride} for stride in torch.empty(tensor.shape, device="meta").stride()]
    return {"dtype": _DTYPES[tensor.dtype], "sizes": sizes, "requires_grad": False, "device": {"type": "cpu", "index": None},
            "strides": strides, "storage_offset": {"as_int": 0}, "layout": 7}


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on the host, without gaps."""
    return tensor.detach().cpu().contiguous()


@functools.lru_cache(None)
def _memory_type(count: int) -> type:
    return type("Memory", (ctypes.c_char * count,), {})


def _memory(tensor: torch.Tensor) -> Any:
    """The memory of a tensor of _whole(), which it keeps, with the buffer protocol."""
    count = tensor.numel() * tensor.element_size()
    memory = _memory_type(count).from_address(tensor.data_ptr()) if count else (ctypes.c_char * 0)()
    if count:
        memory.tensor = tensor
    return memory


def _argument(value: Any) -> Dict[str, Any]:
    """A value of a node as the schema's Argument."""
    if isinstance(value, torch.fx.Node):
        return {"as_tensor": {"name": value.name}}
    if value is None:
        return {"as_none": True}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": value if math.isfinite(value) else "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, torch.dtype):
        if value not in _DTYPES:
            raise Refused(f"elements of {value} are not read")
        return {"as_scalar_type": _DTYPES[value]}
    if isinstance(value, torch.device):
        return {"as_device": {"type": value.type, "index": value.index}}
    if isinstance(value, (torch.layout, torch.memory_format)):
        return {"as_layout" if isinstance(value, torch.layout) else "as_memory_format": 0}
    if isinstance(value, (list, tuple)):
        if any(isinstance(each, torch.fx.Node) for each in value):
            return {"as_optional_tensors": [{"as_none": True} if each is None else {"as_tensor": {"name": each.name}} for each in value]}
        kind = "bools" if value and all(isinstance(each, bool) for each in value) else \
            "floats" if any(isinstance(each, float) for each in value) else "ints"
        return {f"as_{kind}": list(value)}
    raise Refused(f"an argument {value!r} is not read")


def _named_arguments(node: torch.fx.Node) -> List[Dict[str, Any]]:
    """The arguments of a node by the names of its operation's schema."""
    schema = node.target._schema
    named = dict(zip((argument.name for argument in schema.arguments), node.args))
    named.update(node.kwargs)
    return [{"name": name, "arg": _argument(value), "kind": 1} for name, value in named.items()]


def _origin(node: torch.fx.Node) -> torch.fx.Node:
    """What a node is a copy of."""
    copies = (torch.ops.aten.clone.default, torch.ops.aten.detach.default, torch.ops.aten.alias.default)
    while node.op == "call_function" and node.target in copies:
        node = node.args[0]
    return node


class _Writer:
    """A graph of ATen operations, whose placeholders are weights or inputs, as the JSON of a .pt2."""

    def __init__(self, graph: torch.fx.GraphModule, weights: Dict[str, torch.Tensor], inputs: Dict[str, torch.Tensor]):
        self.graph, self.weights, self.inputs = graph, dict(weights), inputs
        self.nodes: List[Dict[str, Any]] = []
        self.types: Dict[str, Any] = {}
        self.inputSpecs: List[Dict[str, Any]] = []
        self.mutated: Dict[str, str] = {}  # placeholder's node -> its next state
        self.targets: Dict[str, Tuple[str, str]] = {}  # placeholder's node -> kind of mutation, its target

    def write(self, path: str) -> List[str]:
        """The names of the placeholders whose next state is a result."""
        placeholders = [node for node in self.graph.graph.nodes if node.op == "placeholder"]
        for node, (name, tensor) in zip(placeholders, itertools.chain(self.weights.items(), self.inputs.items())):
            self._input(node.name, name, tensor, name in self.weights)
        for node in self.graph.graph.nodes:
            if node.op == "get_attr":
                constant = self.graph
                for part in node.target.split("."):
                    constant = getattr(constant, part)
                name = f"constant.{node.name}"
                self.weights[name] = constant
                self._input(node.name, name, constant, True)
            elif node.op == "call_function" and node.target is not operator.getitem:
                self._node(node)
            elif node.op in ("call_module", "call_method"):
                raise Refused(f"the graph has a node '{node.op}': trace it with make_fx first")
        outputs = next(node for node in self.graph.graph.nodes if node.op == "output").args[0]
        specs = []
        for value in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
            if isinstance(value, torch.fx.Node):
                specs.append({"user_output": {"arg": {"as_tensor": {"name": value.name}}}})
            elif value is not None:
                raise Refused(f"a result is {value!r}, not a tensor")
        self.numResults = len(specs)
        for placeholder, state in self.mutated.items():
            kind, target = self.targets[placeholder]
            key = "user_input_name" if kind == "user_input" else f"{kind}_name"
            specs.append({f"{kind}_mutation": {"arg": {"name": state}, key: target}})
        self._save(path, specs)
        return list(self.mutated)

    def _input(self, node: str, name: str, tensor: torch.Tensor, isWeight: bool) -> None:
        self.types[node] = _meta(tensor)
        self.targets[node] = ("buffer", name) if isWeight else ("user_input", node)
        self.inputSpecs.append({"buffer": {"arg": {"name": node}, "buffer_name": name, "persistent": True}} if isWeight
                               else {"user_input": {"arg": {"as_tensor": {"name": node}}}})

    def _node(self, node: torch.fx.Node) -> None:
        if node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder":
            if _origin(node.args[1]) is not node.args[0]:
                self.mutated[node.args[0].name] = node.args[1].name
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Refused(f"node '{node.name}' calls {node.target}, which is no operation of ATen", node.name)
        users = {user.args[1]: user.name for user in node.users if user.target is operator.getitem}
        returns = node.target._schema.returns
        if len(returns) == 1 and str(returns[0].type) == "List[Tensor]":
            count = max(users, default=-1) + 1
            outputs = [{"as_tensors": [{"name": users.get(k, f"{node.name}_unused_{k}")} for k in range(count)]}]
        elif len(returns) > 1:
            outputs = [{"as_tensor": {"name": users.get(k, f"{node.name}_unused_{k}")}} for k in range(len(returns))]
        else:
            outputs = [{"as_tensor": {"name": node.name}}]
        target, inputs = f"torch.ops.{node.target}", _named_arguments(node)
        if node.target is torch.ops.aten.native_batch_norm.default and node.args[5] and node.args[3] is not None:
            # It changes its running statistics, which its schema does not say.
            target = "torch.ops.aten._native_batch_norm_legit_functional.default"
            for argument, what in zip(node.args[3:5], ("mean", "var")):
                outputs.append({"as_tensor": {"name": f"{node.name}_{what}"}})
                self.mutated[_origin(argument).name] = f"{node.name}_{what}"
        self.nodes.append({"target": target, "inputs": inputs, "outputs": outputs, "metadata": {}, "name": node.name})

    def _save(self, path: str, outputs: List[Dict[str, Any]]) -> None:
        signature = {"input_specs": self.inputSpecs, "output_specs": outputs}
        graph = {"inputs": [], "outputs": [], "nodes": self.nodes, "tensor_values": self.types, "sym_int_values": {}, "sym_bool_values": {}}
        model = {"graph_module": {"graph": graph, "signature": signature, "module_call_graph": []}, "opset_version": {"aten": 10},
                 "range_constraints": {}, "schema_version": {"major": 8, "minor": 17}, "torch_version": torch.__version__}
        config = {name: {"path_name": f"weight_{k}", "is_param": True, "use_pickle": False, "tensor_meta": _meta(tensor)}
                  for k, (name, tensor) in enumerate(self.weights.items())}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("model/byteorder", "little")
            archive.writestr("model/models/model.json", json.dumps(model))
            archive.writestr("model/data/weights/model_weights_config.json", json.dumps({"config": config}))
            for k, tensor in enumerate(self.weights.values()):
                archive.writestr(f"model/data/weights/weight_{k}", bytes(_memory(_whole(tensor))))


# The compiler.

def _tune(words: Sequence[str]) -> None:
    try:
        _commands.run(words)
    except mgpu.UnsupportedError as error:
        node = re.search(r"node '([^']+)'", str(error))
        raise Refused(str(error), node and node[1]) from None


class _Program:
    """A graph of ATen operations as an open program: tensors in, tensors out. Weights stay in it."""

    def __init__(self, graph: torch.fx.GraphModule, weights: Dict[str, torch.Tensor], inputs: Sequence[torch.Tensor], target: str,
                 layout: Optional["_Layout"] = None):
        self.folder = tempfile.mkdtemp(prefix="mgpu-torch-")
        self._cleanup = weakref.finalize(self, shutil.rmtree, self.folder, True)
        self.file, self.bundle, self.target = f"{self.folder}/model.pt2", f"{self.folder}/model.mgpu", target
        names = [node.name for node in graph.graph.nodes if node.op == "placeholder"][len(weights):]
        self.inputs = dict(zip(names, inputs))
        self.layout = layout.words(self.inputs) if layout else []
        writer = _Writer(graph, weights, self.inputs)
        mutated = writer.write(self.file)
        self.weights = writer.weights
        self.changed = [writer.targets[node][1] for node in mutated if writer.targets[node][0] == "buffer"]
        self.numResults = writer.numResults
        self.changedInputs = [node for node in mutated if writer.targets[node][0] == "user_input"]
        self.build()

    def build(self, *words: str) -> None:
        """Compiles it, with options of `mgpu-tune bundle`, and gives it its weights."""
        _tune(["bundle", self.file, "-o", self.bundle, "--target", self.target, *self.layout, *_commands.host_level(self.target), *words])
        self.program = mgpu.load(self.bundle, self.target)
        for name, tensor in self.weights.items():
            if name in self.program.arguments:
                self.program.write(name, _memory(_whole(tensor)))
        known = self.program.arguments
        self.results = [(name, _NAMES[known[name].type.decode()], [known[name].shape[k] for k in range(known[name].rank)])
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
            if name in self.program.arguments:
                self.program.bind(name, _memory(_whole(tensor)))
        outputs = []
        for name, dtype, shape in self.results:
            outputs.append(torch.empty(shape, dtype=dtype))
            self.program.bind(name, _memory(outputs[-1]))
        self.program.replay()
        if self.changedInputs:
            self.program.fetch()
            for name, tensor in zip(self.inputs, inputs):
                if name in self.changedInputs:
                    tensor.detach().copy_(self.read(name, tensor))
        return outputs

    def read(self, name: str, like: torch.Tensor) -> torch.Tensor:
        array = self.program.read(name)
        return torch.frombuffer(bytearray(array.tobytes()), dtype=like.dtype).reshape(like.shape)

    def state(self) -> Dict[str, torch.Tensor]:
        """What the program has changed of its weights, as it is now."""
        if self.changed:
            self.program.fetch()
        return {name: self.read(name, self.weights[name]) for name in self.changed}


class _Layout:
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


class _Region(torch.nn.Module):
    """A part of a graph that mgpu runs, within one that torch runs."""

    def __init__(self, part: torch.fx.GraphModule, inputs: Sequence[torch.Tensor], target: str):
        super().__init__()
        outputs = next(node for node in part.graph.nodes if node.op == "output").args[0]
        self.isOne = isinstance(outputs, torch.fx.Node)
        self.program = _Program(part, {}, inputs, target)

    def forward(self, *inputs: torch.Tensor) -> Any:
        outputs = self.program(*inputs)
        return outputs[0] if self.isOne else tuple(outputs)


def _regions(graph: torch.fx.GraphModule, refused: set, inputs: Sequence[torch.Tensor], target: str) -> torch.fx.GraphModule:
    """The graph in parts: the nodes `refused`, and those that write into tensors, run in torch, the others
    in mgpu. Raises Refused with one more node where a part has one."""
    parts, part, wasTorch, inTorch = {}, 0, None, set()
    for node in graph.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        isTorch = node.name in refused or node.op == "get_attr" or (
            node.target is operator.getitem and parts.get(node.args[0]) in inTorch) or (
            node.op == "call_function" and getattr(node.target, "__name__", "").split(".")[0].endswith("_"))
        if node.target is operator.getitem:  # beside what it takes of
            parts[node] = parts[node.args[0]]
            continue
        if isTorch != wasTorch:
            part, wasTorch = part + 1, isTorch
        if isTorch:
            inTorch.add(part)
        parts[node] = part
    split = split_module(graph, torch.nn.Module(), lambda node: parts[node])
    seen: Dict[str, Sequence[torch.Tensor]] = {}
    hooks = [module.register_forward_pre_hook(lambda _, given, name=name: seen.__setitem__(name, given))
             for name, module in split.named_children()]
    with torch.no_grad():
        split(*[tensor.detach().clone() for tensor in inputs])
    for hook in hooks:
        hook.remove()
    for name, module in list(split.named_children()):
        number = int(name.rsplit("_", 1)[1])
        if number not in inTorch:
            setattr(split, name, _Region(module, [tensor.detach() for tensor in seen[name]], target))
    return split


def _flat(value: Any) -> List[Any]:
    return pytree.tree_flatten(value)[0]


class Compiled:
    """A module as one program, or, where mgpu does not read an operation, as several with torch between
    them; `reasons` has a line for each operation that torch runs. Call it as the module."""

    def __init__(self, function: Callable, weights: Dict[str, torch.Tensor], inputs: Sequence[Any], target: str, fallback: bool,
                 layout: Optional[_Layout] = None):
        tensors, self._inputs = pytree.tree_flatten(tuple(inputs))
        tensors = [tensor.detach() for tensor in tensors]
        self._outputs: Any = None

        def flat(given: List[torch.Tensor], arguments: List[torch.Tensor]) -> List[torch.Tensor]:
            results, self._outputs = pytree.tree_flatten(function(dict(zip(weights, given)),
                                                                  pytree.tree_unflatten(arguments, self._inputs)))
            return results

        given = [weight.detach().clone() for weight in weights.values()]
        with _composites():
            graph = make_fx(functionalize(flat, remove="mutations"))(given, [tensor.clone() for tensor in tensors])
        _clean(graph)
        self.reasons: List[str] = []
        self._weights = weights
        self._publish: Callable[[], None] = lambda: None  # what sync() does beside
        self._parts = self._program = None
        refused: set = set()
        while self._parts is None and self._program is None:
            try:
                if not refused:
                    self._program = _Program(graph, weights, tensors, target, layout)
                else:
                    self._parts = _regions(graph, refused, [*weights.values(), *tensors], target)
            except Refused as reason:
                if not fallback or reason.node is None or reason.node in refused:
                    raise
                owner = _owner(graph, reason.node)
                if owner in refused:
                    raise
                refused.add(owner)
                self.reasons.append(str(reason))

    def __call__(self, *inputs: Any) -> Any:
        tensors = _flat(tuple(inputs))
        if self._program is not None:
            results = self._program(*tensors)
        else:
            with torch.no_grad():
                results = _flat(self._parts(*[weight.detach() for weight in self._weights.values()], *tensors))
        return pytree.tree_unflatten(list(results), self._outputs)

    def _whole(self) -> _Program:
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
        _tune(["tune", whole.file, "--target", whole.target, *whole.layout, "--budget", str(budget), "--db", database, *weights])
        whole.build("--db", database)

    def save(self, path: str) -> None:
        """The program as a bundle, which needs neither torch nor a compiler."""
        shutil.copyfile(self._whole().bundle, path)

    def report(self) -> str:
        """One line of what it is, and one for each operation that torch runs."""
        if self._program is None:
            return "\n".join([f"several programs of mgpu; {len(self.reasons)} operations in torch:", *self.reasons])
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


def _clean(graph: torch.fx.GraphModule) -> None:
    """Without nodes whose results nobody takes, but for writes into inputs."""
    for node in reversed(list(graph.graph.nodes)):
        isWrite = node.target is torch.ops.aten.copy_.default or node.target is torch.ops.aten.native_batch_norm.default
        if node.op in ("call_function", "get_attr") and not node.users and not isWrite:
            graph.graph.erase_node(node)
    graph.recompile()


def _owner(graph: torch.fx.GraphModule, name: str) -> str:
    """The node that computes `name`: what is taken of several results is computed by what gives them."""
    for node in graph.graph.nodes:
        if node.name == name:
            return node.args[0].name if node.target is operator.getitem else name
    return re.sub(r"_(unused_\d+|mean|var)$", "", name)


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
    options: Dict[str, Any] = {"target": target, "fallback": fallback and train is None}
    if devices != 1 or data_parallel or shard:
        layout = _Layout(devices, data_parallel, shard)
        options = {"target": f"host:{layout.count}" if target == "host" else target, "fallback": False, "layout": layout}
    if not isinstance(module, torch.nn.Module):
        return Compiled(lambda _, inputs: module(*inputs), {}, example_inputs, **options)
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    if train is None:
        return Compiled(lambda weights, inputs: _call(module, weights, tuple(inputs)), {**parameters, **buffers},
                        example_inputs, **options)
    state, update = _optimizer(train, parameters)

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

    compiled = Compiled(step, {**parameters, **buffers, **state}, example_inputs, **options)

    def publish() -> None:
        """Puts the state where the optimiser looks for it."""
        for key, value in state.items():
            name, _, field = key.rpartition(".")
            train.state[parameters[name]][field] = value.to(torch.float32) if field == "step" else value

    compiled._publish = publish
    return compiled


def _optimizer(optimizer: torch.optim.Optimizer, parameters: Dict[str, torch.Tensor]) -> Tuple[Dict[str, torch.Tensor], Callable]:
    """The optimiser's state by name, and its step: it writes into weights and state."""
    names = {id(parameter): name for name, parameter in parameters.items()}
    groups = [(group, [names[id(parameter)] for parameter in group["params"] if id(parameter) in names])
              for group in optimizer.param_groups]
    state: Dict[str, torch.Tensor] = {}
    rule = {torch.optim.SGD: _sgd, torch.optim.Adam: _adam, torch.optim.AdamW: _adam}.get(type(optimizer))
    if rule is None:
        raise Refused(f"{type(optimizer).__name__} is not read: SGD, Adam and AdamW are")
    for group, members in groups:
        for name in members:
            rule(optimizer, group, name, parameters[name], None, state)

    def update(weights: Dict[str, torch.Tensor], gradients: Dict[str, torch.Tensor]) -> None:
        for group, members in groups:
            for name in members:
                if name in gradients:
                    rule(optimizer, group, name, weights[name], gradients[name], weights)

    return state, update


def _first(optimizer: torch.optim.Optimizer, parameter: torch.Tensor, key: str, otherwise: torch.Tensor) -> torch.Tensor:
    value = optimizer.state.get(parameter, {}).get(key)
    return otherwise if value is None else value


def _sgd(optimizer: Any, group: Dict[str, Any], name: str, parameter: torch.Tensor, gradient: Optional[torch.Tensor],
         state: Dict[str, torch.Tensor]) -> None:
    """torch.optim.SGD's step; without a gradient it makes the state."""
    key = f"{name}.momentum_buffer"
    if gradient is None:
        if group["momentum"]:
            if group["dampening"] and "momentum_buffer" not in optimizer.state.get(parameter, {}):
                raise Refused("SGD with dampening takes another first step: run one in torch")
            state[key] = _first(optimizer, parameter, "momentum_buffer", torch.zeros_like(parameter))
        return
    if group.get("maximize"):
        gradient = -gradient
    if group["weight_decay"]:
        gradient = gradient + group["weight_decay"] * parameter
    if group["momentum"]:
        buffer = group["momentum"] * state[key] + (1 - group["dampening"]) * gradient
        state[key].copy_(buffer)
        gradient = gradient + group["momentum"] * buffer if group["nesterov"] else buffer
    parameter.copy_(parameter - group["lr"] * gradient)


def _adam(optimizer: Any, group: Dict[str, Any], name: str, parameter: torch.Tensor, gradient: Optional[torch.Tensor],
          state: Dict[str, torch.Tensor]) -> None:
    """The step of torch.optim.Adam and AdamW; without a gradient it makes the state. The count of steps is
    of f64, as bias corrections are differences of numbers near 1."""
    keys = [f"{name}.{key}" for key in ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")]
    if gradient is None:
        state[keys[0]] = torch.as_tensor(_first(optimizer, parameter, "step", torch.zeros(())), dtype=torch.float64).clone()
        for key in keys[1:4 if group["amsgrad"] else 3]:
            state[key] = _first(optimizer, parameter, key.rsplit(".", 1)[1], torch.zeros_like(parameter))
        return
    (first, second), decay = group["betas"], group["weight_decay"]
    if group.get("maximize"):
        gradient = -gradient
    value = parameter
    if decay and isinstance(optimizer, torch.optim.AdamW):
        value = value * (1 - group["lr"] * decay)
    elif decay:
        gradient = gradient + decay * value
    count = state[keys[0]] + 1
    mean = first * state[keys[1]] + (1 - first) * gradient
    square = second * state[keys[2]] + (1 - second) * gradient * gradient
    state[keys[0]].copy_(count)
    state[keys[1]].copy_(mean)
    state[keys[2]].copy_(square)
    if group["amsgrad"]:
        square = torch.maximum(state[keys[3]], square)
        state[keys[3]].copy_(square)
    size = (group["lr"] / (1 - torch.pow(first, count))).to(parameter.dtype)
    root = torch.sqrt(1 - torch.pow(second, count)).to(parameter.dtype)
    parameter.copy_(value - size * (mean / (square.sqrt() / root + group["eps"])))


def backend(graph: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor]) -> Callable:
    """A backend of torch.compile: torch.compile(module, backend=mgpu.torch.backend). It takes graphs of
    torch.fx, make_fx and AOTAutograd, whose tensors are all arguments."""
    compiled = Compiled(lambda weights, inputs: torch.fx.GraphModule.__call__(graph, *inputs) if not weights else
                        _call(graph, weights, tuple(inputs)),
                        {**dict(graph.named_parameters()), **dict(graph.named_buffers())}, list(example_inputs), "host", True)
    for reason in compiled.reasons:
        warnings.warn(f"mgpu: {reason}; torch runs it")
    return compiled
