// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_MLIRCOMPILER_H
#define MGPU_PIPELINE_COMPILER_MLIRCOMPILER_H

#include "pipeline/Compiler.h"

namespace mgpu::pipeline {

/// The compiler half. It keeps nothing between calls, which may run at the
/// same time.
const Compiler &mlirCompiler();

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_COMPILER_MLIRCOMPILER_H
