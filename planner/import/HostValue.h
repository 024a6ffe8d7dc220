// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_HOSTVALUE_H
#define MGPU_PLANNER_IMPORT_HOSTVALUE_H

// What an SSA value of host code is while the program is interpreted.

#include "dialect/mgpu/Diagnostics.h"
#include "planner/dag/Dag.h"

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

namespace mgpu::planner {

/// A view of a root buffer. Offsets and strides in elements.
struct MemRefValue {
  BufferId buffer;
  int64_t offset = 0;
  llvm::SmallVector<int64_t, 4> sizes, strides;
};

/// One in-order queue of one device; `chain` numbers it in SourceOrder.
struct StreamValue {
  DeviceId device;
  uint32_t chain = 0;
};

struct CommunicatorValue {
  uint32_t index = 0;
};

/// A scalar whose value is only known at each replay: kernels read it from
/// memory. `buffer` is its place on the host.
struct DynamicValue {
  BufferId buffer;
};

/// A mlir::Attribute is a constant scalar.
using HostValue =
    std::variant<std::monostate, mlir::Attribute, DeviceId, StreamValue,
                 CommunicatorValue, MemRefValue, DynamicValue>;

/// Row-major strides of a shape, in elements.
inline llvm::SmallVector<int64_t, 4>
rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;)
    strides[k - 1] = strides[k] * shape[k];
  return strides;
}

/// The bytes of a view.
inline Box boxOf(const MemRefValue &view, uint32_t elementBytes) {
  Box box;
  box.elementBytes = elementBytes;
  box.offset = view.offset * elementBytes;
  box.sizes.assign(view.sizes.begin(), view.sizes.end());
  for (int64_t stride : view.strides)
    box.strides.push_back(stride * elementBytes);
  return box;
}

/// Our element type for an MLIR one; none when it has no place in memory here.
std::optional<ElementType> elementTypeOf(mlir::Type type);

/// MLIR's spelling of a type, for messages.
std::string textOf(mlir::Type type);

using ir::nameOf;

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_HOSTVALUE_H
