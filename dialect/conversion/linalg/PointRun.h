// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_POINTRUN_H
#define MGPU_DIALECT_CONVERSION_LINALG_POINTRUN_H

// Which linalg operations and parallel loops on device buffers may share a
// launch with a thread for each point.

#include "dialect/conversion/FuseProducts.h"
#include "dialect/conversion/linalg/Computations.h"

#include <string>

namespace mgpu::conversion {

/// Whether operations that share a launch may have `op` between them: it
/// allocates on devices, or has no effect.
bool mayBeBetween(mlir::Operation *op);

/// `first`, which has a point form or is an scf.parallel, and the operations
/// after it that may run in its threads, in order. Nothing between them has an
/// effect but allocation; their points are the same; and what one writes,
/// another touches only in the thread that writes it. A matmul takes part with
/// what begins its sums and with what goes on with them, none of which has a
/// reduction of its own, because targets have texts of their own for it;
/// `products` says which matmuls do. At most `most` operations. `why` gets why
/// the next operation is not among them.
LaunchGroup fusibleFrom(mlir::Operation *first, FuseProducts products,
                        std::string &why, size_t most = mostInLaunch);

/// Reports operations of a group that may not run in the same threads: only a
/// text that does not come from mgpu-fuse-launches has such a group.
mlir::LogicalResult checkPointGroup(const LaunchGroup &group);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_POINTRUN_H
