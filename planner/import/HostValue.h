// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_HOSTVALUE_H
#define MGPU_PLANNER_IMPORT_HOSTVALUE_H

// Represents an SSA value of host code while the program is interpreted.

#include "dialect/mgpu/Diagnostics.h"
#include "planner/record/Recorder.h"

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mgpu::planner {

struct CommunicatorValue {
  uint32_t number = 0; ///< the recorder's
};

/// A scalar whose value is known at each replay only: kernels read it from
/// memory. `buffer` holds it on the host.
struct DynamicValue {
  BufferId buffer;
};

/// A constant scalar is a mlir::Attribute, a memref a View.
using HostValue =
    std::variant<std::monostate, mlir::Attribute, DeviceId, SourceStream,
                 CommunicatorValue, View, DynamicValue>;

/// Gives a value of host code, as a kernel sees it.
using HostValueOf = llvm::function_ref<const HostValue &(mlir::Value)>;

/// Our element type for an MLIR one; none when it has no place in memory here.
std::optional<ElementType> elementTypeOf(mlir::Type type);

/// MLIR's spelling of a type, for messages.
std::string textOf(mlir::Type type);

using ir::nameOf;

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_HOSTVALUE_H
