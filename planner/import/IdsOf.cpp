// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/IdsOf.h"

#include "dialect/mgpu/Instructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

class Follower {
public:
  Ids follow(Value value) {
    if (!seen.insert(value).second)
      return {};
    Operation *op = value.getDefiningOp();
    if (!op) {
      auto argument = cast<BlockArgument>(value);
      auto loop =
          dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
      return loop ? ofLoop(loop, argument) : Ids();
    }
    if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
      return Ids().set(size_t(id.getDimension()));
    if (isa<gpu::LaneIdOp, gpu::SubgroupIdOp>(op))
      return threadIds();
    if (auto id = dyn_cast<gpu::BlockIdOp>(op))
      return Ids().set(3 + size_t(id.getDimension()));
    if (auto id = dyn_cast<gpu::GlobalIdOp>(op))
      return Ids()
          .set(size_t(id.getDimension()))
          .set(3 + size_t(id.getDimension()));
    if (isa<gpu::AllReduceOp, gpu::SubgroupReduceOp, gpu::SubgroupBroadcastOp>(
            op))
      return ofOperands(op) & blockIds();
    Ids ids = ofOperands(op);
    // What a branch or a loop gives follows from what it yields, too.
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (block.mightHaveTerminator())
          ids |= ofOperands(block.getTerminator());
    return ids;
  }

private:
  Ids ofOperands(Operation *op) {
    Ids ids;
    for (Value operand : op->getOperands())
      ids |= follow(operand);
    return ids;
  }

  Ids ofLoop(scf::ForOp loop, BlockArgument argument) {
    Ids ids = follow(loop.getLowerBound()) | follow(loop.getStep());
    if (argument == loop.getInductionVar())
      return ids;
    const unsigned k = argument.getArgNumber() - 1;
    return ids | follow(loop.getUpperBound()) | follow(loop.getInitArgs()[k]) |
           follow(loop.getYieldedValues()[k]);
  }

  llvm::DenseSet<Value> seen;
};

/// Whether a walk of the region comes to an operation for which it holds.
bool hasAny(Region &body, llvm::function_ref<bool(Operation *)> holds) {
  return body
      .walk([&](Operation *op) {
        return holds(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

Ids idsOf(Value value) { return Follower().follow(value); }

bool areEqualConstants(Value a, Value b) {
  Attribute left, right;
  return matchPattern(a, m_Constant(&left)) &&
         matchPattern(b, m_Constant(&right)) && left == right;
}

bool isExchangeWithinBlocks(Operation *op) {
  return isa<gpu::BarrierOp, gpu::AllReduceOp, gpu::SubgroupReduceOp,
             gpu::SubgroupBroadcastOp, gpu::ShuffleOp, gpu::RotateOp,
             gpu::WarpExecuteOnLane0Op>(op);
}

bool mayOrderBlocks(Region &body) {
  const bool mayWait = !body.hasOneBlock() || hasAny(body, [](Operation *op) {
    return isa<scf::WhileOp, scf::ExecuteRegionOp>(op);
  });
  return hasAny(body, [&](Operation *op) {
    if (ir::isInstruction(op))
      return false;
    const StringRef dialect = op->getName().getDialectNamespace();
    return isa<CallOpInterface>(op) || dialect == "nvvm" ||
           dialect == "nvgpu" || dialect == "llvm" ||
           (mayWait &&
            isa<memref::AtomicRMWOp, memref::GenericAtomicRMWOp>(op));
  });
}

} // namespace mgpu::planner
