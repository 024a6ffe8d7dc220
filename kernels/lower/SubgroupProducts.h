// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_SUBGROUPPRODUCTS_H
#define MGPU_KERNELS_LOWER_SUBGROUPPRODUCTS_H

#include "support/Types.h"

#include "mlir/IR/BuiltinOps.h"

namespace mgpu::kernels {

/// Makes operations on matrices of a subgroup (gpu.subgroup_mma_*) of
/// vector.contract where all lanes surely compute the same, as MLIR's
/// convert-vector-to-gpu does: on tensor cores, and so that the lanes do not
/// write the same memory one after the other.
mlir::LogicalResult makeSubgroupProducts(mlir::ModuleOp module, Dim3 block);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_SUBGROUPPRODUCTS_H
