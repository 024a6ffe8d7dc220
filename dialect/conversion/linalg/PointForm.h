// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_POINTFORM_H
#define MGPU_DIALECT_CONVERSION_LINALG_POINTFORM_H

// The points of a computation, each of which a thread computes, and what a
// point does with memory.

#include "dialect/conversion/FuseProducts.h"
#include "dialect/conversion/linalg/Computations.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>
#include <string>

namespace mgpu::conversion {

/// Whether `op` becomes one launch with a thread for each point of its parallel
/// dimensions: its shapes are static, it works on buffers, and no two threads
/// write the same element.
bool hasPointForm(mlir::linalg::LinalgOp op);

/// The ranges that getStaticLoopRanges gives, at a tenth of its cost where each
/// loop alone indexes a dimension.
llvm::SmallVector<int64_t> loopRangesOf(mlir::linalg::LinalgOp op);

/// Whether `op` is a matmul that targets may have a text or a library for: one
/// of linalg's own, a batch or not, that is not transposed, or hasTurnedMatrix.
bool isPlainMatmul(mlir::linalg::LinalgOp op);

/// Whether it is a matmul of floats, a batch or not, with more rows than a
/// product of vectors has (ProductSteps.h), whose B is stored as its
/// transpose, [n][k].
bool hasTurnedMatrix(mlir::linalg::LinalgOp op);

/// Whether it is a plain matmul of f16 or bf16 factors, which GPUs compute by a
/// library unless another form is asked for.
bool isNarrowMatmul(mlir::linalg::LinalgOp op);

/// One dimension of a computation's points.
struct PointRange {
  mlir::OpFoldResult lower, upper, step;
  bool operator==(const PointRange &) const = default;
};
/// The ranges of an scf.parallel, or of a linalg operation that has a point
/// form.
llvm::SmallVector<PointRange> rangesOf(mlir::Operation *op);
/// How long they are; none where one is not a constant.
std::optional<llvm::SmallVector<int64_t>>
extentsOf(llvm::ArrayRef<PointRange> ranges);

/// The use that one operation makes of a memref. `axes` are the dimensions of
/// its points that index it, where each point has an element of its own and
/// nothing else does; none if not.
struct PointAccess {
  mlir::Value memref;
  bool isWritten = false;
  std::optional<llvm::SmallVector<unsigned>> axes;
};

struct PointForm {
  llvm::SmallVector<PointRange> ranges;
  llvm::SmallVector<PointAccess> accesses;
  /// Where all buffers it touches were allocated; null if that is not seen.
  mlir::Value device;
};

/// The memrefs that the body of `op` reads beside its operands, anywhere.
llvm::SmallVector<mlir::Value> memrefsReadInBody(mlir::linalg::LinalgOp op);

/// The form of a linalg operation or scf.parallel; none if its threads do more
/// than load and store at their points.
std::optional<PointForm> pointFormOf(mlir::Operation *op);

// Which linalg operations and parallel loops on device buffers may share a
// launch with a thread for each point.

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

#endif // MGPU_DIALECT_CONVERSION_LINALG_POINTFORM_H
