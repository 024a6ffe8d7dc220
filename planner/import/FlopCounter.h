// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_FLOPCOUNTER_H
#define MGPU_PLANNER_IMPORT_FLOPCOUNTER_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace mgpu::planner {

class FlopCounter {
public:
  /// Additions, subtractions, multiplications and divisions of floats, for each
  /// thread. A call counts the operations of its function, each once.
  double of(mlir::Operation *op);

private:
  llvm::DenseMap<mlir::Operation *, double> callees; ///< by function
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_FLOPCOUNTER_H
