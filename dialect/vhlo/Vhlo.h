// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_VHLO_VHLO_H
#define MGPU_DIALECT_VHLO_VHLO_H

// VHLO is the copy of StableHLO whose operations have versions. It exists in
// bytecode alone: jax.export and PJRT clients write it, and what is read here
// of a file is StableHLO. Files of versions 0.9.0 to 1.20.0 are read.
//
// The encoding is that of https://github.com/openxla/stablehlo, file
// stablehlo/dialect/VhloBytecode.cpp.

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"

namespace mgpu::vhlo {

/// The newest version that is read, as files spell it.
inline constexpr llvm::StringLiteral newest = "1.20.0";

/// Adds what MLIR's reader of bytecode asks of VHLO, and the dialects that a
/// file becomes operations of.
void registerDialects(mlir::DialectRegistry &registry);

/// Makes StableHLO's and func's operations of VHLO's. Fails, with a diagnostic,
/// where an attribute is not of the kind that an operation has.
mlir::LogicalResult makeStablehlo(mlir::ModuleOp module);

/// The types and attributes that VHLO encodes; null, with an error of the
/// reader's, for others.
mlir::Type readType(mlir::DialectBytecodeReader &reader);
mlir::Attribute readAttribute(mlir::DialectBytecodeReader &reader);

/// Adds the sdy dialect, with what reads its attributes in bytecode.
void addSdyBytecode(mlir::DialectRegistry &registry);

} // namespace mgpu::vhlo

#endif // MGPU_DIALECT_VHLO_VHLO_H
