// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_INLINEFUNCTIONS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Inlines into functions, each after those that it calls.
class Inlining {
public:
  explicit Inlining(ModuleOp module) : symbols(module) {}

  void visit(func::FuncOp function) {
    if (!visited.insert(function).second || function.isExternal())
      return;
    SmallVector<func::CallOp> calls;
    function.walk([&](func::CallOp call) { calls.push_back(call); });
    for (func::CallOp call : calls) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee)
        continue;
      visit(callee);
      if (!done.contains(callee))
        recursive.insert(callee);
      else if (!recursive.contains(callee) && callee.getBody().hasOneBlock())
        inlineCall(call, callee);
    }
    done.insert(function);
  }
  bool isChanged = false;

private:
  void inlineCall(func::CallOp call, func::FuncOp callee) {
    OpBuilder b(call);
    IRMapping map;
    map.map(callee.getArguments(), call.getOperands());
    for (Operation &op : callee.front().without_terminator())
      b.clone(op, map)->walk([&](Operation *made) {
        made->setLoc(CallSiteLoc::get(made->getLoc(), call.getLoc()));
      });
    for (auto [result, value] : llvm::zip(
             call.getResults(), callee.front().getTerminator()->getOperands()))
      result.replaceAllUsesWith(map.lookupOrDefault(value));
    call.erase();
    isChanged = true;
  }

  SymbolTable symbols;
  llvm::DenseSet<func::FuncOp> visited, done, recursive;
};

struct InlineFunctions : impl::InlineFunctionsBase<InlineFunctions> {
  using InlineFunctionsBase::InlineFunctionsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    Inlining inlining(getOperation());
    if (function)
      inlining.visit(function);
    if (!inlining.isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
