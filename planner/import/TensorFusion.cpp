// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/TensorFusion.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include <optional>

namespace mgpu::planner {

using namespace mlir;

Value rootOf(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

bool isPlainMatmul(linalg::LinalgOp op) {
  if (auto matmul = dyn_cast<linalg::MatmulOp>(op.getOperation()))
    return !matmul.hasUserDefinedMaps();
  if (auto matmul = dyn_cast<linalg::BatchMatmulOp>(op.getOperation()))
    return !matmul.hasUserDefinedMaps();
  return false;
}

bool hasPointForm(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op->getNumResults() != 0 ||
      ShapedType::isDynamicShape(op.getStaticLoopRanges()))
    return false;
  // An output that a reduction dimension picks has no one owner.
  for (OpOperand &init : op.getDpsInitsMutable())
    for (AffineExpr each : op.getMatchingIndexingMap(&init).getResults())
      for (auto [k, kind] : llvm::enumerate(op.getIteratorTypesArray()))
        if (kind != utils::IteratorType::parallel && each.isFunctionOfDim(k))
          return false;
  return true;
}

SmallVector<int64_t> parallelExtents(linalg::LinalgOp op) {
  SmallVector<int64_t> parallel;
  for (auto [extent, kind] :
       llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel)
      parallel.push_back(extent);
  return parallel;
}

namespace {

/// The axes of its thread's point that index `operand`, if they are all that
/// does and no other thread touches the same element.
std::optional<SmallVector<unsigned>> ownPoint(linalg::LinalgOp op,
                                              OpOperand &operand) {
  SmallVector<int64_t> extents = parallelExtents(op);
  SmallVector<int> axisOf; // -1 of a reduction dimension
  int numAxes = 0;
  for (utils::IteratorType kind : op.getIteratorTypesArray())
    axisOf.push_back(kind == utils::IteratorType::parallel ? numAxes++ : -1);
  SmallVector<unsigned> axes;
  for (AffineExpr each : op.getMatchingIndexingMap(&operand).getResults()) {
    auto dimension = dyn_cast<AffineDimExpr>(each);
    if (!dimension || axisOf[dimension.getPosition()] < 0)
      return std::nullopt;
    axes.push_back(unsigned(axisOf[dimension.getPosition()]));
  }
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (extent > 1 && !llvm::is_contained(axes, unsigned(axis)))
      return std::nullopt;
  return axes;
}

/// The device handle of the allocation that all memrefs of `op` are of; null if
/// one is of no visible allocation, or they are of several devices'.
Value visibleDevice(linalg::LinalgOp op) {
  Value device;
  for (Value operand : op->getOperands()) {
    if (!isa<MemRefType>(operand.getType()))
      continue;
    auto alloc = rootOf(operand).getDefiningOp<ir::AllocOp>();
    if (!alloc || (device && device != alloc.getDevice()))
      return {};
    device = alloc.getDevice();
  }
  return device;
}

/// Whether the threads of `first` may go on with `next`.
bool mayFollow(linalg::LinalgOp first, linalg::LinalgOp next) {
  for (OpOperand &mine : first->getOpOperands())
    for (OpOperand &theirs : next->getOpOperands()) {
      if (!isa<MemRefType>(mine.get().getType()) ||
          !isa<MemRefType>(theirs.get().getType()) ||
          rootOf(mine.get()) != rootOf(theirs.get()) ||
          (!first.isDpsInit(&mine) && !next.isDpsInit(&theirs)))
        continue;
      auto here = ownPoint(first, mine), there = ownPoint(next, theirs);
      if (mine.get() != theirs.get() || !here || here != there)
        return false;
    }
  return true;
}

bool mayBeBetween(Operation *op) {
  return isa<ir::AllocOp>(op) || isMemoryEffectFree(op);
}

} // namespace

SmallVector<linalg::LinalgOp> fusibleFrom(linalg::LinalgOp first) {
  SmallVector<linalg::LinalgOp> run{first};
  Value device = visibleDevice(first);
  SmallVector<int64_t> extents = parallelExtents(first);
  if (!device || isPlainMatmul(first) || llvm::is_contained(extents, 0))
    return run;
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    auto next = dyn_cast<linalg::LinalgOp>(op);
    if (!next) {
      if (!mayBeBetween(op))
        break;
      continue;
    }
    if (!hasPointForm(next) || isPlainMatmul(next) ||
        visibleDevice(next) != device || parallelExtents(next) != extents ||
        !llvm::all_of(
            run, [&](linalg::LinalgOp each) { return mayFollow(each, next); }))
      break;
    run.push_back(next);
  }
  return run;
}

void forwardStores(ir::LaunchOp launch, llvm::SetVector<Value> &forwarded) {
  launch.getBody().walk([&](memref::LoadOp load) {
    for (Operation *op = load->getPrevNode(); op; op = op->getPrevNode()) {
      if (op->getNumRegions() != 0)
        return; // a loop may have stored
      auto store = dyn_cast<memref::StoreOp>(op);
      if (!store || store.getMemRef() != load.getMemRef())
        continue;
      if (store.getIndices() == load.getIndices()) {
        forwarded.insert(load.getMemRef());
        load.replaceAllUsesWith(store.getValueToStore());
        load.erase();
      }
      return;
    }
  });
}

void dropUnreadBuffers(const llvm::SetVector<Value> &forwarded) {
  for (Value buffer : forwarded) {
    auto alloc = buffer.getDefiningOp<ir::AllocOp>();
    auto isWrittenOnly = [&](OpOperand &use) {
      auto store = dyn_cast<memref::StoreOp>(use.getOwner());
      return isa<ir::FreeOp>(use.getOwner()) ||
             (store && store->getParentOfType<ir::LaunchOp>() &&
              &store.getMemrefMutable() == &use);
    };
    if (!alloc || !llvm::all_of(buffer.getUses(), isWrittenOnly))
      continue;
    for (Operation *user : llvm::make_early_inc_range(buffer.getUsers()))
      user->erase();
    alloc.erase();
  }
}

} // namespace mgpu::planner
