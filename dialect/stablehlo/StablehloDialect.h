// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stablehlo dialect: what JAX and PyTorch/XLA export. Include this one
// header.
#ifndef MGPU_DIALECT_STABLEHLO_STABLEHLODIALECT_H
#define MGPU_DIALECT_STABLEHLO_STABLEHLODIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/stablehlo/StablehloDialect.h.inc"
#include "dialect/stablehlo/StablehloEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/stablehlo/StablehloAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/stablehlo/StablehloTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/stablehlo/StablehloOps.h.inc"

#endif // MGPU_DIALECT_STABLEHLO_STABLEHLODIALECT_H
