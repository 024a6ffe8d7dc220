// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small dialects that stand beside stablehlo in programs: chlo, mhlo, check and
// interpreter.
#ifndef MGPU_DIALECT_STABLEHLO_COMPANIONS_H
#define MGPU_DIALECT_STABLEHLO_COMPANIONS_H

#include "dialect/stablehlo/StablehloDialect.h"

#include "dialect/stablehlo/CheckDialect.h.inc"
#include "dialect/stablehlo/ChloDialect.h.inc"
#include "dialect/stablehlo/ChloEnums.h.inc"
#include "dialect/stablehlo/InterpreterDialect.h.inc"
#include "dialect/stablehlo/MhloDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/stablehlo/ChloAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialect/stablehlo/CheckOps.h.inc"

#define GET_OP_CLASSES
#include "dialect/stablehlo/ChloOps.h.inc"

#define GET_OP_CLASSES
#include "dialect/stablehlo/InterpreterOps.h.inc"

#define GET_OP_CLASSES
#include "dialect/stablehlo/MhloOps.h.inc"

namespace mgpu::stablehlo {

/// Adds stablehlo, its companions, and quant, whose types it uses.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace mgpu::stablehlo

#endif // MGPU_DIALECT_STABLEHLO_COMPANIONS_H
