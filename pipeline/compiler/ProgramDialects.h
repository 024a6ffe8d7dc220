// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_PROGRAMDIALECTS_H
#define MGPU_PIPELINE_COMPILER_PROGRAMDIALECTS_H

#include "mlir/IR/DialectRegistry.h"

namespace mgpu::pipeline {

/// The dialects that a program may be written in, and those it becomes.
mlir::DialectRegistry programDialects();

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_COMPILER_PROGRAMDIALECTS_H
