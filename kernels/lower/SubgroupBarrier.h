// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_SUBGROUPBARRIER_H
#define MGPU_KERNELS_LOWER_SUBGROUPBARRIER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"

namespace mgpu::kernels {

/// Lanes of a subgroup, on every target.
inline constexpr int64_t subgroupSize = 32;

/// On what an emitter made for an operation that lanes of a subgroup do
/// together: that operation's name. A gpu.barrier with it is for the lanes of
/// each subgroup alone.
inline constexpr llvm::StringLiteral madeForName = "mgpu.subgroup";

inline void markMadeFor(mlir::Operation *op, mlir::Operation *source) {
  op->setAttr(madeForName,
              mlir::StringAttr::get(op->getContext(),
                                    source->getName().getStringRef()));
}

/// The name of the operation `op` was made for; empty if it is the program's.
inline llvm::StringRef madeFor(mlir::Operation *op) {
  auto name = op->getAttrOfType<mlir::StringAttr>(madeForName);
  return name ? name.getValue() : llvm::StringRef();
}

/// The name of what the program asked for where `op` is.
inline llvm::StringRef askedName(mlir::Operation *op) {
  return madeFor(op).empty() ? op->getName().getStringRef() : madeFor(op);
}

inline void createSubgroupBarrier(mlir::OpBuilder &b, mlir::Operation *source) {
  markMadeFor(mlir::gpu::BarrierOp::create(b, source->getLoc()), source);
}

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_SUBGROUPBARRIER_H
