// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mgpu dialect: types, attributes, operations. Include this one header.
#ifndef MGPU_DIALECT_MGPU_MGPUDIALECT_H
#define MGPU_DIALECT_MGPU_MGPUDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mgpu::ir {

/// Whether passes of ours note the attribute for later ones: "mgpu.product".
bool isFactOfPasses(llvm::StringRef name);

/// The queues of devices: a separate resource, so that ordering work never
/// looks like touching a buffer.
struct StreamResource : mlir::SideEffects::Resource::Base<StreamResource> {
  llvm::StringRef getName() final { return "mgpu.Stream"; }
};

/// The calls made on communicators.
struct CommunicatorResource
    : mlir::SideEffects::Resource::Base<CommunicatorResource> {
  llvm::StringRef getName() final { return "mgpu.Communicator"; }
};

/// `mgpu.get_device` of this index is the host.
inline constexpr int64_t hostDeviceIndex = -1;

} // namespace mgpu::ir

#include "dialect/mgpu/MgpuDialect.h.inc"

#include "dialect/mgpu/MgpuEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/mgpu/MgpuAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/mgpu/MgpuTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/mgpu/MgpuOps.h.inc"

namespace mgpu::ir {

/// The value of a constant integer or index.
std::optional<int64_t> getConstantIndex(mlir::Value value);

/// The product that a launch or a kernel's function says it computes, or null.
inline constexpr llvm::StringLiteral productName = "mgpu.product";
inline ProductAttr productOf(mlir::Operation *op) {
  return op->getAttrOfType<ProductAttr>(productName);
}
/// The matrices that an argument of a kernel is; null where their place is not
/// known.
MatrixAttr matrixOf(mlir::FunctionOpInterface kernel, int64_t position);
/// That `op`, a launch or a kernel's function, has such arguments.
mlir::LogicalResult verifyProduct(mlir::Operation *op, mlir::Attribute product);

inline constexpr llvm::StringLiteral attentionName = "mgpu.attention";
/// The attention that a launch or a kernel's function computes, or null.
inline AttentionAttr attentionOf(mlir::Operation *op) {
  return op->getAttrOfType<AttentionAttr>(attentionName);
}
/// That `op`, a launch or a kernel's function, has the buffers of an attention.
mlir::LogicalResult verifyAttention(mlir::Operation *op,
                                    mlir::Attribute attention);

inline constexpr llvm::StringLiteral sparseName = "mgpu.sparse",
                                     clusterName = "mgpu.cluster";
/// They are on a launch or on a kernel's function; null where it has none.
inline SparseProductAttr sparseProductOf(mlir::Operation *op) {
  return op->getAttrOfType<SparseProductAttr>(sparseName);
}
inline ClusterAttr clusterOf(mlir::Operation *op) {
  return op->getAttrOfType<ClusterAttr>(clusterName);
}

inline constexpr llvm::StringLiteral markName = "mgpu.mark";
/// The marks of ids of the threads around a product, along x, y and z.
inline constexpr Mark globalMarks[] = {Mark::GlobalX, Mark::GlobalY,
                                       Mark::GlobalZ};
/// Whether passes have noted that of the operation.
inline bool hasMark(mlir::Operation *op, Mark mark) {
  auto marks = op->getAttrOfType<MarkAttr>(markName);
  return marks && bitEnumContainsAll(marks.getValue(), mark);
}
void setMark(mlir::Operation *op, Mark mark);
/// Takes it away; whether it was there.
bool takeMark(mlir::Operation *op, Mark mark);

/// The index a device handle was got with, where that is a constant.
std::optional<int64_t> getConstantDeviceIndex(mlir::Value device);

/// The device handle that `alloc` or `sharded_alloc` made `buffer` with; null
/// for any other value.
mlir::Value getAllocationDevice(mlir::Value buffer);

/// The end of the message that `op` breaks the constraint which the dialect's
/// document lists under this label: " [all_reduce_c2]".
std::string rule(mlir::OperationName op, unsigned number);
inline std::string rule(mlir::Operation *op, unsigned number) {
  return rule(op->getName(), number);
}

} // namespace mgpu::ir

#endif // MGPU_DIALECT_MGPU_MGPUDIALECT_H
