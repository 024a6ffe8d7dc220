// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_BUILD_HOSTMICROKERNELS_H
#define MGPU_PIPELINE_BUILD_HOSTMICROKERNELS_H

// The kernels that `calibrate` measures a host with, beside those of
// calibrate.mlir: starts, operations, special functions, reductions, accesses
// by stride and cache level, and products of many shapes.

#include <string>

namespace mgpu::pipeline {

/// A function over tensors, each operation of which is a kernel.
std::string hostMicrokernels();

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_BUILD_HOSTMICROKERNELS_H
