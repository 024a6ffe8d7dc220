// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/mpmd/PlainOps.h"

namespace mgpu::conversion {

using namespace mlir;

RankedTensorType globalTypeOf(Type type) {
  if (auto mesh = dyn_cast<mpmd::MeshTensorType>(type))
    return mesh.getGlobalTensorType();
  return dyn_cast<RankedTensorType>(type);
}

static StringRef nameOf(mpmd::ReductionType type) {
  switch (type) {
  case mpmd::ReductionType::kMax:
    return "stablehlo.maximum";
  case mpmd::ReductionType::kMin:
    return "stablehlo.minimum";
  case mpmd::ReductionType::kMul:
    return "stablehlo.multiply";
  case mpmd::ReductionType::kOr:
    return "stablehlo.or";
  case mpmd::ReductionType::kAnd:
    return "stablehlo.and";
  case mpmd::ReductionType::kAdd:
  case mpmd::ReductionType::kNone: // of one operand
    break;
  }
  return "stablehlo.add";
}

Value combined(OpBuilder &b, mpmd::ReduceOp op,
               function_ref<Value(Value)> valueOf) {
  Value result = valueOf(op.getTensors()[0]);
  for (Value next : op.getTensors().drop_front()) {
    OperationState state(op.getLoc(),
                         nameOf(op.getReduction().getReductionType()));
    state.addOperands({result, valueOf(next)});
    state.addTypes(result.getType());
    result = b.create(state)->getResult(0);
  }
  return result;
}

void inlineBody(Operation *op) {
  Block &body = op->getRegion(0).front();
  for (auto [argument, operand] :
       llvm::zip(body.getArguments(), op->getOperands()))
    argument.replaceAllUsesWith(operand);
  Operation *end = body.getTerminator();
  op->replaceAllUsesWith(end->getOperands());
  end->erase();
  op->getBlock()->getOperations().splice(op->getIterator(),
                                         body.getOperations());
  op->erase();
}

void makePlain(Operation *op) {
  if (isa<mpmd::NamedComputationOp, mpmd::FragmentOp>(op))
    return inlineBody(op);
  if (isa<mpmd::TransferOp, mpmd::AssignOp, mpmd::UnassignOp, mpmd::BroadcastOp,
          mpmd::NamedTensorOp>(op)) {
    op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  } else if (auto reduce = dyn_cast<mpmd::ReduceOp>(op)) {
    OpBuilder b(op);
    reduce.replaceAllUsesWith(
        combined(b, reduce, [](Value each) { return each; }));
    op->erase();
  }
}

} // namespace mgpu::conversion
