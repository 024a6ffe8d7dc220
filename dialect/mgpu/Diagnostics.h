// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_DIAGNOSTICS_H
#define MGPU_DIALECT_MGPU_DIAGNOSTICS_H

// From MLIR's diagnostics to the errors of our own functions.

#include "support/Result.h"

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <utility>

namespace mgpu::ir {

/// "file:line:column" of a location, or "" when it has none.
std::string describeLocation(mlir::Location location);

/// The file and line a location names; line 0 if it names none.
std::pair<llvm::StringRef, unsigned> fileLine(mlir::Location location);

/// describeLocation() of each part of a fused location, with " + " between.
std::string describeLocations(mlir::Location location);

/// The name that a location gives a value, as parsing keeps SSA names; else
/// `fallback`.
std::string nameOf(mlir::Location location, llvm::StringRef fallback);

/// An error at `op` about a correct program that this version cannot take.
mlir::InFlightDiagnostic emitUnsupported(mlir::Operation *op);
bool isUnsupported(mlir::Diagnostic &diagnostic);

/// An error at `op` about a program that needs a device or library which is not
/// there.
mlir::InFlightDiagnostic emitAbsent(mlir::Operation *op);
bool isAbsent(mlir::Diagnostic &diagnostic);

/// At `op`, for what no version could do, as the program is wrong: FirstError
/// tells it from what this one cannot.
mlir::InFlightDiagnostic emitProgramError(mlir::Operation *op);
bool isProgramError(mlir::Diagnostic &diagnostic);

/// Remembers the first error reported while it lives: its message is
/// "file:line:column: text".
class FirstError {
public:
  enum class Others { See, Miss }; ///< handlers made before it
  FirstError(mlir::MLIRContext *context, Others others);
  /// The reported error, or one that says `otherwise`. Its kind is Unsupported,
  /// or Invalid for emitProgramError().
  Error error(std::string_view otherwise) const;

private:
  Error first{ErrorKind::Unsupported, ""};
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mgpu::ir

#endif // MGPU_DIALECT_MGPU_DIAGNOSTICS_H
