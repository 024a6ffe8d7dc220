// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ROLLLOOP_H
#define MGPU_PLANNER_IMPORT_ROLLLOOP_H

// Keeps the program's outermost loop rolled. The interpreter runs two trips of
// it, so that what one trip does to the next is judged like any other code;
// where both made the same nodes, one is dropped and the other stands for all.

#include "planner/dag/Dag.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <map>

namespace mgpu::planner {

/// Two trips of a loop in a DAG that holds one after the other.
struct RolledTrips {
  mlir::scf::ForOp loop;
  uint64_t trips = 0;
  /// Where the first trip, the second and what follows begin.
  std::array<uint32_t, 3> nodes = {}, buffers = {};
  /// Nodes of the first trip that stand before the loop.
  std::vector<NodeId> hoisted;
};

/// The loop of the entry function to keep rolled: of those that carry no
/// values from trip to trip the one with the most work. Null if there is none.
mlir::scf::ForOp findLoopToRoll(mlir::func::FuncOp function);

/// What `op` computes of one induction value and constants, if that is again
/// first + trip * step in every trip. `lhs` and `rhs` are the operands where
/// they are inductions or constants (step 0); `rhs` is absent for casts.
std::optional<Induction> deriveInduction(mlir::Operation *op, Induction lhs,
                                         std::optional<Induction> rhs,
                                         uint64_t trips);

/// Removes the second trip and gives the rest the phases Prologue, Replay and
/// Epilogue; buffers that carry bytes between trips become Resident. The result
/// is the new id of each buffer (of a removed one, that of its twin).
/// Invalid, and nothing is changed, where the trips differ.
Result<std::vector<BufferId>> dropSecondTrip(Dag &dag,
                                             const RolledTrips &rolled);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_ROLLLOOP_H
