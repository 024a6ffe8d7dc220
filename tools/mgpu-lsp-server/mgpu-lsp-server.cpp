// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Completion, hover and diagnostics in editors for programs in our
// dialects and StableHLO; MLIR's language server does the work.
#include "dialect/mgpu/MgpuDialect.h"
#include "dialect/mpmd/MpmdDialect.h"
#include "dialect/sdy/SdyDialect.h"
#include "dialect/spmd/SpmdDialect.h"
#include "dialect/stablehlo/Companions.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mgpu::ir::MgpuDialect, mgpu::mpmd::MpmdDialect,
                  mgpu::sdy::SdyDialect, mgpu::spmd::SpmdDialect>();
  mgpu::stablehlo::registerDialects(registry);
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
