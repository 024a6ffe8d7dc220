// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mgpu/Awaits.h"

#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::ir {

using namespace mlir;

/// An atomic operation that leaves what it reads as it is.
static bool isAtomicRead(Operation *op) {
  auto atomic = dyn_cast<memref::AtomicRMWOp>(op);
  if (!atomic || !matchPattern(atomic.getValue(), m_Zero()))
    return false;
  switch (atomic.getKind()) {
  case arith::AtomicRMWKind::addi:
  case arith::AtomicRMWKind::ori:
  case arith::AtomicRMWKind::xori:
  case arith::AtomicRMWKind::maxu:
    return true;
  default:
    return false;
  }
}

/// A load of memory that other threads may write.
static bool isLoad(Operation *op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  if (!load)
    return false;
  auto own = rootOf(load.getMemref()).getDefiningOp<memref::AllocaOp>();
  return !own || gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(own.getType());
}

static bool onlyReads(scf::WhileOp loop) {
  WalkResult result = loop->walk([](Operation *op) {
    const bool isFine = op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                        op->hasTrait<OpTrait::IsTerminator>() ||
                        isAtomicRead(op) || isa<memref::LoadOp>(op) ||
                        isPure(op);
    return isFine ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

SmallVector<Operation *> awaitedReads(scf::WhileOp loop) {
  if (!onlyReads(loop))
    return {};
  // All that the condition depends on within the loop.
  llvm::SetVector<Operation *> todo;
  bool isOfTrip = false;
  auto reach = [&](Value value) {
    Operation *op = value.getDefiningOp();
    isOfTrip |= !op && loop->isAncestor(value.getParentRegion()->getParentOp());
    if (op && loop->isProperAncestor(op))
      todo.insert(op);
  };
  reach(loop.getConditionOp().getCondition());
  SmallVector<Operation *> loads, reads;
  for (size_t k = 0; k < todo.size(); ++k) {
    if (isAtomicRead(todo[k]))
      reads.push_back(todo[k]);
    if (isLoad(todo[k]))
      loads.push_back(todo[k]);
    todo[k]->walk(
        [&](Operation *inner) { llvm::for_each(inner->getOperands(), reach); });
  }
  if (!isOfTrip)
    reads.append(loads);
  return reads;
}

bool awaitsOthers(Operation *op) {
  return op
      ->walk([](scf::WhileOp loop) {
        return awaitedReads(loop).empty() ? WalkResult::advance()
                                          : WalkResult::interrupt();
      })
      .wasInterrupted();
}

} // namespace mgpu::ir
