# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of torch.optim's optimisers as functions that a graph is traced of."""

from typing import Any, Callable, Dict, Optional, Tuple

import torch

import mgpu
from mgpu._torch_graphs import Refused


def optimizer_step(optimizer: torch.optim.Optimizer, parameters: Dict[str, torch.Tensor]) -> Tuple[Dict[str, torch.Tensor], Callable]:
    """The optimiser's state by name, and its step: it writes into weights and state."""
    names = {id(parameter): name for name, parameter in parameters.items()}
    groups = [(group, [names[id(parameter)] for parameter in group["params"] if id(parameter) in names])
              for group in optimizer.param_groups]
    if not any(members for _, members in groups):
        raise mgpu.UsageError("the optimiser has no parameter of the module")
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
