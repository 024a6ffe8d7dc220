// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SHARD_SHARDPATTERNS_H
#define MGPU_DIALECT_CONVERSION_SHARD_SHARDPATTERNS_H

// The parts of the conversion from the shard dialect. Each function replaces
// the operation by its meaning for one device, or reports at its line what it
// does not take.

#include "dialect/conversion/spmd/Reshard.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"

#include <optional>

namespace mgpu::conversion {

/// Sizes of the grid that `op` names, which a verified program has.
llvm::ArrayRef<int64_t> gridOf(mlir::Operation *op,
                               mlir::FlatSymbolRefAttr name);

/// Mesh axes as the spmd dialect has them.
llvm::SmallVector<int64_t> axesOf(llvm::ArrayRef<int16_t> axes);

/// A list of numbers, `dynamic` where `fixed` has none. Nothing where one of
/// them is not a constant.
std::optional<llvm::SmallVector<int64_t>>
foldIndices(llvm::ArrayRef<int64_t> fixed, mlir::ValueRange dynamic);

/// The place of `index` in a grid of `sizes`, row-major.
int64_t linearIndex(llvm::ArrayRef<int64_t> sizes,
                    llvm::ArrayRef<int64_t> index);

/// The rank in its group of the device with that multi-index, where some of it
/// is known when the program runs.
mlir::Value rankOf(mlir::OpBuilder &b, mlir::Location loc,
                   llvm::ArrayRef<int64_t> grid, llvm::ArrayRef<int64_t> axes,
                   llvm::ArrayRef<int64_t> fixed, mlir::ValueRange dynamic);

/// The tensor of the group's member `rank`, which is the same on all members.
/// All of them are gathered.
mlir::Value ofMember(mlir::OpBuilder &b, mlir::Location loc, mlir::Value input,
                     llvm::ArrayRef<int64_t> grid, llvm::ArrayRef<int64_t> axes,
                     mlir::Value rank);

/// grid_shape, process_multi_index, process_linear_index,
/// neighbors_linear_indices and shard_shape: numbers of the device.
mlir::LogicalResult convertIndices(mlir::Operation *op);

/// all_gather, all_reduce, reduce, reduce_scatter, all_to_all, all_slice,
/// broadcast, gather and scatter.
mlir::LogicalResult convertCollective(mlir::Operation *op);

/// shift, and a recv with the send before it: members send to others.
mlir::LogicalResult convertExchange(mlir::Operation *op);
mlir::LogicalResult convertHalo(mlir::shard::UpdateHaloOp op);

/// shard.shard: a layout constraint.
mlir::LogicalResult convertShard(mlir::shard::ShardOp op);

/// How a sharding cuts a tensor of `shape`, with its halos. Errors are at `op`
/// or at the sharding.
mlir::FailureOr<llvm::SmallVector<Cut>>
cutsOfSharding(mlir::Operation *op, mlir::shard::ShardingOp sharding,
               llvm::ArrayRef<int64_t> shape);

/// The shard.sharding that `sharding` is, through get_sharding; null where that
/// is asked of a tensor without one.
mlir::shard::ShardingOp shardingOf(mlir::Value sharding);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SHARD_SHARDPATTERNS_H
