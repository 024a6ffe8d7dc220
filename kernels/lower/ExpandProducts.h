// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_EXPANDPRODUCTS_H
#define MGPU_KERNELS_LOWER_EXPANDPRODUCTS_H

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace mgpu::kernels {

/// Writes a product of tensor cores as products of a subgroup's matrices.
/// m16n8k16 of f16, m16n8k8 of tf32 and m8n8k4 of f64 are one each. Others of
/// 16 rows, of f16, bf16, tf32 and i8, are several m16n8k8 of tf32, which has
/// all values of narrower types: each takes two neighbours along k of each
/// lane. Sums of i8 saturate, as those of nvgpu do. A product without such a
/// form stays.
void expandProduct(mlir::nvgpu::MmaSyncOp op);

/// Expands a product whose A has two values of each four along k: m16n8k32 of
/// f16 and bf16.
void expandProduct(mlir::nvgpu::MmaSparseSyncOp op);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_EXPANDPRODUCTS_H
