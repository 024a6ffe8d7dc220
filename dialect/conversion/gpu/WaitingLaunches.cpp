// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that wait for each other by atomics.
#include "dialect/conversion/gpu/GpuLaunches.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// The memory that decides whether a loop goes on: what its condition reads in
/// each trip.
void findAwaited(scf::WhileOp loop, llvm::SetVector<Value> &found) {
  llvm::SetVector<Operation *> todo;
  auto reach = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && loop->isProperAncestor(op))
      todo.insert(op);
  };
  reach(loop.getConditionOp().getCondition());
  for (size_t k = 0; k < todo.size(); ++k) {
    llvm::TypeSwitch<Operation *>(todo[k])
        .Case([&](memref::AtomicRMWOp op) { found.insert(op.getMemref()); })
        .Case([&](memref::GenericAtomicRMWOp op) {
          found.insert(op.getMemref());
        });
    llvm::for_each(todo[k]->getOperands(), reach);
  }
}

/// The memory of the host's program whose contents a kernel awaits.
llvm::SetVector<Value> awaitedBy(gpu::AsyncOpInterface launch) {
  Region *body = nullptr;
  ValueRange operands;
  if (auto whole = dyn_cast<gpu::LaunchOp>(*launch))
    body = &whole.getBody();
  if (auto call = dyn_cast<gpu::LaunchFuncOp>(*launch)) {
    auto kernel = dyn_cast_or_null<gpu::GPUFuncOp>(
        SymbolTable::lookupNearestSymbolFrom(call, call.getKernelAttr()));
    if (kernel && !kernel.isExternal())
      body = &kernel.getBody();
    operands = call.getKernelOperands();
  }
  llvm::SetVector<Value> inKernel, roots;
  if (body)
    body->walk([&](scf::WhileOp loop) { findAwaited(loop, inKernel); });
  for (Value memref : inKernel) {
    Value root = ir::rootOf(memref);
    auto argument = dyn_cast<BlockArgument>(root);
    if (argument && argument.getOwner()->getParent() == body &&
        argument.getArgNumber() < operands.size())
      root = ir::rootOf(operands[argument.getArgNumber()]);
    roots.insert(root);
  }
  return roots;
}

/// Whether the tokens order `later` behind `earlier`.
bool isBehind(gpu::AsyncOpInterface later, Operation *earlier) {
  llvm::SetVector<Operation *> todo;
  todo.insert(later);
  for (size_t k = 0; k < todo.size(); ++k) {
    if (todo[k] == earlier)
      return true;
    if (auto op = dyn_cast<gpu::AsyncOpInterface>(todo[k]))
      for (Value token : op.getAsyncDependencies())
        if (Operation *from = token.getDefiningOp())
          todo.insert(from);
  }
  return false;
}

} // namespace

LogicalResult checkWaitingLaunches(func::FuncOp function) {
  using Waiting = std::pair<gpu::AsyncOpInterface, llvm::SetVector<Value>>;
  SmallVector<Waiting> all;
  function.walk([&](gpu::AsyncOpInterface op) {
    if (op.getAsyncToken())
      if (auto roots = awaitedBy(op); !roots.empty())
        all.push_back({op, std::move(roots)});
  });
  for (size_t k = 1; k < all.size(); ++k)
    for (const auto &[earlier, roots] : ArrayRef(all).take_front(k)) {
      auto &[later, own] = all[k];
      if (isBehind(later, earlier) ||
          llvm::none_of(own, [&](Value root) { return roots.contains(root); }))
        continue;
      InFlightDiagnostic error =
          ir::emitUnsupported(later)
          << "may wait for another launch to change the memory that both "
             "await, and launches run in program order";
      error.attachNote(earlier->getLoc()) << "the other launch is here";
      return error;
    }
  return success();
}

} // namespace mgpu::conversion
