// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_ATTENTIONPARTS_H
#define MGPU_KERNELS_LOWER_ATTENTIONPARTS_H

// Kernels of an attention (#mgpu.attention): where their operands lie, and what
// becomes of a query's product with a key, so that a form that computes
// products in its own way can copy or call it.

#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>

namespace mgpu::kernels {

/// The parts of an attention's kernel that a form needs.
struct AttentionBody {
  ir::AttentionAttr of;
  mlir::scf::ForOp keys; ///< the loop that finds the largest score
  mlir::scf::ForOp head; ///< adds up the product of a query and a key
  mlir::Value score;     ///< in `keys`, an f32
};

/// The attention that `kernel` says it is, if its body has that form and its
/// arguments lie where the text says.
std::optional<AttentionBody> attentionForm(mlir::ModuleOp kernel);

/// Copies what the body computes of a product to where `b` is. `map` has the
/// entry's arguments, the product and the key; `ids` are the query and its
/// number in the batch.
mlir::Value copyScore(mlir::OpBuilder &b, AttentionBody body,
                      mlir::IRMapping &map, mlir::ValueRange ids);

/// A module with @attention.score(arguments of the entry..., product) -> score,
/// an f32. It knows its query, its number in the batch and its key by
/// gpu.global_id's x, y and z.
mlir::OwningOpRef<mlir::ModuleOp> scoreFunction(AttentionBody body);

/// Where operand `k` lies: a stride for each of the attention's dimensions and
/// at last its offset, all in elements.
llvm::SmallVector<int64_t> attentionStrides(AttentionBody body, unsigned k);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_ATTENTIONPARTS_H
