// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/gpu/GpuHost.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_OUTLINEHOSTCODE
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

class Outliner {
public:
  explicit Outliner(func::FuncOp function) : home(deviceHandle(function, 0)) {}

  LogicalResult visit(Region &region);

private:
  LogicalResult visitOne(Operation *&op);
  bool isStep(Operation *op);
  LogicalResult flush();
  LogicalResult keep(Value value, ir::LaunchOp launch);
  Operation *check(cf::AssertOp op);

  Value home;
  SmallVector<Operation *> group;
  llvm::DenseSet<Operation *> inGroup;
};

/// A loop or branch that does nothing but touch memory and compute.
bool isWholeStep(Operation *op) {
  if (!isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op))
    return false;
  bool touches = false;
  WalkResult result = op->walk([&](Operation *inner) {
    touches |= touchesMemory(inner);
    return inner == op || touchesMemory(inner) || isPure(inner) ||
                   isa<scf::ForOp, scf::IfOp, scf::WhileOp>(inner) ||
                   inner->hasTrait<OpTrait::IsTerminator>()
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return touches && !result.wasInterrupted();
}

/// Whether a device is to run `op`: it touches memory, computes vectors, or
/// works with what such operations give.
bool Outliner::isStep(Operation *op) {
  if (touchesMemory(op) || isWholeStep(op))
    return true;
  if (!isPure(op) || op->hasTrait<OpTrait::IsTerminator>() ||
      matchPattern(op, m_Constant()))
    return false;
  if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<VectorType>))
    return true;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *from = operand.getDefiningOp();
    return from && inGroup.contains(from);
  });
}

/// Keeps `value`, which the launch computes, in memory for those that use it
/// later.
LogicalResult Outliner::keep(Value value, ir::LaunchOp launch) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses())
    if (!launch->isProperAncestor(use.getOwner()))
      uses.push_back(&use);
  if (uses.empty())
    return success();
  auto vector = dyn_cast<VectorType>(value.getType());
  Type element = vector ? vector.getElementType() : value.getType();
  if (!element.isIntOrIndexOrFloat() || (vector && vector.isScalable()))
    return ir::emitUnsupported(value.getDefiningOp())
           << "gives a value of type " << value.getType()
           << ", which cannot be kept for later host code";
  OpBuilder b(launch);
  Location loc = value.getLoc();
  auto type = MemRefType::get(vector ? vector.getShape() : ArrayRef<int64_t>(),
                              element);
  Value memory = ir::AllocOp::create(b, loc, type, home);
  auto indices = [&](OpBuilder &at) {
    Value zero;
    if (type.getRank() > 0)
      zero = arith::ConstantIndexOp::create(at, loc, 0);
    return SmallVector<Value>(size_t(type.getRank()), zero);
  };
  b.setInsertionPoint(launch.getBody().front().getTerminator());
  if (vector)
    vector::StoreOp::create(b, loc, value, memory, indices(b));
  else
    memref::StoreOp::create(b, loc, value, memory, ValueRange());
  for (OpOperand *use : uses) {
    Operation *user = use->getOwner();
    auto kernel = user->getParentOfType<ir::LaunchOp>();
    const bool computes = kernel || touchesMemory(user) || isPure(user) ||
                          isWholeStep(user) || isa<cf::AssertOp>(user);
    if (!computes || user->hasTrait<OpTrait::IsTerminator>())
      return ir::emitUnsupported(user)
             << "depends on a value that is computed when the program runs (at "
             << ir::describeLocation(loc)
             << "); loops, branches and the sizes of launches must be known "
                "before";
    if (kernel)
      b.setInsertionPointToStart(&kernel.getBody().front());
    else
      b.setInsertionPoint(user);
    Value loaded =
        vector ? vector::LoadOp::create(b, loc, vector, memory, indices(b))
                     .getResult()
               : memref::LoadOp::create(b, loc, memory).getResult();
    use->set(loaded);
  }
  return success();
}

/// Makes a launch of one thread of the operations found.
LogicalResult Outliner::flush() {
  if (group.empty())
    return success();
  SmallVector<Operation *> members;
  std::swap(members, group);
  inGroup.clear();
  OpBuilder b(members.back());
  SmallVector<Location> places;
  for (Operation *op : members)
    places.push_back(op->getLoc());
  Location loc = members.front()->getLoc();
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto launch = ir::LaunchOp::create(b, loc, home, one, one);
  launch->setAttr("mgpu.name", b.getStringAttr("host_code"));
  for (Operation *op : members)
    op->moveBefore(launch.getBody().front().getTerminator());
  for (Operation *op : members)
    for (Value result : op->getResults())
      if (failed(keep(result, launch)))
        return failure();
  return success();
}

/// An assertion about a value that is computed when the program runs.
Operation *Outliner::check(cf::AssertOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value memory =
      ir::AllocOp::create(b, loc, MemRefType::get({}, b.getI1Type()), home);
  auto store = memref::StoreOp::create(b, loc, op.getArg(), memory);
  group.push_back(store);
  inGroup.insert(store);
  auto output = ir::OutputOp::create(b, loc, ir::OutputKind::Check, op.getMsg(),
                                     memory, false);
  op.erase();
  return output;
}

/// Whether `op` only names things, so that it may stand before or behind the
/// launch.
bool isNameOnly(Operation *op) {
  return (isPure(op) && op->getNumRegions() == 0 &&
          !op->hasTrait<OpTrait::IsTerminator>()) ||
         isa<ir::AllocOp, ir::GetDeviceOp, memref::AllocOp>(op);
}

/// Operations that flush() puts behind `op` are visited, too: `op` is then one
/// that stays.
LogicalResult Outliner::visitOne(Operation *&op) {
  if (isStep(op)) {
    group.push_back(op);
    inGroup.insert(op);
    return success();
  }
  if (auto assertion = dyn_cast<cf::AssertOp>(op)) {
    Operation *from = assertion.getArg().getDefiningOp();
    if (from && inGroup.contains(from)) {
      op = check(assertion);
      return flush();
    }
  }
  if (isNameOnly(op))
    return success();
  if (failed(flush()))
    return failure();
  if (!isa<ir::LaunchOp, scf::ParallelOp>(op))
    for (Region &inner : op->getRegions())
      if (failed(visit(inner)))
        return failure();
  return success();
}

LogicalResult Outliner::visit(Region &region) {
  for (Block &block : region) {
    Operation *first = block.empty() ? nullptr : &block.front();
    for (Operation *op = first; op; op = op->getNextNode())
      if (failed(visitOne(op)))
        return failure();
    if (failed(flush()))
      return failure();
  }
  return success();
}

struct OutlineHostCode : impl::OutlineHostCodeBase<OutlineHostCode> {
  using OutlineHostCodeBase::OutlineHostCodeBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal())
      return markAllAnalysesPreserved();
    if (failed(Outliner(function).visit(function.getBody())))
      signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion
