// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_UNKNOWNWORDS_H
#define MGPU_PLANNER_IMPORT_UNKNOWNWORDS_H

// What MLIR's parser and its dialects do not know, in words for users.

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mgpu::planner {

/// A message of the parser about an operation, a type or an attribute that it
/// does not know, said anew; empty for other messages. `text` is the program.
std::string aboutUnknown(llvm::StringRef message, llvm::StringRef text,
                         mlir::Location location);

/// Whether aboutUnknown() said that a dialect is not read.
bool saysNotRead(llvm::StringRef words);

/// Reports each attribute of the module, of the arguments and results of its
/// functions and of operations, whose name begins with "mgpu." and is not
/// known: MLIR keeps such a word, and nothing would ever look at it. Drops
/// those of operations that only passes may set.
mlir::LogicalResult checkAttributeNames(mlir::ModuleOp module);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_UNKNOWNWORDS_H
