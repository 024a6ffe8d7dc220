// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_PARSEDKERNEL_H
#define MGPU_PIPELINE_COMPILER_PARSEDKERNEL_H

#include "planner/dag/KernelSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>

namespace mgpu::kernels {

/// A kernel's module, parsed in a context of its own.
struct ParsedKernel {
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Internal where the source does not parse.
Result<ParsedKernel> parseKernel(const planner::KernelSpec &spec);

/// A context for kernels one after the other.
std::unique_ptr<mlir::MLIRContext> kernelContext();

/// Refuses what compileHostKernel() would refuse, without compiling.
Result<void> verifyHostKernel(const planner::KernelSpec &spec,
                              mlir::MLIRContext &context);

} // namespace mgpu::kernels

#endif // MGPU_PIPELINE_COMPILER_PARSEDKERNEL_H
