// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SDY_MANUAL_H
#define MGPU_DIALECT_CONVERSION_SDY_MANUAL_H

#include "dialect/conversion/sdy/ManualCode.h"

#include "llvm/ADT/MapVector.h"

namespace mgpu::conversion {

/// Whether code of one device begins or ends at `op`.
bool isManual(mlir::Operation *op);

/// Puts the operations of `body` where `op` is, for `operands`.
void inlineBody(mlir::Operation *op, mlir::Region &body,
                mlir::ValueRange operands);

/// The borders between code over whole tensors, which each device runs on all
/// of them, and code of one device, which has parts of them.
class Manual {
public:
  Manual(mlir::func::FuncOp function, DeviceCode &code)
      : function(function), code(code) {}

  /// Puts manual computations into the function. spmd.full_to_shard and
  /// spmd.shard_to_full stand at the borders.
  mlir::LogicalResult inlineAll();

  /// Makes layouts of borders at arguments and results, and moves data at the
  /// others.
  mlir::LogicalResult place();

private:
  mlir::LogicalResult inlineOne(sdy::ManualComputationOp op);
  mlir::LogicalResult replaceCall(stablehlo::CustomCallOp op);
  mlir::LogicalResult checkShape(mlir::Operation *op, mlir::Value whole,
                                 mlir::Value part, const Parts &parts);
  mlir::Value enter(mlir::Value whole, mlir::Type part, const Parts &parts);
  mlir::Value leave(mlir::Value part, mlir::Type whole, const Parts &parts);

  void joinEnds();
  spmd::LayoutAttr layoutOfArgument(mlir::BlockArgument argument);
  mlir::Operation *borderOfResult(unsigned index);
  template <typename Op>
  using Border = std::pair<Op, Parts>;
  void placeArguments(llvm::ArrayRef<spmd::LayoutAttr> layouts,
                      llvm::ArrayRef<Border<spmd::FullToShardOp>> entries);
  mlir::LogicalResult
  placeResults(llvm::ArrayRef<spmd::LayoutAttr> layouts,
               llvm::ArrayRef<Border<spmd::ShardToFullOp>> leaves);

  mlir::func::FuncOp function;
  DeviceCode &code;
  llvm::MapVector<mlir::Operation *, Parts> borders;
};

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SDY_MANUAL_H
