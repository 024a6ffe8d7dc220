// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SDY_FUNCTIONPARTS_H
#define MGPU_DIALECT_CONVERSION_SDY_FUNCTIONPARTS_H

// How the arguments and results of a function are cut over devices, by Shardy's
// attributes or XLA's texts.

#include "dialect/conversion/sdy/TensorParts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::conversion {

/// Whether a sharding in `function` cuts something, so that it computes on
/// whole tensors.
bool isOverWholeTensors(mlir::func::FuncOp function);

/// A sharding, null for none, and the parts that it makes. Parts that a text
/// says have none.
struct Cutting {
  sdy::TensorShardingAttr sharding;
  Parts parts;
};

/// By the attributes of an argument or result, which may be null. Fails with an
/// error at `op`.
mlir::FailureOr<Cutting> cuttingOf(mlir::Operation *op,
                                   mlir::DictionaryAttr attributes,
                                   mlir::RankedTensorType type,
                                   int64_t devices);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SDY_FUNCTIONPARTS_H
