// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELPARTS_H
#define MGPU_PLANNER_IMPORT_KERNELPARTS_H

#include "facts/IdsOf.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"

#include <optional>
#include <vector>

namespace mgpu::planner {

/// The number of operations before `op` at which threads of a block wait for
/// each other or exchange values; none where one of these is in a loop or
/// branch.
class Parts {
public:
  explicit Parts(mlir::Region &body) : body(body) {
    body.walk([&](mlir::Operation *op) {
      if (!facts::isExchangeWithinBlocks(op))
        return;
      isKnown &= op->getParentRegion() == &body && body.hasOneBlock();
      if (isKnown)
        ends.push_back(op);
    });
  }

  std::optional<unsigned> of(mlir::Operation *op) const {
    if (ends.empty() && isKnown)
      return 0;
    mlir::Operation *top = body.findAncestorOpInRegion(*op);
    if (!isKnown || !top)
      return std::nullopt;
    return unsigned(llvm::count_if(
        ends, [&](mlir::Operation *end) { return end->isBeforeInBlock(top); }));
  }

private:
  mlir::Region &body;
  bool isKnown = true;
  std::vector<mlir::Operation *> ends;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELPARTS_H
