# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of others as bytes: the buffer protocol (numpy, array, bytes), DLPack (torch, JAX, CuPy on the
host), sequences of numbers."""

import array
import ctypes
import struct
import sys
from typing import Any, Dict, Sequence, Tuple

from mgpu._library import UsageError, UnsupportedError

# Type -> bytes, letter of struct and memoryview, kind and bits of DLPack (2 is float, 4 is bfloat).
TYPES = {"i1": (1, "?", 6, 8), "i8": (1, "b", 0, 8), "i16": (2, "h", 0, 16), "i32": (4, "i", 0, 32), "i64": (8, "q", 0, 64),
         "index": (8, "q", 0, 64), "f16": (2, "e", 2, 16), "bf16": (2, "H", 4, 16), "f32": (4, "f", 2, 32), "f64": (8, "d", 2, 64),
         "f8E4M3FN": (1, "B", 10, 8), "f8E5M2": (1, "B", 12, 8)}
# What stands for a type in an array that has no better word for it.
_LIKE = {"i1": "?bB", "i8": "bB", "i16": "hH", "i32": "iIlL", "i64": "qQlL", "index": "qQlL", "f16": "eH", "bf16": "hHe", "f32": "f",
         "f64": "d", "f8E4M3FN": "bB", "f8E5M2": "bB"}


def type_name(dtype: Any) -> str:
    """"f32" of "f32", "float32", numpy.float32, torch.float32."""
    word = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    word = word.rsplit(".", 1)[-1]
    known = {"float16": "f16", "half": "f16", "bfloat16": "bf16", "float32": "f32", "float": "f32", "float64": "f64", "double": "f64",
             "bool": "i1", "bool_": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "int": "i64", "long": "i64",
             "uint8": "i8", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"}
    word = known.get(word, word)
    if word not in TYPES:
        raise UsageError(f"'{dtype}' is no type of an element; there are {', '.join(TYPES)}")
    return word


def number_bytes(kind: str, value: Any) -> bytes:
    """A number as memory has it."""
    if kind == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        if value == value:  # to nearest, ties to even
            bits += 0x7fff + ((bits >> 16) & 1)
        return struct.pack("<H", bits >> 16)
    if kind.startswith("f8"):
        raise UnsupportedError(f"a number of type {kind} cannot be written from Python: give its bits in a buffer")
    try:
        return struct.pack("<" + TYPES[kind][1], int(value) if TYPES[kind][2] == 0 else value)
    except (struct.error, OverflowError, TypeError, ValueError) as error:
        raise UsageError(f"{value!r} is no number of type {kind}: {error}") from None


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _DLManagedTensor(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]
_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype, _api.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_SetName.restype, _api.PyCapsule_SetName.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


_DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTROY)(("PyCapsule_New", _api))
# By address, for a capsule that is being destroyed.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_given: Dict[int, Any] = {}
"""Tensors of DLPack that others have, by their addresses, with what they point to."""


class _Buffer(ctypes.Structure):
    """Py_buffer of CPython 3."""
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


def address_of(view: memoryview) -> int:
    """Where its bytes lie, also of memory that may not be written, for as long as the view lives."""
    buffer = _Buffer()
    _api.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), 0)
    address = buffer.buf or 0
    _api.PyBuffer_Release(ctypes.byref(buffer))
    return address


@_DELETER
def _take_back(managed: Any) -> None:
    _given.pop(ctypes.addressof(managed.contents), None)


@_DESTROY
def _destroy(capsule: int) -> None:
    if _is_valid(capsule, b"dltensor"):  # nobody took it
        _given.pop(_pointer_of(capsule, b"dltensor"), None)


def to_dlpack(kind: str, shape: Sequence[int], address: int, device: Tuple[int, int], owner: Any) -> Any:
    """A capsule of DLPack over memory that `owner` keeps."""
    _, _, code, bits = TYPES[kind]
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    managed = _DLManagedTensor(_DLTensor(address, *device, len(shape), code, bits, 1, sizes, None, 0), None, _take_back)
    _given[ctypes.addressof(managed)] = managed, sizes, owner
    return _new_capsule(ctypes.addressof(managed), b"dltensor", _destroy)


def _contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    if 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


_GPU = 2  # DLPack's type of CUDA's devices


def is_on_gpu(value: Any) -> bool:
    """Whether it says that it lies on a GPU of CUDA's."""
    if hasattr(value, "__dlpack_device__"):
        return int(value.__dlpack_device__()[0]) == _GPU
    return hasattr(value, "__cuda_array_interface__")


def _check_elements(name: str, kind: str, tensor: _DLTensor) -> None:
    _, _, code, bits = TYPES[kind]
    if tensor.lanes != 1 or tensor.bits != bits or (tensor.code != code and (tensor.code, code) not in ((1, 0), (1, 6), (1, 10), (1, 12))):
        raise UsageError(f"'{name}' has elements of type {kind}, and its array of DLPack's ({tensor.code}, {tensor.bits})")


def on_gpu(name: str, value: Any, kind: str, shape: Sequence[int]) -> Tuple[int, Any]:
    """The address of an array on a GPU, and what keeps it. Work on it that others have begun is before
    what the default stream is given from here on."""
    if not is_on_gpu(value):
        raise UsageError(f"'{name}' lies on a GPU and takes an array there, not {type(value).__name__}: write() copies one of the host's")
    if hasattr(value, "__dlpack__"):
        owner = value.__dlpack__(stream=1)
        tensor = ctypes.cast(_api.PyCapsule_GetPointer(owner, b"dltensor"), ctypes.POINTER(_DLManagedTensor)).contents.tensor
        given = tuple(tensor.shape[k] for k in range(tensor.ndim))
        _check_elements(name, kind, tensor)
        isWhole = not tensor.strides or _contiguous(given, [tensor.strides[k] for k in range(tensor.ndim)])
        address = (tensor.data or 0) + tensor.byte_offset
    else:
        facts, owner = value.__cuda_array_interface__, value
        given, address, width = tuple(facts["shape"]), facts["data"][0], int(facts["typestr"][2:])
        letters = "f" if kind in ("f16", "f32", "f64") else "iubfV"
        if width != TYPES[kind][0] or facts["typestr"][1] not in letters:
            raise UsageError(f"'{name}' has elements of type {kind}, and its array of '{facts['typestr']}'")
        strides = facts.get("strides")
        isWhole = strides is None or _contiguous(given, [stride // width for stride in strides])
        if facts.get("stream") not in (None, 1):
            raise UsageError(f"'{name}': its array has work in stream {facts['stream']}: wait for it first, or give the array by DLPack")
    if given != tuple(shape):
        raise UsageError(f"'{name}' has shape {tuple(shape)}, and its array {given}")
    if not isWhole:
        raise UsageError(f"'{name}': its array has gaps or another order; give a contiguous one")
    return address, owner


def _from_dlpack(name: str, value: Any, kind: str) -> Tuple[Any, Tuple[int, ...]]:
    torch = sys.modules.get("torch")
    if kind == "i1" and torch and isinstance(value, torch.Tensor) and value.dtype is torch.bool:
        value = value.view(torch.uint8)  # before torch 2 it gives no truth values
    try:
        capsule = value.__dlpack__()
    except (BufferError, RuntimeError, TypeError) as error:  # of gradients
        raise UsageError(f"'{name}': its array is not given by DLPack: {error}") from None
    pointer = ctypes.cast(_api.PyCapsule_GetPointer(capsule, b"dltensor"), ctypes.POINTER(_DLManagedTensor))
    managed, tensor = pointer.contents, pointer.contents.tensor
    _api.PyCapsule_SetName(capsule, b"used_dltensor")
    try:
        shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
        if tensor.device_type not in (1, 3):  # the CPU's memory, pinned or not
            raise UnsupportedError(f"'{name}': its array is on a device of DLPack's type {tensor.device_type}: copy it to the host first")
        width = TYPES[kind][0]
        _check_elements(name, kind, tensor)
        if tensor.strides and not _contiguous(shape, [tensor.strides[k] for k in range(tensor.ndim)]):
            raise UsageError(f"'{name}': its array has gaps or another order; give a contiguous one")
        count = width
        for size in shape:
            count *= size
        return ctypes.string_at((tensor.data or 0) + tensor.byte_offset, count) if count else b"", shape
    finally:
        if managed.deleter:
            managed.deleter(pointer)


def _from_numbers(value: Any, kind: str, shape: Sequence[int]) -> Tuple[bytes, Tuple[int, ...]]:
    def shape_of(part: Any) -> Tuple[int, ...]:
        return (len(part),) + (shape_of(part[0]) if len(part) else ()) if isinstance(part, (list, tuple)) else ()

    def flat(part: Any):
        if not isinstance(part, (list, tuple)):
            yield part
            return
        for each in part:
            yield from flat(each)

    numbers = list(flat(value))
    letter = TYPES[kind][1]
    if kind in ("f32", "f64", "i64", "i32", "index"):
        try:
            return array.array(letter, numbers).tobytes(), shape_of(value)
        except (TypeError, OverflowError) as error:
            raise UsageError(f"what is given are no numbers of type {kind}: {error}") from None
    return b"".join(number_bytes(kind, each) for each in numbers), shape_of(value)


def take(name: str, value: Any, kind: str, shape: Sequence[int]) -> Any:
    """The bytes of a value for an argument: a bytes-like object."""
    if isinstance(value, (int, float, bool)):
        value = [value] if tuple(shape) == (1,) else value
        data, given = _from_numbers(value, kind, shape)
    elif isinstance(value, (list, tuple, range)):
        data, given = _from_numbers(list(value) if isinstance(value, range) else value, kind, shape)
    else:
        data, given = _from_buffer(name, value, kind)
    width = TYPES[kind][0]
    count = width
    for size in shape:
        count *= size
    flat = given is not None and len(given) == 1 and given[0] * width == count
    if given is not None and tuple(given) != tuple(shape) and not (flat and len(shape) == 0):
        raise UsageError(f"'{name}' has shape {tuple(shape)}, and its array {tuple(given)}")
    return data


def _from_buffer(name: str, value: Any, kind: str) -> Tuple[Any, Any]:
    try:
        view = memoryview(value)
    except TypeError:
        if hasattr(value, "__dlpack__"):
            return _from_dlpack(name, value, kind)
        raise UsageError(f"'{name}' takes arrays with the buffer protocol or DLPack, and numbers, not {type(value).__name__}") from None
    if not view.c_contiguous:
        raise UsageError(f"'{name}': its array has gaps or another order; give a contiguous one")
    letter = view.format.lstrip("@=<")
    isRaw = isinstance(value, (bytes, bytearray)) or letter == "c"
    if not isRaw and (letter not in _LIKE[kind] or view.itemsize != TYPES[kind][0]):
        raise UsageError(f"'{name}' has elements of type {kind}, and its array of '{view.format}'")
    return (view, None) if isRaw else (view, view.shape)
