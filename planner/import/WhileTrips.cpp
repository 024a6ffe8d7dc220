// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether an scf.while ends is not known before it has been run. Its trips
// count against the limit of nodes, each for as many as the loop has
// operations; where the condition follows from numbers alone, they are counted
// before the first node is made.
#include "planner/import/Interpreter.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

/// The values that the condition of a loop follows from, trip after trip.
struct ConditionSlice {
  llvm::SetVector<Value> values;
  /// The values' operations in the two regions, in order.
  SmallVector<Operation *> before, after;

  /// False where it takes more than arithmetic.
  bool find(scf::WhileOp loop);
};

bool ConditionSlice::find(scf::WhileOp loop) {
  Block &test = loop.getBefore().front(), &body = loop.getAfter().front();
  if (!loop.getBefore().hasOneBlock() || !loop.getAfter().hasOneBlock())
    return false;
  values.insert(loop.getConditionOp().getCondition());
  for (size_t k = 0; k < values.size(); ++k) {
    Value value = values[k];
    if (!loop->isAncestor(value.getParentRegion()->getParentOp()))
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      const unsigned number = argument.getArgNumber();
      if (argument.getOwner() == &test)
        values.insert(body.getTerminator()->getOperand(number));
      else if (argument.getOwner() == &body)
        values.insert(loop.getConditionOp().getArgs()[number]);
      else
        return false;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (op->getNumRegions() > 0 || !isPure(op))
      return false;
    values.insert(op->operand_begin(), op->operand_end());
  }
  auto take = [&](Block &block, SmallVector<Operation *> &taken) {
    for (Operation &op : block)
      if (llvm::any_of(op.getResults(),
                       [&](Value each) { return values.contains(each); }))
        taken.push_back(&op);
  };
  take(test, before);
  take(body, after);
  return true;
}

} // namespace

uint64_t Interpreter::mostTripsOf(scf::WhileOp loop) const {
  const uint64_t operations = loop.getBefore().front().getOperations().size() +
                              loop.getAfter().front().getOperations().size();
  return std::max<uint64_t>(options.nodeLimit / operations, 1);
}

tl::unexpected<Error> Interpreter::refuseTrips(scf::WhileOp loop) const {
  return reported(
      emitError(loop.getLoc())
          << "the while loop at " << ir::describeLocation(loop.getLoc())
          << " goes on after " << mostTripsOf(loop)
          << " trips, whose operations are more than the " << options.nodeLimit
          << " that a program may have; if it ends, raise --node-limit",
      ErrorKind::Unsupported);
}

Result<void> Interpreter::checkTrips(scf::WhileOp loop) {
  ConditionSlice slice;
  if (!slice.find(loop))
    return {};
  Block &test = loop.getBefore().front(), &body = loop.getAfter().front();
  auto pass = [&](ValueRange from, Block &to) {
    Values passed;
    for (auto [value, argument] : llvm::zip(from, to.getArguments()))
      if (slice.values.contains(argument))
        passed.push_back(host.valueOf(value));
    size_t next = 0;
    for (BlockArgument argument : to.getArguments())
      if (slice.values.contains(argument))
        host.set(argument, std::move(passed[next++]));
  };
  pass(loop.getInits(), test);
  scf::ConditionOp condition = loop.getConditionOp();
  for (uint64_t left = mostTripsOf(loop); left > 0; --left) {
    for (Operation *op : slice.before)
      MGPU_TRY(fold(op));
    MGPU_TRY_ASSIGN(
        const int64_t isTaken,
        host.integerOf(condition, condition.getCondition(), "the condition"));
    if (!isTaken)
      return {};
    pass(condition.getArgs(), body);
    for (Operation *op : slice.after)
      MGPU_TRY(fold(op));
    pass(body.getTerminator()->getOperands(), test);
  }
  return refuseTrips(loop);
}

} // namespace mgpu::planner
