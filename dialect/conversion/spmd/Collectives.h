// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_COLLECTIVES_H
#define MGPU_DIALECT_CONVERSION_SPMD_COLLECTIVES_H

// Makes collectives of the spmd dialect on tensors, each into a new tensor.

#include "dialect/spmd/SpmdDialect.h"

#include "mlir/IR/Builders.h"

namespace mgpu::conversion {

/// The collectives of groups of `size` members; null `groups` are one group of
/// all devices.
class Collectives {
public:
  Collectives(mlir::OpBuilder &b, mlir::Location loc, mlir::ArrayAttr groups,
              int64_t size)
      : b(b), loc(loc), groups(groups), size(size) {}

  mlir::Value allGather(mlir::Value input, unsigned dim);
  mlir::Value reduceScatter(mlir::Value input, ir::ReductionKind kind,
                            unsigned dim);
  mlir::Value allToAll(mlir::Value input, unsigned split, unsigned concat);
  /// `root` is a rank of each group.
  mlir::Value broadcast(mlir::Value input, int64_t root);
  /// In place: it is the one collective that may be.
  mlir::Value allReduce(mlir::Value input, ir::ReductionKind kind);

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::ArrayAttr groups;
  int64_t size;
};

/// Members send to others: `pairs` are [source, target] devices.
mlir::Value permute(mlir::OpBuilder &b, mlir::Location loc, mlir::Value input,
                    mlir::ArrayAttr pairs);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_COLLECTIVES_H
