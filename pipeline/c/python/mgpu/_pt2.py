# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The weights of a .pt2 file for a program that is opened from it. Nothing is unpickled."""

import json
import math
import re
import zipfile
import zlib
from typing import Any, Dict, Sequence

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


def _elements(archive: zipfile.ZipFile, folder: str, about: Dict[str, Any], name: str, argument: Any) -> bytes:
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
    places = [offset]
    for size, stride in zip(sizes, strides):
        places = [place + k * stride for place in places for k in range(size)]
    return b"".join(payload[place * width:(place + 1) * width] for place in places)


def _is_contiguous(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    return all(size == 1 or stride == math.prod(sizes[k + 1:]) for k, (size, stride) in enumerate(zip(sizes, strides)))
