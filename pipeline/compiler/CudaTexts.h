// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_CUDATEXTS_H
#define MGPU_PIPELINE_COMPILER_CUDATEXTS_H

#include "device/api/BlobCache.h"
#include "kernels/compile/CudaText.h"
#include "planner/dag/Dag.h"

namespace mgpu::pipeline {

/// As Compiler::emitCudaKernels().
std::vector<Result<kernels::CudaText>>
emitCudaKernels(const planner::Dag &dag, const std::string &tensorCores,
                device::BlobCache *cache);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_COMPILER_CUDATEXTS_H
