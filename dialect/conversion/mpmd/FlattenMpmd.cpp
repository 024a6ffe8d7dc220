// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/MemoryKinds.h"
#include "dialect/conversion/mpmd/PlainOps.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_FLATTENMPMD
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

struct FlattenMpmd : impl::FlattenMpmdBase<FlattenMpmd> {
  using FlattenMpmdBase::FlattenMpmdBase;

  /// Says how values are shared or where they are, and computes nothing.
  static bool isNote(Operation *op) {
    return isa<sdy::ShardingConstraintOp, sdy::ReshardOp>(op) ||
           isPlacement(op);
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal() || !mpmd::topologyOf(function))
      return;
    if (!function.getBody().hasOneBlock()) {
      ir::emitUnsupported(function) << "branches between blocks";
      return signalPassFailure();
    }
    for (BlockArgument argument : function.getArguments())
      if (RankedTensorType type = globalTypeOf(argument.getType()))
        argument.setType(type);
    SmallVector<Operation *> ops; // inner ones first
    function.walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      op->removeDiscardableAttr(sdy::shardingName);
      if (isNote(op)) {
        op->getResult(0).replaceAllUsesWith(op->getOperand(0));
        op->erase();
      } else if (isa<sdy::ShardingGroupOp>(op)) {
        op->erase();
      } else if (isa_and_nonnull<mpmd::MpmdDialect>(op->getDialect()) &&
                 !isa<mpmd::ReturnOp>(op)) {
        makePlain(op);
      }
    }
    function.setFunctionType(
        FunctionType::get(&getContext(), function.front().getArgumentTypes(),
                          function.front().getTerminator()->getOperandTypes()));
    function->removeAttr(mpmd::topologyName);
    function->removeAttr(mpmd::assignmentName);
    for (StringRef name :
         {StringRef(sdy::shardingName), StringRef(mpmd::memoryKindName)}) {
      for (unsigned k = 0; k < function.getNumArguments(); ++k)
        function.removeArgAttr(k, name);
      for (unsigned k = 0; k < function.getNumResults(); ++k)
        function.removeResultAttr(k, StringAttr::get(&getContext(), name));
    }
  }
};

} // namespace

} // namespace mgpu::conversion
