// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mgpu/HostCode.h"

#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::ir {

using namespace mlir;

void walkHostCode(ModuleOp module, StringRef entry,
                  function_ref<void(Operation *)> visit) {
  SymbolTable symbols(module);
  llvm::SetVector<Operation *> functions;
  auto reach = [&](StringRef name) {
    if (auto function = symbols.lookup<func::FuncOp>(name))
      functions.insert(function);
  };
  reach(entry);
  for (size_t k = 0; k < functions.size(); ++k)
    functions[k]->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op))
        reach(call.getCallee());
      visit(op);
      return isa<LaunchOp, gpu::LaunchOp, scf::ParallelOp>(op)
                 ? WalkResult::skip()
                 : WalkResult::advance();
    });
}

bool mayKeepInduction(Operation *op) {
  return isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::TruncIOp, arith::AddIOp, arith::SubIOp,
             arith::MulIOp>(op);
}

Value viewSourceOf(Value memref) {
  if (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    return view.getViewSource();
  if (auto transposed = memref.getDefiningOp<memref::TransposeOp>())
    return transposed.getIn(); // no view as its interface has them
  return {};
}

Value rootOf(Value memref) {
  while (Value source = viewSourceOf(memref))
    memref = source;
  return memref;
}

bool areApart(Value a, Value b) {
  auto one = a.getDefiningOp<memref::SubViewOp>(),
       other = b.getDefiningOp<memref::SubViewOp>();
  if (!one || !other || one.getSource() != other.getSource() ||
      !one.getSourceType().getLayout().isIdentity())
    return false;
  for (size_t k = 0; k < one.getStaticOffsets().size(); ++k) {
    const int64_t first = one.getStaticOffsets()[k],
                  second = other.getStaticOffsets()[k];
    const int64_t sizes[] = {one.getStaticSizes()[k],
                             other.getStaticSizes()[k]};
    const bool isKnown =
        one.getStaticStrides()[k] == 1 && other.getStaticStrides()[k] == 1 &&
        !ShapedType::isDynamic(first) && !ShapedType::isDynamic(second) &&
        !ShapedType::isDynamicShape(sizes);
    if (isKnown && (first + sizes[0] <= second || second + sizes[1] <= first))
      return true;
  }
  return false;
}

SmallVector<Value> memrefsOf(Operation *op) {
  llvm::SetVector<Value> found;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<BaseMemRefType>(operand.getType()) &&
          !op->isAncestor(operand.getParentBlock()->getParentOp()))
        found.insert(operand);
  });
  return found.takeVector();
}

Value deviceOf(Value memref) {
  while (memref) {
    memref = rootOf(memref);
    if (auto argument = dyn_cast<BlockArgument>(memref)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop || argument == loop.getInductionVar())
        return {};
      memref = loop.getTiedLoopInit(argument)->get();
      continue;
    }
    return getAllocationDevice(memref);
  }
  return {};
}

FailureOr<Value> deviceOfAll(Operation *op, ValueRange memrefs) {
  Value device;
  for (Value memref : memrefs) {
    Value here = deviceOf(memref);
    if (!here) {
      op->emitOpError(
          "computes on a memref that is not a device's as far as the "
          "text shows; copy it to a buffer of mgpu.alloc in this "
          "function, or write an mgpu.launch");
      return failure();
    }
    device = device ? device : here;
  }
  if (!device)
    return op->emitOpError("uses no memref, so nothing says which device is "
                           "to run it; write an mgpu.launch");
  return device;
}

Value visibleDevice(ValueRange memrefs) {
  Value device;
  for (Value memref : memrefs) {
    Value here = getAllocationDevice(rootOf(memref));
    if (!here || (device && device != here))
      return {};
    device = here;
  }
  return device;
}

} // namespace mgpu::ir
