// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_LINALG_ROWTHREADS_H
#define MGPU_DIALECT_CONVERSION_LINALG_ROWTHREADS_H

// Launches in which several threads share a row: which threads do, and how they
// combine their numbers. docs/numerics.md states the order.

#include "dialect/conversion/linalg/Computations.h"
#include "dialect/conversion/linalg/PointLaunch.h"
#include "dialect/conversion/linalg/RowForm.h"

#include <string>
#include <vector>

namespace mgpu::conversion {

/// The location, with the name that emitted texts give the value.
inline mlir::Location named(mlir::Location loc, llvm::StringRef name) {
  return mlir::NameLoc::get(mlir::StringAttr::get(loc.getContext(), name), loc);
}

enum class RowSharing {
  Block,    ///< a block for each row, of which there are few and long
  Subgroup, ///< a subgroup for each, several of them in a block
  Columns,  ///< rows that lie across memory: neighbouring threads have
            ///< neighbouring rows, and those of a block share each
};

/// How threads share such rows; none where a thread for each row is better. It
/// depends on the shape alone, and decides the order of sums.
std::optional<RowSharing> sharingOf(const RowForm &form);

/// Chunks of equal length that a long row is split into; a rest may follow.
struct RowChunks {
  int64_t count, length;
};

/// How blocks share rows of a reduction that are so few and long that a block
/// for each leaves most of a large GPU idle; none where they are not. It
/// depends on the shape alone, and decides the order of sums.
std::optional<RowChunks> chunksOf(const RowForm &form);

/// The chunks of a product of vectors with a matrix whose columns are rows
/// here, of elements of so many bytes.
std::optional<RowChunks> chunksOfProduct(const RowForm &form, int64_t bytes);

/// Whether so many rows occupy enough threads that elementwise operations on
/// them may as well run in their launch.
bool mayShareElements(RowSharing sharing, llvm::ArrayRef<int64_t> rows,
                      int64_t length);

class RowThreads {
public:
  /// Makes a launch before `last` with that many rows along each dimension.
  RowThreads(mlir::Operation *last, mlir::Location loc, mlir::Value device,
             llvm::ArrayRef<int64_t> rows, RowSharing sharing);

  ir::LaunchOp launch;
  mlir::OpBuilder body; ///< builds what all threads of a block reach
  llvm::SmallVector<mlir::Value> row; ///< this thread's
  mlir::Value hasRow;                 ///< null if every thread has one
  int64_t parts = 1;                  ///< threads that share a row
  mlir::Value part;                   ///< this thread's number among them

  /// Builds the combination of all parts' numbers, for each of their threads.
  /// All threads of a block must reach it.
  mlir::Value combined(mlir::Location loc, mlir::gpu::AllReduceOperation kind,
                       mlir::Value number);
  /// Whether each thread of a row has finished its loads before combined() when
  /// another one leaves it.
  bool combiningIsBarrier() const { return sharing != RowSharing::Subgroup; }

private:
  mlir::Value index(mlir::Location loc, int64_t value);
  mlir::Value foldColumns(mlir::Location loc,
                          mlir::gpu::AllReduceOperation kind,
                          mlir::Value number);

  RowSharing sharing;
  int64_t width = 1; ///< for Columns: rows beside each other in a block
  mlir::Value besides;
  /// For Columns: workgroup memory for the parts, by the type of a number.
  llvm::SmallDenseMap<mlir::Type, mlir::Value> tiles;
};

// Operations that share the rows of a launch.

struct RowOp {
  mlir::Operation *op;
  RowForm form;
};

struct RowRun {
  std::vector<RowOp> ops;
  RowSharing sharing = RowSharing::Block;
  std::string why; ///< why the next operation is not in it
};

/// Finds the operations that may run in the launch of a first one, where that
/// shares rows (RowThreads.h): linalg operations that share a row count and a
/// row length, at least one of which reduces the rows or is a softmax along
/// them. Nothing between them has an effect but allocation, and what one writes
/// another touches only at the same element of its row, or row. The program
/// stays as it is meanwhile, so that what lies ahead of an operation is looked
/// at once for all operations before it.
class RowRuns {
public:
  /// Empty where a thread for each row is better, and where `first` does not
  /// begin such a run.
  RowRun from(mlir::Operation *first);

private:
  mlir::Operation *reductionAfter(mlir::Operation *first, mlir::Value device);

  /// By operation and the device that it works on. Null: none is in reach.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Value>, mlir::Operation *>
      reductions;
};

/// The run that consists of all operations of a group; none where they do not
/// share rows.
std::optional<RowRun> rowRunOf(const LaunchGroup &group);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_LINALG_ROWTHREADS_H
