// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_PRODUCTPARTS_H
#define MGPU_KERNELS_LOWER_PRODUCTPARTS_H

// Kernels of a matmul, and those with elementwise operations before and after
// it (dialect/conversion/linalg/PointForm.h): what happens to one element of C
// around its sum, as functions, so that a form which computes sums in its own
// way can call or copy them.

#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mgpu::kernels {

/// The product that @entry says it is, in a form that it can be split; else
/// null.
ir::ProductAttr productOf(mlir::ModuleOp kernel);

/// A module with
///   @product.first(arguments of the entry...) -> what the sum begins with
///   @product.last(arguments of the entry..., sum)
/// which call nothing. They know their element by gpu.global_id, whose
/// x is the column, y the row and z the product's number; operations with a
/// mark of global ids were those. Null where what follows the loop
/// needs what was loaded before it, or where something calls a function or
/// needs more than the ids, the arguments and what is made of them.
mlir::OwningOpRef<mlir::ModuleOp> splitProduct(mlir::scf::ForOp loop);

/// Whether an argument lies in memory from its end to its beginning.
bool goesBack(mlir::func::FuncOp entry);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_PRODUCTPARTS_H
