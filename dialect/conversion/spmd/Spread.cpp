// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of the program for N devices; SpreadOps.cpp has the operations.
#include "dialect/conversion/spmd/Spread.h"

#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

/// The sets only grow, so this ends: after one round more than loops are deep.
PerDevice::PerDevice(func::FuncOp function) {
  do {
    isChanged = false;
    function.walk([&](Operation *op) { visit(op); });
  } while (isChanged);
}

void PerDevice::flow(ValueRange from, ValueRange to) {
  for (auto [source, target] : llvm::zip(from, to))
    if (contains(source))
      add(target);
}

bool PerDevice::takesAlike(Operation *op) const {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](scf::ForOp loop) {
        return !contains(loop.getLowerBound()) &&
               !contains(loop.getUpperBound()) && !contains(loop.getStep());
      })
      .Case([&](scf::IfOp branch) { return !contains(branch.getCondition()); })
      .Case([&](scf::WhileOp loop) {
        return !contains(loop.getConditionOp().getCondition());
      })
      .Default(false);
}

void PerDevice::visit(Operation *op) {
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      if (isa<BaseMemRefType>(argument.getType()) && !isa<func::FuncOp>(op))
        add(argument);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](scf::ForOp loop) {
        flow(loop.getInitArgs(), loop.getRegionIterArgs());
        flow(loop.getYieldedValues(), loop.getRegionIterArgs());
        flow(loop.getRegionIterArgs(), loop.getResults());
      })
      .Case([&](scf::IfOp branch) {
        flow(branch.thenYield().getOperands(), branch.getResults());
        if (branch.elseBlock())
          flow(branch.elseYield().getOperands(), branch.getResults());
      })
      .Case([&](scf::WhileOp loop) {
        flow(loop.getInits(), loop.getBeforeArguments());
        flow(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
        flow(loop.getConditionOp().getArgs(), loop.getAfterArguments());
        flow(loop.getAfterArguments(), loop.getResults());
      });
  for (Value result : op->getResults())
    if (isa<BaseMemRefType>(result.getType()) || !givesAlike(op))
      add(result);
}

/// Whether nothing that `op` reads differs, in its bodies neither; loops and
/// branches that are taken alike give what flow() says.
bool PerDevice::givesAlike(Operation *op) const {
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
    return takesAlike(op);
  auto differs = [&](Value value) { return contains(value); };
  return !op->walk([&](Operation *inner) {
              return isa<spmd::DeviceIndexOp>(inner) ||
                             llvm::any_of(inner->getOperands(), differs)
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            }).wasInterrupted();
}

static bool isMemref(Value value) {
  return isa<BaseMemRefType>(value.getType());
}

static bool usesMemrefs(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return llvm::any_of(inner->getOperands(), isMemref) ||
                       llvm::any_of(inner->getResults(), isMemref)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool isCollective(Operation *op) {
  return isa<spmd::AllReduceOp, spmd::AllGatherOp, spmd::ReduceScatterOp,
             spmd::AllToAllOp, spmd::BroadcastOp, spmd::PermuteOp,
             spmd::MoveOp>(op);
}

Spread::Spread(func::FuncOp function, int64_t numDevices)
    : function(function), b(function.getContext()),
      isOne(ir::hasMark(function, ir::Mark::OneDevice)),
      all(llvm::to_vector(llvm::seq<int64_t>(0, numDevices))),
      maps(isOne ? 1 : numDevices), perDevice(function),
      running(llvm::to_vector(llvm::seq<int64_t>(0, maps.size()))) {}

/// Whether `op` gives all devices the same scalars.
bool Spread::isUniform(Operation *op) const {
  return isPure(op) && !usesMemrefs(op) &&
         llvm::none_of(op->getResults(),
                       [&](Value value) { return perDevice.contains(value); });
}

Operation *Spread::findUnmatched() const {
  Operation *found = nullptr;
  const_cast<func::FuncOp &>(function).walk([&](Operation *op) {
    if (!isCollective(op))
      return;
    for (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent);
         parent = parent->getParentOp())
      if (!isa<spmd::OnOp>(parent) && !perDevice.takesAlike(parent))
        found = op;
  });
  return found;
}

LogicalResult Spread::run() {
  Block &old = function.front();
  Block *body = new Block;
  function.getBody().push_front(body);
  for (BlockArgument argument : old.getArguments()) {
    Value same = body->addArgument(argument.getType(), argument.getLoc());
    for (IRMapping &map : maps)
      map.map(argument, same);
  }
  b.setInsertionPointToEnd(body);
  Location loc = function.getLoc();
  auto handle = [&](int64_t index) {
    Value number = arith::ConstantIndexOp::create(b, loc, index);
    return ir::GetDeviceOp::create(b, loc, ir::DeviceType::get(b.getContext()),
                                   number)
        .getDevice();
  };
  host = handle(ir::hostDeviceIndex);
  auto order =
      function->getAttrOfType<DenseI64ArrayAttr>(spmd::deviceOrderName);
  for (int64_t device : all)
    devices.push_back(
        handle(order && device < order.size() ? order[device] : device));
  function->removeAttr(spmd::deviceOrderName);
  head = devices.back().getDefiningOp();
  spreadBlock(old);
  if (isFailed) // what there is may use the old body
    return failure();
  Operation *end = old.getTerminator();
  SmallVector<Value> results = llvm::map_to_vector(
      end->getOperands(), [&](Value value) { return on(0, value); });
  func::ReturnOp::create(b, end->getLoc(), results);
  old.dropAllReferences();
  old.erase();
  return success();
}

void Spread::spreadBlock(Block &block) {
  Segment segment;
  for (Operation &op : block.without_terminator()) {
    if (isUniform(&op)) {
      // Nothing of the segment gives it a value, so it may come first.
      mapShared(&op, b.clone(op, maps[0])->getResults());
    } else if (isCollective(&op)) {
      spreadSegment(segment);
      spreadCollective(&op);
    } else if (auto each = dyn_cast<spmd::OnOp>(op)) {
      spreadSegment(segment);
      spreadOn(each);
    } else if (perDevice.takesAlike(&op)) {
      spreadSegment(segment);
      spreadShared(&op);
    } else {
      segment.push_back(&op);
    }
  }
  spreadSegment(segment);
}

void Spread::mapShared(Operation *op, ValueRange results) {
  for (IRMapping &map : maps)
    map.map(op->getResults(), results);
}

/// All operations of one device, then all of the next.
void Spread::spreadSegment(Segment &segment) {
  for (int64_t device : running)
    for (Operation *op : segment)
      emitOn(device, op);
  segment.clear();
}

/// The body, for its devices.
void Spread::spreadOn(spmd::OnOp op) {
  SmallVector<int64_t> inner =
      llvm::to_vector(llvm::seq<int64_t>(op.getFirst(), op.getEnd()));
  std::swap(running, inner);
  spreadBlock(op.getBody().front());
  for (int64_t device : running)
    if (checkBuffers(device, op.getYield()))
      for (auto [result, value] :
           llvm::zip(op.getOutputs(), op.getYield().getValues()))
        maps[device].map(result, on(device, value));
  std::swap(running, inner);
}

bool Spread::checkBuffers(int64_t device, Operation *op) {
  auto isThere = [&](Value value) {
    return !isMemref(value) || maps[device].contains(value);
  };
  if (llvm::all_of(op->getOperands(), isThere))
    return true;
  if (!isFailed)
    op->emitError() << "uses a tensor on device " << device
                    << ", which does not have it; only the devices of the "
                       "spmd.on that yields it do, or those that an spmd.move "
                       "gives it";
  isFailed = true;
  return false;
}

/// How many values stand for `value`: one for each device, or one for all.
size_t Spread::countOf(Value value) const {
  return perDevice.contains(value) ? running.size() : 1;
}

/// The values that `targets` get of `values`, pair by pair.
SmallVector<Value> Spread::spreadValues(ValueRange values, ValueRange targets) {
  SmallVector<Value> spread;
  for (auto [value, target] : llvm::zip(values, targets))
    for (int64_t device : ArrayRef(running).take_front(countOf(target)))
      spread.push_back(on(device, value));
  return spread;
}

void Spread::mapEach(ValueRange old, ValueRange made) {
  size_t next = 0;
  for (Value value : old) {
    bool isOnEach = perDevice.contains(value);
    for (auto [place, device] : llvm::enumerate(running))
      maps[device].map(value, made[next + (isOnEach ? place : 0)]);
    next += countOf(value);
  }
}

/// Fills `region` with the one block of `old`, which ends with what `targets`
/// get.
void Spread::spreadRegion(Region &old, Region &region, ValueRange targets) {
  Block &from = old.front(), &body = region.emplaceBlock();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&body);
  for (BlockArgument argument : from.getArguments())
    body.addArguments(
        SmallVector<Type>(countOf(argument), argument.getType()),
        SmallVector<Location>(countOf(argument), argument.getLoc()));
  mapEach(from.getArguments(), body.getArguments());
  spreadBlock(from);
  Operation *end = from.getTerminator();
  for (int64_t device : running)
    checkBuffers(device, end);
  if (auto condition = dyn_cast<scf::ConditionOp>(end))
    scf::ConditionOp::create(b, end->getLoc(), on(0, condition.getCondition()),
                             spreadValues(condition.getArgs(), targets));
  else
    scf::YieldOp::create(b, end->getLoc(),
                         spreadValues(end->getOperands(), targets));
}

/// A loop or branch for all devices. A value that it carries or gives, and that
/// differs, is there once for each device.
void Spread::spreadShared(Operation *op) {
  for (int64_t device : running)
    if (!checkBuffers(device, op))
      return;
  OperationState state(op->getLoc(), op->getName());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
  for (Value result : op->getResults())
    state.types.append(countOf(result), result.getType());
  // By region: what the values at its end become.
  SmallVector<ValueRange> targets(op->getNumRegions(), op->getResults());
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (Value bound :
         {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      state.operands.push_back(on(0, bound));
    state.addOperands(
        spreadValues(loop.getInitArgs(), loop.getRegionIterArgs()));
    targets[0] = loop.getRegionIterArgs();
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    state.addOperands(on(0, branch.getCondition()));
  } else {
    auto each = cast<scf::WhileOp>(op);
    state.addOperands(spreadValues(each.getInits(), each.getBeforeArguments()));
    targets = {each.getAfterArguments(), each.getBeforeArguments()};
  }
  for (unsigned k = 0; k < op->getNumRegions(); ++k)
    state.addRegion();
  Operation *shared = b.create(state);
  for (auto [k, old] : llvm::enumerate(op->getRegions()))
    if (!old.empty())
      spreadRegion(old, shared->getRegion(k), targets[k]);
  mapEach(op->getResults(), shared->getResults());
}

} // namespace mgpu::conversion
