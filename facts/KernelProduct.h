// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_FACTS_KERNELPRODUCT_H
#define MGPU_FACTS_KERNELPRODUCT_H

// The matrix product that a kernel computes, as its launch says it does.

#include "dialect/mgpu/MgpuDialect.h"
#include "planner/dag/KernelFacts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::facts {

/// The loop over k where the kernel computes more than its product; else null.
mlir::scf::ForOp productLoop(mlir::Region &body);

/// The launch's product `of` with its matrices: those of the arguments of
/// `entry` at `positions`, A and B, then C where the product is all there is.
/// Sums that begin with 0 and do no more than go to an argument overwrite that.
/// Null where a matrix is not of static shape.
ir::ProductAttr productOf(mlir::func::FuncOp entry, ir::ProductAttr of,
                          llvm::ArrayRef<int64_t> positions);

/// How much it is, of A's and of C's elements; `isAlone`: the kernel computes
/// nothing else.
planner::Product sizesOf(ir::ProductAttr product, ElementType factors,
                         ElementType sums, bool isAlone);

} // namespace mgpu::facts

#endif // MGPU_FACTS_KERNELPRODUCT_H
