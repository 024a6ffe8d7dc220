// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Branches. Host code takes one by a number that it knows; by a number of the
// devices, all are computed, and a choice is made between their results.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

/// The results of `branches[k]` where `conditions[k]` is the first that holds,
/// else of the last branch.
LogicalResult lowerBranches(Lowering &low, Operation *op,
                            MutableArrayRef<Region> branches,
                            ArrayRef<Value> conditions) {
  Region &first = branches.front();
  auto lowered = [&](Region &region) -> LogicalResult {
    return low.lowerBlock(region.front());
  };
  auto resultsOf = [&](Region &region) {
    return low.all(region.front().getTerminator()->getOperands());
  };
  ImplicitLocOpBuilder &b = low.b;
  if (branches.size() == 1) {
    if (failed(lowered(first)))
      return failure();
    low.setAll(op->getResults(), resultsOf(first));
    return success();
  }
  Value condition = conditions.front();
  bool isKnown = !isa<TensorType>(condition.getType());
  SmallVector<Type> types = llvm::map_to_vector(
      op->getResultTypes(), [](Type type) { return signless(type); });
  scf::IfOp made;
  OpBuilder::InsertionGuard guard(b);
  if (isKnown) {
    made = scf::IfOp::create(b, types, condition, /*withElseRegion=*/true);
    b.setInsertionPointToStart(made.thenBlock());
  }
  if (failed(lowered(first)))
    return failure();
  b.setLoc(op->getLoc());
  SmallVector<Value> ofFirst = resultsOf(first);
  if (isKnown) {
    if (!types.empty())
      scf::YieldOp::create(b, ofFirst);
    b.setInsertionPointToStart(made.elseBlock());
  }
  if (failed(lowerBranches(low, op, branches.drop_front(),
                           conditions.drop_front())))
    return failure();
  b.setLoc(op->getLoc());
  SmallVector<Value> others = low.all(op->getResults());
  if (isKnown) {
    if (!types.empty())
      scf::YieldOp::create(b, others);
    b.setInsertionPointAfter(made);
    low.setAll(op->getResults(), made.getResults());
    return success();
  }
  for (auto [result, yes, no] : llvm::zip(op->getResults(), ofFirst, others))
    low.set(result,
            low.elementwise(cast<RankedTensorType>(yes.getType()),
                            {condition, yes, no},
                            [](ImplicitLocOpBuilder &inner, ValueRange in) {
                              return SmallVector<Value>{arith::SelectOp::create(
                                  inner, in[0], in[1], in[2])};
                            }));
  return success();
}

LogicalResult lowerIf(Lowering &low, IfOp op) {
  Value known = low.number(op.getPred());
  return lowerBranches(low, op, op->getRegions(),
                       {known ? known : low[op.getPred()]});
}

/// An index that is none of a branch chooses the last one.
LogicalResult lowerCase(Lowering &low, CaseOp op) {
  Value known = low.number(op.getIndex());
  SmallVector<Value> conditions;
  auto equals = [&](ImplicitLocOpBuilder &b, Value index, unsigned k) -> Value {
    Value number =
        arith::ConstantOp::create(b, b.getIntegerAttr(index.getType(), k));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index, number);
  };
  auto flag = RankedTensorType::get({}, low.b.getI1Type());
  for (unsigned k = 0; k + 1 < op->getNumRegions(); ++k)
    conditions.push_back(
        known
            ? equals(low.b, known, k)
            : low.elementwise(flag, low[op.getIndex()],
                              [&](ImplicitLocOpBuilder &b, ValueRange in) {
                                return SmallVector<Value>{equals(b, in[0], k)};
                              }));
  return lowerBranches(low, op, op->getRegions(), conditions);
}

} // namespace

ArrayRef<NamedFamily> branchFamily() {
  static const NamedFamily all[] = {
      family<IfOp, lowerIf>(),
      family<CaseOp, lowerCase>(),
  };
  return all;
}

} // namespace mgpu::conversion
