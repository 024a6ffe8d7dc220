#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the tables of docs/gpu-dialect.md from the tests, a row for each operation, and compares them.

    table.py SOURCE_DIR MGPU_OPT [--update]

A cell says what a test shows: the program of the last column is parsed by mgpu-opt here; it runs on the host if its RUN
line does that, is compiled as CUDA C++ if cuda.test or doubles.py does, and runs over doubles of CUDA if doubles.py has
it. Those tests run elsewhere. That an operation is MLIR's is asked of mgpu-opt, too.
"""

import glob
import os
import re
import subprocess
import sys

import doubles

BEGIN, END = "<!-- The rows are made by tests/gpu-dialect/table.py. -->", "<!-- End of the rows. -->"
COUNT = {"gpu": 66, "nvgpu": 24}  # operations of LLVM 22

# What becomes of each; those of HOST have no kernel.
GPU = {
    "launch launch_func": "mgpu.launch",
    "func": "the launch's body",
    "module": "copied out; targets are ignored",
    "binary": "a kernel that is compiled already",
    "return terminator": "ends the body",
    "alloc": "mgpu.alloc",
    "dealloc": "mgpu.free; with a token at the program's end, and what follows may not use it",
    "memcpy": "mgpu.memcpy",
    "memset": "a launch",
    "wait": "streams that wait; a sync",
    "host_register": "nothing: memory is placed by its use",
    "host_unregister": "nothing",
    "set_default_device": "the device of what follows",
    "thread_id block_id block_dim grid_dim global_id lane_id subgroup_id num_subgroups subgroup_size": "an id or size",
    "cluster_id cluster_dim cluster_block_id cluster_dim_blocks": "arithmetic on the block's id",
    "barrier dynamic_shared_memory printf yield all_reduce subgroup_reduce shuffle rotate": "in kernels",
    "subgroup_broadcast": "a shuffle",
    "subgroup_mma_compute subgroup_mma_constant_matrix subgroup_mma_elementwise subgroup_mma_load_matrix "
    "subgroup_mma_store_matrix subgroup_mma_extract_thread_local subgroup_mma_insert_thread_local": "in kernels",
    "warp_execute_on_lane_0": "`scf.if`",
    "create_coo create_coo_aos create_csr create_csc create_bsr": "memory and sizes",
    "create_2to4_spmat": "memory and sizes; launches that prune",
    "create_dn_tensor": "memory and sizes",
    "destroy_sp_mat destroy_dn_tensor": "nothing",
    "set_csr_pointers": "other memory from here on",
    "spmat_get_size": "sizes; of a product its count, when it has run",
    "spmv_buffer_size spmm_buffer_size sddmm_buffer_size": "1",
    "spmv spmm sddmm": "a launch; cuSPARSE on GPUs",
    "spgemm_create_descr spgemm_destroy_descr": "nothing",
    "spgemm_work_estimation_or_compute": "1; launches that count",
    "spgemm_copy": "a launch",
}
HOST = ("alloc dealloc memcpy wait host_register host_unregister set_default_device create_coo create_coo_aos create_csr "
        "create_csc create_bsr create_dn_tensor destroy_sp_mat destroy_dn_tensor set_csr_pointers spmv_buffer_size "
        "spmm_buffer_size sddmm_buffer_size spgemm_create_descr spgemm_destroy_descr").split()
NVGPU = {
    "device_async_copy": "`cp.async`; on the host a load and a store",
    "device_async_create_group device_async_wait": "`cp.async` groups; on the host copies are done when they are asked for",
    "ldmatrix": "`ldmatrix`; on the host loads, at places that lanes exchange",
    "mma.sync mma.sp.sync": "products of a subgroup",
    "mbarrier.create mbarrier.init mbarrier.arrive mbarrier.arrive.expect_tx": "`mbarrier`; on the host nothing",
    "mbarrier.get mbarrier.arrive.nocomplete": "nothing",
    "mbarrier.test.wait mbarrier.try_wait.parity": "`mbarrier.try_wait` and a barrier of the block; on the host that",
    "rcp": "1 / x",
    "tma.create.descriptor": "the memory and its box",
    "tma.fence.descriptor": "nothing",
    "tma.prefetch.descriptor": "`prefetch.tensormap`; on the host nothing",
    "tma.async.load": "`cp.async.bulk.tensor`; on the host loops over the box, by the thread that asks",
    "tma.async.store": "`cp.async.bulk.tensor`, awaited; on the host loops over the box, by the thread that asks",
    "warpgroup.generate.descriptor warpgroup.mma.init.accumulator": "values",
    "warpgroup.mma": "`wgmma.mma_async`; on the host sums in the order of k",
    "warpgroup.mma.store": "stores",
}
# What a cell says in place of what the tests show.
INSTEAD = {("binary", "host"): "no: exit 3, objects are a GPU's", ("binary", "cuda"): "the object as it is",
           ("binary", "gpu"): "doubles (gpu-dialect/doubles.py)",
           ("tma.create.descriptor", "cuda"): "no kernel"}


class Tests:
    """The programs in tests/lit/gpu, and what is done with them."""

    def __init__(self, source, opt):
        self.folder, self.opt = os.path.join(source, "tests/lit/gpu"), opt
        names = sorted(os.path.basename(path) for path in glob.glob(os.path.join(self.folder, "*")))
        self.text = {name: self.read(name) for name in names if name.endswith((".mlir", ".test"))}
        self.compiled = set(re.findall(r"tests/lit/gpu/(\S+\.mlir)", self.text["cuda.test"]))
        self.doubled = {name + ".mlir" for name in doubles.LISTED}
        # Those that more is done with come first.
        self.order = sorted(self.text, key=lambda name: (name not in self.doubled, not self.runs(name), name))
        self.parsed = {}

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def runs(self, name):
        return re.search(r"RUN: mgpu-tune run %s", self.text[name]) is not None

    def of(self, operation):
        wanted = re.compile(r"(?<![\w.])" + re.escape(operation) + r"(?![\w.])")
        return next((name for name in self.order if wanted.search(self.text[name]) and name != "refused.test"), None)

    def parses(self, name):
        if name not in self.parsed:
            path = os.path.join(self.folder, name)
            done = subprocess.run([self.opt, path], capture_output=True, text=True)
            self.parsed[name] = done.returncode == 0
        return self.parsed[name]


def rows(tests, dialect, table, faults):
    lines = []
    for names, becomes in table.items():
        for name in names.split():
            test = tests.of(f"{dialect}.{name}")
            if not test:
                faults.append(f"{dialect}.{name} is in no test of tests/lit/gpu")
                continue
            isProgram = test.endswith(".mlir")
            cells = {
                "parsed": "yes" if not isProgram or tests.parses(test) else "no",
                "host": "yes" if tests.runs(test) else "no",
                "cuda": "no kernel" if dialect == "gpu" and name in HOST else
                        "yes" if test in tests.compiled | tests.doubled else "no",
                "gpu": "doubles" if test in tests.doubled else "not yet",
            }
            cells.update({cell: text for (of, cell), text in INSTEAD.items() if of == name})
            for cell, text in cells.items():
                if text == "no":
                    faults.append(f"{dialect}.{name}: {test} does not show '{cell}'")
            lines.append("| `" + " | ".join([name + "`", becomes, *cells.values(), "lit/gpu/" + test]) + " |")
    if len(lines) != COUNT[dialect]:
        faults.append(f"{dialect} has {len(lines)} rows, expected {COUNT[dialect]}")
    return ["| operation | becomes | parsed | host | CUDA C++ | run on a GPU | test |", "|---|---|---|---|---|---|---|",
            *lines]


def unknown(opt, names):
    """Which of the names MLIR does not have: such are "unregistered", others fail otherwise, or parse."""
    text = "\n// -----\n".join(f'"{name}"() : () -> ()' for name in names)
    done = subprocess.run([opt, "--split-input-file"], input=text, capture_output=True, text=True)
    return set(re.findall(r"unregistered operation '([\w.]+)'", done.stderr))


def main():
    source, opt = sys.argv[1:3]
    tests, faults = Tests(source, opt), []
    lines = [BEGIN, "", *rows(tests, "gpu", GPU, faults), "", "Those of `nvgpu`:", "",
             *rows(tests, "nvgpu", NVGPU, faults), "", END]
    names = [f"{dialect}.{name}" for dialect, table in (("gpu", GPU), ("nvgpu", NVGPU)) for key in table
             for name in key.split()]
    if (strange := unknown(opt, names + ["gpu.no_such"])) != {"gpu.no_such"}:
        faults.append(f"MLIR has no such operations: {sorted(strange)} (but for gpu.no_such)")
    path = os.path.join(source, "docs/gpu-dialect.md")
    with open(path, encoding="utf-8") as file:
        page = file.read()
    made = page[:page.index(BEGIN)] + "\n".join(lines) + page[page.index(END) + len(END):]
    if made != page and "--update" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(made)
    elif made != page:
        faults.append("docs/gpu-dialect.md has other rows: run table.py with --update")
    print("\n".join(faults) or f"{len(names)} operations")
    return 1 if faults else 0


sys.exit(main())
