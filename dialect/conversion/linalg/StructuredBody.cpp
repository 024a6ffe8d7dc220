// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/StructuredBody.h"

#include "dialect/conversion/linalg/ProductSteps.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

using namespace mlir;

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

void buildStructured(linalg::LinalgOp op, PointLaunch &launch, bool marksLoop) {
  StructuredBody(op, launch).build(marksLoop);
}

} // namespace mgpu::conversion
