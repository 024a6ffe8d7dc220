#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hostile .pt2 files end in one sentence and the right exit code.

Usage: hostile.py MGPU_TUNE EXPORTS.tar.gz [COUNT [SEED]]
First files that are made by hand (cut, overlapping, bombs, paths, pickles, versions, shapes that lie), then
COUNT random changes of bytes of real ones and of values in their graphs.
"""

import copy
import io
import json
import os
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(files, method=zipfile.ZIP_STORED, is64=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = method
            with archive.open(entry, "w", force_zip64=is64) as file:
                file.write(data)
    return out.getvalue()


def model_name(files):
    return next(name for name in files if name.endswith("models/model.json"))


def changed(files, change):
    """The archive with another graph."""
    files, name = dict(files), model_name(files)
    graph = json.loads(files[name])
    change(graph)
    files[name] = json.dumps(graph).encode()
    return pack(files)


def config_changed(files, change):
    files = dict(files)
    name = next(name for name in files if name.endswith("weights_config.json"))
    config = json.loads(files[name])
    change(next(iter(config["config"].values())))
    files[name] = json.dumps(config).encode()
    return pack(files)


def central(data):
    return data.rfind(b"PK\x05\x06")


def with_field(data, at, value, form):
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form):]


def crafted(data):
    """Name -> bytes, exit codes that are right, words that the sentence has."""
    files = members(data)
    root = model_name(files).split("/")[0]
    data = pack(files)  # without the zip64 records that torch writes
    end = central(data)
    directory = struct.unpack("<I", data[end + 16:end + 20])[0]

    def first(graph):
        return graph["graph_module"]["graph"]["nodes"][0]

    def node(key, value):
        return lambda graph: first(graph).__setitem__(key, value)

    def types(graph):
        return graph["graph_module"]["graph"]["tensor_values"]

    def input_size(value):
        def change(graph):
            types(graph)["x"]["sizes"][0] = value
        return change

    def version(major):
        return lambda graph: graph["schema_version"].__setitem__("major", major)

    bomb = dict(files)
    bomb[f"{root}/data/weights/weight_0"] = b"\0" * 50_000_000
    yield "cut in the middle", data[:len(data) // 2], {1}, "directory"
    yield "cut at the end", data[:-10], {1}, "directory"
    yield "no entry", pack({}), {1, 2, 5}, ""
    yield "a zip of something else", pack({"a/b.txt": b"hello"}), {1}, "models"
    yield "an older layout", pack({"serialized_exported_program.json": b"{}"}), {5}, "2.8"
    yield "AOTInductor", pack({f"{root}/data/aotinductor/m/m.so": b"x", f"{root}/models/m.json": b"{}"}), {5}, "AOTInductor"
    yield "a pickle of torch.save", pack({"archive/data.pkl": b"x"}), {5}, "unpickled"
    yield "big-endian", pack({**files, f"{root}/byteorder": b"big"}), {5}, "big-endian"
    yield "two models", pack({**files, f"{root}/models/b.json": b"{}"}), {5}, "2 models"
    yield "no model", pack({name: value for name, value in files.items() if "models/" not in name}), {1}, "models"
    yield "a graph that is no JSON", pack({**files, model_name(files): b"{\"a\": "}), {1}, "JSON"
    yield "deep JSON", pack({**files, model_name(files): b"[" * 200_000}), {1}, "JSON"
    yield "JSON of another kind", pack({**files, model_name(files): b"[]"}), {1}, "schema_version"
    yield "a weight that is much larger than its tensor", pack(bomb, zipfile.ZIP_DEFLATED), {0}, ""
    yield "a directory that lies", with_field(data, end + 16, len(data), "<I"), {1}, "directory"
    yield "a count that lies", with_field(data, end + 10, 60000, "<H"), {1}, "directory"
    yield "an offset that lies", with_field(data, directory + 42, 7, "<I"), {1}, ""
    yield "a size that lies", with_field(data, directory + 20, 1, "<I"), {1}, ""
    packed = pack(files, zipfile.ZIP_DEFLATED)
    inner = struct.unpack("<I", packed[central(packed) + 16:central(packed) + 20])[0]
    yield "a bomb", with_field(packed, inner + 24, 0xfffffffe, "<I"), {1}, "no data inflates to"
    yield "more than it says", with_field(packed, inner + 24, 10, "<I"), {1}, ""
    yield "two entries in one place", with_field(data, data.find(b"PK\x01\x02", directory + 4) + 42, 0, "<I"), {1}, "overlap"
    yield "encrypted", with_field(data, directory + 8, 1, "<H"), {5}, "encrypted"
    yield "a zip64 locator into nothing", data[:end] + struct.pack("<IIQI", 0x07064b50, 0, 2 ** 60, 1) + data[end:], {1}, "zip64"
    yield "version 7", changed(files, version(7)), {5}, "version 7."
    yield "version 9", changed(files, version(9)), {5}, "version 9."
    yield "an unknown operation", changed(files, node("target", "torch.ops.aten.nothing.default")), {5}, "aten.nothing"
    yield "an operation of others", changed(files, node("target", "torch.ops.mine.op.default")), {5}, "mine.op"
    yield "an operation of a higher order", changed(files, node("target", "torch.ops.higher_order.cond")), {5}, "cond"
    yield "an argument that is missing", changed(files, node("inputs", [])), {1}, "no argument"
    yield "an argument that is new", changed(files, lambda graph: first(graph)["inputs"].append(
        {"name": "brand_new", "arg": {"as_int": 1}})), {5}, "brand_new"
    yield "a tensor that is nowhere", changed(files, lambda graph: first(graph)["inputs"][0]["arg"]["as_tensor"].__setitem__("name", "zz")), {1}, "zz"
    yield "a huge size", changed(files, input_size({"as_int": 2 ** 62})), {1}, ""
    yield "a negative size", changed(files, input_size({"as_int": -3})), {1}, ""
    yield "an open size without a value", changed(files, input_size({"as_expr": {"expr_str": "Symbol('s0')", "hint": {"as_int": 4}}})), {2}, "--dim"
    yield "a size of brackets", changed(files, input_size({"as_expr": {"expr_str": "(" * 100_000}})), {1, 2, 5}, ""
    yield "a type that is none", changed(files, lambda graph: types(graph)["x"].__setitem__("dtype", 999)), {5}, "999"
    yield "complex numbers", changed(files, lambda graph: types(graph)["x"].__setitem__("dtype", 10)), {5}, "type 10"
    yield "a result of another shape", changed(files, lambda graph: types(graph)[first(graph)["outputs"][0]["as_tensor"]["name"]].__setitem__(
        "sizes", [{"as_int": 1}])), {1}, "the file says"
    yield "a pickled weight", config_changed(files, lambda about: about.__setitem__("use_pickle", True)), {5}, "pickle"
    yield "a weight elsewhere", config_changed(files, lambda about: about.__setitem__("path_name", "../../../../etc/passwd")), {1}, "entry"
    yield "a weight with other strides", config_changed(files, lambda about: about["tensor_meta"].__setitem__(
        "strides", [{"as_int": 2 ** 61}] * len(about["tensor_meta"]["sizes"]))), {1}, "outside"
    yield "a weight with another offset", config_changed(files, lambda about: about["tensor_meta"].__setitem__("storage_offset", {"as_int": 5})), {1}, "outside"
    yield "a weight without a type", config_changed(files, lambda about: about.__setitem__("tensor_meta", None)), {1}, "type"
    damaged = data.find(files[f"{root}/data/weights/weight_0"])
    yield "a damaged weight", data[:damaged] + b"\xff\xff" + data[damaged + 2:], {1}, "checksum"
    yield "zeros after the end", data + b"\0" * 100, {1}, "directory"


def with_unknown_fields(value):
    """The graph of a later minor version: each part of it has a field that is not known."""
    if isinstance(value, list):
        return [with_unknown_fields(each) for each in value]
    if not isinstance(value, dict):
        return value
    known = {key: with_unknown_fields(inner) for key, inner in value.items()}
    return {**known, "future": {"of": 1}} if {"target", "dtype", "graph", "major", "input_specs"} & set(value) else known


def as_good(data):
    """Files that hold the model `data` in other ways."""
    files = members(data)
    root, graph = model_name(files).split("/")[0], json.loads(files[model_name(files)])
    yield "deflated", pack(files, zipfile.ZIP_DEFLATED)
    yield "zip64", pack(files, is64=True)
    yield "deflated zip64", pack(files, zipfile.ZIP_DEFLATED, is64=True)
    for other in ("models", "a folder \u00e4", "x" * 200):
        yield f"a root {other[:9]}", pack({other + name[len(root):]: value for name, value in files.items()})
    graph["schema_version"]["minor"] = 99
    yield "unknown fields", pack({**files, model_name(files): json.dumps(with_unknown_fields(graph)).encode()})
    name = next(name for name in files if name.endswith("weights_config.json"))
    config = json.loads(files[name])
    together = b""
    for about in config["config"].values():  # each after the others, matrices by columns
        sizes = [size["as_int"] for size in about["tensor_meta"]["sizes"]]
        values = struct.unpack(f"<{len(files[f'{root}/data/weights/' + about['path_name']]) // 4}I", files[f"{root}/data/weights/" + about["path_name"]])
        about["tensor_meta"]["storage_offset"] = {"as_int": len(together) // 4}
        if len(sizes) == 2:
            values = [values[row * sizes[1] + column] for column in range(sizes[1]) for row in range(sizes[0])]
            about["tensor_meta"]["strides"] = [{"as_int": 1}, {"as_int": sizes[0]}]
        together += struct.pack(f"<{len(values)}I", *values)
        about["path_name"] = "weight_0"
    yield "one payload", pack({**files, name: json.dumps(config).encode(), f"{root}/data/weights/weight_0": together})


def run(tune, path, *words):
    try:
        return subprocess.run([tune, "run", path, "--random", *words], capture_output=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return None


def fault_of(done, codes, words):
    if done is None:
        return "takes over two minutes"
    error = done.stderr.decode("utf-8", "replace")
    if done.returncode not in codes:
        return f"exit code {done.returncode}, not {sorted(codes)}: {error.strip()[-300:]}"
    if done.returncode and ("error" not in error or words not in error or len(error) > 4000):
        return f"says {error.strip()[:400]!r} without {words!r}"
    return ""


def mutate_json(value, draw, depth=0):
    """Some value below is another one."""
    if isinstance(value, dict) and value and (depth < 3 or draw.random() < 0.8):
        key = draw.choice(list(value))
        value[key] = mutate_json(value[key], draw, depth + 1)
        return value
    if isinstance(value, list) and value and (depth < 3 or draw.random() < 0.8):
        k = draw.randrange(len(value))
        value[k] = mutate_json(value[k], draw, depth + 1)
        if draw.random() < 0.1:
            value.append(copy.deepcopy(value[k]))
        return value
    return draw.choice([0, -1, 1, 3, 2 ** 31, 2 ** 62, -2 ** 62, 1e300, "", "x", None, True, [], {}, [1], {"as_int": 7}, {"as_tensor": {"name": "x"}}])


def mutants(all_data, count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        data = draw.choice(all_data)
        if draw.random() < 0.3:
            broken = bytearray(data)
            for _ in range(draw.randint(1, 4)):
                at = draw.choice([draw.randrange(len(broken)), draw.randrange(central(data), len(broken)),
                                  draw.randrange(max(0, central(data) - 1500), len(broken))])
                broken[at] = draw.randrange(256)
            yield bytes(broken)
        else:
            files = members(data)
            name = model_name(files)
            graph = json.loads(files[name])
            inner = graph["graph_module"]["graph"]
            for _ in range(draw.randint(1, 3)):
                mutate_json(draw.choice([inner["nodes"], inner["nodes"], inner["tensor_values"], graph["graph_module"]["signature"], graph]), draw)
            yield pack({**files, name: json.dumps(graph).encode()})


def main():
    tune, archive = sys.argv[1:3]
    count, seed = (int(word) for word in (sys.argv[3:] + ["0", "1"][len(sys.argv[3:]):]))
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as file:
            names = sorted(member for member in file.getnames() if member.endswith(".pt2") and "dynamic" not in member)
            real = {os.path.basename(name): file.extractfile(name).read() for name in names}
        path = f"{folder}/hostile.pt2"

        def judge(what, data, codes, words):
            nonlocal faults
            with open(path, "wb") as file:
                file.write(data)
            fault = fault_of(run(tune, path), codes, words)
            if fault:
                faults += 1
                print(f"{what}: {fault}")
                with open(f"{tempfile.gettempdir()}/hostile-{faults}.pt2", "wb") as kept:
                    kept.write(data)

        known = list(crafted(real["torch-mlp-core.pt2"]))
        for what, data, codes, words in known:
            judge(what, data, codes, words)
        results = {}
        same = [("as it is", real["torch-mlp-core.pt2"]), *as_good(real["torch-mlp-core.pt2"])]
        for what, data in same:
            with open(path, "wb") as file:
                file.write(data)
            result = f"{folder}/{len(results)}.npy"
            done = run(tune, path, "--arg", "x=random:1", "--out", f"r0={result}")
            results[what] = open(result, "rb").read() if done and done.returncode == 0 else done and done.stderr.decode()
            if results[what] != results["as it is"] or not isinstance(results[what], bytes):
                faults += 1
                print(f"{what}: another result: {str(results[what])[:300]}")
        for k, data in enumerate(mutants(list(real.values()), count, seed)):
            judge(f"mutant {k} of seed {seed}", data, {0, 1, 2, 5}, "")
    print(f"{len(same)} files of one model, {len(known)} files made by hand and {count} mutants, {faults} faults")
    sys.exit("FAIL" if faults else 0)


if __name__ == "__main__":
    main()
