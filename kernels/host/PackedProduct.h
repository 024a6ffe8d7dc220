// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_PACKEDPRODUCT_H
#define MGPU_KERNELS_HOST_PACKEDPRODUCT_H

// The form that a matrix product has on the host: packed panels, blocks for the
// caches, and a tile of sums in registers. Each element adds its products one
// after the other in order of k, to what it began with, as the kernel's body
// does: equal bits.

#include "kernels/host/ProductTiles.h"
#include "kernels/host/ThreadLoops.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace mgpu::kernels::host {

/// How a processor multiplies and adds.
struct VectorUnit {
  unsigned bits = 128;
  bool hasFma = false; ///< multiplies and adds in one operation
};

/// The tiles of the product that `kernel` says it is, if it has this form on
/// such a processor: a sum of f32 or f64 over one loop, each step of which
/// multiplies an element of A and one of B and adds, by an fma only where the
/// processor has that.
std::optional<ProductTiles> packedForm(mlir::ModuleOp kernel, VectorUnit unit);

/// Replaces a kernel that has the form by a function of the host ABI. A block
/// of the object computes a tile of C of `tiles.down` by `tiles.across`; its
/// panels and waiting sums are on the stack of the thread that calls.
mlir::LogicalResult makePackedProduct(mlir::ModuleOp kernel, Dim3 block,
                                      const ProductTiles &tiles);

} // namespace mgpu::kernels::host

#endif // MGPU_KERNELS_HOST_PACKEDPRODUCT_H
