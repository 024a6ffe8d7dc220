// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of kernels that are compiled already.
#include "dialect/conversion/gpu/GpuLaunches.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Verifier.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// The architecture of an object for NVIDIA GPUs and, as the launch passes it,
/// its code.
std::optional<NamedAttribute> objectFrom(Attribute attribute) {
  auto object = dyn_cast<gpu::ObjectAttr>(attribute);
  auto target =
      object ? dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget()) : nullptr;
  if (!target || object.getFormat() == gpu::CompilationTarget::Offload)
    return std::nullopt;
  std::string bytes = object.getObject().str();
  if (object.getFormat() == gpu::CompilationTarget::Assembly &&
      (bytes.empty() || bytes.back() != '\0'))
    bytes += '\0'; // as the driver wants it
  MLIRContext *context = attribute.getContext();
  return NamedAttribute(StringAttr::get(context, target.getChip()),
                        StringAttr::get(context, bytes));
}

/// MLIR's kernels take a memref as its memory, twice, its offset, sizes and
/// strides.
LogicalResult addDescriptor(OpBuilder &b, Operation *op, Value memref,
                            SmallVectorImpl<Value> &args) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!type || failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::is_contained(ArrayRef(strides), ShapedType::kDynamic) ||
      offset != 0)
    return ir::emitUnsupported(op)
           << "passes memory of type " << memref.getType()
           << " to a kernel that is compiled already: its strides are not "
              "constants, or it has an offset";
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, op->getLoc(), value);
  };
  args.append({memref, memref, constant(0)});
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    args.push_back(
        b.createOrFold<memref::DimOp>(op->getLoc(), memref, constant(dim)));
  for (int64_t stride : strides)
    args.push_back(constant(stride));
  return success();
}

} // namespace

LogicalResult launchBinary(gpu::LaunchFuncOp op, gpu::BinaryOp binary,
                           const DefaultDevice &now) {
  const GpuLaunchShape shape = shapeOf(op);
  SmallVector<NamedAttribute> objects;
  for (Attribute each : binary.getObjects())
    if (auto object = objectFrom(each))
      objects.push_back(*object);
  if (objects.empty() || !shape.cluster.empty())
    return ir::emitUnsupported(op)
           << (objects.empty() ? "names a gpu.binary without an object for "
                                 "NVIDIA GPUs (#nvvm.target)"
                               : "gives clusters to a kernel that is compiled "
                                 "already");
  FailureOr<Value> device = deviceFor(op, now);
  if (failed(device))
    return failure();
  OpBuilder b(op);
  SmallVector<Value> args;
  for (Value operand : op.getKernelOperands()) {
    if (!isa<BaseMemRefType>(operand.getType()))
      args.push_back(operand);
    else if (failed(addDescriptor(b, op, operand, args)))
      return failure();
  }
  Value stream = streamOf(b, op, *device);
  auto made =
      ir::LaunchOp::create(b, op->getLoc(), *device, shape.grid, shape.block,
                           stream, args, TypeRange(), shape.dynamicSharedBytes);
  made->setAttr("source",
                b.getStringAttr("gpu.binary @" + binary.getSymName()));
  made->setAttr("entry", b.getStringAttr(op.getKernelName().getValue()));
  made->setAttr("objects", b.getDictionaryAttr(objects));
  return verify(made);
}

} // namespace mgpu::conversion
