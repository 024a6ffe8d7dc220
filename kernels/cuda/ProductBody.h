// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_PRODUCTBODY_H
#define MGPU_KERNELS_CUDA_PRODUCTBODY_H

// How the texts of matrix products read the kernel's body and address its
// matrices.

#include "kernels/lower/ProductParts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::kernels::cuda {

/// Whether a step of the sums is one operation; `loop` as facts::productLoop()
/// has it.
bool addsByFma(mlir::func::FuncOp entry, mlir::scf::ForOp loop);

/// "x[batch * 64LL + row * 8LL + (k + step)]".
std::string elementAt(ir::MatrixAttr matrix, const std::string &name,
                      const std::string &row, const std::string &column);
/// "rows of A overlap", where they do or lie outside; else "". Rows are
/// contiguous.
std::string overlapRefusal(ir::MatrixAttr matrix, const std::string &name);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_PRODUCTBODY_H
