// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_SOURCENAMES_H
#define MGPU_PLANNER_IMPORT_SOURCENAMES_H

// MLIR forgets the names of SSA values; the text at their locations has them.

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <vector>

namespace llvm {
class MemoryBuffer;
} // namespace llvm

namespace mgpu::planner {

/// A source's text by line and column.
class SourceText {
public:
  /// `text` must outlive this.
  explicit SourceText(llvm::StringRef text);
  /// The text from the given place on; empty when it has none.
  llvm::StringRef from(mlir::Location location) const;
  /// The name of the op's first result: the first of "%a, %b:2 =" before the
  /// op's place. Empty where there is none.
  llvm::StringRef nameOf(mlir::Operation *op) const;
  /// The name of an argument: its place begins with it.
  llvm::StringRef nameOf(mlir::BlockArgument argument) const;

private:
  llvm::StringRef text;
  std::vector<size_t> lines;
};

/// Keeps the name as a location around the op's; numbers are not names.
void setName(mlir::Operation *op, llvm::StringRef name);
void setName(mlir::BlockArgument argument, llvm::StringRef name);

/// Opens the files that locations name, each once. A file that cannot be read,
/// or is not what was parsed, costs names and nothing else.
class SourceNames {
public:
  SourceNames();
  ~SourceNames();
  /// Names every value inside `root` that has no name yet.
  void nameValues(mlir::Operation *root);

private:
  struct File;
  const SourceText *textOf(mlir::Location location);
  llvm::StringMap<std::unique_ptr<File>> files;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_SOURCENAMES_H
