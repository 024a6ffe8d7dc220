// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/conversion/linalg/PointLaunch.h"
#include "dialect/conversion/linalg/ProductSteps.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTLINALGPOINTSTOMGPU
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

// Builds what a thread of a point launch does for a linalg operation.

namespace {

class StructuredBody {
public:
  StructuredBody(linalg::LinalgOp op, PointLaunch &launch)
      : op(op), launch(launch), extents(loopRangesOf(op)), loc(op->getLoc()),
        point(extents.size()) {}
  void build(bool marksLoop);

private:
  Value load(OpBuilder &b, OpOperand &operand) {
    if (!isa<MemRefType>(operand.get().getType()))
      return operand.get();
    return memref::LoadOp::create(b, loc, operand.get(), indices(b, operand));
  }
  SmallVector<Value> indices(OpBuilder &b, OpOperand &operand) {
    SmallVector<Value> all;
    for (AffineExpr each : op.getMatchingIndexingMap(&operand).getResults())
      all.push_back(
          isa<AffineDimExpr>(each)
              ? point[cast<AffineDimExpr>(each).getPosition()]
              : affine::expandAffineExpr(b, loc, each, point, ValueRange()));
    return all;
  }
  /// The body at `point`, on the outputs' values so far.
  SmallVector<Value> step(OpBuilder &b, ValueRange outputs);
  SmallVector<Value> reduce(OpBuilder &b, ArrayRef<unsigned> dimensions,
                            ValueRange outputs);

  linalg::LinalgOp op;
  PointLaunch &launch;
  SmallVector<int64_t> extents;
  Location loc;
  SmallVector<Value> point; ///< of the whole iteration space
};

SmallVector<Value> StructuredBody::step(OpBuilder &b, ValueRange outputs) {
  markProduct(op);
  IRMapping map;
  Block *body = op.getBlock();
  for (OpOperand *operand : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(operand);
    if (!argument.use_empty())
      map.map(argument, load(b, *operand));
  }
  for (auto [argument, value] : llvm::zip(op.getRegionOutputArgs(), outputs))
    if (value)
      map.map(argument, value);
  for (Operation &each : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(each))
      map.map(index.getResult(), point[index.getDim()]);
    else
      b.clone(each, map);
  }
  SmallVector<Value> results;
  for (Value value : body->getTerminator()->getOperands())
    results.push_back(map.lookupOrDefault(value));
  addByFma(b, results);
  return results;
}

SmallVector<Value> StructuredBody::reduce(OpBuilder &b,
                                          ArrayRef<unsigned> dimensions,
                                          ValueRange outputs) {
  if (dimensions.empty())
    return step(b, outputs);
  return makeLoop(b, loc, extents[dimensions.front()], outputs,
                  [&](OpBuilder &inner, Value counter, ValueRange values) {
                    point[dimensions.front()] = counter;
                    return reduce(inner, dimensions.drop_front(), values);
                  });
}

void StructuredBody::build(bool marksLoop) {
  SmallVector<unsigned> parallel, reductions;
  for (auto [k, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    (kind == utils::IteratorType::parallel ? parallel : reductions)
        .push_back(k);
  for (auto [k, dimension] : llvm::enumerate(parallel))
    point[dimension] = launch.point[k];
  OpBuilder &b = launch.body();
  SmallVector<Value> outputs;
  for (OpOperand &init : op.getDpsInitsMutable())
    outputs.push_back(!reductions.empty() ||
                              op.payloadUsesValueFromOperand(&init)
                          ? load(b, init)
                          : Value());
  SmallVector<Value> results = reduce(b, reductions, outputs);
  if (marksLoop) {
    ir::setMark(results[0].getDefiningOp(), ir::Mark::ProductLoop);
    for (auto [axis, id] :
         llvm::zip(ir::globalMarks, llvm::reverse(launch.point)))
      ir::setMark(id.getDefiningOp(), axis);
  }
  for (auto [init, result] : llvm::zip(op.getDpsInitsMutable(), results))
    memref::StoreOp::create(b, loc, result, init.get(), indices(b, init));
}

} // namespace

/// Adds `op`, which has a point form, to the body of `launch`: the thread's
/// point of the parallel dimensions, and loops over the reduction dimensions.
/// With `marksLoop`, the loop of a matmul among others is marked.
static void buildStructured(linalg::LinalgOp op, PointLaunch &launch,
                            bool marksLoop) {
  StructuredBody(op, launch).build(marksLoop);
}

namespace {

/// A thread for each row: its largest element, the sum of the exponentials of
/// what is below that, in order, and the quotients.
void buildSoftmax(linalg::SoftmaxOp op, PointLaunch &launch) {
  Location loc = op.getLoc();
  auto input = cast<MemRefType>(op.getInput().getType());
  unsigned along = op.getDimension();
  int64_t length = input.getDimSize(along);
  OpBuilder &b = launch.body();
  auto element = cast<FloatType>(input.getElementType());
  SmallVector<Value> at(launch.point);
  at.insert(at.begin() + along, Value());
  auto loadAt = [&](OpBuilder &inner, Value memref, Value counter) -> Value {
    at[along] = counter;
    return memref::LoadOp::create(inner, loc, memref, at);
  };
  auto store = [&](OpBuilder &inner, Value value, Value counter) {
    at[along] = counter;
    memref::StoreOp::create(inner, loc, value, op.getOutput(), at);
  };
  Value lowest = arith::ConstantOp::create(
      b, loc,
      FloatAttr::get(element, APFloat::getInf(element.getFloatSemantics(),
                                              /*Negative=*/true)));
  Value zero = arith::ConstantOp::create(b, loc, FloatAttr::get(element, 0.0));
  Value largest = makeLoop(b, loc, length, lowest,
                           [&](OpBuilder &inner, Value k, ValueRange carried) {
                             Value x = loadAt(inner, op.getInput(), k);
                             return SmallVector<Value>{arith::MaxNumFOp::create(
                                 inner, loc, carried[0], x)};
                           })[0];
  Value sum = makeLoop(
      b, loc, length, zero, [&](OpBuilder &inner, Value k, ValueRange carried) {
        Value x = loadAt(inner, op.getInput(), k);
        Value below = arith::SubFOp::create(inner, loc, x, largest);
        Value power = math::ExpOp::create(inner, loc, below);
        store(inner, power, k);
        return SmallVector<Value>{
            arith::AddFOp::create(inner, loc, carried[0], power)};
      })[0];
  makeLoop(b, loc, length, {}, [&](OpBuilder &inner, Value k, ValueRange) {
    Value power = loadAt(inner, op.getOutput(), k);
    store(inner, arith::DivFOp::create(inner, loc, power, sum), k);
    return SmallVector<Value>();
  });
}

LogicalResult launchSoftmax(linalg::SoftmaxOp op) {
  auto input = dyn_cast<MemRefType>(op.getInput().getType());
  auto output = dyn_cast<MemRefType>(op.getOutput().getType());
  if (!input || !output || !input.hasStaticShape() || !output.hasStaticShape())
    return refuseComputation(op);
  FailureOr<Value> device =
      ir::deviceOfAll(op, ValueRange{op.getInput(), op.getOutput()});
  if (failed(device))
    return failure();
  SmallVector<int64_t> rows(input.getShape());
  rows.erase(rows.begin() + op.getDimension());
  if (input.getNumElements() != 0) {
    PointLaunch launch(op, *device, rows);
    buildSoftmax(op, launch);
  }
  op->erase();
  return success();
}

/// The product that a plain matmul is, for a target with a text of its own;
/// null where that has no such elements or none at all.
ir::ProductAttr productAttrOf(linalg::LinalgOp op) {
  const SmallVector<int64_t> ranges = loopRangesOf(op);
  const size_t batches = ranges.size() - 3;
  constexpr int64_t most = 1 << 30;
  if (llvm::any_of(ranges, [](int64_t r) { return r < 1 || r > most; }) ||
      llvm::any_of(op->getOperands(), [](Value each) {
        return !getElementTypeOrSelf(each).isIntOrIndexOrFloat();
      }))
    return {};
  auto element = [&](unsigned operand) {
    return getElementTypeOrSelf(op->getOperand(operand));
  };
  return ir::ProductAttr::get(
      op->getContext(), ranges[batches], ranges[batches + 1],
      ranges[batches + 2], element(0), element(1), element(2),
      batches ? ranges[0] : 1, hasTurnedMatrix(op), /*overwrites=*/false, {});
}

/// Makes the launch of operations with constant ranges, at least one of which
/// is a linalg operation.
ir::LaunchOp launchPoints(const LaunchGroup &run, Value device) {
  PointLaunch launch(run.back(), device, *extentsOf(rangesOf(run.back())));
  linalg::LinalgOp product;
  for (Operation *each : run) {
    auto op = dyn_cast<linalg::LinalgOp>(each);
    if (!op) {
      auto loop = cast<scf::ParallelOp>(each);
      buildLoopBody(launch.body(), loop,
                    countersOf(launch.body(), loop, launch.point));
      continue;
    }
    if (isPlainMatmul(op))
      product = op;
    buildStructured(op, launch, isPlainMatmul(op) && run.size() > 1);
  }
  if (const auto of = product ? productAttrOf(product) : nullptr) {
    // Around a product among others C need not be there any more.
    launch.launch.getArgsMutable().assign(
        run.size() > 1 ? ValueRange(product.getDpsInputs())
                       : ValueRange(product->getOperands()));
    launch.launch->setAttr(ir::productName, of);
  }
  return launch.launch;
}

LogicalResult convertPoints(const LaunchGroup &group, bool isChecked) {
  Operation *last = group.back();
  if (group.size() == 1) {
    if (auto softmax = dyn_cast<linalg::SoftmaxOp>(last))
      return launchSoftmax(softmax);
    auto op = dyn_cast<linalg::LinalgOp>(last);
    if (!op || !hasPointForm(op))
      return refuseComputation(last);
  } else if (!isChecked && failed(checkPointGroup(group))) {
    return failure();
  }
  SmallVector<Value> memrefs;
  if (isa<scf::ParallelOp>(last))
    memrefs = ir::memrefsOf(last);
  else
    llvm::copy_if(last->getOperands(), std::back_inserter(memrefs),
                  [](Value each) { return isa<MemRefType>(each.getType()); });
  FailureOr<Value> device = ir::deviceOfAll(last, memrefs);
  if (failed(device))
    return failure();
  if (llvm::is_contained(*extentsOf(rangesOf(last)), 0))
    last->erase(); // no points, and alone
  else
    replaceByLaunch(group, launchPoints(group, *device));
  return success();
}

struct ConvertLinalgPointsToMgpu
    : impl::ConvertLinalgPointsToMgpuBase<ConvertLinalgPointsToMgpu> {
  using ConvertLinalgPointsToMgpuBase::ConvertLinalgPointsToMgpuBase;

  void runOnOperation() override {
    bool isChanged = false;
    for (const LaunchGroup &group : launchGroupsOf(getOperation(), entry)) {
      if (llvm::all_of(group, llvm::IsaPred<scf::ParallelOp>))
        continue;
      if (failed(convertPoints(group, !checkGroups)))
        return signalPassFailure();
      isChanged = true;
    }
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
