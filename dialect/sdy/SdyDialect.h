// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sdy dialect: meshes and shardings of exported programs. Include this one
// header.
#ifndef MGPU_DIALECT_SDY_SDYDIALECT_H
#define MGPU_DIALECT_SDY_SDYDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/sdy/SdyDialect.h.inc"
#include "dialect/sdy/SdyEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/sdy/SdyAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialect/sdy/SdyOps.h.inc"

namespace mgpu::sdy {

/// The attribute of an argument or result of a function that says its sharding.
inline constexpr llvm::StringLiteral shardingName = "sdy.sharding";

/// `[<@mesh, [..]>, <@mesh, [..]>]`.
mlir::ParseResult
parseShardings(mlir::AsmParser &parser,
               llvm::SmallVectorImpl<TensorShardingAttr> &shardings);

/// The mesh of a sharding at `op`; null where no such mesh is there.
MeshAttr meshOf(mlir::Operation *op, mlir::Attribute meshOrName);

/// The fault of a sharding of a value over `mesh`: a list too few, an axis that
/// the mesh does not have or that stands twice. Empty where there is none.
std::string faultOf(TensorShardingAttr sharding, mlir::Type type,
                    MeshAttr mesh);

/// The shape of a shard of `shape` along those axes of a sharding that `axes`
/// names; nothing where a size is not divisible, or the sharding does not suit.
std::optional<llvm::SmallVector<int64_t>>
shardShape(llvm::ArrayRef<int64_t> shape, TensorShardingAttr sharding,
           MeshAttr mesh, llvm::ArrayRef<mlir::StringAttr> axes);

} // namespace mgpu::sdy

#endif // MGPU_DIALECT_SDY_SDYDIALECT_H
