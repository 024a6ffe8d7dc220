// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "facts/Uniformity.h"

#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace mgpu::facts {

bool isExchangeWithinBlocks(Operation *op) {
  return isa<gpu::BarrierOp, gpu::AllReduceOp, gpu::SubgroupReduceOp,
             gpu::SubgroupBroadcastOp, gpu::ShuffleOp, gpu::RotateOp,
             gpu::WarpExecuteOnLane0Op>(op);
}

bool isConvergent(Operation *op) {
  return isExchangeWithinBlocks(op) ||
         isa<gpu::SubgroupMmaLoadMatrixOp, gpu::SubgroupMmaStoreMatrixOp,
             gpu::SubgroupMmaComputeOp, nvgpu::LdMatrixOp>(op);
}

Operation *findConvergent(Operation *op) {
  Operation *found = nullptr;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    if (!isConvergent(inner))
      return WalkResult::advance();
    found = inner;
    return WalkResult::interrupt();
  });
  return found;
}

bool isPrivateAlloca(Operation *op) {
  return isa<memref::AllocaOp>(op) && !ir::hasMark(op, ir::Mark::Workgroup);
}

/// Whether all that is written to a memref is stored by memref.store.
static bool isOnlyStoredTo(Value memref) {
  return llvm::all_of(memref.getUses(), [](OpOperand &use) {
    Operation *op = use.getOwner();
    if (auto store = dyn_cast<memref::StoreOp>(op))
      return store.getMemRef() == use.get() && store.getValue() != use.get();
    if (isa<ViewLikeOpInterface>(op))
      return op->getNumResults() == 1 && isOnlyStoredTo(op->getResult(0));
    return hasSingleEffect<MemoryEffects::Read>(op) && op->getNumRegions() == 0;
  });
}

bool isReductionOfNeighbours(Operation *op) {
  if (auto reduce = dyn_cast<gpu::SubgroupReduceOp>(op))
    return !reduce.getClusterSize() && reduce.getClusterStride() == 1 &&
           !isa<VectorType>(reduce.getType());
  return isa<gpu::AllReduceOp>(op);
}

/// Whether one execution of `op` from uniform operands serves all.
static bool mayRunOnce(Operation *op, Among among) {
  if (op->getNumRegions() != 0 || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  if (among == Among::Neighbours)
    return isMemoryEffectFree(op) || isa<memref::LoadOp, vector::LoadOp>(op);
  return op->getNumResults() > 0 && !isConvergent(op) && !isPrivateAlloca(op) &&
         (isMemoryEffectFree(op) || isa<memref::LoadOp>(op));
}

Uniformity::Uniformity(Region &kernel) {
  // A function is given its arguments; a launch has its workgroup memory there.
  if (!kernel.empty() && !isa<FunctionOpInterface>(kernel.getParentOp()))
    add(kernel.getArguments(), Facts(blockIds().to_ulong()));
  for (Block &block : llvm::drop_begin(kernel, kernel.empty() ? 0 : 1))
    add(block.getArguments(), Facts().set());
  // Optimistic: everything is uniform until a cause says otherwise. Without
  // loops, causes come before what they say something of.
  bool repeats = false;
  do {
    changed = false;
    for (Operation &top : kernel.getOps())
      top.walk([&](Operation *op, const WalkStage &) {
        visit(op);
        repeats |= isPrivateAlloca(op) ||
                   (op->getNumRegions() > 0 && !isa<scf::IfOp>(op));
      });
  } while (changed && repeats);
}

Uniformity::Facts Uniformity::maskOf(Among among) {
  return among == Among::Neighbours
             ? Facts().set(0).set(apartFromNeighbours)
             : Facts(threadIds().to_ulong()).set(bySubgroup).set(apartInBlock);
}

Uniformity::Facts Uniformity::apartBy(Facts control) {
  return Facts()
      .set(apartFromNeighbours, (control & maskOf(Among::Neighbours)).any())
      .set(apartInBlock, (control & maskOf(Among::Block)).any());
}

Uniformity::Facts Uniformity::join(ValueRange values) const {
  Facts facts;
  for (Value value : values)
    facts |= lookup(value);
  return facts;
}

void Uniformity::add(ValueRange values, Facts facts) {
  if (facts.none())
    return;
  for (Value value : values) {
    Facts &there = known[value];
    changed |= (facts & ~there).any();
    there |= facts;
  }
}

void Uniformity::addEach(ValueRange values, ValueRange from, Facts facts) {
  for (auto [value, source] : llvm::zip_equal(values, from))
    add(value, lookup(source) | facts);
}

bool Uniformity::isUniform(Value value, Among among) const {
  return (lookup(value) & maskOf(among)).none();
}

bool Uniformity::allUniform(ValueRange values, Among among) const {
  return (join(values) & maskOf(among)).none();
}

bool Uniformity::isUniformOp(Operation *op, Among among) const {
  return mayRunOnce(op, among) &&
         llvm::all_of(op->getResults(),
                      [&](Value each) { return isUniform(each, among); }) &&
         allUniform(op->getOperands(), among);
}

bool Uniformity::hasUniformControl(Operation *op, Among among) const {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return allUniform(
        {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}, among);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return isUniform(branch.getCondition(), among);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return among == Among::Block &&
           isUniform(loop.getConditionOp().getCondition(), among);
  return false;
}

Uniformity::Strides Uniformity::stridesOf(Value value, Among among,
                                          function_ref<bool(Operation *)> keeps,
                                          KnownStrides &known) const {
  if (auto at = known.find(value); at != known.end())
    return at->second;
  return known[value] = findStrides(value, among, keeps, known);
}

Uniformity::Strides
Uniformity::findStrides(Value value, Among among,
                        function_ref<bool(Operation *)> keeps,
                        KnownStrides &known) const {
  std::array<int64_t, 3> strides{};
  if (isUniform(value, among))
    return strides;
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    strides[size_t(id.getDimension())] = 1;
  else if (auto id = dyn_cast<gpu::GlobalIdOp>(op))
    strides[size_t(id.getDimension())] = 1;
  else if (!keeps(op))
    return std::nullopt;
  else if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::TruncIOp>(op))
    return stridesOf(op->getOperand(0), among, keeps, known);
  else if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
    const auto a = stridesOf(op->getOperand(0), among, keeps, known);
    APInt factor(64, 1);
    const bool isProduct = isa<arith::MulIOp>(op);
    const auto b = isProduct
                       ? std::array<int64_t, 3>{}
                       : stridesOf(op->getOperand(1), among, keeps, known);
    if (!a || !b ||
        (isProduct &&
         (!matchPattern(op->getOperand(1), m_ConstantInt(&factor)) ||
          factor.getSignificantBits() > 20)))
      return std::nullopt;
    const int64_t sign = isa<arith::SubIOp>(op) ? -1 : 1;
    for (size_t k = 0; k < 3; ++k)
      strides[k] = (*a)[k] * factor.getSExtValue() + sign * (*b)[k];
  } else {
    return std::nullopt;
  }
  // Small ones keep the distance between two threads below 2^30.
  if (llvm::any_of(strides, [](int64_t stride) {
        return std::abs(stride) >= int64_t(1) << 18;
      }))
    return std::nullopt;
  return strides;
}

/// Facts of the results of an operation without regions.
Uniformity::Facts Uniformity::factsOf(Operation *op) const {
  const Facts fromAll = join(op->getOperands()), block(blockIds().to_ulong()),
              all(0x3f);
  auto idOf = [](auto id) { return size_t(id.getDimension()); };
  Facts facts = fromAll;
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    return Facts().set(idOf(id));
  if (auto id = dyn_cast<gpu::BlockIdOp>(op))
    return Facts().set(3 + idOf(id));
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op))
    return Facts().set(idOf(id)).set(3 + idOf(id));
  if (isa<gpu::LaneIdOp, gpu::SubgroupIdOp>(op))
    return Facts(threadIds().to_ulong());
  if (isa<gpu::ClusterIdOp, gpu::ClusterBlockIdOp, gpu::DynamicSharedMemoryOp>(
          op))
    return block;
  if (auto alloca = dyn_cast<memref::AllocaOp>(op))
    facts =
        !isPrivateAlloca(op) || gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
                                    alloca.getType())
            ? block
        : isOnlyStoredTo(alloca) ? Facts() // visitStore() says what it holds
                                 : all;
  else if (isReductionOfNeighbours(op) || isa<gpu::SubgroupBroadcastOp>(op))
    facts = (fromAll & block)
                .set(bySubgroup, (fromAll & maskOf(Among::Block)).any())
                .set(ofLanes,
                     isa<gpu::SubgroupReduceOp>(op) || fromAll.test(ofLanes));
  else if (!isMemoryEffectFree(op) && !isConvergent(op) &&
           !hasSingleEffect<MemoryEffects::Read>(op))
    facts = all; // an atomic operation, or a call
  facts.set(apartFromNeighbours, facts.test(apartFromNeighbours) ||
                                     (!mayRunOnce(op, Among::Neighbours) &&
                                      !isReductionOfNeighbours(op)));
  facts.set(apartInBlock,
            facts.test(apartInBlock) ||
                (!mayRunOnce(op, Among::Block) &&
                 (!isa<memref::AllocaOp>(op) || isPrivateAlloca(op))));
  return facts;
}

void Uniformity::visitControl(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    const Facts from = join({loop.getLowerBound(), loop.getStep()}),
                control = from | lookup(loop.getUpperBound());
    add(loop.getInductionVar(), from | apartBy(control));
    const Facts carried = control | apartBy(control);
    addEach(loop.getRegionIterArgs(), loop.getInitArgs(), carried);
    addEach(loop.getRegionIterArgs(), loop.getYieldedValues());
    addEach(loop.getResults(), loop.getRegionIterArgs());
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (branch.getNumResults() == 0)
      return;
    const Facts control = lookup(branch.getCondition());
    addEach(branch.getResults(), branch.thenYield().getOperands(), control);
    addEach(branch.getResults(), branch.elseYield().getOperands());
  } else {
    auto loop = cast<scf::WhileOp>(op);
    auto condition = loop.getConditionOp();
    const Facts control = lookup(condition.getCondition()),
                carried = apartBy(control).set(apartFromNeighbours);
    addEach(loop.getBeforeArguments(), loop.getInits(), carried);
    addEach(loop.getBeforeArguments(), loop.getYieldOp().getOperands());
    addEach(loop.getAfterArguments(), condition.getArgs(), carried);
    addEach(loop.getResults(), condition.getArgs(), carried | control);
  }
}

/// Memory that a thread has for itself follows from all that is stored there,
/// by where and by the control that chooses it.
void Uniformity::visitStore(memref::StoreOp op) {
  const Value root = ir::rootOf(op.getMemRef());
  Operation *alloca = root.getDefiningOp();
  if (!alloca || !isPrivateAlloca(alloca))
    return;
  Facts facts = lookup(op.getValue()) | join(op.getIndices());
  for (Operation *outer = op->getParentOp();
       outer != alloca->getParentOp() &&
       isa<scf::SCFDialect>(outer->getDialect());
       outer = outer->getParentOp()) {
    facts |= join(outer->getOperands());
    if (auto loop = dyn_cast<scf::WhileOp>(outer))
      facts |= lookup(loop.getConditionOp().getCondition());
  }
  add(root, facts);
}

void Uniformity::visit(Operation *op) {
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return visitStore(store);
  if (op->hasTrait<OpTrait::IsTerminator>())
    return;
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
    return visitControl(op);
  if (op->getNumRegions() == 0)
    return add(op->getResults(), factsOf(op));
  Facts facts = join(op->getOperands());
  if (isa<gpu::AllReduceOp>(op)) {
    // The result is the block's; its body combines two values at a time, for
    // all neighbours in one.
    facts &= Facts(blockIds().to_ulong());
    add(op->getResults(), facts);
    facts.set(apartInBlock);
  } else {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (block.mightHaveTerminator())
          facts |= join(block.getTerminator()->getOperands());
    if (isa<memref::GenericAtomicRMWOp, gpu::WarpExecuteOnLane0Op>(op))
      facts.set();
    add(op->getResults(), facts.set(apartFromNeighbours).set(apartInBlock));
  }
  for (Region &region : op->getRegions())
    for (Block &block : region)
      add(block.getArguments(), facts);
}

} // namespace mgpu::facts
