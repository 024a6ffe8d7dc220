// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_ATTENTIONFORM_H
#define MGPU_KERNELS_HOST_ATTENTIONFORM_H

// The form that an attention has on the host: queries lie beside each other in
// vectors, the scores of a block of keys are in the first cache, and the
// softmax is corrected from block to block. Its bits depend on the program
// alone (docs/numerics.md): lanes do not meet, and all sums have one order.

#include "kernels/host/PackedProduct.h"
#include "kernels/lower/AttentionParts.h"

namespace mgpu::kernels::host {

/// Replaces the kernel by a function of the host ABI.
mlir::LogicalResult makeAttention(mlir::ModuleOp kernel, Dim3 block,
                                  const AttentionBody &body, VectorUnit unit);

} // namespace mgpu::kernels::host

#endif // MGPU_KERNELS_HOST_ATTENTIONFORM_H
