// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs our passes and upstream's over programs in the mgpu dialect and every
// upstream one.
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/TransformSchedule.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::registerAllPasses();
  mgpu::conversion::registerPasses();
  mlir::DialectRegistry registry;
  registry.insert<mgpu::ir::MgpuDialect>();
  mgpu::conversion::registerTensorDialects(registry);
  mgpu::conversion::registerScheduleDialects(registry);
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "mgpu pass driver\n", registry));
}
