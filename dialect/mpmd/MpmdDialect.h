// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mpmd dialect: programs over several meshes. Include this one header.
#ifndef MGPU_DIALECT_MPMD_MPMDDIALECT_H
#define MGPU_DIALECT_MPMD_MPMDDIALECT_H

#include "dialect/sdy/SdyDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace mgpu::mpmd {

/// The attribute of a function that names its meshes: a #mpmd.topology.
inline constexpr llvm::StringLiteral topologyName = "topology";
/// The attribute of a fragment's function that is its mesh: a #sdy.mesh.
inline constexpr llvm::StringLiteral meshShapeName = "mesh_shape";
/// The number of a call, which fragments of its body keep: a microbatch.
inline constexpr llvm::StringLiteral callCounterName = "call_counter";
/// The attribute of an argument or result that says in which memory it is.
inline constexpr llvm::StringLiteral memoryKindName = "mhlo.memory_kind";
/// The attribute of a function that says which mesh runs which named
/// computations and has which named tensors: {f1 = "m1"}.
inline constexpr llvm::StringLiteral assignmentName = "mpmd.assignment";
/// The values of `memory_kind`.
inline constexpr llvm::StringLiteral deviceMemory = "device";
inline constexpr llvm::StringLiteral hostMemory = "pinned_host";

/// A token of StableHLO, which orders what has effects.
bool isToken(mlir::Type type);
bool isTensorOrToken(mlir::Type type);

} // namespace mgpu::mpmd

#include "dialect/mpmd/MpmdDialect.h.inc"
#include "dialect/mpmd/MpmdEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/mpmd/MpmdAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/mpmd/MpmdTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/mpmd/MpmdOps.h.inc"

namespace mgpu::mpmd {

/// The topology of the function that `op` is or stands in; null without one.
TopologyAttr topologyOf(mlir::Operation *op);

/// The work that a location names; null where it names none.
WorkAttr workAt(mlir::Location location);

/// The mesh of this name there; null where there is none.
sdy::MeshAttr meshAt(mlir::Operation *op, llvm::StringRef name);

} // namespace mgpu::mpmd

#endif // MGPU_DIALECT_MPMD_MPMDDIALECT_H
