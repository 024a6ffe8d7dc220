// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/TransformSchedule.h"

#include "mlir/Dialect/Affine/TransformOps/AffineTransformOps.h"
#include "mlir/Dialect/Func/TransformOps/FuncTransformOps.h"
#include "mlir/Dialect/GPU/TransformOps/GPUTransformOps.h"
#include "mlir/Dialect/Linalg/TransformOps/DialectExtension.h"
#include "mlir/Dialect/Linalg/Transforms/TilingInterfaceImpl.h"
#include "mlir/Dialect/MemRef/TransformOps/MemRefTransformOps.h"
#include "mlir/Dialect/NVGPU/TransformOps/NVGPUTransformOps.h"
#include "mlir/Dialect/SCF/TransformOps/SCFTransformOps.h"
#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformOps.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Dialect/Vector/TransformOps/VectorTransformOps.h"
#include "mlir/Pass/PassManager.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// A module, or the program itself, that says so has sequences of its own.
bool hasSequences(Operation *op) {
  return isa<ModuleOp>(op) &&
         op->hasAttr(transform::TransformDialect::kWithNamedSequenceAttrName);
}

void eraseSequences(ModuleOp module) {
  SmallVector<Operation *> found;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    const bool isSchedule = op != module && hasSequences(op);
    if (isSchedule || isa<transform::NamedSequenceOp>(op))
      found.push_back(op);
    return isSchedule ? WalkResult::skip() : WalkResult::advance();
  });
  for (Operation *op : found)
    op->erase();
  module->removeAttr(transform::TransformDialect::kWithNamedSequenceAttrName);
}

} // namespace

void registerScheduleDialects(DialectRegistry &registry) {
  registry.insert<transform::TransformDialect>();
  affine::registerTransformDialectExtension(registry);
  func::registerTransformDialectExtension(registry);
  gpu::registerTransformDialectExtension(registry);
  linalg::registerTransformDialectExtension(registry);
  linalg::registerTilingInterfaceExternalModels(registry);
  memref::registerTransformDialectExtension(registry);
  nvgpu::registerTransformDialectExtension(registry);
  scf::registerTransformDialectExtension(registry);
  vector::registerTransformDialectExtension(registry);
}

bool hasSchedule(ModuleOp module) {
  return hasSequences(module) ||
         llvm::any_of(module.getOps(),
                      [](Operation &op) { return hasSequences(&op); });
}

LogicalResult applySchedule(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(transform::createInterpreterPass());
  if (failed(passes.run(module)))
    return failure();
  eraseSequences(module);
  return success();
}

} // namespace mgpu::conversion
