// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/PerDevice.h"

#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

/// The sets only grow, so this ends: after one round more than loops are deep.
PerDevice::PerDevice(func::FuncOp function) {
  do {
    isChanged = false;
    function.walk([&](Operation *op) { visit(op); });
  } while (isChanged);
}

void PerDevice::flow(ValueRange from, ValueRange to) {
  for (auto [source, target] : llvm::zip(from, to))
    if (contains(source))
      add(target);
}

bool PerDevice::takesAlike(Operation *op) const {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](scf::ForOp loop) {
        return !contains(loop.getLowerBound()) &&
               !contains(loop.getUpperBound()) && !contains(loop.getStep());
      })
      .Case([&](scf::IfOp branch) { return !contains(branch.getCondition()); })
      .Case([&](scf::WhileOp loop) {
        return !contains(loop.getConditionOp().getCondition());
      })
      .Default(false);
}

void PerDevice::visit(Operation *op) {
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      if (isa<BaseMemRefType>(argument.getType()) && !isa<func::FuncOp>(op))
        add(argument);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](scf::ForOp loop) {
        flow(loop.getInitArgs(), loop.getRegionIterArgs());
        flow(loop.getYieldedValues(), loop.getRegionIterArgs());
        flow(loop.getRegionIterArgs(), loop.getResults());
      })
      .Case([&](scf::IfOp branch) {
        flow(branch.thenYield().getOperands(), branch.getResults());
        if (branch.elseBlock())
          flow(branch.elseYield().getOperands(), branch.getResults());
      })
      .Case([&](scf::WhileOp loop) {
        flow(loop.getInits(), loop.getBeforeArguments());
        flow(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
        flow(loop.getConditionOp().getArgs(), loop.getAfterArguments());
        flow(loop.getAfterArguments(), loop.getResults());
      });
  for (Value result : op->getResults())
    if (isa<BaseMemRefType>(result.getType()) || !givesAlike(op))
      add(result);
}

/// Whether nothing that `op` reads differs, in its bodies neither; loops and
/// branches that are taken alike give what flow() says.
bool PerDevice::givesAlike(Operation *op) const {
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
    return takesAlike(op);
  auto differs = [&](Value value) { return contains(value); };
  return !op->walk([&](Operation *inner) {
              return isa<spmd::DeviceIndexOp>(inner) ||
                             llvm::any_of(inner->getOperands(), differs)
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            }).wasInterrupted();
}

} // namespace mgpu::conversion
