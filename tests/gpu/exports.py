#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch and JAX write of small modules, which are all in this file: files for tests of front ends.

Usage: exports.py OUT.tar.gz
It needs no GPU. For each module and way to export it: the file, a text of it where there is one, and
inputs and outputs as .npz. A JSON line says of each whether it was written (`ok`) or why not, and index.json
in the archive has all of them. PyTorch and JAX each have a process, which may fail or be late.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback

SECONDS, MOST_BYTES = 150, 4 << 20
# Sizes of all modules: few, so that the files are small.
BATCH, TOKENS, WIDTH, INNER, HEADS, WORDS = 4, 8, 16, 32, 2, 40


def attempt(folder, name, write):
    """One JSON line: `write` gives the names of the files it wrote, as many as it could."""
    line = {"export": name, "ok": True}
    start = time.monotonic()
    try:
        line["files"] = write(os.path.join(folder, name))
    except BaseException as problem:  # whatever a library of others does
        line.update(ok=False, error=f"{type(problem).__name__}: {problem}"[:600],
                    where=traceback.format_exc().splitlines()[-6:])
        if isinstance(problem, KeyboardInterrupt):
            raise
    line["seconds"] = round(time.monotonic() - start, 2)
    print(json.dumps(line), flush=True)
    with open(f"{folder}/index.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def put(path, data):
    with open(path, "wb" if isinstance(data, bytes) else "w") as file:
        file.write(data)
    return os.path.basename(path)


def torch_modules(torch):
    nn, F = torch.nn, torch.nn.functional

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

        def forward(self, x):
            return self.second(F.gelu(self.first(x)))

    class Layer(nn.Module):
        """A layer of a transformer, with the norm before."""

        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
            self.qkv, self.out, self.mlp = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), Mlp()

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.qkv(self.norms[0](x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, WIDTH))
            return x + self.mlp(self.norms[1](x))

    class ConvNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2)
            self.norm, self.last = nn.BatchNorm2d(8), nn.Linear(8, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
            return self.last(F.relu(self.second(x)).mean((2, 3)))

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.norm = nn.Embedding(WORDS, WIDTH), nn.LayerNorm(WIDTH)

        def forward(self, ids):
            return self.norm(self.table(ids)) @ self.table.weight.t()

    class Step(nn.Module):
        """A step of training: the loss, and the weights after it."""

        def __init__(self):
            super().__init__()
            self.first, self.second = (nn.Parameter(torch.randn(WIDTH, WIDTH) / 4) for _ in range(2))

        def forward(self, x, t):
            h = torch.relu(x @ self.first)
            error = h @ self.second - t
            grad = error * (2 / error.numel())
            second = self.second - 0.1 * (h.t() @ grad)
            first = self.first - 0.1 * (x.t() @ ((grad @ self.second.t()) * (h > 0)))
            return (error * error).mean(), first, second

    words = torch.randint(0, WORDS, (BATCH, TOKENS))
    return {"mlp": (Mlp(), (torch.randn(BATCH, WIDTH),)), "layer": (Layer(), (torch.randn(2, TOKENS, WIDTH),)),
            "conv": (ConvNet(), (torch.randn(2, 3, 12, 12),)), "words": (Words(), (words,)),
            "step": (Step(), (torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH))),
            "mlp-bf16": (Mlp().to(torch.bfloat16), (torch.randn(BATCH, WIDTH).to(torch.bfloat16),))}


def graph_json(torch, program):
    """A graph of FX as data: its nodes with what they are called with, and the types of their values."""
    def plain(value):
        if isinstance(value, torch.fx.Node):
            return {"node": value.name}
        if isinstance(value, (list, tuple)):
            return [plain(each) for each in value]
        return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)

    nodes = []
    for node in program.graph.nodes:
        value = node.meta.get("val")
        nodes.append({"name": node.name, "op": node.op, "target": str(node.target), "args": plain(node.args),
                      "kwargs": {key: plain(each) for key, each in node.kwargs.items()},
                      "value": [f"{tuple(each.shape)} {each.dtype}" for each in
                                (value if isinstance(value, (list, tuple)) else [value]) if hasattr(each, "shape")]})
    return json.dumps({"signature": str(program.graph_signature), "nodes": nodes}, indent=1)


def save_arrays(torch, path, inputs, outputs):
    import numpy
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    plain = lambda each: (each.float() if each.dtype == torch.bfloat16 else each).detach().numpy()
    numpy.savez(path, **{f"in{k}": plain(each) for k, each in enumerate(inputs)},
                **{f"out{k}": plain(each) for k, each in enumerate(outputs)})
    return os.path.basename(path)


def export_torch(folder):
    import torch
    if not hasattr(torch, "export"):
        raise ImportError("this PyTorch exports nothing")
    torch.manual_seed(1)
    torch.set_num_threads(2)
    for name, (module, inputs) in torch_modules(torch).items():
        module = module.eval()

        def whole(path, module=module, inputs=inputs):
            program = torch.export.export(module, inputs)
            files = [save_arrays(torch, f"{path}.npz", inputs, module(*inputs))]
            torch.export.save(program, f"{path}.pt2")
            return files + [os.path.basename(path) + ".pt2", put(f"{path}.txt", str(program)),
                            put(f"{path}.py.txt", program.graph_module.code),
                            put(f"{path}.json", graph_json(torch, program))]

        def core(path, module=module, inputs=inputs):
            program = torch.export.export(module, inputs).run_decompositions()
            torch.export.save(program, f"{path}.pt2")
            return [os.path.basename(path) + ".pt2", put(f"{path}.txt", str(program)),
                    put(f"{path}.json", graph_json(torch, program))]

        def dynamic(path, module=module, inputs=inputs):
            size = torch.export.Dim("batch", min=2, max=64)
            program = torch.export.export(module, inputs, dynamic_shapes=tuple({0: size} for _ in inputs))
            torch.export.save(program, f"{path}.pt2")
            return [os.path.basename(path) + ".pt2", put(f"{path}.txt", str(program))]

        def joint(path, module=module, inputs=inputs):
            from torch._functorch.aot_autograd import aot_export_module
            loss = lambda *given: (module(*given).float().square().mean(),)

            class Loss(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.of = module

                def forward(self, *given):
                    return loss(*given)

            graph, signature = aot_export_module(Loss(), inputs, trace_joint=True, output_loss_index=0)
            return [put(f"{path}.txt", graph.print_readable(print_output=False)), put(f"{path}.signature.txt", str(signature))]

        attempt(folder, f"torch-{name}", whole)
        attempt(folder, f"torch-{name}-core", core)
        if name in ("mlp", "layer"):
            attempt(folder, f"torch-{name}-dynamic", dynamic)
        if name in ("mlp", "layer", "conv"):
            attempt(folder, f"torch-{name}-joint", joint)


def jax_functions(jax, numpy):
    jnp = jax.numpy
    draw = numpy.random.default_rng(1)
    array = lambda *shape: (draw.standard_normal(shape) / 4).astype(numpy.float32)

    def mlp(x, first, second):
        return jax.nn.gelu(x @ first) @ second

    def norm(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    def layer(x, qkv, out, first, second):
        b, t, d = x.shape
        q, k, v = jnp.moveaxis((norm(x) @ qkv).reshape(b, t, 3, HEADS, d // HEADS), 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (d // HEADS) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(b, t, d) @ out
        return x + mlp(norm(x), first, second)

    def conv(x, w, last):
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = jax.lax.reduce_window(jax.nn.relu(y), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return y.mean((1, 2)) @ last

    def words(ids, table):
        return norm(table[ids]) @ table.T

    def step(x, t, first, second):
        loss = lambda p: jnp.mean((mlp(x, *p) - t) ** 2)
        value, grads = jax.value_and_grad(loss)((first, second))
        return value, first - 0.1 * grads[0], second - 0.1 * grads[1]

    def scanned(x, weights):
        return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), h.sum()), x, weights)

    weights = array(WIDTH, INNER), array(INNER, WIDTH)
    ids = draw.integers(0, WORDS, (BATCH, TOKENS)).astype(numpy.int32)
    return {"mlp": (mlp, (array(BATCH, WIDTH), *weights)),
            "layer": (layer, (array(2, TOKENS, WIDTH), array(WIDTH, 3 * WIDTH), array(WIDTH, WIDTH), *weights)),
            "conv": (conv, (array(2, 8, 8, 3), array(3, 3, 3, 8), array(8, 10))),
            "words": (words, (ids, array(WORDS, WIDTH))),
            "step": (step, (array(BATCH, WIDTH), array(BATCH, WIDTH), *weights)),
            "scan": (scanned, (array(BATCH, WIDTH), array(3, WIDTH, WIDTH))),
            "mlp-bf16": (mlp, tuple(each.astype(jax.numpy.bfloat16) for each in (array(BATCH, WIDTH), *weights)))}


def write_jax(jax, jitted, arguments, path, platforms=None):
    """An exported function in all its forms, and what it computes."""
    import io

    import numpy
    exported = jax.export.export(jitted, **({"platforms": platforms} if platforms else {}))(*arguments)
    files = [put(f"{path}.jax_export", bytes(exported.serialize())), put(f"{path}.mlir", str(exported.mlir_module())),
             put(f"{path}.vhlo", bytes(exported.mlir_module_serialized))]
    lowered = jitted.lower(*arguments)
    files.append(put(f"{path}.lowered.mlir", lowered.as_text(debug_info=True)))
    bytecode = io.BytesIO()
    lowered.compiler_ir("stablehlo").operation.write_bytecode(bytecode)
    files.append(put(f"{path}.mlirbc", bytecode.getvalue()))
    outputs = jax.tree_util.tree_leaves(jitted(*arguments))
    plain = lambda each: numpy.asarray(each).astype(numpy.float32) if "float" in str(each.dtype) else numpy.asarray(each)
    numpy.savez(f"{path}.npz", **{f"in{k}": plain(each) for k, each in enumerate(arguments)},
                **{f"out{k}": plain(each) for k, each in enumerate(outputs)})
    return files + [os.path.basename(path) + ".npz"]


def export_jax(folder):
    import jax
    import jax.export
    import numpy
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    functions = jax_functions(jax, numpy)
    for name, (function, arguments) in functions.items():
        attempt(folder, f"jax-{name}", lambda path: write_jax(jax, jax.jit(function), arguments, path))
    attempt(folder, "jax-mlp-cuda", lambda path: [put(f"{path}.jax_export", bytes(jax.export.export(
        jax.jit(functions["mlp"][0]), platforms=["cuda"])(*functions["mlp"][1]).serialize()))])
    attempt(folder, "jax-step-donated", lambda path: [put(f"{path}.mlir", jax.jit(
        functions["step"][0], donate_argnums=(2, 3)).lower(*functions["step"][1]).as_text(debug_info=True))])
    devices = numpy.array(jax.devices())
    meshes = {"2": Mesh(devices[:2], ("x",)), "2x2": Mesh(devices[:4].reshape(2, 2), ("x", "y"))}
    # How each argument is cut: batches over x, the inner width over the last axis of the mesh.
    cuts = {"mlp": lambda y: (P("x"), P(None, y), P(y, None)), "step": lambda y: (P("x"), P("x"), P(None, y), P(y, None)),
            "layer": lambda y: (P("x"), P(None, y), P(y, None), P(None, y), P(y, None))}
    for shape, mesh in meshes.items():
        for name, cut in cuts.items():
            def write(path, mesh=mesh, name=name, cut=cut):
                function, arguments = functions[name]
                how = tuple(NamedSharding(mesh, each) for each in cut(mesh.axis_names[-1]))
                jitted = jax.jit(function, in_shardings=how)
                placed = [jax.device_put(each, where) for each, where in zip(arguments, how)]
                files = write_jax(jax, jitted, placed, path)
                return files + [put(f"{path}.hlo", jitted.lower(*placed).compile().as_text())]

            attempt(folder, f"jax-{name}-mesh-{shape}", write)

        def manual(path, mesh=mesh):
            y = mesh.axis_names[-1]
            function, arguments = functions["mlp"]
            mapped = jax.shard_map(lambda x, first, second: jax.lax.psum(function(x, first, second), y), mesh=mesh,
                                   in_specs=(P(), P(None, y), P(y, None)), out_specs=P())
            return write_jax(jax, jax.jit(mapped), arguments, path)

        attempt(folder, f"jax-manual-mesh-{shape}", manual)


def pack(folder, out, most=MOST_BYTES):
    """The folder as an archive; without its largest files where it is too large."""
    names = sorted(os.listdir(folder), key=lambda name: os.path.getsize(f"{folder}/{name}"))
    while names:
        with tarfile.open(out + ".new", "w:gz") as archive:
            for name in sorted(names):
                archive.add(f"{folder}/{name}", f"{os.path.basename(out).split('.')[0]}/{name}")
        if os.path.getsize(out + ".new") <= most:
            os.replace(out + ".new", out)
            return
        print(json.dumps({"export": names.pop(), "ok": None, "skipped": "the archive would be too large"}), flush=True)


def failed(processes, seconds):
    """Gives each process that fails or is late: its name, whether a module is absent, and its last words."""
    until = time.monotonic() + seconds
    for name, process in processes.items():
        try:
            _, error = process.communicate(timeout=max(until - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            process.kill()
            _, error = process.communicate()
        if process.returncode != 0:
            yield name, "ModuleNotFoundError" in error or "ImportError" in error, error.strip()[-600:]


def main():
    if sys.argv[1] == "--one":
        {"torch": export_torch, "jax": export_jax}[sys.argv[2]](sys.argv[3])
        return 0
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "2",
                   "XLA_FLAGS": "--xla_force_host_platform_device_count=4 " + os.environ.get("XLA_FLAGS", "")}
    with tempfile.TemporaryDirectory() as folder:
        both = {name: subprocess.Popen([sys.executable, os.path.abspath(__file__), "--one", name, folder],
                                       stderr=subprocess.PIPE, text=True, env=environment) for name in ("torch", "jax")}
        code = 0
        for name, is_absent, error in failed(both, SECONDS):
            code = 1
            print(json.dumps({"export": name, "ok": None if is_absent else False, "error": error}), flush=True)
        if os.listdir(folder):
            pack(folder, os.path.abspath(sys.argv[1]))
    return code


if __name__ == "__main__":
    sys.exit(main())
