// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations of the nvgpu dialect that are instructions of NVIDIA's GPUs: those
// that ExpandNvidia.h leaves.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

LogicalResult FunctionEmitter::emit(nvgpu::DeviceAsyncCopyOp op) {
  requireSm80("nvgpu.device_async_copy needs the copies");
  const unsigned each =
      widthOf(cast<MemRefType>(op.getDst().getType()).getElementType()) / 8;
  const std::string bytes =
      std::to_string(op.getDstElements().getZExtValue() * each);
  const std::string sides = "(&" + element(op.getDst(), op.getDstIndices()) +
                            ", &" + element(op.getSrc(), op.getSrcIndices());
  // Past the source's elements there are zeros.
  std::string count = bytes;
  if (Value elements = op.getSrcElements())
    count = "(int)" + use(elements) + " * " + std::to_string(each);
  const bool isCached = !op.getBypassL1() || bytes != "16";
  out.line((isCached ? helper("copyAsyncPart") + "<" + bytes + ">"
                     : helper("copyAsync")) +
           sides + ", " + count + ");");
  return success();
}

LogicalResult FunctionEmitter::emit(nvgpu::LdMatrixOp op) {
  if (failed(checkTypes(op)))
    return failure();
  const std::string row = "&" + element(op.getSrcMemref(), op.getIndices());
  const std::string count = std::to_string(op.getNumTiles());
  declare(op.getRes());
  const std::string name = names.fresh("tiles");
  std::string load = helper("loadTiles");
  if (op.getNumTiles() < 4)
    load = helper("loadFewTiles") + "<" + count + ", " +
           (op.getTranspose() ? "true" : "false") + ">";
  else if (op.getTranspose())
    load += "Turned";
  out.line("unsigned " + name + "[" + count + "];");
  out.line(load + "(" + name + ", " + row + ");");
  out.line("memcpy(&" + scalars[op.getRes()] + ", " + name + ", sizeof " +
           name + ");");
  return success();
}

LogicalResult FunctionEmitter::nvidiaOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<nvgpu::DeviceAsyncCopyOp, nvgpu::LdMatrixOp>(
          [&](auto each) { return emit(each); })
      .Case([&](nvgpu::DeviceAsyncCreateGroupOp) {
        helper("copyAsync");
        out.line("closeCopies();");
        return success();
      })
      .Case([&](nvgpu::DeviceAsyncWaitOp wait) {
        helper("copyAsync");
        out.line("awaitCopies<" +
                 std::to_string(wait.getNumGroups().value_or(0)) + ">();");
        return success();
      })
      .Default([&](Operation *) { return refuse(op); });
}

} // namespace mgpu::kernels::cuda
