# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights of a .pt2 file for a program that is opened from it. Nothing is unpickled."""

import itertools
import json
import math
import re
import zipfile
import zlib
from typing import Any, Dict, Sequence, Union

from mgpu._library import InvalidError, UnsupportedError

_CONFIG = re.compile(r"((?:[^/]*/)?data/(weights|constants))/[^/]*_\2_config\.json")


def write_weights(program: Any, path: str) -> None:
    """Writes those weights and constants of the file that the program has as arguments."""
    try:
        with zipfile.ZipFile(path) as archive:
            for config in filter(None, map(_CONFIG.fullmatch, archive.namelist())):
                for name, about in json.loads(archive.read(config[0]))["config"].items():
                    if name in program.arguments:
                        program.write(name, _elements(archive, f"{config[1]}/", about, name, program.arguments[name]))
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidError(f"'{path}' has no valid weights: {error}") from None


def _elements(archive: zipfile.ZipFile, folder: str, about: Dict[str, Any], name: str, argument: Any) -> Union[bytes, bytearray]:
    """A weight's elements one after the other; several may share a payload by strides and offsets."""
    if about["use_pickle"]:
        raise UnsupportedError(f"weight '{name}' is pickled, and nothing is unpickled: save it again with torch.export.save")
    meta, payload = about["tensor_meta"], archive.read(folder + about["path_name"])
    sizes, strides = ([int(each["as_int"]) for each in meta[key]] for key in ("sizes", "strides"))
    offset, count = int(meta["storage_offset"]["as_int"]), math.prod(sizes)
    if sizes != [argument.shape[k] for k in range(argument.rank)] or len(strides) != len(sizes) or min([offset, *strides]) < 0:
        raise ValueError(f"weight '{name}' is not of the shape that the graph has")
    if count == 0:
        return b""
    width, last = argument.bytes // count, offset + sum((size - 1) * stride for size, stride in zip(sizes, strides))
    if (last + 1) * width > len(payload):
        raise ValueError(f"weight '{name}' lies outside of its {len(payload)} bytes")
    if _is_contiguous(sizes, strides):
        return payload[offset * width:(offset + count) * width]
    return _gathered(payload, sizes, strides, offset, width)


def _gathered(payload: bytes, sizes: Sequence[int], strides: Sequence[int], offset: int, width: int) -> bytearray:
    """Elements by strides, one after the other: copied by lines along the longest dimension."""
    result, unit = bytearray(math.prod(sizes) * width), {1: "B", 2: "H", 4: "I", 8: "Q"}[width]
    source = memoryview(payload)[:len(payload) // width * width].cast("B").cast(unit)
    target = memoryview(result).cast(unit)
    along = max(range(len(sizes)), key=sizes.__getitem__)
    steps = [math.prod(sizes[k + 1:]) for k in range(len(sizes))]
    count, stride, step = sizes[along], strides[along], steps[along]
    others = [k for k in range(len(sizes)) if k != along]
    for place in itertools.product(*(range(sizes[k]) for k in others)):
        begin = offset + sum(at * strides[k] for at, k in zip(place, others))
        end, to = begin + (count - 1) * stride + 1, sum(at * steps[k] for at, k in zip(place, others))
        line = source[begin:end:stride] if stride else memoryview(payload[begin * width:(begin + 1) * width] * count).cast(unit)
        target[to:to + (count - 1) * step + 1:step] = line
    return result


def _is_contiguous(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    return all(size == 1 or stride == math.prod(sizes[k + 1:]) for k, (size, stride) in enumerate(zip(sizes, strides)))
