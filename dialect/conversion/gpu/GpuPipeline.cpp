// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/gpu/GpuHost.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mgpu::conversion {

using namespace mlir;

bool isGpuProgram(ModuleOp module, StringRef entry) {
  bool isGpu = false, touches = false, usesMgpu = false;
  ir::walkHostCode(module, entry, [&](Operation *op) {
    touches |= touchesMemory(op);
    usesMgpu |= isa_and_nonnull<ir::MgpuDialect>(op->getDialect());
    isGpu |= isPrint(op) || isRunnerCall(op) || isSparse(op) ||
             isa<gpu::SetDefaultDeviceOp>(op) ||
             (isMemoryOp(op) && !isa<gpu::WaitOp>(op));
    if (!isa<gpu::LaunchOp, gpu::LaunchFuncOp>(op))
      return;
    SmallVector<Value> memrefs = ir::memrefsOf(op);
    isGpu |= memrefs.empty() || !llvm::all_of(memrefs, [](Value memref) {
               return bool(ir::deviceOf(memref));
             });
  });
  return isGpu || (touches && !usesMgpu);
}

void buildGpuPipeline(OpPassManager &passes,
                      const GpuPipelineOptions &options) {
  const std::string &entry = options.entry;
  // Without MLIR's own clean-up between, which would move operations.
  passes.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  passes.addPass(createLowerAffinePass());
  passes.addNestedPass<func::FuncOp>(createForallToParallelLoopPass());
  passes.addPass(createConvertGpuSparseToLaunches({entry}));
  passes.addPass(createConvertGpuLaunchToMgpu({entry}));
  passes.addPass(createPlaceHostMemory({entry, options.devices}));
  passes.addPass(createOutlineHostCode({entry}));
}

} // namespace mgpu::conversion
