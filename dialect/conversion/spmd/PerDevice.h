// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_PERDEVICE_H
#define MGPU_DIALECT_CONVERSION_SPMD_PERDEVICE_H

// Which values of a program that all devices run differ between devices.

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mgpu::conversion {

/// Memrefs made in the function, and scalars that depend on the number of the
/// device. Arguments of the function are the same on all devices.
class PerDevice {
public:
  explicit PerDevice(mlir::func::FuncOp function);

  bool contains(mlir::Value value) const { return values.contains(value); }

  /// Whether `op` is a loop or branch of scf that all devices take alike.
  bool takesAlike(mlir::Operation *op) const;

private:
  void visit(mlir::Operation *op);
  bool givesAlike(mlir::Operation *op) const;
  void add(mlir::Value value) { isChanged |= values.insert(value).second; }
  /// Adds `to` where `from` is in the set, pair by pair.
  void flow(mlir::ValueRange from, mlir::ValueRange to);

  llvm::DenseSet<mlir::Value> values;
  bool isChanged = false;
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_PERDEVICE_H
