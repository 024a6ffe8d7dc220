// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_ROWTHREADS_H
#define MGPU_PLANNER_IMPORT_ROWTHREADS_H

// Launches in which several threads share a row: which threads those are, and
// how they make one number of theirs. docs/numerics.md states the order.

#include "planner/import/PointLaunch.h"
#include "planner/import/RowForm.h"

namespace mgpu::planner {

/// The place, with the name that emitted texts give the value.
inline mlir::Location named(mlir::Location loc, llvm::StringRef name) {
  return mlir::NameLoc::get(mlir::StringAttr::get(loc.getContext(), name), loc);
}

enum class RowSharing {
  Block,    ///< a block for each row, of which there are few and long
  Subgroup, ///< a subgroup for each, several of them in a block
  Columns,  ///< rows that lie across memory: neighbouring threads have
            ///< neighbouring rows, and those of a block share each
};

/// The way that suits such rows; none where a thread for each is better. It
/// depends on the shape alone, and decides the order of sums.
std::optional<RowSharing> sharingOf(const RowForm &form);

/// Whether so many rows give work to enough threads that what is done to their
/// elements, and needs no reduction, may as well be done there.
bool mayShareElements(RowSharing sharing, llvm::ArrayRef<int64_t> rows,
                      int64_t length);

class RowThreads {
public:
  /// A launch before `last` for rows so many along each dimension.
  RowThreads(mlir::Operation *last, mlir::Location loc, mlir::Value device,
             llvm::ArrayRef<int64_t> rows, RowSharing sharing);

  ir::LaunchOp launch;
  /// Where its body is to be built, for all threads of a block alike.
  mlir::OpBuilder body;
  llvm::SmallVector<mlir::Value> row; ///< this thread's
  mlir::Value hasRow;                 ///< null where every thread has one
  int64_t parts = 1;                  ///< threads that share a row
  mlir::Value part;                   ///< this thread's number among them

  /// The parts' numbers as one, in each of their threads. All threads of a
  /// block must get there.
  mlir::Value combined(mlir::Location loc, mlir::gpu::AllReduceOperation kind,
                       mlir::Value number);
  /// Whether what a thread loaded from its row before combined() is loaded when
  /// another one of that row leaves it.
  bool combiningIsBarrier() const { return sharing != RowSharing::Subgroup; }

private:
  mlir::Value index(mlir::Location loc, int64_t value);
  mlir::Value foldColumns(mlir::Location loc,
                          mlir::gpu::AllReduceOperation kind,
                          mlir::Value number);

  RowSharing sharing;
  int64_t width = 1; ///< of Columns: rows beside each other in a block
  mlir::Value besides;
  /// Of Columns: workgroup memory for the parts, by the type of a number.
  llvm::SmallDenseMap<mlir::Type, mlir::Value> tiles;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_ROWTHREADS_H
