// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SDY_MANUALCODE_H
#define MGPU_DIALECT_CONVERSION_SDY_MANUALCODE_H

// Code that each device runs, made of stablehlo and spmd operations.

#include "dialect/conversion/sdy/TensorParts.h"
#include "dialect/conversion/spmd/Collectives.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

namespace mgpu::conversion {

class DeviceCode {
public:
  DeviceCode(mlir::func::FuncOp function, int64_t devices)
      : b(function.getLoc(), function.getContext()), function(function),
        devices(devices) {}

  int64_t numDevices() const { return devices; }

  /// The device's one of `values`, as a scalar of i64.
  mlir::Value chosen(llvm::ArrayRef<int64_t> values);
  /// The part of a tensor that begins at `starts`, scalars of i64.
  mlir::Value part(mlir::Value whole, mlir::ValueRange starts,
                   llvm::ArrayRef<int64_t> sizes);
  /// This device's part of what each device has all of.
  mlir::Value cut(mlir::Value whole, const Parts &parts);
  /// All of what each device has a part of; nothing where the parts are not a
  /// grid.
  mlir::Value join(mlir::Value part, const Parts &parts);

  // Collectives.

  mlir::Value allGather(mlir::Value input, int64_t axis,
                        const spmd::DeviceGroups &groups);
  mlir::Value allReduce(mlir::Value input, ir::ReductionKind kind,
                        const spmd::DeviceGroups &groups);
  mlir::Value reduceScatter(mlir::Value input, ir::ReductionKind kind,
                            int64_t axis, const spmd::DeviceGroups &groups);
  mlir::Value allToAll(mlir::Value input, int64_t split, int64_t concat,
                       const spmd::DeviceGroups &groups);
  mlir::Value broadcast(mlir::Value input, const spmd::DeviceGroups &groups);
  mlir::Value permute(mlir::Value input, const spmd::DeviceGroups &pairs);
  /// The members' tensors, one behind the other along a new first dimension.
  mlir::Value stack(mlir::Value input, const spmd::DeviceGroups &groups);

  // Building blocks.

  mlir::Value constant(int64_t value);
  mlir::Value reshape(mlir::Value input, llvm::ArrayRef<int64_t> shape);
  /// Entry `index` of the first dimension.
  mlir::Value entry(mlir::Value stacked, int64_t index);
  mlir::Value entryAt(mlir::Value stacked, mlir::Value index);
  mlir::Value zeros(mlir::RankedTensorType type);

  mlir::ImplicitLocOpBuilder b;

private:
  mlir::Value deviceNumber();
  mlir::ArrayAttr listOf(const spmd::DeviceGroups &groups);
  /// Null for all devices in one group.
  mlir::ArrayAttr attributeOf(const spmd::DeviceGroups &groups);
  Collectives among(const spmd::DeviceGroups &groups);

  mlir::func::FuncOp function;
  int64_t devices;
  mlir::Value number; ///< the device's, made once where the function begins
};

inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

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

#endif // MGPU_DIALECT_CONVERSION_SDY_MANUALCODE_H
