// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/HostAccess.h"

#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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

/// The size that a memref, which is made here or a cast, has along a dimension.
static std::optional<int64_t> knownDim(Value memref, int64_t index, int depth) {
  while (true) {
    auto type = dyn_cast<MemRefType>(memref.getType());
    const bool isRanked = type && index >= 0 && index < type.getRank();
    if (isRanked && !type.isDynamicDim(unsigned(index)))
      return type.getDimSize(unsigned(index));
    Operation *op = memref.getDefiningOp();
    if (isRanked &&
        isa_and_nonnull<memref::AllocOp, memref::AllocaOp, gpu::AllocOp>(op)) {
      ValueRange sizes = op->getOperands(); // tokens come first
      if (auto alloc = dyn_cast<gpu::AllocOp>(op))
        sizes = alloc.getDynamicSizes();
      return knownSize(sizes[type.getDynamicDimIndex(unsigned(index))], depth);
    }
    auto cast = dyn_cast_or_null<memref::CastOp>(op);
    if (!cast)
      return std::nullopt;
    memref = cast.getSource();
  }
}

std::optional<int64_t> knownSize(Value size, int depth) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return constant;
  Operation *op = size.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    std::optional<int64_t> index = knownSize(dim.getIndex(), depth - 1);
    return index ? knownDim(dim.getSource(), *index, depth - 1) : std::nullopt;
  }
  if (!isPure(op) || op->getNumRegions() > 0 || op->getNumResults() != 1)
    return std::nullopt;
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> known = knownSize(operand, depth - 1);
    if (!known || !operand.getType().isIntOrIndex())
      return std::nullopt;
    operands.push_back(IntegerAttr::get(operand.getType(), *known));
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1)
    return std::nullopt;
  return getConstantIntValue(results[0]);
}

void replaceMemory(Value memory, Value made) {
  if (made.getType() != memory.getType()) {
    memory.replaceUsesWithIf(made, [](OpOperand &use) {
      return isa<linalg::LinalgOp>(use.getOwner());
    });
    OpBuilder b(made.getContext());
    b.setInsertionPointAfterValue(made);
    made = memref::CastOp::create(b, made.getLoc(), memory.getType(), made);
  }
  memory.replaceAllUsesWith(made);
}

/// Adds the values that may flow into a memref that is not a view.
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
