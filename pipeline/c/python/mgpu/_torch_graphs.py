# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of ATen operations as the .pt2 files that torch.export.save would write."""

import ctypes
import functools
import itertools
import json
import math
import operator
import zipfile
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

import mgpu

# PyTorch's numbers of types in a .pt2, and mgpu's names of them.
DTYPES = {torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5, torch.float16: 6, torch.float32: 7, torch.float64: 8,
           torch.bool: 12, torch.bfloat16: 13}
NAMES = {"i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16,
          "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}


class Refused(mgpu.UnsupportedError):
    """What mgpu does not compile; `node` is the graph's node where it is one."""

    def __init__(self, message: str, node: Optional[str] = None):
        super().__init__(message)
        self.node = node


def why_not(tensor: torch.Tensor) -> str:
    """Why mgpu does not take a tensor, or nothing."""
    if tensor.dtype not in DTYPES:
        return f"a tensor has elements of {tensor.dtype}, which mgpu does not read"
    if tensor.layout is not torch.strided or tensor.device.type == "meta":
        return f"a tensor is {'sparse' if tensor.device.type != 'meta' else 'without memory (meta)'}: mgpu reads dense ones"
    return ""


def _type(shape: Sequence[int], dtype: torch.dtype) -> Dict[str, Any]:
    """The schema's TensorMeta of a tensor without gaps."""
    sizes = [{"as_int": size} for size in shape]
    strides = [{"as_int": stride} for stride in torch.empty(shape, device="meta").stride()]
    return {"dtype": DTYPES[dtype], "sizes": sizes, "requires_grad": False, "device": {"type": "cpu", "index": None},
            "strides": strides, "storage_offset": {"as_int": 0}, "layout": 7}


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on the host, without gaps, where its elements may begin."""
    tensor = tensor.detach().cpu().contiguous().resolve_neg()
    return tensor if tensor.data_ptr() % tensor.element_size() == 0 else tensor.clone()


@functools.lru_cache(None)
def _memory_type(count: int) -> type:
    return type("Memory", (ctypes.c_char * count,), {})


def memory(tensor: torch.Tensor) -> Any:
    """The memory of a tensor of whole(), which it keeps, with the buffer protocol."""
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
        if value not in DTYPES:
            raise Refused(f"elements of {value} are not read")
        return {"as_scalar_type": DTYPES[value]}
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


def changes_statistics(node: torch.fx.Node) -> bool:
    """Whether it is a batch norm that changes its running statistics, which its schema does not say."""
    return node.target is torch.ops.aten.native_batch_norm.default and bool(node.args[5]) and node.args[3] is not None


def _is_lost(statistic: torch.fx.Node) -> bool:
    """Whether somebody else may read what a batch norm writes into a value that the graph has made."""
    return len(statistic.users) > 1 or statistic.op != "call_function" or not isinstance(statistic.target, torch._ops.OpOverload) or \
        any(each.alias_info for each in statistic.target._schema.returns)


def attribute(graph: torch.nn.Module, path: str) -> Any:
    """What a node 'get_attr' of a graph takes."""
    return functools.reduce(getattr, path.split("."), graph)


class Writer:
    """A graph of ATen operations, whose placeholders are weights or inputs, as the JSON of a .pt2."""

    def __init__(self, graph: torch.fx.GraphModule, weights: Dict[str, torch.Tensor], inputs: Dict[str, torch.Tensor]):
        self.graph, self.weights, self.inputs = graph, dict(weights), inputs
        self.nodes: List[Dict[str, Any]] = []
        self.types: Dict[str, Any] = {}
        self.inputSpecs: List[Dict[str, Any]] = []
        self.mutated: Dict[str, str] = {}  # placeholder's node -> its next state
        self.targets: Dict[str, Tuple[str, str]] = {}  # placeholder's node -> kind of mutation, its target

    def write(self, path: str) -> List[str]:
        """The names of the placeholders that change. The next value of an input is a result like others, as the next call gives
        the input anew; the next state of a weight stays in the program."""
        placeholders = [node for node in self.graph.graph.nodes if node.op == "placeholder"]
        for node, (name, tensor) in zip(placeholders, itertools.chain(self.weights.items(), self.inputs.items())):
            self._input(node.name, name, tensor, name in self.weights)
        for node in self.graph.graph.nodes:
            if node.op in ("call_module", "call_method"):
                raise Refused(f"the graph has a node '{node.op}': trace it with make_fx first")
            try:
                if node.op == "get_attr":
                    self._constant(node)
                elif node.op == "call_function" and node.target is not operator.getitem:
                    self._node(node)
            except Refused as reason:
                raise reason if reason.node else Refused(f"node '{node.name}' ({node.target}): {reason}", node.name) from None
        outputs = next(node for node in self.graph.graph.nodes if node.op == "output").args[0]
        specs = []
        for value in outputs:
            specs.append({"user_output": {"arg": {"as_tensor": {"name": value.name}}}})
        changed = [(self.targets[placeholder], state) for placeholder, state in self.mutated.items()]
        specs += [{"user_output": {"arg": {"as_tensor": {"name": state}}}} for (kind, _), state in changed if kind == "user_input"]
        self.numResults = len(specs)
        specs += [{"buffer_mutation": {"arg": {"name": state}, "buffer_name": target}} for (kind, target), state in changed if kind == "buffer"]
        self._save(path, specs)
        return list(self.mutated)

    def _input(self, node: str, name: str, tensor: torch.Tensor, isWeight: bool) -> None:
        if why_not(tensor):
            raise Refused(why_not(tensor))
        self.types[node] = _type(tensor.shape, tensor.dtype)
        self.targets[node] = ("buffer", name) if isWeight else ("user_input", node)
        self.inputSpecs.append({"buffer": {"arg": {"name": node}, "buffer_name": name, "persistent": True}} if isWeight
                               else {"user_input": {"arg": {"as_tensor": {"name": node}}}})

    def _constant(self, node: torch.fx.Node) -> None:
        name, constant = f"constant.{node.name}", attribute(self.graph, node.target)
        self._input(node.name, name, constant, True)
        self.weights[name] = constant

    def _node(self, node: torch.fx.Node) -> None:
        if node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder":
            if _origin(node.args[1]) is not node.args[0]:
                self.mutated[node.args[0].name] = node.args[1].name
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Refused(f"node '{node.name}' calls {node.target}, which is no operation of ATen", node.name)
        for each in (node, *(user for user in node.users if user.target is operator.getitem)):
            traced = each.meta.get("tensor_meta")
            if hasattr(traced, "dtype") and traced.dtype in DTYPES:  # which what is compiled is checked against
                self.types[each.name] = _type(traced.shape, traced.dtype)
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
        if changes_statistics(node):
            target = "torch.ops.aten._native_batch_norm_legit_functional.default"
            for argument, what in zip(node.args[3:5], ("mean", "var")):
                outputs.append({"as_tensor": {"name": f"{node.name}_{what}"}})
                if _origin(argument).name in self.targets:
                    self.mutated[_origin(argument).name] = f"{node.name}_{what}"
                elif _is_lost(argument):
                    raise Refused(f"node '{node.name}' ({node.target}): it changes running statistics that the graph has made", node.name)
        self.nodes.append({"target": target, "inputs": inputs, "outputs": outputs, "metadata": {}, "name": node.name})

    def _save(self, path: str, outputs: List[Dict[str, Any]]) -> None:
        signature = {"input_specs": self.inputSpecs, "output_specs": outputs}
        graph = {"inputs": [], "outputs": [], "nodes": self.nodes, "tensor_values": self.types, "sym_int_values": {}, "sym_bool_values": {}}
        model = {"graph_module": {"graph": graph, "signature": signature, "module_call_graph": []}, "opset_version": {"aten": 10},
                 "range_constraints": {}, "schema_version": {"major": 8, "minor": 17}, "torch_version": torch.__version__}
        config = {name: {"path_name": f"weight_{k}", "is_param": True, "use_pickle": False, "tensor_meta": _type(tensor.shape, tensor.dtype)}
                  for k, (name, tensor) in enumerate(self.weights.items())}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("model/byteorder", "little")
            archive.writestr("model/models/model.json", json.dumps(model))
            archive.writestr("model/data/weights/model_weights_config.json", json.dumps({"config": config}))
            for k, tensor in enumerate(self.weights.values()):
                archive.writestr(f"model/data/weights/weight_{k}", bytes(memory(whole(tensor))))
