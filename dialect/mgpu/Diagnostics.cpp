// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/IR/Location.h"

namespace mgpu::ir {

using namespace mlir;

std::string describeLocation(Location location) {
  std::string found;
  location->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    found = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
             Twine(file.getColumn()))
                .str();
    return WalkResult::interrupt();
  });
  return found;
}

std::string describeLocations(Location location) {
  auto fused = dyn_cast<FusedLoc>(location);
  if (!fused)
    return describeLocation(location);
  std::string all;
  for (Location each : fused.getLocations())
    all += (all.empty() ? "" : " + ") + describeLocation(each);
  return all;
}

FirstError::FirstError(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (message.empty() &&
            diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          std::string where = describeLocation(diagnostic.getLocation());
          message = (where.empty() ? "" : where + ": ") + diagnostic.str();
        }
        return failure(); // not handled: the next handler sees it too
      }) {}

} // namespace mgpu::ir
