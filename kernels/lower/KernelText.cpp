// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/KernelText.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OperationSupport.h"

namespace mgpu::kernels {

std::string canonicalKernelText(mlir::ModuleOp kernel) {
  // The flags start from the command line's; every one that matters is set.
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(false)
      .printGenericOpForm()
      .useLocalScope()
      .printNameLocAsPrefix(false)
      .assumeVerified();
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, flags);
  return text;
}

} // namespace mgpu::kernels
