// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_POINTLAUNCH_H
#define MGPU_PLANNER_IMPORT_POINTLAUNCH_H

// What builds a launch of a computation on device buffers.

#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mgpu::planner {

/// The memrefs from outside that an operation or its regions name.
llvm::SmallVector<mlir::Value> memrefsOf(mlir::Operation *op);

/// The one device of several memrefs. Fails after a diagnostic.
mlir::FailureOr<mlir::Value> deviceOfAll(mlir::Operation *op,
                                         mlir::ValueRange memrefs);

/// Threads of a block along an axis of `extent`: all of it, a divisor that is
/// no less than half of `most`, or `most`, the last block being guarded then.
int64_t threadsAlong(int64_t extent, int64_t most);

/// A launch before `op`, without a stream, with its place and name.
ir::LaunchOp makeLaunch(mlir::OpBuilder &b, mlir::Operation *op,
                        mlir::Value device, mlir::ValueRange grid,
                        mlir::ValueRange block);

/// So that messages, `plan --explain` and the kernel's name show all of them.
void joinNames(ir::LaunchOp launch, llvm::ArrayRef<mlir::Operation *> run);

/// block id * threads + thread id along an axis.
mlir::Value globalId(mlir::OpBuilder &b, mlir::Location loc, unsigned axis,
                     mlir::Value threads);

/// Goes on inside `if (id < extent)`.
void guard(mlir::OpBuilder &b, mlir::Location loc, mlir::Value id,
           mlir::Value extent);

/// A counted loop: `make` builds one trip from the loop's counter and what is
/// carried, and returns what goes on. Afterwards `b` is where it was.
llvm::SmallVector<mlir::Value>
makeLoop(mlir::OpBuilder &b, mlir::Location loc, int64_t trips,
         mlir::ValueRange carried,
         llvm::function_ref<llvm::SmallVector<mlir::Value>(
             mlir::OpBuilder &, mlir::Value, mlir::ValueRange)>
             make);

/// The point of a box that an axis z, which counts all dimensions but the last
/// two together, and the ids along y and x stand for.
llvm::SmallVector<mlir::Value> pointOf(mlir::OpBuilder &b, mlir::Location loc,
                                       llvm::ArrayRef<int64_t> extents,
                                       const mlir::Value (&ids)[3]);

/// The sizes along x, y and z of such a box.
std::array<int64_t, 3> sizesOf(llvm::ArrayRef<int64_t> extents);

/// A launch with a thread for each point of a box.
class PointLaunch {
public:
  /// `extents`: static ones, the last innermost. Their axes are x, y, and z,
  /// which has all others.
  PointLaunch(mlir::Operation *op, mlir::Value device,
              llvm::ArrayRef<int64_t> extents);
  ir::LaunchOp launch;
  /// Where the body of a thread is to be built, and the point it stands for.
  mlir::OpBuilder &body() { return *inside; }
  llvm::SmallVector<mlir::Value> point;

private:
  std::optional<mlir::OpBuilder> inside;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_POINTLAUNCH_H
