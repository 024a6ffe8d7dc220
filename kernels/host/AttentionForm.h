// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_ATTENTIONFORM_H
#define MGPU_KERNELS_HOST_ATTENTIONFORM_H

// The form that an attention has on the host: queries lie beside each other in
// vectors, the scores of a block of keys are in the first cache, and the
// softmax is corrected from block to block. Its bits depend on the program
// alone (docs/numerics.md): lanes do not meet, and all sums have one order.

#include "dialect/mgpu/MgpuDialect.h"
#include "kernels/host/PackedProduct.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::kernels::host {

/// The parts of an attention's kernel that the form needs.
struct AttentionBody {
  ir::AttentionAttr of;
  mlir::scf::ForOp keys; ///< the loop that finds the largest score
  mlir::scf::ForOp head; ///< adds up the product of a query and a key
  mlir::Value score;     ///< in `keys`, an f32
};

/// The attention that `kernel` says it is, if its body has that form and its
/// arguments lie where the text says.
std::optional<AttentionBody> attentionForm(mlir::ModuleOp kernel);

/// Replaces the kernel by a function of the host ABI.
mlir::LogicalResult makeAttention(mlir::ModuleOp kernel, Dim3 block,
                                  const AttentionBody &body, VectorUnit unit);

} // namespace mgpu::kernels::host

#endif // MGPU_KERNELS_HOST_ATTENTIONFORM_H
