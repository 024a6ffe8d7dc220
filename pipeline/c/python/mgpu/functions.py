# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of Python for the custom calls of programs (docs/from-jax.md)."""

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Callable, List, Optional

from mgpu import _arrays
from mgpu._library import UsageError, call
from mgpu.program import Array


class _Tensor(ctypes.Structure):
    _fields_ = [("type", c_char_p), ("rank", c_size_t), ("shape", POINTER(c_int64)), ("data", c_void_p), ("bytes", c_size_t)]


class _Call(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("config", c_void_p), ("config_bytes", c_size_t), ("num_operands", c_size_t),
                ("num_results", c_size_t), ("operands", POINTER(_Tensor)), ("results", POINTER(_Tensor)), ("message", c_void_p),
                ("message_bytes", c_size_t)]


_FUNCTION = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(_Call))
_registered: List[Any] = []
"""All that were ever registered: an open program goes on with the one that it was opened with."""

Function = Callable[[List[Array], List[Array], bytes], Any]


def _array(tensor: _Tensor, writable: bool) -> Array:
    memory = (c_char * tensor.bytes).from_address(tensor.data) if tensor.bytes else (c_char * 0)()
    return Array(tensor.type.decode(), tuple(tensor.shape[:tensor.rank]), memory, writable)


def _store(name: str, results: List[Array], given: Any) -> None:
    values = given if isinstance(given, tuple) else (given,)
    if len(values) != len(results):
        raise UsageError(f"'{name}' has {len(results)} results, and its function gave {len(values)}")
    for k, (result, value) in enumerate(zip(results, values)):
        if 0 in result.shape:
            continue
        data = memoryview(_arrays.take(f"result {k} of {name}", value, result.type, result.shape)).cast("B")
        into = memoryview(result._owner).cast("B")  # pylint: disable=protected-access
        if len(data) != len(into):
            raise UsageError(f"result {k} of '{name}' has {len(into)} bytes, and its function gave {len(data)}")
        into[:] = data


def register(name: str, function: Optional[Function]) -> None:
    """From here on calls of `name` are `function(operands, results, config)`, in programs that are opened with
    `--custom NAME=registered`. It gets lists of arrays, which numpy.asarray() takes without a copy, and the call's
    configuration as bytes. It writes the results, or returns one or a tuple of them, in the order of the call. An
    exception fails the replay. None takes the function away."""
    if function is None:
        call("mgt_register", name.encode(), None, None)
        return

    def of_call(_: Any, pointer: Any) -> int:
        it = pointer.contents
        try:
            operands = [_array(it.operands[k], False) for k in range(it.num_operands)]
            results = [_array(it.results[k], True) for k in range(it.num_results)]
            given = function(operands, results, ctypes.string_at(it.config, it.config_bytes))
            if given is not None:
                _store(name, results, given)
            return 0
        except BaseException as error:  # pylint: disable=broad-except
            text = f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:it.message_bytes - 1]
            ctypes.memmove(it.message, text + b"\0", len(text) + 1)
            return 1

    made = _FUNCTION(of_call)
    _registered.append(made)
    call("mgt_register", name.encode(), ctypes.cast(made, c_void_p), None)
