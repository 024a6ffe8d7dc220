#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each operation of the Core ATen list of torch 2.x is read, or is known to be refused.

Usage: core_aten.py MGPU_TUNE SOURCE
What is read is in the tables of pipeline/torch. Of what is refused a .pt2 with a node of it is given to `check`,
which must name it. operations.py has the values of those that are read, and names those that it does not test.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

READ = """_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _embedding_bag _log_softmax
_native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training _softmax _to_copy abs acos acosh adaptive_avg_pool1d
add.Scalar add.Tensor addmm alias amax amin any any.dim any.dims arange.start_step argmax argmin as_strided asin asinh atan atan2 atanh
avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d bitwise_and.Scalar bitwise_and.Tensor bitwise_not bitwise_or.Scalar bitwise_or.Tensor
bitwise_xor.Scalar bitwise_xor.Tensor bmm cat ceil clamp clamp.Tensor clone constant_pad_nd convolution convolution_backward copy cos cosh
cumsum diagonal div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode elu embedding embedding_dense_backward empty.memory_format
empty_strided eq.Scalar eq.Tensor erf exp expand expm1 fill.Scalar flip floor fmod.Scalar fmod.Tensor full full_like gather ge.Scalar
ge.Tensor gelu gt.Scalar gt.Tensor hardtanh index.Tensor index_put index_select isinf isnan le.Scalar le.Tensor leaky_relu log log10 log1p
log2 logical_and logical_not logical_or logical_xor lt.Scalar lt.Tensor max.dim max_pool2d_with_indices max_pool2d_with_indices_backward
max_pool3d_with_indices maximum mean mean.dim min.dim minimum mm mul.Scalar mul.Tensor native_dropout native_group_norm
native_group_norm_backward native_layer_norm native_layer_norm_backward ne.Scalar ne.Tensor neg permute pow.Scalar pow.Tensor_Scalar
pow.Tensor_Tensor prod prod.dim_int reciprocal reflection_pad1d reflection_pad2d reflection_pad3d relu remainder.Scalar remainder.Tensor
repeat replication_pad2d replication_pad3d round rsqrt scalar_tensor scatter.src scatter.value scatter_add scatter_reduce.two select.int
select_scatter sigmoid sign sin sinh slice.Tensor slice_scatter sort split_with_sizes sqrt squeeze.dim squeeze.dims sub.Scalar sub.Tensor
sum.dim_IntList tan tanh topk trunc unsqueeze upsample_bilinear2d.vec upsample_nearest2d.vec var.correction var.dim view where.self""".split()
REFUSED = """_cdist_forward _fft_r2c _local_scalar_dense _native_batch_norm_legit _pdist_forward col2im grid_sampler_2d masked_scatter nonzero
rand randn randperm resize_""".split()


def archive(path, operation):
    tensor = {"dtype": 7, "sizes": [{"as_int": 4}], "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}}
    node = {"target": f"torch.ops.aten.{operation}{'' if '.' in operation else '.default'}", "outputs": [{"as_tensor": {"name": "y"}}],
            "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}], "metadata": {}}
    signature = {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
                 "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "y"}}}}]}
    graph = {"nodes": [node], "tensor_values": {"x": tensor}, "sym_int_values": {}}
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("m/models/m.json", json.dumps({"graph_module": {"graph": graph, "signature": signature},
                                                    "schema_version": {"major": 8, "minor": 99}}))


def main():
    tune, source = sys.argv[1:]
    signatures = set()
    for name in glob.glob(f"{source}/pipeline/torch/*.cpp"):
        with open(name, encoding="utf-8") as file:
            text = file.read()
        signatures |= set(re.findall(r'\{"([\w.]+)["(]', text))
    faults = [f"{name} is not read" for name in READ if name not in signatures]
    faults += [f"{name} is read, and this list says that it is refused" for name in REFUSED if name in signatures]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.pt2")
        for name in REFUSED:
            archive(path, name)
            done = subprocess.run([tune, "check", path], capture_output=True, text=True, check=False)
            if done.returncode != 5 or f"aten.{name}" not in done.stderr:
                faults.append(f"{name}: exit code {done.returncode}: {done.stderr.strip()}")
        archive(path, "relu")  # of a minor version that is not known, with less than torch writes
        done = subprocess.run([tune, "check", path], capture_output=True, text=True, check=False)
        if done.returncode:
            faults.append(f"relu: {done.stderr.strip()}")
    print("\n".join(faults) or f"of Core ATen {len(READ)} operations are read, {len(REFUSED)} refused; {len(signatures)} are read in all")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
