// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/PointForm.h"

#include "dialect/conversion/FewVectors.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mgpu::conversion {

using namespace mlir;

static bool isNarrowFloat(Type type) { return type.isF16() || type.isBF16(); }

/// How many leading dimensions are of batches; none for other operations than
/// linalg's matmul and batch_matmul.
static std::optional<unsigned> batchesOf(Operation *op) {
  if (isa<linalg::MatmulOp>(op))
    return 0;
  return isa<linalg::BatchMatmulOp>(op) ? std::optional(1u) : std::nullopt;
}

/// Whether its operands are picked by the dimensions m and k, by k and n (or by
/// n and k, if `isTurned`), and by m and n, after those of batches.
/// MatmulOp::hasUserDefinedMaps() makes maps each time.
static bool picksMatrices(linalg::LinalgOp op, unsigned batches,
                          bool isTurned) {
  const unsigned m = batches, n = batches + 1, k = batches + 2;
  const std::pair<unsigned, unsigned> picked[] = {
      {m, k}, isTurned ? std::pair(n, k) : std::pair(k, n), {m, n}};
  for (auto [map, dims] : llvm::zip(op.getIndexingMapsArray(), picked)) {
    if (map.getNumResults() != batches + 2)
      return false;
    for (auto [at, each] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(each);
      const unsigned wanted = at < batches    ? unsigned(at)
                              : at == batches ? dims.first
                                              : dims.second;
      if (!dim || dim.getPosition() != wanted)
        return false;
    }
  }
  return true;
}

bool hasTurnedMatrix(linalg::LinalgOp op) {
  const auto batches = batchesOf(op);
  if (!batches || !picksMatrices(op, *batches, /*isTurned=*/true))
    return false;
  const Type factor = getElementTypeOrSelf(op.getDpsInputOperand(0)->get());
  return isa<FloatType>(factor) && hasPointForm(op) &&
         op.getStaticLoopRanges()[*batches] > mostVectorsOf(factor);
}

bool isPlainMatmul(linalg::LinalgOp op) {
  const auto batches = batchesOf(op);
  return batches && (picksMatrices(op, *batches, /*isTurned=*/false) ||
                     hasTurnedMatrix(op));
}

/// The shape that a fill fills; nothing for other operations. A fill makes its
/// indexing maps anew each time it is asked for them.
static std::optional<ArrayRef<int64_t>> filledShape(Operation *op) {
  auto fill = dyn_cast<linalg::FillOp>(op);
  return fill ? std::optional(
                    cast<ShapedType>(fill.output().getType()).getShape())
              : std::nullopt;
}

SmallVector<int64_t> loopRangesOf(linalg::LinalgOp op) {
  if (auto shape = filledShape(op))
    return llvm::to_vector(*shape);
  if (op.hasDynamicShape())
    return op.getStaticLoopRanges();
  SmallVector<int64_t> ranges(op.getNumLoops(), ShapedType::kDynamic);
  for (auto [map, operand] :
       llvm::zip(op.getIndexingMapsArray(), op->getOperands()))
    for (auto [k, each] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(each))
        ranges[loop.getPosition()] =
            cast<ShapedType>(operand.getType()).getDimSize(k);
  return ShapedType::isDynamicShape(ranges) ? op.getStaticLoopRanges() : ranges;
}

bool hasPointForm(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || op->getNumResults() != 0 ||
      ShapedType::isDynamicShape(loopRangesOf(op)))
    return false;
  if (filledShape(op))
    return true;
  const SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  if (llvm::all_of(kinds, linalg::isParallelIterator))
    return true;
  // An output that a reduction dimension picks has no one owner.
  for (OpOperand &init : op.getDpsInitsMutable())
    for (AffineExpr each : op.getMatchingIndexingMap(&init).getResults())
      for (auto [k, kind] : llvm::enumerate(kinds))
        if (kind != utils::IteratorType::parallel && each.isFunctionOfDim(k))
          return false;
  return true;
}

/// How long its parallel dimensions are, in order.
static SmallVector<int64_t> parallelExtents(linalg::LinalgOp op) {
  if (auto shape = filledShape(op))
    return llvm::to_vector(*shape);
  SmallVector<int64_t> parallel;
  for (auto [extent, kind] :
       llvm::zip(loopRangesOf(op), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::parallel)
      parallel.push_back(extent);
  return parallel;
}

bool isNarrowMatmul(linalg::LinalgOp op) {
  Type element = getElementTypeOrSelf(op.getDpsInputOperand(0)->get());
  return isPlainMatmul(op) && isNarrowFloat(element);
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
  const IntegerAttr zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  for (int64_t extent : parallelExtents(cast<linalg::LinalgOp>(op)))
    ranges.push_back({zero, b.getIndexAttr(extent), one});
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
  const unsigned numInputs = unsigned(op.getNumDpsInputs());
  for (auto [number, operand, map] :
       llvm::enumerate(op->getOperands(), op.getIndexingMapsArray())) {
    if (!isa<MemRefType>(operand.getType()))
      continue;
    SmallVector<unsigned> axes;
    bool isPoint = true;
    for (AffineExpr each : map.getResults()) {
      auto dimension = dyn_cast<AffineDimExpr>(each);
      isPoint &= dimension && axisOf[dimension.getPosition()] >= 0;
      if (isPoint)
        axes.push_back(unsigned(axisOf[dimension.getPosition()]));
    }
    PointAccess access{operand, number >= numInputs, std::nullopt};
    if (isPoint && isOwn(form.ranges, axes))
      access.axes = std::move(axes);
    form.accesses.push_back(std::move(access));
  }
  for (Value memref : memrefsReadInBody(op))
    form.accesses.push_back({memref, false, std::nullopt});
}

/// False where its body touches memory in another way than by loads and stores.
bool addAccesses(scf::ParallelOp loop, PointForm &form) {
  auto isOutside = [&](Value value) {
    return !loop->isAncestor(value.getParentBlock()->getParentOp());
  };
  auto indexed = [&](Value memref, ValueRange indices, bool isWritten) {
    if (!isOutside(ir::rootOf(memref)))
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
      access.memref = ir::rootOf(memref);
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
                ir::rootOf(one.memref) != ir::rootOf(other.memref) ||
                one.memref == other.memref;
  return isSeen;
}

} // namespace

SmallVector<Value> memrefsReadInBody(linalg::LinalgOp op) {
  SmallVector<Value> found;
  op->walk([&](Operation *inner) {
    if (inner == op)
      return;
    for (Value value : inner->getOperands())
      if (isa<MemRefType>(value.getType()) && !llvm::is_contained(found, value))
        found.push_back(value);
  });
  return found;
}

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
  SmallVector<Value> memrefs;
  for (const PointAccess &access : form.accesses)
    memrefs.push_back(access.memref);
  form.device = ir::visibleDevice(memrefs);
  return form;
}

namespace {

bool isProduct(Operation *op) {
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && isPlainMatmul(structured);
}

std::string nameOfBuffer(Value memref) {
  return "'" + ir::nameOf(ir::rootOf(memref).getLoc(), "a buffer") + "'";
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
      if (ir::rootOf(mine.memref) != ir::rootOf(theirs.memref) ||
          (!mine.isWritten && !theirs.isWritten) ||
          ir::areApart(mine.memref, theirs.memref))
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

/// Whether `op` begins sums with 0 and does nothing else: a library that
/// multiplies can do so, too.
bool isZeroFill(Operation *op, Value sums) {
  auto fill = dyn_cast<linalg::FillOp>(op);
  return fill && fill.output() == sums &&
         matchPattern(fill.value(), m_PosZeroFloat());
}

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
  if (isProduct(next) && run.operations.size() == 1 &&
      isZeroFill(run.operations[0],
                 cast<linalg::LinalgOp>(next).getDpsInitOperand(0)->get()))
    return "";
  if (products == FuseProducts::None)
    return "the matrix product is left to cuBLASLt, whose own epilogue would "
           "not round its sums first";
  if (products == FuseProducts::Wide &&
      isNarrowMatmul(cast<linalg::LinalgOp>(product)))
    return "GPUs leave matrix products of f16 and bf16 to cuBLASLt, whose own "
           "epilogue would not round their sums first; --variant mma fuses "
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

LaunchGroup fusibleFrom(Operation *first, FuseProducts products,
                        std::string &why, size_t most) {
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
    if (run.operations.size() == most) {
      why = "its launch has as many operations as one may have";
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

LogicalResult checkPointGroup(const LaunchGroup &group) {
  std::string why;
  if (group.size() == 1)
    return success();
  LaunchGroup run = fusibleFrom(group.front(), FuseProducts::All, why,
                                std::min(group.size(), mostInLaunch));
  for (size_t k = 0; k < group.size(); ++k)
    if (k == run.size() || run[k] != group[k])
      return group[k]->emitOpError("cannot be in launch group ")
             << group[k]->getAttr(launchGroupAttr) << (why.empty() ? "" : ": ")
             << why;
  return success();
}

} // namespace mgpu::conversion
