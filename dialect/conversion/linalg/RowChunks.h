// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_ROWCHUNKS_H
#define MGPU_DIALECT_CONVERSION_LINALG_ROWCHUNKS_H

// Reductions of long rows by chunks that blocks share.

#include "dialect/conversion/linalg/RowThreads.h"

namespace mgpu::conversion {

/// Replaces a reduction of rows, each of whose results has all parallel
/// dimensions, by reductions of the chunks, of a rest, and of what the chunks
/// gave. `device` has its buffers.
void reduceByChunks(mlir::linalg::LinalgOp op, const RowForm &form,
                    RowChunks chunks, mlir::Value device);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_ROWCHUNKS_H
