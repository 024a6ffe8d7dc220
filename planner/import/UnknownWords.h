// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_UNKNOWNWORDS_H
#define MGPU_PLANNER_IMPORT_UNKNOWNWORDS_H

// Says in words for users what MLIR's parser and its dialects do not know.

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace mgpu::planner {

/// A message of the parser about an operation that it does not know, said anew;
/// empty for other messages.
std::string aboutUnknown(llvm::StringRef message, mlir::MLIRContext *context);

/// A message about an operation that was made of one of StableHLO, said of that
/// one, whose text begins `source`; empty for other messages. Who wrote
/// `stablehlo.scatter` has no `scf.for` to look for.
std::string aboutMade(llvm::StringRef message, llvm::StringRef source);

/// Whether a message says that a dialect is not read.
bool saysNotRead(llvm::StringRef words);

/// Takes out of a program, which was parsed with unregistered dialects allowed,
/// what says nothing to mgpu: attributes of dialects that are not read, and
/// each ml_program.global that nobody names (a seed, in most exports). An
/// operation or a type of such a dialect is an error, as saysNotRead() tells.
mlir::LogicalResult dropForeign(mlir::ModuleOp module);

/// Drops what passes of ours note for later ones, where a text has it: nothing
/// has judged it, and the passes find it again.
void dropFacts(mlir::ModuleOp module);

/// A text as MLIR spells it now. Operations of the gpu dialect may be spelled
/// as in 2019 (`"gpu.thread_id"() {dimension = "x"}`, `{op = "add"}`), and
/// constants of i1 in hexadecimal with a byte for each element. Lines stay
/// where they are.
struct Respelled {
  std::string text;            ///< empty where nothing changes
  std::vector<unsigned> lines; ///< with operations that changed, from 1 on
};

Respelled respell(llvm::StringRef text);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_UNKNOWNWORDS_H
