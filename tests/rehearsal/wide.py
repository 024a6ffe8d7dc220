#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel of each class at a size where its default form is wide, from a bundle with cubins to a replay over the
double of the driver: every bit of the results is the host's, or as near to it as sums in another order are.

Usage: wide.py MGPU_TUNE LIBRARIES [CASE...]
"""

import array
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import large_programs as programs  # noqa: E402

# What makes the program, its sizes, and what compiles it. Indices count from 0, past the end of a smaller table.
CASES = {
    "elementwise-f32": (programs.elementwise, (128, 1024, "f32"), []),
    "elementwise-bf16": (programs.elementwise, (256, 1024, "bf16"), []),
    "softmax": (programs.softmax, (64, 1024), []),
    "layer-norm": (programs.norm, (64, 1024, True), []),
    "rms-norm": (programs.norm, (64, 1024, False), []),
    "transpose": (programs.transpose, (256,), []),
    "sum": (programs.total, (1 << 17,), []),
    "column-sum": (programs.column_sums, (512, 256), []),
    "decode-nk": (programs.decode, (128, 2048, 1, True), []),
    "decode-kn": (programs.decode, (1024, 256, 1, False), []),
    "product-f32": (programs.product, (128, 128, 64, "f32"), []),
    "product-mma": (programs.product, (128, 128, 64, "bf16"), ["--variant=mma=on,wgmma=off,cublaslt=off"]),
    "product-wgmma": (programs.product, (128, 128, 64, "bf16"), ["--variant=mma=off,wgmma=on,cublaslt=off"]),
    "elementwise-pdl": (programs.elementwise, (128, 1024, "f32"), ["--variant=pdl=on"]),
    "attention": (programs.attention, (2, 256, 64), []),
    "convolution": (programs.convolution, (2, 32, 32), []),
    "embedding": (programs.embedding, (512, 256, 256), []),
    "scatter-add": (programs.scatter_add, (256, 128, 512), []),
    "argmax": (programs.argmax, (64, 2048), []),
    "sort": (programs.sort, (64, 1024), []),
    "top-k": (programs.top, (64, 1024, 8), []),
}


def elements(path, element):
    """The elements of an array of NumPy's format, version 1.0, which Python alone reads here."""
    with open(path, "rb") as file:
        data = file.read()
    data = data[10 + int.from_bytes(data[8:10], "little"):]
    if element == "bf16":
        data = b"".join(b"\0\0" + data[k:k + 2] for k in range(0, len(data), 2))
    return array.array("i" if element == "i32" else "f", data)


def main():
    tune, libraries, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update({"LD_LIBRARY_PATH": libraries, "MGPU_DB": f"{folder}/db",
                           "MGPU_REHEARSAL": os.environ.get("MGPU_REHEARSAL", folder)})

        def run(*words):
            done = subprocess.run([tune, *words], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")

        for name in names or CASES:
            make, sizes, options = CASES[name]
            arrays, text = make(*sizes)
            results = [each for each in arrays if not each.is_input]
            program, bundle = f"{folder}/{name}.mlir", f"{folder}/{name}.mgpu"
            with open(program, "w", encoding="utf-8") as file:
                file.write(text)
            run("bundle", program, "--arch", "sm_90", "--cpu", "x86-64-v2", "-o", bundle, *options)
            got = {}
            for target in ("host", "cuda:0"):
                outs = [f"{folder}/{target[:4]}-{each.name}.npy" for each in results]
                run("run", bundle, "--random", "--target", target,
                    *[f"--arg={each.name}=iota" for each in arrays if each.below],
                    *[word for each, out in zip(results, outs) for word in ("--out", f"{each.name}={out}")])
                got[target] = [elements(out, each.element) for each, out in zip(results, outs)]
            for each, host, gpu in zip(results, got["host"], got["cuda:0"]):
                if not any(host) or len(host) != len(gpu):
                    sys.exit(f"{name}: {each.name} has {len(host)} and {len(gpu)} elements, or nothing but zeros")
                size = 0 if each.element == "i32" else max(map(abs, host))
                wrong = sum(not abs(a - b) <= 1e-4 * size for a, b in zip(host, gpu))
                if wrong:
                    sys.exit(f"{name}: {wrong} of {len(host)} elements of {each.name} are not the host's")
            print(f"{name}: {', '.join(each.name for each in results)} as on the host", flush=True)
        violations = f"{os.environ['MGPU_REHEARSAL']}/violations"
        if os.path.exists(violations):
            with open(violations, encoding="utf-8") as file:
                sys.exit(f"rules of CUDA's that were broken:\n{file.read()}")


if __name__ == "__main__":
    main()
