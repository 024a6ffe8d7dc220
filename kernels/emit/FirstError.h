// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_EMIT_FIRSTERROR_H
#define MGPU_KERNELS_EMIT_FIRSTERROR_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace mgpu::kernels {

/// Remembers the first error reported while it lives, and lets it pass.
class FirstError {
public:
  explicit FirstError(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          if (message.empty() &&
              diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
            llvm::raw_string_ostream stream(message);
            if (!llvm::isa<mlir::UnknownLoc>(diagnostic.getLocation()))
              stream << diagnostic.getLocation() << ": ";
            stream << diagnostic;
          }
          return mlir::failure();
        }) {}

  std::string message;

private:
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_EMIT_FIRSTERROR_H
