// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/TensorLaunch.h"

#include "dialect/mgpu/Diagnostics.h"
#include "planner/import/PointLaunch.h"
#include "planner/import/RowLaunch.h"
#include "planner/import/TensorFusion.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

/// A structured operation, whatever its name.
class StructuredLaunch {
public:
  StructuredLaunch(linalg::LinalgOp op, PointLaunch &launch)
      : op(op), launch(launch), extents(op.getStaticLoopRanges()),
        loc(op->getLoc()), point(extents.size()) {}
  /// With `marksLoop`, the loop of a matrix product among others is marked.
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

SmallVector<Value> StructuredLaunch::step(OpBuilder &b, ValueRange outputs) {
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
  return results;
}

SmallVector<Value> StructuredLaunch::reduce(OpBuilder &b,
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

void StructuredLaunch::build(bool marksLoop) {
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
    results[0].getDefiningOp()->setAttr("mgpu.product", b.getUnitAttr());
    for (auto [k, id] : llvm::enumerate(llvm::reverse(launch.point)))
      id.getDefiningOp()->setAttr("mgpu.axis", b.getI64IntegerAttr(int64_t(k)));
  }
  for (auto [init, result] : llvm::zip(op.getDpsInitsMutable(), results))
    memref::StoreOp::create(b, loc, result, init.get(), indices(b, init));
}

/// A thread for each row: its largest element, the sum of the exponentials of
/// what is below that, in order, and the quotients.
LogicalResult launchSoftmax(linalg::SoftmaxOp op) {
  auto input = dyn_cast<MemRefType>(op.getInput().getType());
  auto output = dyn_cast<MemRefType>(op.getOutput().getType());
  if (!input || !output || !input.hasStaticShape() || !output.hasStaticShape())
    return success();
  FailureOr<Value> device =
      deviceOfAll(op, ValueRange{op.getInput(), op.getOutput()});
  if (failed(device))
    return failure();
  Location loc = op.getLoc();
  unsigned along = op.getDimension();
  int64_t length = input.getDimSize(along);
  SmallVector<int64_t> rows(input.getShape());
  rows.erase(rows.begin() + along);
  if (length == 0 || llvm::is_contained(rows, 0)) {
    op->erase();
    return success();
  }
  PointLaunch launch(op, *device, rows);
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
  op->erase();
  return success();
}

/// What the loop's counters are at its thread's point.
SmallVector<Value> countersOf(OpBuilder &b, scf::ParallelOp op,
                              ValueRange ids) {
  SmallVector<Value> counters(ids);
  Location loc = op.getLoc();
  for (auto [k, counter] : llvm::enumerate(counters)) {
    Value lower = op.getLowerBound()[k], step = op.getStep()[k];
    if (!isConstantIntValue(step, 1))
      counter = arith::MulIOp::create(b, loc, counter, step);
    if (!isConstantIntValue(lower, 0))
      counter = arith::AddIOp::create(b, loc, lower, counter);
  }
  return counters;
}

void buildParallel(OpBuilder &b, scf::ParallelOp op, ValueRange counters) {
  IRMapping map;
  map.map(op.getInductionVars(), counters);
  for (Operation &each : op.getBody()->without_terminator())
    b.clone(each, map);
}

/// Of loops alone, whose ranges are equal and need not be constants.
ir::LaunchOp launchLoops(ArrayRef<Operation *> run, Value device) {
  auto op = cast<scf::ParallelOp>(run.back());
  unsigned count = op.getNumLoops();
  Location loc = op.getLoc();
  OpBuilder b(op);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> extents(count), grid(3, one), block(3, one);
  constexpr int64_t mostAlone = 256, most[] = {32, 8, 1};
  for (unsigned k = 0; k < count; ++k) { // the last dimension is x
    unsigned axis = count - 1 - k;
    Value length = arith::SubIOp::create(b, loc, op.getUpperBound()[k],
                                         op.getLowerBound()[k]);
    extents[k] = arith::CeilDivSIOp::create(b, loc, length, op.getStep()[k]);
    block[axis] = arith::ConstantIndexOp::create(
        b, loc, count == 1 ? mostAlone : most[axis]);
    Value blocks = arith::CeilDivSIOp::create(b, loc, extents[k], block[axis]);
    grid[axis] = arith::MaxSIOp::create(b, loc, blocks, one);
  }
  ir::LaunchOp launch = makeLaunch(b, op, device, grid, block);
  b.setInsertionPoint(launch.getBody().front().getTerminator());
  SmallVector<Value> ids(count);
  for (unsigned k = 0; k < count; ++k)
    ids[k] = globalId(b, loc, count - 1 - k, block[count - 1 - k]);
  for (unsigned k = 0; k < count; ++k)
    guard(b, loc, ids[k], extents[k]);
  SmallVector<Value> counters = countersOf(b, op, ids); // all have the same
  for (Operation *each : run)
    buildParallel(b, cast<scf::ParallelOp>(each), counters);
  return launch;
}

/// Of constant ranges, among them those of a linalg operation.
ir::LaunchOp launchPoints(ArrayRef<Operation *> run, Value device) {
  PointLaunch launch(run.back(), device, *extentsOf(rangesOf(run.back())));
  linalg::LinalgOp product;
  for (Operation *each : run) {
    auto op = dyn_cast<linalg::LinalgOp>(each);
    if (!op) {
      auto loop = cast<scf::ParallelOp>(each);
      buildParallel(launch.body(), loop,
                    countersOf(launch.body(), loop, launch.point));
      continue;
    }
    if (isPlainMatmul(op))
      product = op;
    StructuredLaunch(op, launch).build(isPlainMatmul(op) && run.size() > 1);
  }
  if (product) {
    // Which operand is which, for a target with a text of its own. Around a
    // product among others C need not be there any more.
    launch.launch.getArgsMutable().assign(
        run.size() > 1 ? ValueRange(product.getDpsInputs())
                       : ValueRange(product->getOperands()));
    launch.launch->setAttr("mgpu.matmul", UnitAttr::get(product->getContext()));
    product->getParentOfType<ModuleOp>()->setAttr(
        "mgpu.products", UnitAttr::get(product->getContext()));
  }
  return launch.launch;
}

/// Of operations that fusibleFrom found, or of one alone.
LogicalResult launchRun(ArrayRef<Operation *> run,
                        llvm::SetVector<Value> &forwarded) {
  SmallVector<Value> memrefs;
  bool areLoops = llvm::all_of(run, llvm::IsaPred<scf::ParallelOp>);
  Operation *last = run.back();
  if (isa<scf::ParallelOp>(last))
    memrefs = memrefsOf(last);
  else
    for (Value operand : last->getOperands())
      if (isa<MemRefType>(operand.getType()))
        memrefs.push_back(operand);
  FailureOr<Value> device = deviceOfAll(last, memrefs);
  if (failed(device))
    return failure();
  auto extents = extentsOf(rangesOf(last));
  if (areLoops || !llvm::is_contained(*extents, 0)) {
    ir::LaunchOp launch =
        areLoops ? launchLoops(run, *device) : launchPoints(run, *device);
    if (run.size() > 1) {
      joinNames(launch, run);
      forwardStores(launch, forwarded);
    }
  }
  for (Operation *op : run)
    op->erase();
  return success();
}

/// What comes after `run` in its block and might have been in it.
Operation *nextTensorOp(Operation *last) {
  for (Operation *op = last->getNextNode(); op; op = op->getNextNode())
    if (isa<linalg::LinalgOp, linalg::SoftmaxOp, scf::ParallelOp>(op))
      return op;
  return nullptr;
}

std::string describeOp(Operation *op) {
  return op->getName().stripDialect().str() + " at " +
         ir::describeLocation(op->getLoc());
}

} // namespace

LogicalResult launchTensorOps(ModuleOp module, const ParseOptions &options) {
  SmallVector<Operation *> found;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<linalg::LinalgOp, linalg::SoftmaxOp, scf::ParallelOp>(op))
        found.push_back(op);
      return isa<ir::LaunchOp, scf::ParallelOp>(op) ? WalkResult::skip()
                                                    : WalkResult::advance();
    });
  if (found.empty())
    return success();
  // The text may have named no operation of those.
  module.getContext()
      ->loadDialect<arith::ArithDialect, gpu::GPUDialect, math::MathDialect,
                    memref::MemRefDialect, scf::SCFDialect>();
  llvm::SmallPtrSet<Operation *, 8> done;
  llvm::SetVector<Value> forwarded;
  SmallVector<Attribute> reasons;
  Builder b(module.getContext());
  // Of `run`, which is not built yet, and the operation after it.
  auto note = [&](ArrayRef<Operation *> run, const std::string &why) {
    Operation *next = nextTensorOp(run.back());
    if (options.fuse && next && !why.empty())
      reasons.push_back(b.getStringAttr(describeOp(next) + " with " +
                                        describeOp(run.back()) + ": " + why));
  };
  for (Operation *op : found) {
    if (done.contains(op))
      continue;
    LogicalResult result = success();
    std::string why;
    SmallVector<Operation *> run;
    if (!isa<scf::ParallelOp>(op))
      run = rowRunFrom(op, options.fuse, &why);
    if (!run.empty()) {
      done.insert(run.begin(), run.end());
      note(run, why);
      result = launchRows(op, options.fuse, forwarded);
    } else if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
      note(op, "it has a thread for each row");
      result = launchSoftmax(softmax);
    } else if (auto loop = dyn_cast<scf::ParallelOp>(op);
               loop ? loop.getNumResults() == 0 && loop.getNumLoops() <= 3
                    : hasPointForm(cast<linalg::LinalgOp>(op))) {
      run = {op};
      if (options.fuse)
        run = fusibleFrom(op, options.products, why);
      // Alone, it would add in another order.
      auto ofRows =
          std::find_if(run.begin() + 1, run.end(), [](Operation *each) {
            return !isa<scf::ParallelOp>(each) &&
                   !rowRunFrom(each, false).empty();
          });
      if (ofRows != run.end()) {
        why = "it has a block for each row, which adds in another order";
        run.erase(ofRows, run.end());
      }
      done.insert(run.begin(), run.end());
      note(run, why);
      result = launchRun(run, forwarded);
    }
    if (failed(result))
      return failure();
  }
  dropUnreadBuffers(forwarded);
  if (!reasons.empty())
    module->setAttr("mgpu.not_fused", b.getArrayAttr(reasons));
  return success();
}

} // namespace mgpu::planner
