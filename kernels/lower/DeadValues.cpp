// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/Normalise.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// Which values some effect depends on, where control flow hands values on that
/// nothing does.
class Liveness {
public:
  explicit Liveness(ModuleOp module) {
    module.walk([&](Operation *op) { addRoots(op); });
    while (!open.empty())
      follow(open.pop_back_val());
  }
  bool isLive(Value value) const { return live.contains(value); }

private:
  void mark(Value value) {
    if (live.insert(value).second)
      open.push_back(value);
  }
  void markAll(ValueRange values) {
    for (Value value : values)
      mark(value);
  }
  void addRoots(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      markAll({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      mark(branch.getCondition());
    else if (auto branch = dyn_cast<scf::IndexSwitchOp>(op))
      mark(branch.getArg());
    else if (auto condition = dyn_cast<scf::ConditionOp>(op))
      mark(condition.getCondition());
    else if (!isa<scf::WhileOp, scf::ExecuteRegionOp, scf::YieldOp>(op) &&
             (op->getNumRegions() != 0 || !isMemoryEffectFree(op) ||
              op->hasTrait<OpTrait::IsTerminator>()))
      markAll(op->getOperands());
  }
  void follow(Value value);
  void followCarried(LoopLikeOpInterface loop, size_t k) {
    mark(loop.getInits()[k]);
    mark(loop.getRegionIterArgs()[k]);
    mark(loop.getYieldedValues()[k]);
  }

  llvm::DenseSet<Value> live;
  SmallVector<Value> open;
};

void Liveness::follow(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *op = argument.getOwner()->getParentOp();
    const size_t k = argument.getArgNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (k > 0) // after the induction variable
        followCarried(loop, k - 1);
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      if (argument.getOwner() == loop.getBeforeBody()) {
        mark(loop.getInits()[k]);
        mark(loop.getYieldOp().getOperand(unsigned(k)));
      } else {
        mark(loop.getConditionOp().getArgs()[k]);
      }
    } else if (!argument.getOwner()->isEntryBlock()) {
      for (Block *before : argument.getOwner()->getPredecessors())
        markAll(before->getTerminator()->getOperands());
    }
    return;
  }
  Operation *op = value.getDefiningOp();
  const size_t k = cast<OpResult>(value).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return followCarried(loop, k);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return mark(loop.getConditionOp().getArgs()[k]);
  if (isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op)) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (auto yield = dyn_cast<scf::YieldOp>(block.getTerminator()))
          mark(yield.getOperand(unsigned(k)));
    return;
  }
  markAll(op->getOperands());
}

/// Hands on poison instead of what nobody looks at, for it to be dead.
void dropDeadOperands(Operation *op, const Liveness &liveness) {
  auto drop = [&](OpOperand &operand, bool isNeeded) {
    if (isNeeded || operand.get().getDefiningOp<ub::PoisonOp>())
      return;
    OpBuilder b(op);
    operand.set(ub::PoisonOp::create(b, op->getLoc(), operand.get().getType()));
  };
  auto all = [&](auto &&operands, ValueRange targets) {
    for (auto [operand, target] : llvm::zip_equal(operands, targets))
      drop(operand, liveness.isLive(target));
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    all(loop.getInitsMutable(), loop.getRegionIterArgs());
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    all(loop.getInitsMutable(), loop.getBeforeArguments());
  } else if (auto condition = dyn_cast<scf::ConditionOp>(op)) {
    auto loop = cast<scf::WhileOp>(op->getParentOp());
    for (auto [operand, after, result] :
         llvm::zip_equal(condition.getArgsMutable(), loop.getAfterArguments(),
                         loop.getResults()))
      drop(operand, liveness.isLive(after) || liveness.isLive(result));
  } else if (auto yield = dyn_cast<scf::YieldOp>(op)) {
    Operation *above = op->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(above))
      all(yield.getResultsMutable(), loop.getRegionIterArgs());
    else if (auto loop = dyn_cast<scf::WhileOp>(above))
      all(yield.getResultsMutable(), loop.getBeforeArguments());
    else
      all(yield.getResultsMutable(), above->getResults());
  }
}

/// Private memory that is only written. (That of a block counts, as it was
/// asked for.)
void eraseUnreadMemory(ModuleOp module) {
  SmallVector<memref::AllocaOp> unread;
  module.walk([&](memref::AllocaOp alloca) {
    if (!gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(alloca.getType()) &&
        llvm::all_of(alloca->getUsers(),
                     llvm::IsaPred<memref::StoreOp, vector::StoreOp>))
      unread.push_back(alloca);
  });
  for (memref::AllocaOp alloca : unread) {
    for (Operation *store : llvm::make_early_inc_range(alloca->getUsers()))
      store->erase();
    alloca->erase();
  }
}

} // namespace

void eraseDeadCode(ModuleOp module) {
  eraseUnreadMemory(module);
  const Liveness liveness(module);
  SmallVector<Operation *> controls;
  module.walk([&](Operation *op) {
    if (isa<scf::SCFDialect>(op->getDialect()))
      controls.push_back(op);
  });
  for (Operation *op : controls)
    dropDeadOperands(op, liveness);
  for (bool changed = true; changed;) {
    changed = false;
    module.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
      if (isOpTriviallyDead(op)) {
        op->erase();
        changed = true;
      }
    });
  }
}

} // namespace mgpu::kernels
