// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_PROGRAMS_H
#define MGPU_DIALECT_CONVERSION_SPMD_PROGRAMS_H

// The functions of a module that compute with whole tensors.

#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

/// The entry function, if it has a body, and then those that it runs with
/// spmd.call, each once.
inline llvm::SetVector<mlir::func::FuncOp> programsOf(mlir::ModuleOp module,
                                                      llvm::StringRef entry) {
  llvm::SetVector<mlir::func::FuncOp> programs;
  auto function = module.lookupSymbol<mlir::func::FuncOp>(entry);
  if (!function || function.isExternal())
    return programs;
  programs.insert(function);
  mlir::SymbolTable symbols(module);
  function.walk([&](spmd::CallOp call) {
    if (auto callee = symbols.lookup<mlir::func::FuncOp>(call.getCallee());
        callee && !callee.isExternal())
      programs.insert(callee);
  });
  return programs;
}

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_PROGRAMS_H
