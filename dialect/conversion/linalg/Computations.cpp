// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/Computations.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::conversion {

using namespace mlir;

SmallVector<Operation *> computationsOf(ModuleOp module, StringRef entry) {
  SmallVector<Operation *> found;
  ir::walkHostCode(module, entry, [&](Operation *op) {
    if (isa<scf::ParallelOp>(op) ||
        (isa_and_present<linalg::LinalgDialect>(op->getDialect()) &&
         !isa<linalg::IndexOp, linalg::YieldOp>(op)))
      found.push_back(op);
  });
  return found;
}

SmallVector<LaunchGroup> launchGroupsOf(ModuleOp module, StringRef entry) {
  SmallVector<LaunchGroup> groups;
  llvm::DenseMap<Attribute, size_t> known;
  for (Operation *op : computationsOf(module, entry)) {
    size_t at = groups.size();
    if (Attribute number = op->getAttr(launchGroupAttr))
      at = known.try_emplace(number, at).first->second;
    if (at == groups.size())
      groups.emplace_back();
    groups[at].push_back(op);
  }
  return groups;
}

LogicalResult refuseComputation(Operation *op) {
  return ir::emitUnsupported(op)
         << "has no form as a kernel: it needs buffers of static shapes, at "
            "most three loops, and no results";
}

} // namespace mgpu::conversion
