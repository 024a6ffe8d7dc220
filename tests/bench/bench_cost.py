#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs bench-cost on a small table of its own and, where MGPU_DATA has them, on the public ones."""

import functools
import json
import os
import sys
import tempfile

import harness

TOOL, FITTED = sys.argv[1:3]
run = functools.partial(harness.command, TOOL)


def write_tables(folder):
    with open(os.path.join(folder, "collectives.csv"), "w") as file:
        file.write("arch,op,groups,gpus_per_group,bytes,time_us\n")
        for op, share in (("all_reduce", 1.75), ("all_gather", 0.875)):
            for exponent in range(10, 31, 2):
                size = 2 ** exponent
                file.write(f"sm_90,{op},1,8,{size},{20 + share * size / 370e3 + 0.01 * size ** 0.5}\n")
    with open(os.path.join(folder, "matmul.csv"), "w") as file:
        file.write("arch,b,m,n,k,types,flops_per_s\n")
        for m in (256, 512, 1024, 2048, 4096):
            for n in (256, 512, 1024, 2048, 4096):
                for k in (256, 512, 1024, 2048, 4096):
                    us = 4 + 2 * m * n * k / 700e6
                    file.write(f"sm_90,1,{m},{n},{k},bf16xbf16->bf16,{2 * m * n * k / us * 1e6}\n")


def medians(text):
    return {(row["what"], row["model"]): row["median"] for row in json.loads(text)["rows"]}


def check_small(folder):
    write_tables(folder)
    out = medians(run("--tables", folder, "--json").stdout)
    assert out["collectives >= 1 MiB", "table"] < 0.06, out
    # The curves are of the tables' own form, the line is not.
    assert out["collectives >= 1 MiB", "curves"] < 1e-6, out
    assert out["collectives >= 1 MiB", "alpha-beta"] > 0.02, out
    assert out["matmul bf16", "fit"] < 0.03 < out["matmul bf16", "roofline"], out
    with open(os.path.join(folder, "matmul.csv"), "a") as file:
        file.write("sm_90,1,2,3,4,i8,5\n")
    assert "matmul.csv, line 127" in run("--tables", folder, expect=1).stderr


def check_public(tables, folder):
    """The targets are met, and what the program holds is what these tables give."""
    emitted = os.path.join(folder, "Fitted.inc")
    out = json.loads(run("--tables", tables, "--json", "--emit", emitted).stdout)
    assert out["targets_met"], out
    with open(emitted) as new, open(FITTED) as kept:
        assert new.read() == kept.read(), "planner/cost/Fitted.inc is not what bench-cost --emit writes"


with tempfile.TemporaryDirectory() as folder:
    check_small(folder)
    tables = os.path.join(os.environ.get("MGPU_DATA", "/nonexistent"), "tables")
    if os.path.isdir(tables):
        check_public(tables, folder)
    else:
        print("no tables under MGPU_DATA: the public part is skipped")
    assert "skipped" in run("--tables", os.path.join(folder, "none")).stderr
print("ok")
