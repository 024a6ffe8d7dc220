# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m mgpu COMMAND [OPTIONS]: what mgpu-tune does (check, run, plan, tune, report, ...); lsp is mgpu-lsp-server."""

import sys

import mgpu
from mgpu import _commands, _library


def main() -> None:
    words = sys.argv[1:]
    if words == ["--version"]:
        print(f"{mgpu.version()}\nLibrary: {_library.find()}")
    elif words[:1] == ["lsp"]:
        _commands.become(words[1:], "mgpu-lsp-server")
    else:
        _commands.become(words or ["--help"])


if __name__ == "__main__":
    main()
