// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The spmd dialect: one tensor program for N devices. Include this one header.
#ifndef MGPU_DIALECT_SPMD_SPMDDIALECT_H
#define MGPU_DIALECT_SPMD_SPMDDIALECT_H

#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include <optional>

namespace mgpu::spmd {

/// A program has fewer devices than this.
inline constexpr int64_t mostDevices = 65536;

/// Groups of devices, each in rank order.
using DeviceGroups = llvm::SmallVector<llvm::SmallVector<int64_t>>;

/// The groups that an attribute lists; without one, `devices` are a group.
DeviceGroups groupsOf(mlir::ArrayAttr groups, llvm::ArrayRef<int64_t> devices);

/// Whether `op`, a custom call, may read what its init holds.
bool keepsInit(mlir::Operation *op, mlir::OpOperand &init);

/// On memrefs: `op` reads its inputs and the inits that it keeps, and writes
/// its inits. On tensors there are no effects.
void addEffects(mlir::DestinationStyleOpInterface op,
                llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<
                    mlir::MemoryEffects::Effect>> &effects);

} // namespace mgpu::spmd

#include "dialect/spmd/SpmdDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/spmd/SpmdAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialect/spmd/SpmdOps.h.inc"

namespace mgpu::spmd {

/// The attribute of an argument or result of the entry function that says which
/// part of it a device holds.
inline constexpr llvm::StringLiteral layoutName = "spmd.layout";

/// The attribute of result K whose value is the argument that K is the next
/// state of: both share the argument's memory (donation).
inline constexpr llvm::StringLiteral aliasName = "spmd.alias";

/// The attribute of the entry function that has the number which the program
/// gives to each device, where that is another one.
inline constexpr llvm::StringLiteral deviceOrderName = "spmd.device_order";

/// The layout of an argument, or of result `index`; null where it has none,
/// which means that each device holds all of it.
LayoutAttr layoutOf(mlir::FunctionOpInterface function,
                    mlir::BlockArgument argument);
LayoutAttr layoutOfResult(mlir::FunctionOpInterface function, unsigned index);

/// The layout in which each of `devices` holds all of a tensor of this rank.
LayoutAttr replicated(mlir::MLIRContext *context, int64_t devices,
                      unsigned rank);

/// Makes the operations known to one-shot-bufferize.
void registerBufferization(mlir::DialectRegistry &registry);

} // namespace mgpu::spmd

#endif // MGPU_DIALECT_SPMD_SPMDDIALECT_H
