// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How lists of origins are written, in attributes and operations.
#ifndef MGPU_DIALECT_MPMD_MPMDSYNTAX_H
#define MGPU_DIALECT_MPMD_MPMDSYNTAX_H

#include "dialect/mpmd/MpmdDialect.h"

namespace mgpu::mpmd {

/// `["f"(1), "g"]`.
mlir::ParseResult parseUserOrigins(mlir::AsmParser &parser,
                                   mlir::ArrayAttr &origins);
void printUserOrigins(mlir::AsmPrinter &printer, mlir::ArrayAttr origins);

} // namespace mgpu::mpmd

#endif // MGPU_DIALECT_MPMD_MPMDSYNTAX_H
