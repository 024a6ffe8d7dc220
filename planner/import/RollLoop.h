// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ROLLLOOP_H
#define MGPU_PLANNER_IMPORT_ROLLLOOP_H

// The loop that stays rolled (planner/record/RolledTrips.h), and the values
// that change from trip to trip.

#include "planner/dag/Dag.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::planner {

/// The loop of the entry function to keep rolled: the one with the most work
/// among those that carry no values from trip to trip. Null if there is none.
mlir::scf::ForOp findLoopToRoll(mlir::func::FuncOp function);

/// The induction that `op` makes of one induction value and constants, if it is
/// again first + trip * step in every trip. `lhs` and `rhs` are the operands
/// where they are inductions or constants (step 0); `rhs` is absent for casts.
std::optional<Induction> deriveInduction(mlir::Operation *op, Induction lhs,
                                         std::optional<Induction> rhs,
                                         uint64_t trips);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_ROLLLOOP_H
