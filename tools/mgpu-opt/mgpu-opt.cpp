// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs our passes and upstream's over programs in the mgpu dialect and every
// upstream one.
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/TransformSchedule.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "dialect/vhlo/Vhlo.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

namespace {

/// Shows what is read of a file of bytecode:
///   mgpu-opt FILE.bc --convert-vhlo-to-stablehlo
struct ConvertVhlo
    : mlir::PassWrapper<ConvertVhlo, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertVhlo)
  mlir::StringRef getArgument() const override {
    return "convert-vhlo-to-stablehlo";
  }
  mlir::StringRef getDescription() const override {
    return "Make StableHLO of the VHLO that bytecode holds";
  }
  void runOnOperation() override {
    if (failed(mgpu::vhlo::makeStablehlo(getOperation())))
      signalPassFailure();
  }
};

} // namespace

int main(int argc, char **argv) {
  mlir::registerAllPasses();
  mgpu::conversion::registerPasses();
  mlir::PassRegistration<ConvertVhlo>();
  mlir::DialectRegistry registry;
  registry.insert<mgpu::ir::MgpuDialect>();
  mgpu::conversion::registerTensorDialects(registry);
  mgpu::conversion::registerScheduleDialects(registry);
  mgpu::vhlo::registerDialects(registry);
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "mgpu pass driver\n", registry));
}
