// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/HostAccess.h"

#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mgpu::conversion {

using namespace mlir;

static bool takesMemref(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BaseMemRefType>);
}

bool touchesMemory(Operation *op) {
  if (isa<memref::LoadOp, memref::StoreOp, memref::AtomicRMWOp,
          memref::GenericAtomicRMWOp>(op))
    return true;
  return isa_and_nonnull<vector::VectorDialect>(op->getDialect()) &&
         takesMemref(op) && !isPure(op);
}

bool mayWrite(Operation *op, Value memref) {
  if (isPure(op) || isa<memref::DeallocOp, ir::OutputOp, func::ReturnOp>(op))
    return false;
  if (auto copy = dyn_cast<ir::MemcpyOp>(op))
    return copy.getDst() == memref;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return true;
  SmallVector<MemoryEffects::EffectInstance> found;
  effects.getEffects(found);
  return llvm::any_of(found, [&](const MemoryEffects::EffectInstance &each) {
    return isa<MemoryEffects::Write>(each.getEffect()) &&
           (!each.getValue() || each.getValue() == memref);
  });
}

std::optional<int64_t> knownSize(Value size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return constant;
  auto dim = size.getDefiningOp<memref::DimOp>();
  std::optional<int64_t> index =
      dim ? getConstantIntValue(dim.getIndex()) : std::nullopt;
  if (!index)
    return std::nullopt;
  Value memref = dim.getSource();
  while (true) {
    auto type = dyn_cast<MemRefType>(memref.getType());
    if (type && *index >= 0 && *index < type.getRank() &&
        !type.isDynamicDim(unsigned(*index)))
      return type.getDimSize(unsigned(*index));
    auto cast = memref.getDefiningOp<memref::CastOp>();
    if (!cast)
      return std::nullopt;
    memref = cast.getSource();
  }
}

/// What may flow into a memref that is not a view.
static void addSources(Value memref, SmallVectorImpl<Value> &todo) {
  if (auto select = memref.getDefiningOp<arith::SelectOp>()) {
    todo.append({select.getTrueValue(), select.getFalseValue()});
    return;
  }
  Operation *op = memref.getDefiningOp();
  if (auto argument = dyn_cast<BlockArgument>(memref)) {
    op = argument.getOwner()->getParentOp();
    for (Block *from : argument.getOwner()->getPredecessors())
      if (auto branch = dyn_cast<BranchOpInterface>(from->getTerminator()))
        for (unsigned k = 0; k < from->getTerminator()->getNumSuccessors(); ++k)
          if (from->getTerminator()->getSuccessor(k) == argument.getOwner())
            if (Value value =
                    branch.getSuccessorOperands(k)[argument.getArgNumber()])
              todo.push_back(value);
  }
  if (!op || !isa<RegionBranchOpInterface>(op))
    return;
  // All memrefs that enter or leave the regions: more than flow here at most.
  for (Value operand : op->getOperands())
    if (isa<BaseMemRefType>(operand.getType()))
      todo.push_back(operand);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (block.mightHaveTerminator())
        for (Value operand : block.getTerminator()->getOperands())
          if (isa<BaseMemRefType>(operand.getType()))
            todo.push_back(operand);
}

llvm::SetVector<Value> rootsOf(Value memref) {
  llvm::SetVector<Value> seen, roots;
  SmallVector<Value> todo{memref};
  while (!todo.empty()) {
    Value each = ir::rootOf(todo.pop_back_val());
    if (!seen.insert(each))
      continue;
    const size_t before = todo.size();
    addSources(each, todo);
    if (todo.size() == before)
      roots.insert(each);
  }
  return roots;
}

} // namespace mgpu::conversion
