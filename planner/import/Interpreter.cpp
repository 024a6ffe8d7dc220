// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace mgpu::planner {

using namespace mlir;

namespace {
// Host code that runs for so long without a command never ends in practice:
// a second or two.
constexpr uint64_t maxIdleSteps = 4'000'000;

uint32_t configuredDevices(ModuleOp module) {
  for (auto config : module.getOps<ir::DeviceConfigOp>())
    return config.getConfig().getNumDevices();
  return 0;
}
} // namespace

Interpreter::Interpreter(ModuleOp module, const ImportOptions &options,
                         Dag &dag, scf::ForOp loop)
    : module(module), options(options), dag(dag), loopToRoll(loop),
      order(configuredDevices(module)),
      recorder(dag, order, options.racesAreErrors),
      matcher(dag, order, recorder),
      kernels(module, dag.kernels, options.kernelTexts) {
  dag.numDevices = configuredDevices(module);
}

BufferId Interpreter::addBuffer(std::string name, DeviceId device,
                                BufferRole role, MemRefType type) {
  if (uint32_t &used = bufferNames[name]; used++ > 0) {
    std::string numbered;
    for (; bufferNames.count(numbered = name + "." + std::to_string(used));)
      ++used;
    bufferNames[numbered] = 1;
    name = std::move(numbered);
  }
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.device = device;
  buffer.role = role;
  buffer.elementType = *elementTypeOf(type.getElementType());
  buffer.shape = type.getShape().vec();
  // A size past int64_t is as good as any other that no machine has.
  int64_t bytes = sizeBytes(buffer.elementType);
  for (int64_t size : buffer.shape)
    if (llvm::MulOverflow(bytes, size, bytes))
      bytes = std::numeric_limits<int64_t>::max();
  if (llvm::is_contained(buffer.shape, 0))
    bytes = 0;
  buffer.sizeBytes = uint64_t(bytes);
  dag.buffers.push_back(std::move(buffer));
  lives.emplace_back();
  return BufferId{uint32_t(dag.buffers.size() - 1)};
}

FailureOr<Interpreter::Values> Interpreter::runEntry(func::FuncOp function,
                                                     Values arguments) {
  active.push_back(function);
  auto results = runRegion(function.getBody(), std::move(arguments));
  active.pop_back();
  if (failed(results) || failed(matcher.finish()))
    return failure();
  return results;
}

LogicalResult Interpreter::notSupported(Operation *op, const Twine &why) {
  unsupported = true;
  return op->emitOpError(why);
}

const HostValue &Interpreter::valueOf(Value value) const {
  static const HostValue unknown;
  auto at = values.find(value);
  return at == values.end() ? unknown : at->second;
}

FailureOr<int64_t> Interpreter::integerOf(Operation *op, Value value,
                                          const Twine &what) {
  if (auto *attribute = std::get_if<Attribute>(&valueOf(value)))
    if (auto integer = dyn_cast<IntegerAttr>(*attribute))
      return integer.getValue().getSExtValue();
  if (findInduction(value))
    return op->emitOpError(what) << " changes from trip to trip";
  if (std::holds_alternative<DynamicValue>(valueOf(value)))
    return op->emitOpError(what)
           << " is a dynamic argument, which only kernels may read; give it "
              "the role specialised";
  return op->emitOpError(what)
         << " is not a constant after specialisation; give the scalar "
            "arguments it depends on with --arg";
}

FailureOr<int64_t> Interpreter::integerOf(Operation *op, OpFoldResult value,
                                          const Twine &what) {
  if (auto constant = getConstantIntValue(value))
    return *constant;
  return integerOf(op, cast<Value>(value), what);
}

FailureOr<Interpreter::Values> Interpreter::runRegion(Region &region,
                                                      Values arguments) {
  Block *block = &region.front();
  while (true) {
    for (auto [argument, value] : llvm::zip(block->getArguments(), arguments))
      set(argument, std::move(value));
    for (Operation &op : block->without_terminator())
      if (failed(visit(&op)))
        return failure();
    Operation *terminator = block->getTerminator();
    auto pick = [&](ValueRange range) {
      Values picked;
      for (Value value : range)
        picked.push_back(valueOf(value));
      return picked;
    };
    if (failed(step(terminator)))
      return failure();
    if (auto branch = dyn_cast<cf::BranchOp>(terminator)) {
      arguments = pick(branch.getDestOperands());
      block = branch.getDest();
    } else if (auto branch = dyn_cast<cf::CondBranchOp>(terminator)) {
      auto taken = integerOf(branch, branch.getCondition(), "the condition");
      if (failed(taken))
        return failure();
      arguments = pick(*taken ? branch.getTrueDestOperands()
                              : branch.getFalseDestOperands());
      block = *taken ? branch.getTrueDest() : branch.getFalseDest();
    } else if (terminator->hasTrait<OpTrait::ReturnLike>() ||
               isa<scf::ConditionOp>(terminator)) {
      return pick(terminator->getOperands());
    } else {
      return notSupported(terminator, "cannot be captured in host code");
    }
  }
}

LogicalResult Interpreter::step(Operation *op) {
  if (size_t nodes = dag.nodes.size(); nodes != nodesAtLastStep) {
    nodesAtLastStep = nodes;
    idleSteps = 0;
  }
  if (++idleSteps > maxIdleSteps)
    return op->emitOpError("host code runs for ")
           << maxIdleSteps << " steps without a command to a device; does "
           << "this loop end?";
  return success();
}

LogicalResult Interpreter::visit(Operation *op) {
  if (failed(step(op)))
    return failure();
  if (dag.nodes.size() > options.nodeLimit)
    return op->emitOpError("the unrolled program has more than ")
           << options.nodeLimit << " nodes; raise --node-limit";
  LogicalResult result = success();
  if (visitCommand(op, result) || visitMemory(op, result))
    return result;
  if (isa<scf::ForOp>(op))
    return visitFor(op);
  if (isa<scf::IfOp>(op))
    return visitIf(op);
  if (isa<scf::WhileOp>(op))
    return visitWhile(op);
  if (auto call = dyn_cast<func::CallOp>(op))
    return visitCall(call);
  return fold(op);
}

const Induction *Interpreter::findInduction(Value value) const {
  if (auto *dynamic = std::get_if<DynamicValue>(&valueOf(value)))
    for (const Induction &known : dag.loop.inductions)
      if (known.buffer == dynamic->buffer)
        return &known;
  return nullptr;
}

void Interpreter::setInduction(Value value, Induction values) {
  values.buffer =
      addBuffer(nameOf(value.getLoc(), "induction"), DeviceId::host(),
                BufferRole::HostLocal, MemRefType::get({}, value.getType()));
  dag.loop.inductions.push_back(values);
  set(value, DynamicValue{values.buffer});
}

bool Interpreter::foldInduction(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      op->getNumOperands() > 2 || !op->getResult(0).getType().isIntOrIndex() ||
      !elementTypeOf(op->getResult(0).getType()))
    return false;
  llvm::SmallVector<Induction, 2> operands;
  bool any = false;
  for (Value operand : op->getOperands()) {
    auto *constant = std::get_if<Attribute>(&valueOf(operand));
    auto integer = constant ? dyn_cast<IntegerAttr>(*constant) : IntegerAttr();
    if (const Induction *known = findInduction(operand))
      operands.push_back(*known), any = true;
    else if (integer)
      operands.push_back({{}, integer.getValue().getSExtValue(), 0});
    else
      return false;
  }
  if (!any)
    return false;
  auto derived = deriveInduction(
      op, operands[0],
      operands.size() == 2 ? std::optional(operands[1]) : std::nullopt,
      rolled->trips);
  if (derived)
    setInduction(op->getResult(0), *derived);
  return derived.has_value();
}

LogicalResult Interpreter::fold(Operation *op) {
  if (inRolledLoop && foldInduction(op))
    return success();
  llvm::SmallVector<Attribute> constants;
  for (Value operand : op->getOperands()) {
    auto *known = std::get_if<Attribute>(&valueOf(operand));
    constants.push_back(known ? *known : Attribute());
  }
  // select on handles and memrefs folds to a value, not to an attribute.
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    auto condition = integerOf(op, select.getCondition(), "the condition");
    if (failed(condition))
      return failure();
    set(select.getResult(),
        valueOf(*condition ? select.getTrueValue() : select.getFalseValue()));
    return success();
  }
  llvm::SmallVector<OpFoldResult> folded;
  // fold() may rewrite an operation in place; a copy takes that.
  Operation *copy = op->getNumRegions() == 0 ? op->clone() : nullptr;
  bool ok = copy && op->getNumResults() > 0 &&
            succeeded(copy->fold(constants, folded)) &&
            folded.size() == op->getNumResults();
  if (ok)
    for (auto [result, value] : llvm::zip(op->getResults(), folded)) {
      if (auto attribute = dyn_cast<Attribute>(value))
        set(result, attribute);
      else
        set(result, valueOf(cast<Value>(value)));
      ok &= !std::holds_alternative<std::monostate>(valueOf(result));
    }
  if (copy)
    copy->destroy();
  if (ok)
    return success();
  for (Value operand : op->getOperands())
    if (findInduction(operand))
      return notSupported(op, "computes with a value that changes from trip "
                              "to trip in a way that only kernels can");
    else if (std::holds_alternative<DynamicValue>(valueOf(operand)))
      return notSupported(op, "cannot be captured: host code computes with a "
                              "dynamic argument; do it in the kernel, or give "
                              "the argument the role specialised");
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op))
    if (auto divisor = dyn_cast_or_null<IntegerAttr>(constants[1]);
        divisor && divisor.getValue().isZero())
      return op->emitOpError("divides by zero");
  return notSupported(op, "cannot be captured: host code may only compute "
                          "scalars that are constant after specialisation");
}

LogicalResult Interpreter::visitFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  auto lower = integerOf(op, loop.getLowerBound(), "the lower bound");
  if (failed(lower))
    return failure();
  auto upper = integerOf(op, loop.getUpperBound(), "the upper bound");
  if (failed(upper))
    return failure();
  auto step = integerOf(op, loop.getStep(), "the step");
  if (failed(step))
    return failure();
  if (loop.getUnsignedCmp() && (*lower < 0 || *upper < 0))
    return notSupported(op, "unsigned bounds past the signed range");
  if (*step <= 0)
    return op->emitOpError("the step is ") << *step << "; it must be positive";
  Values carried;
  for (Value init : loop.getInitArgs())
    carried.push_back(valueOf(init));
  Type type = loop.getInductionVar().getType();
  // The bounds' distance may pass int64_t, their unsigned one does not.
  uint64_t trips =
      *lower < *upper
          ? (uint64_t(*upper) - uint64_t(*lower) - 1) / uint64_t(*step) + 1
          : 0;
  if (loop == loopToRoll && trips >= options.rollFrom)
    return visitRolled({{}, *lower, *step}, trips);
  for (uint64_t trip = 0; trip < trips; ++trip) {
    int64_t i = int64_t(uint64_t(*lower) + trip * uint64_t(*step));
    Values arguments{Attribute(IntegerAttr::get(type, i))};
    arguments.append(carried.begin(), carried.end());
    auto next = runRegion(loop.getRegion(), std::move(arguments));
    if (failed(next))
      return failure();
    carried = std::move(*next);
  }
  for (auto [result, value] : llvm::zip(loop.getResults(), carried))
    set(result, value);
  return success();
}

LogicalResult Interpreter::visitRolled(Induction values, uint64_t trips) {
  scf::ForOp loop = loopToRoll;
  if (rolled)
    return loop.emitOpError("runs more than once");
  rolled.emplace().loop = loop;
  rolled->trips = trips;
  inRolledLoop = true;
  for (int trip = 0; trip < 2; ++trip) {
    if (!matcher.isIdle())
      return loop.emitOpError("leaves collectives open from trip to trip");
    rolled->nodes[trip] = uint32_t(dag.nodes.size());
    rolled->buffers[trip] = uint32_t(dag.buffers.size());
    setInduction(loop.getInductionVar(), values);
    if (failed(runRegion(loop.getRegion(), {valueOf(loop.getInductionVar())})))
      return failure();
  }
  if (!matcher.isIdle())
    return loop.emitOpError("leaves collectives open from trip to trip");
  rolled->nodes[2] = uint32_t(dag.nodes.size());
  rolled->buffers[2] = uint32_t(dag.buffers.size());
  inRolledLoop = false;
  return success();
}

LogicalResult Interpreter::visitIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  auto taken = integerOf(op, branch.getCondition(), "the condition");
  if (failed(taken))
    return failure();
  Region &region = *taken ? branch.getThenRegion() : branch.getElseRegion();
  if (region.empty())
    return success();
  auto results = runRegion(region, {});
  if (failed(results))
    return failure();
  for (auto [result, value] : llvm::zip(op->getResults(), *results))
    set(result, value);
  return success();
}

LogicalResult Interpreter::visitWhile(Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  Values carried;
  for (Value init : loop.getInits())
    carried.push_back(valueOf(init));
  while (true) {
    auto before = runRegion(loop.getBefore(), std::move(carried));
    if (failed(before))
      return failure();
    auto condition = loop.getConditionOp();
    auto taken =
        integerOf(condition, condition.getCondition(), "the condition");
    if (failed(taken))
      return failure();
    before->erase(before->begin()); // the condition itself
    if (!*taken) {
      for (auto [result, value] : llvm::zip(op->getResults(), *before))
        set(result, value);
      return success();
    }
    auto after = runRegion(loop.getAfter(), std::move(*before));
    if (failed(after))
      return failure();
    carried = std::move(*after);
  }
}

LogicalResult Interpreter::visitCall(func::CallOp call) {
  auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
  if (!callee || callee.isExternal())
    return call.emitOpError("calls '")
           << call.getCallee() << "', which has no body in this module";
  // Values are kept per SSA name, so a function cannot be active twice.
  if (llvm::is_contained(active, callee.getOperation()))
    return notSupported(call, "calls '" + call.getCallee() +
                                  "' from within itself; recursion cannot be "
                                  "captured");
  Values arguments;
  for (Value operand : call.getOperands())
    arguments.push_back(valueOf(operand));
  active.push_back(callee);
  auto results = runRegion(callee.getBody(), std::move(arguments));
  active.pop_back();
  if (failed(results))
    return failure();
  for (auto [result, value] : llvm::zip(call.getResults(), *results))
    set(result, value);
  return success();
}

} // namespace mgpu::planner
