#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C interface on GPUs that are not there: bundles of examples, replayed by a C program
(tests/bundles/replay.c) and by replay.py over the doubles of CUDA's libraries, and what it says
without a driver.

Usage: c_interface.py MGPU_TUNE MGT_TEST LIBMGT EXAMPLES LIBRARIES
"""

import ctypes
import os
import sys
import tempfile

from harness import command

# digits, which takes as long as the rest together, has its turn in make check-all.
EXAMPLES = [("mlp", []), ("heat", [])]
if os.environ.get("MGPU_SWEEPS") == "all":
    EXAMPLES.append(("digits", ["--arg", "rate=0.5"]))
TARGETS = ["cuda:0/4", "cuda:1/4", "cuda:3,1,0,2", "cuda"]


def run(words, environment, expect=0):
    done = command(*words, expect=expect, env={**os.environ, **environment})
    return done.stdout + done.stderr


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    tune, test, library, examples, libraries = sys.argv[1:]
    program = f"{examples}/ops/ops.mlir"
    with tempfile.TemporaryDirectory() as folder:
        bundle, violations = f"{folder}/ops.mgpu", f"{folder}/violations"
        doubles = {"LD_LIBRARY_PATH": libraries, "MGPU_REHEARSAL": folder, "MGPU_REHEARSAL_GPUS": "4",
                   "MGPU_DB": f"{folder}/db", "NCCL_GRAPH_MIXING_SUPPORT": "0"}
        # Cubins are made where their texts are kept, for the double to run.
        run([tune, "bundle", program, "--arch", "sm_90", "-o", bundle], doubles)
        # NVRTC's double ends whoever opens it where there is none behind it: a bundle has all that a GPU needs.
        for target in TARGETS:
            print(run([test, bundle, target], {**doubles, "CUDA_HOME": folder}), end="")
        replay = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay.py")
        for name, values in EXAMPLES:
            other = f"{folder}/{name}.mgpu"
            run([tune, "bundle", f"{examples}/{name}/{name}.mlir", *values, "--arch", "sm_90", "-o", other], doubles)
            print(f"{name}:", run([sys.executable, replay, library, other, *TARGETS], doubles), end="")
        for target in ["cuda:4/4", "cuda:0,1,2,4"]:
            said = run([test, bundle, target], doubles, expect=1)
            if "there is no GPU 4: this machine shows 4" not in said:
                sys.exit(f"{target} gives\n{said}")
        said = run([test, bundle, "cuda:0,1"], doubles, expect=1)
        if "the program is of 4 devices, target 'cuda:0,1' has 2 GPUs: cuda:0/4 makes" not in said:
            sys.exit(f"two GPUs too few give\n{said}")
        said = run([test, bundle, "cuda"], {**doubles, "NCCL_GRAPH_MIXING_SUPPORT": "1"}, expect=1)
        if "NCCL_GRAPH_MIXING_SUPPORT must be 0" not in said or "before the program starts" not in said:
            sys.exit(f"a mixing NCCL gives\n{said}")
        # What is asked of NCCL reaches it: an old one has none of it.
        for settings, words in [("windows", "NCCL 2.26.0 has no windows"), ("ctas=zero", "2.26.0")]:
            print(run([test, bundle, "cuda", words, settings], {**doubles, "MGPU_REHEARSAL_NCCL": "22600"}), end="")
        # One that loses its context or does not end, sooner or later: one error of all, and no hang.
        for target, fault, words in [("cuda:0/4", "0:12", "CUDA_ERROR_ILLEGAL_ADDRESS"),
                                     ("cuda:0,1,2,3", "0:12", "the replay on several GPUs failed; rank 0 (cuda:0) "),
                                     ("cuda:0/4", "0:12:never", "did not end within 5000 ms"),
                                     ("cuda:0,1,2,3", "1:12:never", "did not end within 5000 ms")]:
            print(run([test, bundle, target, words], {**doubles, "MGPU_REHEARSAL_FAULT": fault}), end="")
        run([tune, "bundle", program, "-o", bundle], doubles)
        said = run([test, bundle, "cuda:0/4"], doubles, expect=1)
        if "has cubins for none, and none for sm_90: make it again with --arch sm_90" not in said:
            sys.exit(f"a bundle without cubins gives\n{said}")
        if os.path.exists(violations):
            with open(violations, encoding="utf-8") as text:
                sys.exit(f"rules of CUDA's that were broken:\n{text.read()}")
        try:
            ctypes.CDLL("libcuda.so.1")
            return
        except OSError:
            pass
        for target in TARGETS:
            command = run([tune, "run", bundle, "--target", target], {"MGPU_DB": f"{folder}/db"}, expect=3)
            sentence = command.split("error: ")[-1].strip()
            said = run([test, bundle, target], {}, expect=1)
            if "no NVIDIA driver" not in sentence or sentence not in said:
                sys.exit(f"without a driver the library says\n{said}and the command\n{command}")


if __name__ == "__main__":
    main()
