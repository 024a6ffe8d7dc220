// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_PARSEDKERNEL_H
#define MGPU_PIPELINE_COMPILER_PARSEDKERNEL_H

#include "planner/dag/KernelSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <mutex>
#include <set>
#include <string>

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

/// Kernels known to be sound, by all but the values of their constants of
/// floating point. Thread-safe.
class SoundForms {
public:
  bool contains(const std::string &form) const {
    const std::lock_guard lock(mutex);
    return forms.contains(form);
  }
  void add(const std::string &form) {
    const std::lock_guard lock(mutex);
    forms.insert(form);
  }

private:
  mutable std::mutex mutex;
  std::set<std::string> forms;
};

/// Refuses what compileHostKernel() would refuse, without compiling. A kernel
/// of a form in `sound` is not lowered; one that is found sound is put there.
Result<void> verifyHostKernel(const planner::KernelSpec &spec,
                              mlir::MLIRContext &context, SoundForms &sound);

} // namespace mgpu::kernels

#endif // MGPU_PIPELINE_COMPILER_PARSEDKERNEL_H
