#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one replay takes with weights that stay on the devices, under rates that a file beside this one keeps; and which
arguments --role and --resident-except make resident.

Usage: replay_figures.py MGPU_TUNE
"""

import functools
import json
import os
import sys
import tarfile
import tempfile

import harness

run = functools.partial(harness.command, sys.argv[1])
RATES = "sim:" + os.path.join(os.path.dirname(os.path.abspath(__file__)), "rates-dgx-h200.json")
PRODUCT = """func.func @main(%x: tensor<64x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<64x1024xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}
"""
LAYERS = """func.func @main(%x: tensor<8xf32>, %layer1_w: tensor<8xf32>, %layer1_b: tensor<8xf32>, %layer2_w: tensor<8xf32>,
                %scale: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.multiply %x, %layer1_w : tensor<8xf32>
  %1 = stablehlo.add %0, %layer1_b : tensor<8xf32>
  %2 = stablehlo.multiply %1, %layer2_w : tensor<8xf32>
  %3 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %4 = stablehlo.multiply %2, %3 : tensor<8xf32>
  return %4 : tensor<8xf32>
}
"""


def plan(file, *words):
    return json.loads(run("plan", file, "--target", RATES, "--budget", "20", "--json", *words).stdout)


def check(holds, *what):
    if not holds:
        sys.exit(" ".join(str(each) for each in what))


def near(got, wanted, within):
    check(abs(got - wanted) <= within, got, "and not", wanted)


def product_without_its_upload(folder):
    file = os.path.join(folder, "product.mlir")
    with open(file, "w") as out:
        out.write(PRODUCT)
    whole, resident = plan(file), plan(file, "--role", "1=resident")
    near(whole["replay_us"], 139.3, 0.06)
    near(resident["replay_us"], 54.9, 0.06)
    near(whole["replay_us"] - resident["replay_us"], resident["load_us"], 1e-6)
    near(whole["uploads"]["us"] - resident["uploads"]["us"], resident["load_us"], 1e-6)
    # The bound and a changed machine are of the replay too: a faster link to the host gains less where less goes over it.
    near(resident["replay_bound_us"], 54.9, 0.06)
    gains = [each["replay_us"] - plan(file, *words, "--what-if", "host_link=2x")["what_if"]["replay_us"]
             for each, words in ((whole, ()), (resident, ("--role", "1=resident")))]
    check(gains[0] > 8 * gains[1] > 0, gains)


def roles_by_pattern(folder):
    file = os.path.join(folder, "layers.mlir")
    with open(file, "w") as out:
        out.write(LAYERS)

    def resident(*words):
        made = plan(file, *words)
        return made["made_resident"]["arguments"], made["uploads"]["arguments"]

    def role(*words):
        return resident(*(word for each in words for word in ("--role", each)))

    x, layers = "x", ["layer1_w", "layer1_b", "layer2_w"]
    check(role("*=resident") == (5, 0), role("*=resident"))
    check(role("layer*=resident") == (3, 1), role("layer*=resident"))
    check(plan(file, "--role", "layer*=resident")["made_resident"]["bytes"] == 3 * 32, "other bytes")
    # A name goes before a pattern, wherever it stands; of patterns the last one that fits holds.
    check(role("*=resident", f"{x}=input")[0] == 4, "a name behind a pattern")
    check(role(f"{x}=input", "*=resident")[0] == 4, "a name before a pattern")
    check(role("*=resident", "layer1_w*=input")[0] == 4, "the last pattern")
    check(role("layer1_w*=input", "*=resident")[0] == 5, "the last pattern")
    # All that nothing writes, but scalars and what is named.
    check(resident("--resident-except", x) == (3, 1), resident("--resident-except", x))
    check(resident("--resident-except", f"{x},{layers[2]}") == (2, 2), "two names")
    for words in (("--role", "wieght*=resident"), ("--resident-except", "wieght")):
        said = run("plan", file, *words, expect=2).stderr
        check("wieght" in said and layers[0] in said, said)
    said = run("plan", file, "--role", "layer2_ww=resident", expect=2).stderr
    check("did you mean 'layer2_w'?" in run("plan", file, "--role", "*layer2ww=resident", expect=2).stderr, said)


def exported_model(folder):
    packed = os.path.join(os.environ.get("MGPU_DATA", ""), "programs.tar.xz")
    if not os.path.exists(packed):
        print("skipped: pt_bert, for MGPU_DATA does not have programs.tar.xz")
        return
    with tarfile.open(packed) as tar:
        tar.extract("./models/pt_bert.mlir", folder)
    inputs = "arg199,arg200,arg201,arg202"
    made = plan(os.path.join(folder, "models", "pt_bert.mlir"), "--resident-except", inputs)
    near(made["replay_us"], 549, 1)
    check(made["made_resident"]["arguments"] == 199 and made["replay_bound_us"] <= made["replay_us"], made["made_resident"])


for step in (product_without_its_upload, roles_by_pattern, exported_model):
    with tempfile.TemporaryDirectory() as directory:
        step(directory)
print("ok")
