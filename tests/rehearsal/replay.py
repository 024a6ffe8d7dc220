#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replays a bundle through the C interface on the host and on other targets, with equal inputs,
and compares every bit of every argument and result. On one GPU two replays are queued into the
default stream; other targets refuse that.

Usage: replay.py LIBMGT BUNDLE TARGET...
"""

import ctypes
import random
import struct
import sys


class Argument(ctypes.Structure):
    """mgt_argument (pipeline/c/mgt.h)."""
    _fields_ = [("name", ctypes.c_char_p), ("role", ctypes.c_char_p), ("type", ctypes.c_char_p),
                ("rank", ctypes.c_size_t), ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t),
                ("value", ctypes.c_char_p), ("is_result", ctypes.c_int)]


def numbers(element, count, draw):
    """Floats in -0.5 to 0.5; of other types zeros."""
    form = {b"f32": ("f", 0, 4), b"f64": ("d", 0, 8), b"f16": ("e", 0, 2), b"bf16": ("f", 2, 2)}.get(element)
    if not form:
        return bytes(count)
    letter, skip, width = form
    return b"".join(struct.pack(letter, draw.random() - 0.5)[skip:] for _ in range(count // width))


def replay(library, bundle, target):
    """{name: bytes} after two replays."""
    def call(name, *words):
        if getattr(library, name)(*words):
            sys.exit(f"{name} of {bundle} on {target}: {library.mgt_error().decode()}")

    program = ctypes.c_void_p()
    call("mgt_open", bundle.encode(), target.encode(), ctypes.byref(program))
    draw, arguments = random.Random(5), []
    for k in range(library.mgt_num_arguments(program)):
        argument = Argument()
        call("mgt_get_argument", program, ctypes.c_size_t(k), ctypes.byref(argument))
        if argument.bytes == 0:
            continue
        arguments.append((argument.name, ctypes.c_size_t(argument.bytes)))
        if not argument.is_result:
            data = numbers(argument.type, argument.bytes, draw)
            call("mgt_write", program, argument.name, data, ctypes.c_size_t(len(data)))
    call("mgt_load", program)
    for _ in range(2):
        call("mgt_replay_on", program, None)
    call("mgt_fetch", program)
    out = {}
    for name, count in arguments:
        out[name] = ctypes.create_string_buffer(count.value)
        call("mgt_read", program, name, out[name], count)
    library.mgt_close(program)
    return {name: data.raw for name, data in out.items()}


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    library = ctypes.CDLL(sys.argv[1])
    library.mgt_error.restype = ctypes.c_char_p
    library.mgt_num_arguments.restype = ctypes.c_size_t
    bundle, targets = sys.argv[2], sys.argv[3:]
    expected = replay(library, bundle, "host")
    if not any(any(data) for data in expected.values()):
        sys.exit(f"{bundle}: nothing but zeros to compare")
    for target in targets:
        got = replay(library, bundle, target)
        wrong = [name.decode() for name in expected if got[name] != expected[name]]
        if wrong:
            sys.exit(f"{bundle} on {target}: {', '.join(wrong)} are not the host's")
    print(f"{len(expected)} arguments and results on {', '.join(targets)} have the host's bits")


if __name__ == "__main__":
    main()
