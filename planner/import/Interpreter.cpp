// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/Interpreter.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "planner/import/HostValue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

#include <fmt/format.h>

namespace mgpu::planner {

using namespace mlir;

/// Whether `op` folds, with those of its operands constant that are so.
static bool folds(Operation &op) {
  llvm::SmallVector<Attribute> constants(op.getNumOperands());
  for (auto [operand, constant] : llvm::zip(op.getOperands(), constants))
    matchPattern(operand, m_Constant(&constant));
  llvm::SmallVector<OpFoldResult> folded;
  Operation *copy = op.clone();
  bool ok = succeeded(copy->fold(constants, folded));
  copy->destroy();
  return ok;
}

Operation *findNoInduction(scf::ForOp loop) {
  llvm::SmallPtrSet<Value, 8> derived{loop.getInductionVar()};
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto isDerived = [&](Value value) { return derived.contains(value); };
    if (!isa<arith::ArithDialect>(op.getDialect()) || op.getNumResults() != 1 ||
        !llvm::any_of(op.getOperands(), isDerived) ||
        !llvm::all_of(op.getOperands(), [&](Value value) {
          return isDerived(value) || matchPattern(value, m_Constant());
        }))
      continue;
    if (ir::mayKeepInduction(&op))
      derived.insert(op.getResult(0));
    else if (!folds(op))
      return &op;
  }
  return nullptr;
}

scf::ForOp findLoopToRoll(func::FuncOp function) {
  scf::ForOp best;
  uint64_t bestWork = 0;
  for (Block &block : function.getBody())
    for (auto loop : block.getOps<scf::ForOp>()) {
      if (loop->getNumResults() > 0)
        continue;
      uint64_t work = 0;
      bool prints = false; // in each trip
      loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
        prints |= isa<ir::OutputOp>(op);
        work += isa<func::CallOp>(op) ||
                op->getName().getDialectNamespace() == "mgpu";
        return isa<ir::LaunchOp>(op) ? WalkResult::skip()
                                     : WalkResult::advance();
      });
      if (prints)
        continue;
      auto lower = getConstantIntValue(loop.getLowerBound());
      auto upper = getConstantIntValue(loop.getUpperBound());
      // A length that is known only once it is specialised is taken for long.
      uint64_t length = 1024;
      if (lower && upper) // capped: the product with the work must not wrap
        length = *lower < *upper
                     ? std::min<uint64_t>(uint64_t(*upper) - uint64_t(*lower),
                                          uint64_t(1) << 32)
                     : 0;
      if (work * length > bestWork) {
        bestWork = work * length;
        best = loop;
      }
    }
  return best;
}

/// Whether all values lie in [low, high], without a wrap on the way.
static bool staysWithin(Induction values, uint64_t trips, __int128 low,
                        __int128 high) {
  __int128 first = values.first;
  __int128 last = first + __int128(trips - 1) * values.step;
  return low <= std::min(first, last) && std::max(first, last) <= high;
}

std::optional<Induction> deriveInduction(Operation *op, Induction lhs,
                                         std::optional<Induction> rhs,
                                         uint64_t trips) {
  auto widthOf = [](Type type) {
    return isa<IndexType>(type) ? 64u : type.getIntOrFloatBitWidth();
  };
  auto wrapping = [](uint64_t first, uint64_t step) {
    return Induction{{}, int64_t(first), int64_t(step)};
  };
  uint64_t a = uint64_t(lhs.first), s = uint64_t(lhs.step);
  if (!rhs) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::TruncIOp>(op))
      return std::nullopt;
    unsigned from = widthOf(op->getOperand(0).getType());
    if (widthOf(op->getResult(0).getType()) <= from)
      return lhs; // cut when it is stored
    bool isSigned = isa<arith::IndexCastOp, arith::ExtSIOp>(op);
    __int128 half = __int128(1) << (from - 1);
    bool exact = isSigned ? staysWithin(lhs, trips, -half, half - 1)
                          : staysWithin(lhs, trips, 0, 2 * half - 1);
    return exact ? std::optional(lhs) : std::nullopt;
  }
  uint64_t b = uint64_t(rhs->first), t = uint64_t(rhs->step);
  if (isa<arith::AddIOp>(op))
    return wrapping(a + b, s + t);
  if (isa<arith::SubIOp>(op))
    return wrapping(a - b, s - t);
  if (isa<arith::MulIOp>(op) && t == 0)
    return wrapping(a * b, s * b);
  if (isa<arith::MulIOp>(op) && s == 0)
    return wrapping(a * b, a * t);
  return std::nullopt;
}

namespace {
// Host code that runs for so long without a command never ends in practice:
// a second or two.
constexpr uint64_t maxIdleSteps = 4'000'000;
} // namespace

Result<Interpreter::Values> Interpreter::runEntry(func::FuncOp function,
                                                  Values arguments) {
  active.push_back(function);
  auto results = runRegion(function.getBody(), std::move(arguments));
  active.pop_back();
  return results;
}

Result<Interpreter::Values> Interpreter::runRegion(Region &region,
                                                   Values arguments) {
  Block *block = &region.front();
  while (true) {
    for (auto [argument, value] : llvm::zip(block->getArguments(), arguments))
      host.set(argument, std::move(value));
    for (Operation &op : block->without_terminator())
      MGPU_TRY(visit(&op));
    Operation *terminator = block->getTerminator();
    auto pick = [&](ValueRange range) {
      Values picked;
      for (Value value : range)
        picked.push_back(host.valueOf(value));
      return picked;
    };
    MGPU_TRY(step(terminator));
    if (auto branch = dyn_cast<cf::BranchOp>(terminator)) {
      arguments = pick(branch.getDestOperands());
      block = branch.getDest();
    } else if (auto branch = dyn_cast<cf::CondBranchOp>(terminator)) {
      MGPU_TRY_ASSIGN(auto taken, host.integerOf(branch, branch.getCondition(),
                                                 "the condition"));
      arguments = pick(taken ? branch.getTrueDestOperands()
                             : branch.getFalseDestOperands());
      block = taken ? branch.getTrueDest() : branch.getFalseDest();
    } else if (terminator->hasTrait<OpTrait::ReturnLike>() ||
               isa<scf::ConditionOp>(terminator)) {
      return pick(terminator->getOperands());
    } else {
      return notSupported(terminator, "cannot be captured in host code");
    }
  }
}

Result<void> Interpreter::step(Operation *op) {
  if (size_t nodes = recorder.dag().nodes.size(); nodes != nodesAtLastStep) {
    nodesAtLastStep = nodes;
    idleSteps = 0;
  }
  if (++idleSteps > maxIdleSteps)
    return reported(op->emitOpError("host code runs for ")
                    << maxIdleSteps
                    << " steps without a command to a device; does "
                    << "this loop end?");
  return {};
}

Result<void> Interpreter::visit(Operation *op) {
  MGPU_TRY(step(op));
  MGPU_TRY(checkNodes(op, 0));
  llvm::SaveAndRestore restore(host.current, op);
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == "mgpu")
    return commands.visit(op);
  if (dialect == "memref")
    return memory.visit(op);
  if (isa<scf::ForOp>(op))
    return visitFor(op);
  if (isa<scf::IfOp>(op))
    return visitIf(op);
  if (isa<scf::WhileOp>(op))
    return visitWhile(op);
  if (auto call = dyn_cast<func::CallOp>(op))
    return visitCall(call);
  if (auto assertion = dyn_cast<cf::AssertOp>(op)) {
    MGPU_TRY_ASSIGN(auto holds,
                    host.integerOf(op, assertion.getArg(), "the condition"));
    return holds ? Result<void>()
                 : reported(op->emitOpError("fails: ") << assertion.getMsg());
  }
  return fold(op);
}

Result<void> Interpreter::checkNodes(Operation *op, uint64_t more) {
  const uint64_t nodes =
      llvm::SaturatingAdd(uint64_t(recorder.dag().nodes.size()), more);
  if (nodes <= options.nodeLimit)
    return {};
  return reported(op->emitOpError("the unrolled program has more than ")
                  << options.nodeLimit << " nodes; raise --node-limit");
}

uint64_t Interpreter::leastNodesOf(Region &region) {
  if (!region.hasOneBlock())
    return 0;
  auto [at, isNew] = leastNodes.try_emplace(&region, 0);
  if (!isNew) // recursion, too, which others refuse
    return at->second;
  uint64_t least = 0;
  for (Operation &op : region.front()) {
    uint64_t more = isa<ir::LaunchOp, ir::MemcpyOp>(op);
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && loop != loopToRoll) {
      if (auto trips = loop.getStaticTripCount())
        more = llvm::SaturatingMultiply(trips->getLimitedValue(),
                                        leastNodesOf(loop.getRegion()));
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      if (auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
          callee && !callee.isExternal())
        more = leastNodesOf(callee.getBody());
    }
    least = llvm::SaturatingAdd(least, more);
  }
  return leastNodes[&region] = least;
}

Result<void> Interpreter::visitFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  MGPU_TRY_ASSIGN(auto lower,
                  host.integerOf(op, loop.getLowerBound(), "the lower bound"));
  MGPU_TRY_ASSIGN(auto upper,
                  host.integerOf(op, loop.getUpperBound(), "the upper bound"));
  MGPU_TRY_ASSIGN(auto step, host.integerOf(op, loop.getStep(), "the step"));
  if (loop.getUnsignedCmp() && (lower < 0 || upper < 0))
    return notSupported(op, "unsigned bounds past the signed range");
  if (step <= 0)
    return reported(op->emitOpError("the step is ")
                    << step << "; it must be positive");
  Values carried;
  for (Value init : loop.getInitArgs())
    carried.push_back(host.valueOf(init));
  Type type = loop.getInductionVar().getType();
  // The bounds' distance may pass int64_t, their unsigned one does not.
  uint64_t trips =
      lower < upper
          ? (uint64_t(upper) - uint64_t(lower) - 1) / uint64_t(step) + 1
          : 0;
  // At a microsecond a trip, twelve days.
  constexpr uint64_t mostTrips = uint64_t(1) << 40;
  if (trips > mostTrips)
    return notSupported(op, "a loop of " + std::to_string(trips) +
                                " trips would not end; give it at most 2^40");
  if (loop == loopToRoll && trips >= options.rollFrom)
    return visitRolled(lower, step, trips);
  MGPU_TRY(checkNodes(
      op, llvm::SaturatingMultiply(trips, leastNodesOf(loop.getRegion()))));
  for (uint64_t trip = 0; trip < trips; ++trip) {
    int64_t i = int64_t(uint64_t(lower) + trip * uint64_t(step));
    Values arguments{Attribute(IntegerAttr::get(type, i))};
    arguments.append(carried.begin(), carried.end());
    MGPU_TRY_ASSIGN(auto next,
                    runRegion(loop.getRegion(), std::move(arguments)));
    carried = std::move(next);
  }
  for (auto [result, value] : llvm::zip(loop.getResults(), carried))
    host.set(result, value);
  return {};
}

Result<void> Interpreter::visitRolled(int64_t first, int64_t step,
                                      uint64_t trips) {
  scf::ForOp loop = loopToRoll;
  Value value = loop.getInductionVar();
  LoopSpec spec;
  spec.name = nameOf(value.getLoc(), "induction");
  spec.elementType = *elementTypeOf(value.getType());
  spec.trips = trips;
  spec.first = first;
  spec.step = step;
  spec.place = host.placeOf(loop.getLoc());
  return recorder.loop(spec, [&](BufferId buffer) -> Result<void> {
    host.set(value, DynamicValue{buffer});
    MGPU_TRY(runRegion(loop.getRegion(), {host.valueOf(value)}));
    return {};
  });
}

Result<void> Interpreter::visitIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  MGPU_TRY_ASSIGN(auto taken,
                  host.integerOf(op, branch.getCondition(), "the condition"));
  Region &region = taken ? branch.getThenRegion() : branch.getElseRegion();
  if (region.empty())
    return {};
  MGPU_TRY_ASSIGN(auto results, runRegion(region, {}));
  for (auto [result, value] : llvm::zip(op->getResults(), results))
    host.set(result, value);
  return {};
}

Result<void> Interpreter::visitWhile(Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  Values carried;
  for (Value init : loop.getInits())
    carried.push_back(host.valueOf(init));
  MGPU_TRY(checkTrips(loop));
  for (uint64_t left = mostTripsOf(loop);; --left) {
    if (left == 0)
      return refuseTrips(loop);
    MGPU_TRY_ASSIGN(auto before,
                    runRegion(loop.getBefore(), std::move(carried)));
    auto condition = loop.getConditionOp();
    MGPU_TRY_ASSIGN(
        auto taken,
        host.integerOf(condition, condition.getCondition(), "the condition"));
    before.erase(before.begin()); // the condition itself
    if (!taken) {
      for (auto [result, value] : llvm::zip(op->getResults(), before))
        host.set(result, value);
      return {};
    }
    MGPU_TRY_ASSIGN(auto after, runRegion(loop.getAfter(), std::move(before)));
    carried = std::move(after);
  }
}

Result<void> Interpreter::visitCall(func::CallOp call) {
  auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
  if (!callee || callee.isExternal())
    return reported(call.emitOpError("calls '")
                    << call.getCallee()
                    << "', which has no body in this module");
  // Values are kept per SSA name, so a function cannot be active twice.
  if (llvm::is_contained(active, callee.getOperation()))
    return notSupported(call, "calls '" + call.getCallee() +
                                  "' from within itself; recursion cannot be "
                                  "captured");
  Values arguments;
  for (Value operand : call.getOperands())
    arguments.push_back(host.valueOf(operand));
  active.push_back(callee);
  auto results = runRegion(callee.getBody(), std::move(arguments));
  active.pop_back();
  MGPU_TRY(results);
  for (auto [result, value] : llvm::zip(call.getResults(), *results))
    host.set(result, value);
  return {};
}

// Whether an scf.while ends is not known before it has been run. Its trips
// count against the limit of nodes, each for as many as the loop has
// operations; where the condition follows from numbers alone, they are counted
// before the first node is made.

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
