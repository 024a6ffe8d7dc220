# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m mgpu COMMAND [OPTIONS]: what mgpu-tune does (check, run, plan, tune, report, ...); lsp is mgpu-lsp-server."""

import os
import sys

import mgpu
from mgpu import _commands, _library


def main() -> None:
    words = sys.argv[1:]
    if words == ["--version"]:
        print(f"{mgpu.version()}\nLibrary: {_library.find()}")
        return
    try:
        program = _commands.find("mgpu-lsp-server" if words[:1] == ["lsp"] else "mgpu-tune")
        os.execv(program, [program, *(words[1:] if words[:1] == ["lsp"] else words or ["--help"])])
    except (mgpu.AbsentError, OSError) as error:
        print(f"mgpu: error: {error}", file=sys.stderr)
        sys.exit(mgpu.AbsentError.status)


if __name__ == "__main__":
    main()
