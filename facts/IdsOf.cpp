// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "facts/IdsOf.h"

#include "dialect/mgpu/Instructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace mgpu::facts {

using namespace mlir;

namespace {

class Follower {
public:
  explicit Follower(const llvm::DenseMap<Value, Ids> &known) : known(known) {}
  /// With `shared`, the ids that what a block's threads agree on follows from.
  Ids follow(Value value, bool shared = false) {
    const auto at = known.find(value);
    const Ids ids = at == known.end() ? followOnce(value, shared) : at->second;
    return shared ? ids & blockIds() : ids;
  }

private:
  /// A value is come by twice: what threads agree on says nothing of how else
  /// it is used.
  Ids followOnce(Value value, bool shared) {
    if (!seen.insert({value, unsigned(shared)}).second)
      return {};
    Operation *op = value.getDefiningOp();
    if (!op) {
      auto argument = cast<BlockArgument>(value);
      auto loop =
          dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
      return loop ? ofLoop(loop, argument, shared) : Ids();
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
      return ofOperands(op, /*shared=*/true);
    Ids ids = ofOperands(op, shared);
    // The results of a branch or a loop follow from what it yields, too.
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (block.mightHaveTerminator())
          ids |= ofOperands(block.getTerminator(), shared);
    return ids;
  }

  Ids ofOperands(ValueRange values, bool shared) {
    Ids ids;
    for (Value value : values)
      ids |= follow(value, shared);
    return ids;
  }
  Ids ofOperands(Operation *op, bool shared) {
    return ofOperands(op->getOperands(), shared);
  }

  Ids ofLoop(scf::ForOp loop, BlockArgument argument, bool shared) {
    if (argument == loop.getInductionVar())
      return ofOperands({loop.getLowerBound(), loop.getStep()}, shared);
    const unsigned k = argument.getArgNumber() - 1;
    return ofOperands({loop.getLowerBound(), loop.getStep(),
                       loop.getUpperBound(), loop.getInitArgs()[k],
                       loop.getYieldedValues()[k]},
                      shared);
  }

  const llvm::DenseMap<Value, Ids> &known;
  llvm::DenseSet<std::pair<Value, unsigned>> seen;
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

Ids idsOf(Value value) { return IdsOfMany().of(value); }

Ids IdsOfMany::of(Value value) {
  // Not all is known of a loop's values that were met on the way.
  const Ids ids = Follower(known).follow(value);
  known.try_emplace(value, ids);
  return ids;
}

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

} // namespace mgpu::facts
