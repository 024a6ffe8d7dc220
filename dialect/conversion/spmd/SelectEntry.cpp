// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_SELECTENTRY
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Layouts and next states are of the entry's arguments and results: those of a
/// function that it calls would be lost when that is inlined.
LogicalResult checkCalled(func::FuncOp function) {
  auto isOurs = [](NamedAttribute attribute) {
    return isa_and_nonnull<spmd::SpmdDialect>(attribute.getNameDialect());
  };
  for (ArrayAttr all : {function.getArgAttrsAttr(), function.getResAttrsAttr()})
    if (all && llvm::any_of(all.getAsRange<DictionaryAttr>(),
                            [&](DictionaryAttr each) {
                              return llvm::any_of(each.getValue(), isOurs);
                            }))
      return function.emitOpError()
             << "is called, so its arguments and results are shards; layouts "
                "and spmd.alias are for the entry function";
  return failure(function
                     .walk([](Operation *op) {
                       if (!isa<spmd::FullToShardOp, spmd::ShardToFullOp>(op))
                         return WalkResult::advance();
                       op->emitOpError() << "is for the entry function alone";
                       return WalkResult::interrupt();
                     })
                     .wasInterrupted());
}

struct SelectEntry : impl::SelectEntryBase<SelectEntry> {
  using SelectEntryBase::SelectEntryBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SetVector<func::FuncOp> reached;
    if (auto function = module.lookupSymbol<func::FuncOp>(entry))
      reached.insert(function);
    for (size_t k = 0; k < reached.size(); ++k) {
      func::FuncOp function = reached[k];
      if (k > 0 && failed(checkCalled(function)))
        return signalPassFailure();
      function.walk([&](func::CallOp call) {
        if (auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee()))
          reached.insert(callee);
      });
    }
    llvm::StringSet<> used;
    if (auto uses = SymbolTable::getSymbolUses(&module.getBodyRegion()))
      for (SymbolTable::SymbolUse use : *uses)
        used.insert(use.getSymbolRef().getRootReference().getValue());
    bool isChanged = false;
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (function.getName() == entry)
        continue;
      // Another entry function, whose rules are not those of a private one.
      const bool isUnused =
          !reached.empty() && !used.contains(function.getName());
      isChanged |= isUnused || !function.isPrivate();
      if (isUnused)
        function.erase();
      else
        function.setPrivate();
    }
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
