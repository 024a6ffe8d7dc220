// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/TensorFusion.h"

#include "dialect/mgpu/Diagnostics.h"
#include "planner/import/HostValue.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

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

bool isNarrowMatmul(linalg::LinalgOp op) {
  Type element = getElementTypeOrSelf(op.getDpsInputOperand(0)->get());
  return isPlainMatmul(op) && (element.isF16() || element.isBF16());
}

SmallVector<PointRange> rangesOf(Operation *op) {
  SmallVector<PointRange> ranges;
  if (auto loop = dyn_cast<scf::ParallelOp>(op)) {
    for (auto [lower, upper, step] :
         llvm::zip(loop.getLowerBound(), loop.getUpperBound(), loop.getStep()))
      ranges.push_back({getAsOpFoldResult(lower), getAsOpFoldResult(upper),
                        getAsOpFoldResult(step)});
    return ranges;
  }
  Builder b(op->getContext());
  for (int64_t extent : parallelExtents(cast<linalg::LinalgOp>(op)))
    ranges.push_back(
        {b.getIndexAttr(0), b.getIndexAttr(extent), b.getIndexAttr(1)});
  return ranges;
}

std::optional<SmallVector<int64_t>> extentsOf(ArrayRef<PointRange> ranges) {
  SmallVector<int64_t> extents;
  for (const PointRange &range : ranges) {
    auto lower = getConstantIntValue(range.lower),
         upper = getConstantIntValue(range.upper),
         step = getConstantIntValue(range.step);
    if (!lower || !upper || !step || *step < 1)
      return std::nullopt;
    extents.push_back(
        std::max<int64_t>(0, llvm::divideCeilSigned(*upper - *lower, *step)));
  }
  return extents;
}

namespace {

/// What one operation does with a memref. `axes` are the dimensions of its
/// points that index it, where each point has an element of its own and nothing
/// else does; none if not.
struct PointAccess {
  Value memref;
  bool isWritten = false;
  std::optional<SmallVector<unsigned>> axes;
};

struct PointForm {
  SmallVector<PointRange> ranges;
  SmallVector<PointAccess> accesses;
  Value device; ///< of all allocations it touches; null if that is not seen
};

/// Whether points that differ have different elements.
bool isOwn(ArrayRef<PointRange> ranges, ArrayRef<unsigned> axes) {
  auto extents = extentsOf(ranges);
  for (size_t axis = 0; axis < ranges.size(); ++axis)
    if ((!extents || (*extents)[axis] > 1) &&
        !llvm::is_contained(axes, unsigned(axis)))
      return false;
  return true;
}

void addAccesses(linalg::LinalgOp op, PointForm &form) {
  SmallVector<int> axisOf; // -1 of a reduction dimension
  int numAxes = 0;
  for (utils::IteratorType kind : op.getIteratorTypesArray())
    axisOf.push_back(kind == utils::IteratorType::parallel ? numAxes++ : -1);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    SmallVector<unsigned> axes;
    bool isPoint = true;
    for (AffineExpr each : op.getMatchingIndexingMap(&operand).getResults()) {
      auto dimension = dyn_cast<AffineDimExpr>(each);
      isPoint &= dimension && axisOf[dimension.getPosition()] >= 0;
      if (isPoint)
        axes.push_back(unsigned(axisOf[dimension.getPosition()]));
    }
    PointAccess access{operand.get(), op.isDpsInit(&operand), std::nullopt};
    if (isPoint && isOwn(form.ranges, axes))
      access.axes = std::move(axes);
    form.accesses.push_back(std::move(access));
  }
}

/// False where its body touches memory in another way than by loads and stores.
bool addAccesses(scf::ParallelOp loop, PointForm &form) {
  auto isOutside = [&](Value value) {
    return !loop->isAncestor(value.getParentBlock()->getParentOp());
  };
  auto indexed = [&](Value memref, ValueRange indices, bool isWritten) {
    if (!isOutside(rootOf(memref)))
      return; // a thread's own
    PointAccess access{memref, isWritten, std::nullopt};
    SmallVector<unsigned> axes;
    for (Value index : indices)
      for (auto [axis, each] : llvm::enumerate(loop.getInductionVars()))
        if (index == each)
          axes.push_back(unsigned(axis));
    if (isOutside(memref) && axes.size() == indices.size() &&
        isOwn(form.ranges, axes))
      access.axes = std::move(axes);
    if (!isOutside(memref))
      access.memref = rootOf(memref);
    form.accesses.push_back(std::move(access));
  };
  bool isSeen = true;
  loop.getBody()->walk([&](Operation *op) {
    if (auto load = dyn_cast<memref::LoadOp>(op))
      indexed(load.getMemRef(), load.getIndices(), false);
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      indexed(store.getMemRef(), store.getIndices(), true);
    else
      isSeen &= isMemoryEffectFree(op) || isa<memref::AllocaOp>(op) ||
                op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
  });
  // A value that was stored is handed on where no other name of that memory was
  // stored to in between.
  for (const PointAccess &one : form.accesses)
    for (const PointAccess &other : form.accesses)
      isSeen &= !(one.isWritten || other.isWritten) ||
                rootOf(one.memref) != rootOf(other.memref) ||
                one.memref == other.memref;
  return isSeen;
}

bool isProduct(Operation *op) {
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && isPlainMatmul(structured);
}

/// None where it has no threads that could do something else as well.
std::optional<PointForm> pointFormOf(Operation *op) {
  PointForm form;
  if (auto loop = dyn_cast<scf::ParallelOp>(op)) {
    form.ranges = rangesOf(op);
    if (loop->getNumResults() != 0 || loop.getNumLoops() > 3 ||
        !addAccesses(loop, form))
      return std::nullopt;
  } else {
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    if (!structured || !hasPointForm(structured))
      return std::nullopt;
    form.ranges = rangesOf(op);
    addAccesses(structured, form);
  }
  for (const PointAccess &access : form.accesses) {
    Value device = ir::getAllocationDevice(rootOf(access.memref));
    if (!device || (form.device && form.device != device)) {
      form.device = {};
      break;
    }
    form.device = device;
  }
  return form;
}

std::string nameOfBuffer(Value memref) {
  return "'" + nameOf(rootOf(memref).getLoc(), "a buffer") + "'";
}

/// Why the threads of `first` may not go on with `next`, or "".
std::string whyNotAfter(const PointForm &first, const PointForm &next) {
  if (first.ranges != next.ranges)
    return "they have other points";
  if (!first.device || first.device != next.device)
    return "the text does not show that their buffers are of one device and "
           "apart";
  for (const PointAccess &mine : first.accesses)
    for (const PointAccess &theirs : next.accesses) {
      if (rootOf(mine.memref) != rootOf(theirs.memref) ||
          (!mine.isWritten && !theirs.isWritten))
        continue;
      if (mine.memref != theirs.memref || !mine.axes ||
          mine.axes != theirs.axes)
        return "what one writes to " + nameOfBuffer(theirs.memref) +
               " the other touches at other points, or under another view";
    }
  return "";
}

bool touches(const PointForm &form, Value memref) {
  return llvm::any_of(form.accesses, [&](const PointAccess &access) {
    return access.memref == memref;
  });
}

struct PointRun {
  SmallVector<Operation *> operations;
  SmallVector<PointForm> forms;
  Operation *product = nullptr;
};

/// Why a product, or what is around one, is not added to a run; or "".
std::string whyNotProduct(const PointRun &run, Operation *next,
                          const PointForm &form, FuseProducts products) {
  auto isReduction = [](Operation *op) {
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    return structured && structured.getNumReductionLoops() > 0;
  };
  Operation *product = isProduct(next) ? next : run.product;
  if (!product)
    return "";
  if (isProduct(next) && run.product)
    return "a launch has one matrix product";
  if (products == FuseProducts::None)
    return "the matrix product is left to cuBLASLt, whose own epilogue would "
           "not round its sums first";
  if (products == FuseProducts::Wide &&
      isNarrowMatmul(cast<linalg::LinalgOp>(product)))
    return "cards leave matrix products of f16 and bf16 to cuBLASLt, whose own "
           "epilogue would not round their sums first; --tensor-cores fuses "
           "them";
  if (isProduct(next)) {
    if (llvm::any_of(run.operations, isReduction))
      return "what is before the matrix product has a reduction of its own";
    Value sums = cast<linalg::LinalgOp>(next).getDpsInitOperand(0)->get();
    return llvm::any_of(
               run.forms,
               [&](const PointForm &each) { return touches(each, sums); })
               ? ""
               : "the matrix product's sums do not begin there";
  }
  if (isReduction(next))
    return "what follows the matrix product has a reduction of its own";
  bool isFed = llvm::any_of(run.forms, [&](const PointForm &each) {
    return llvm::any_of(each.accesses, [&](const PointAccess &access) {
      return access.isWritten && touches(form, access.memref);
    });
  });
  return isFed ? "" : "it has nothing to do with the matrix product before it";
}

} // namespace

bool mayBeBetween(Operation *op) {
  return isa<ir::AllocOp, ir::ShardedAllocOp>(op) || isMemoryEffectFree(op);
}

SmallVector<Operation *> fusibleFrom(Operation *first, FuseProducts products,
                                     std::string &why) {
  PointRun run;
  run.operations.push_back(first);
  auto form = pointFormOf(first);
  if (!form) {
    why = "its threads do more than load and store";
    return run.operations;
  }
  auto extents = extentsOf(form->ranges);
  if (extents && llvm::is_contained(*extents, 0)) {
    why = "it has no points";
    return run.operations;
  }
  if (isProduct(first))
    run.product = first;
  run.forms.push_back(std::move(*form));
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    if (!isa<linalg::LinalgOp, linalg::SoftmaxOp, scf::ParallelOp>(op)) {
      if (mayBeBetween(op))
        continue;
      why = op->getName().getStringRef().str() + " at " +
            ir::describeLocation(op->getLoc()) + " is between them";
      break;
    }
    form = pointFormOf(op);
    why = form ? ""
               : "it has no thread for each point that only loads and "
                 "stores";
    for (size_t k = 0; why.empty() && k < run.forms.size(); ++k)
      why = whyNotAfter(run.forms[k], *form);
    if (why.empty())
      why = whyNotProduct(run, op, *form, products);
    if (!why.empty())
      break;
    if (isProduct(op))
      run.product = op;
    run.operations.push_back(op);
    run.forms.push_back(std::move(*form));
  }
  return run.operations;
}

/// Whether what `store` leaves is overwritten, in the same block, before
/// anything reads it.
static bool isOverwritten(memref::StoreOp store) {
  Value memref = store.getMemRef();
  for (Operation *op = store->getNextNode(); op; op = op->getNextNode()) {
    auto next = dyn_cast<memref::StoreOp>(op);
    if (next && next.getMemRef() == memref &&
        next.getIndices() == store.getIndices())
      return true;
    auto uses = [&](Operation *inner) {
      auto other = dyn_cast<memref::StoreOp>(inner);
      return (!other || other.getMemRef() != memref) &&
                     llvm::is_contained(inner->getOperands(), memref)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    };
    if (op->walk(uses).wasInterrupted() || isa<gpu::BarrierOp>(op))
      return false;
  }
  return false;
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
  launch.getBody().walk([](memref::StoreOp store) {
    if (isOverwritten(store))
      store.erase();
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
