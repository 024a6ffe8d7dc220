// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_MGPU_DIAGNOSTICS_H
#define MGPU_DIALECT_MGPU_DIAGNOSTICS_H

// From MLIR's diagnostics to the errors of our own functions.

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace mgpu::ir {

/// "file:line:column" of a location, or "" when it has none.
std::string describeLocation(mlir::Location location);

/// Those of all places a fused location is of, with " + " between them.
std::string describeLocations(mlir::Location location);

/// Remembers the first error reported while it lives, as "file:line:column:
/// text", and lets every diagnostic pass.
class FirstError {
public:
  explicit FirstError(mlir::MLIRContext *context);
  std::string message;

private:
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mgpu::ir

#endif // MGPU_DIALECT_MGPU_DIAGNOSTICS_H
