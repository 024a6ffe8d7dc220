// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mgpu::ir;

#include "dialect/mgpu/MgpuDialect.cpp.inc"

#include "dialect/mgpu/MgpuEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/mgpu/MgpuAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/mgpu/MgpuTypes.cpp.inc"

namespace {
/// A kernel keeps its own constants: hoisting one out of a launch would turn it
/// into a kernel argument.
struct MgpuFoldInterface : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final {
    return isa<LaunchOp>(region->getParentOp());
  }
};

/// Every operation means the same wherever it stands, so calls inline; but a
/// kernel has one block.
struct MgpuInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *source, bool,
                       IRMapping &) const final {
    return source->hasOneBlock();
  }
};
} // namespace

void MgpuDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/mgpu/MgpuTypes.cpp.inc"
      >();
}

void MgpuDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/mgpu/MgpuAttributes.cpp.inc"
      >();
}

void MgpuDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/mgpu/MgpuOps.cpp.inc"
      >();
  addInterfaces<MgpuFoldInterface, MgpuInlinerInterface>();
}

LogicalResult
DeviceConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         uint32_t numDevices, DenseI32ArrayAttr deviceIds) {
  if (numDevices < 1)
    return emitError() << "numDevices must be at least 1 [device_config_c1]";
  // The limit is that of mgpu-dag/2 files: import keeps a queue per device, and
  // -1 would ask for four thousand million of them.
  constexpr uint32_t maxDevices = 1 << 16;
  if (numDevices > maxDevices)
    return emitError() << "numDevices is " << numDevices << "; at most "
                       << maxDevices << " are supported [device_config_c2]";
  if (!deviceIds)
    return success();
  if (deviceIds.size() != static_cast<int64_t>(numDevices))
    return emitError() << "deviceIds has " << deviceIds.size()
                       << " entries, but numDevices is " << numDevices
                       << " [device_config_c3]";
  llvm::SmallSet<int32_t, 16> seen;
  for (int32_t id : deviceIds.asArrayRef()) {
    if (id < 0)
      return emitError() << "deviceIds has the negative entry " << id
                         << " [device_config_c4]";
    if (!seen.insert(id).second)
      return emitError() << "deviceIds has " << id
                         << " more than once [device_config_c5]";
  }
  return success();
}

void mgpu::ir::setMark(Operation *op, Mark mark) {
  if (auto marks = op->getAttrOfType<MarkAttr>(markName))
    mark = mark | marks.getValue();
  op->setAttr(markName, MarkAttr::get(op->getContext(), mark));
}

bool mgpu::ir::takeMark(Operation *op, Mark mark) {
  if (!hasMark(op, mark))
    return false;
  const Mark left = op->getAttrOfType<MarkAttr>(markName).getValue() & ~mark;
  op->removeAttr(markName);
  if (left != Mark())
    setMark(op, left);
  return true;
}

std::optional<int64_t> mgpu::ir::getConstantIndex(Value value) {
  APInt constant;
  if (value && matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

std::optional<int64_t> mgpu::ir::getConstantDeviceIndex(Value device) {
  auto op = device.getDefiningOp<GetDeviceOp>();
  // A verifier may see the definition before its operands were checked.
  if (!op || op->getNumOperands() != 1)
    return std::nullopt;
  return getConstantIndex(op.getIndex());
}
