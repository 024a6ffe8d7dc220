// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_UNIFORMITY_H
#define MGPU_KERNELS_LOWER_UNIFORMITY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseSet.h"

namespace mgpu::kernels {

/// Whether `op` makes the threads of a block (or subgroup) meet.
bool isConvergent(mlir::Operation *op);
/// Whether `op` makes the lanes of a subgroup meet, and no others. The kernel
/// must have no matrices and lane-0 regions (SubgroupMatrix.h, WarpExecute.h).
bool meetsInSubgroup(mlir::Operation *op);
/// Whether `op` or an operation inside it is convergent; the first such.
mlir::Operation *findConvergent(mlir::Operation *op);
/// Whether `op` is an alloca that each thread has for itself.
bool isPrivateAlloca(mlir::Operation *op);

/// Whether `op` gives the id of a thread along x.
bool isIdAlongX(mlir::Operation *op);
/// A reduction over all threads of a block, or over those of a whole subgroup:
/// its result is the same for all neighbours.
bool isReductionOfNeighbours(mlir::Operation *op);

/// Which values of a kernel are the same for all threads of a block, or for
/// neighbours along x of which there are as many as in a vector.
class Uniformity {
public:
  enum class Among : uint8_t { Block, Neighbours };
  explicit Uniformity(mlir::func::FuncOp kernel, Among among = Among::Block);

  bool isUniform(mlir::Value value) const { return !varying.contains(value); }
  bool allUniform(mlir::ValueRange values) const;
  /// Whether executing `op` once for all of them does what executing it by each
  /// thread does: results from uniform operands, without side effects.
  bool isUniformOp(mlir::Operation *op) const;
  /// Whether all of them take the same way through `op`'s regions (scf.for,
  /// scf.if; among a block's threads scf.while), so that its control may be run
  /// once.
  bool hasUniformControl(mlir::Operation *op) const;

private:
  void markVarying(mlir::Value value);
  void markAll(mlir::ValueRange values);
  bool mayRunOnce(mlir::Operation *op) const;
  void visit(mlir::Operation *op);

  Among among;
  llvm::DenseSet<mlir::Value> varying;
  bool changed = false;
};

/// Fails, with a diagnostic at the op, where a gpu.barrier or gpu.all_reduce of
/// a prepared kernel is under control that its block's threads do not share.
mlir::LogicalResult checkBarriers(mlir::func::FuncOp kernel);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_UNIFORMITY_H
