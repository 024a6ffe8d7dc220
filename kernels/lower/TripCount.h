// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_TRIPCOUNT_H
#define MGPU_KERNELS_LOWER_TRIPCOUNT_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mgpu::kernels {

/// The trips of a loop that counts from 0 by 1; 0 of another one.
inline int64_t tripsFromZero(mlir::scf::ForOp loop) {
  auto trips = loop.getStaticTripCount();
  return trips && mlir::isConstantIntValue(loop.getLowerBound(), 0) &&
                 mlir::isConstantIntValue(loop.getStep(), 1)
             ? trips->getSExtValue()
             : 0;
}

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_TRIPCOUNT_H
