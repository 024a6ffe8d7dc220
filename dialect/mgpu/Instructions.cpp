// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mgpu/Instructions.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace mgpu::ir {

using namespace mlir;

bool isInstruction(Operation *op) {
  if (auto name = dyn_cast<UnrealizedConversionCastOp>(op))
    return name->getNumResults() == 1 &&
           isa<nvgpu::TensorMapDescriptorType>(name.getResult(0).getType());
  return isa<nvgpu::MBarrierCreateOp, nvgpu::MBarrierInitOp,
             nvgpu::MBarrierArriveOp, nvgpu::MBarrierArriveNoCompleteOp,
             nvgpu::MBarrierArriveExpectTxOp, nvgpu::MBarrierTestWaitOp,
             nvgpu::MBarrierTryWaitParityOp, nvgpu::TmaPrefetchOp,
             nvgpu::TmaAsyncLoadOp>(op);
}

} // namespace mgpu::ir
