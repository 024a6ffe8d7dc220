// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_POINTLAUNCH_H
#define MGPU_DIALECT_CONVERSION_LINALG_POINTLAUNCH_H

// Builders of launches that compute on device buffers.

#include "dialect/conversion/linalg/Computations.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mgpu::conversion {

/// The number of threads of a block along an axis of `extent`: all of it, a
/// divisor that is not less than half of `most`, or `most`. In the last case
/// threads of the last block are guarded.
int64_t threadsAlong(int64_t extent, int64_t most);

/// Makes a launch before `op`, without a stream, with its location and name.
ir::LaunchOp makeLaunch(mlir::OpBuilder &b, mlir::Operation *op,
                        mlir::Value device, mlir::ValueRange grid,
                        mlir::ValueRange block);

/// Erases the operations of a group, whose launch is made. A launch of several
/// gets the locations and names of all, for messages, `plan --explain` and the
/// kernel's name, and keeps values in registers (ForwardStores.h).
void replaceByLaunch(const LaunchGroup &group, ir::LaunchOp launch);

/// Builds block id * threads + thread id along an axis.
mlir::Value globalId(mlir::OpBuilder &b, mlir::Location loc, unsigned axis,
                     mlir::Value threads);

/// Builds `if (id < extent)` and moves `b` into it.
void guard(mlir::OpBuilder &b, mlir::Location loc, mlir::Value id,
           mlir::Value extent);

/// Builds a counted loop: `make` builds one trip from the counter and the
/// carried values, and returns the next ones. Afterwards `b` is where it was.
llvm::SmallVector<mlir::Value>
makeLoop(mlir::OpBuilder &b, mlir::Location loc, int64_t trips,
         mlir::ValueRange carried,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(
             mlir::OpBuilder &, mlir::Value, mlir::ValueRange)>
             make);

/// The point of a box that the ids along x, y and z stand for. The axis z
/// counts all dimensions but the last two together; where these are more than
/// CUDA has blocks along y or z, x counts all.
llvm::SmallVector<mlir::Value> pointOf(mlir::OpBuilder &b, mlir::Location loc,
                                       llvm::ArrayRef<int64_t> extents,
                                       const mlir::Value (&ids)[3]);

/// The sizes along x, y and z of such a box.
std::array<int64_t, 3> sizesOf(llvm::ArrayRef<int64_t> extents);

/// A launch with a thread for each point of a box.
class PointLaunch {
public:
  /// Makes the launch before `op`. The last of `extents` is innermost and lies
  /// along x, the one before along y, all others along z.
  PointLaunch(mlir::Operation *op, mlir::Value device,
              llvm::ArrayRef<int64_t> extents);
  ir::LaunchOp launch;
  /// Builds the body of a thread.
  mlir::OpBuilder &body() { return *inside; }
  llvm::SmallVector<mlir::Value> point; ///< the thread's point

private:
  std::optional<mlir::OpBuilder> inside;
};

/// The values of a loop's counters in the thread of iteration `ids`.
llvm::SmallVector<mlir::Value>
countersOf(mlir::OpBuilder &b, mlir::scf::ParallelOp op, mlir::ValueRange ids);

/// Builds one iteration of a loop.
void buildLoopBody(mlir::OpBuilder &b, mlir::scf::ParallelOp op,
                   mlir::ValueRange counters);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_POINTLAUNCH_H
