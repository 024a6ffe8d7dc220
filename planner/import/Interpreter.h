// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_INTERPRETER_H
#define MGPU_PLANNER_IMPORT_INTERPRETER_H

// Interprets the host code of one entry function: folds scalars, follows
// control flow, unrolls loops, and issues every command to the recorder. It
// changes nothing in the module.

#include "planner/dag/Dag.h"
#include "planner/import/BuildDag.h"
#include "planner/import/Commands.h"
#include "planner/import/MemoryCalls.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::planner {

// The loop that stays rolled (planner/record/RolledTrips.h), and the values
// that change from trip to trip.

/// The loop of the entry function to keep rolled: the one with the most work
/// among those that carry no values from trip to trip. Null if there is none.
mlir::scf::ForOp findLoopToRoll(mlir::func::FuncOp function);

/// Says of an operation why its loop is unrolled.
constexpr const char *onlyKernelsCan =
    "computes with a value that changes from trip to trip in a way that only "
    "kernels can";

/// An operation of each trip that surely computes with the loop's value in a
/// way that makes no induction of it, as a comparison does; or null. To roll
/// such a loop is in vain, and all that stands before it would be interpreted
/// twice.
mlir::Operation *findNoInduction(mlir::scf::ForOp loop);

/// The induction that `op` makes of one induction value and constants, if it is
/// again first + trip * step in every trip. `lhs` and `rhs` are the operands
/// where they are inductions or constants (step 0); `rhs` is absent for casts.
std::optional<Induction> deriveInduction(mlir::Operation *op, Induction lhs,
                                         std::optional<Induction> rhs,
                                         uint64_t trips);

class Interpreter {
public:
  using Values = llvm::SmallVector<HostValue, 4>;

  /// `loop`, if any, is to be rolled.
  Interpreter(mlir::ModuleOp module, const ImportOptions &options,
              HostScope &host, mlir::scf::ForOp loop)
      : module(module), options(options), loopToRoll(loop), host(host),
        recorder(host.recorder), commands(module, options, host),
        memory(module, host) {}

  /// Runs the function; the result is what it returns. Fails after a
  /// diagnostic.
  Result<Values> runEntry(mlir::func::FuncOp function, Values arguments);

private:
  Result<Values> runRegion(mlir::Region &region, Values arguments);
  Result<void> step(mlir::Operation *op); ///< fails in endless code
  Result<void> visit(mlir::Operation *op);
  Result<void> visitFor(mlir::Operation *op);
  /// How many nodes a run of the region surely makes, at least.
  uint64_t leastNodesOf(mlir::Region &region);
  Result<void> checkNodes(mlir::Operation *op, uint64_t more);
  Result<void> visitRolled(int64_t first, int64_t step, uint64_t trips);
  Result<void> visitIf(mlir::Operation *op);
  Result<void> visitWhile(mlir::Operation *op);
  uint64_t mostTripsOf(mlir::scf::WhileOp loop) const;
  Result<void> checkTrips(mlir::scf::WhileOp loop);
  tl::unexpected<Error> refuseTrips(mlir::scf::WhileOp loop) const;
  Result<void> visitCall(mlir::func::CallOp call);
  // HostValue.cpp
  Result<void> fold(mlir::Operation *op);
  bool foldInduction(mlir::Operation *op);

  mlir::ModuleOp module;
  const ImportOptions &options;
  mlir::scf::ForOp loopToRoll;
  HostScope &host;
  Recorder &recorder;
  Commands commands;
  MemoryCalls memory;
  llvm::DenseMap<mlir::Region *, uint64_t> leastNodes; ///< 0 while it is found
  uint64_t idleSteps = 0; ///< steps of host code since the last node
  size_t nodesAtLastStep = 0;
  llvm::SmallVector<mlir::Operation *> active; ///< functions being run
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_INTERPRETER_H
