# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python -m mgpu --version"""

import argparse

import mgpu
from mgpu import _library


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mgpu", description="Says which library the package uses.")
    parser.add_argument("--version", action="store_true", help="print the library's version and path")
    if parser.parse_args().version:
        print(f"{mgpu.version()}\nLibrary: {_library.find()}")
    else:
        parser.print_help()


if __name__ == "__main__":
    main()
