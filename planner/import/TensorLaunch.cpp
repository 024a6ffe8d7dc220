// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/TensorLaunch.h"

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
  void build();

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

void StructuredLaunch::build() {
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
  for (auto [init, result] : llvm::zip(op.getDpsInitsMutable(), results))
    memref::StoreOp::create(b, loc, result, init.get(), indices(b, init));
}

/// Of operations that fusibleFrom found, or of one alone.
LogicalResult launchStructured(ArrayRef<linalg::LinalgOp> run,
                               llvm::SetVector<Value> &forwarded) {
  linalg::LinalgOp last = run.back();
  SmallVector<int64_t> parallel = parallelExtents(last);
  SmallVector<Value> memrefs;
  for (Value operand : last->getOperands())
    if (isa<MemRefType>(operand.getType()))
      memrefs.push_back(operand);
  FailureOr<Value> device = deviceOfAll(last, memrefs);
  if (failed(device))
    return failure();
  if (!llvm::is_contained(parallel, 0)) {
    PointLaunch launch(last, *device, parallel);
    for (linalg::LinalgOp op : run)
      StructuredLaunch(op, launch).build();
    if (isPlainMatmul(last)) {
      // Which operand is which, for a target with a text of its own.
      launch.launch.getArgsMutable().assign(last->getOperands());
      launch.launch->setAttr("mgpu.matmul", UnitAttr::get(last->getContext()));
    }
    if (run.size() > 1) {
      joinNames(launch.launch,
                llvm::map_to_vector(run, [](linalg::LinalgOp op) {
                  return op.getOperation();
                }));
      forwardStores(launch.launch, forwarded);
    }
  }
  for (linalg::LinalgOp op : run)
    op->erase();
  return success();
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

/// The memrefs from outside that a region names.
SmallVector<Value> memrefsOf(Operation *op) {
  llvm::SetVector<Value> found;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<MemRefType>(operand.getType()) &&
          !op->isAncestor(operand.getParentBlock()->getParentOp()))
        found.insert(operand);
  });
  return found.takeVector();
}

LogicalResult launchParallel(scf::ParallelOp op) {
  unsigned count = op.getNumLoops();
  if (op.getNumResults() != 0 || count > 3)
    return success();
  FailureOr<Value> device = deviceOfAll(op, memrefsOf(op));
  if (failed(device))
    return failure();
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
  ir::LaunchOp launch = makeLaunch(b, op, *device, grid, block);
  b.setInsertionPoint(launch.getBody().front().getTerminator());
  IRMapping map;
  SmallVector<Value> ids(count);
  for (unsigned k = 0; k < count; ++k)
    ids[k] = globalId(b, loc, count - 1 - k, block[count - 1 - k]);
  for (unsigned k = 0; k < count; ++k)
    guard(b, loc, ids[k], extents[k]);
  for (unsigned k = 0; k < count; ++k) {
    Value scaled = arith::MulIOp::create(b, loc, ids[k], op.getStep()[k]);
    map.map(
        op.getInductionVars()[k],
        Value(arith::AddIOp::create(b, loc, op.getLowerBound()[k], scaled)));
  }
  for (Operation &each : op.getBody()->without_terminator())
    b.clone(each, map);
  op->erase();
  return success();
}

} // namespace

LogicalResult launchTensorOps(ModuleOp module, bool fuse) {
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
  for (Operation *op : found) {
    if (done.contains(op))
      continue;
    LogicalResult result = success();
    SmallVector<Operation *> rows;
    if (!isa<scf::ParallelOp>(op))
      rows = rowRunFrom(op, fuse);
    done.insert(rows.begin(), rows.end());
    if (!rows.empty()) {
      result = launchRows(op, fuse, forwarded);
    } else if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
      result = launchSoftmax(softmax);
    } else if (auto parallel = dyn_cast<scf::ParallelOp>(op)) {
      result = launchParallel(parallel);
    } else if (auto structured = cast<linalg::LinalgOp>(op);
               hasPointForm(structured)) {
      SmallVector<linalg::LinalgOp> run{structured};
      if (fuse)
        run = fusibleFrom(structured);
      // Alone, it would add in another order.
      run.erase(std::find_if(run.begin() + 1, run.end(),
                             [](linalg::LinalgOp each) {
                               return !rowRunFrom(each, false).empty();
                             }),
                run.end());
      for (linalg::LinalgOp each : run)
        done.insert(each);
      result = launchStructured(run, forwarded);
    }
    if (failed(result))
      return failure();
  }
  dropUnreadBuffers(forwarded);
  return success();
}

} // namespace mgpu::planner
