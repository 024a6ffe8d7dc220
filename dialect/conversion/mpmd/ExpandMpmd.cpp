// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/MemoryKinds.h"
#include "dialect/conversion/mpmd/PlainOps.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mpmd/MpmdDialect.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_EXPANDMPMD
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// A round is a microbatch, as a call is: of loops in each other, the
/// outermost.
void setCounter(Operation *op, uint32_t round) {
  if (isa<mpmd::FragmentOp, mpmd::FragmentCallOp, mpmd::NamedComputationOp>(op))
    op->setAttr(
        mpmd::callCounterName,
        Builder(op).getIntegerAttr(
            IntegerType::get(op->getContext(), 32, IntegerType::Unsigned),
            round));
}

/// Writes the rounds of a loop one after the other.
LogicalResult unroll(mpmd::ForOp loop) {
  constexpr int64_t mostOperations = 1'000'000;
  Block &body = loop.getRegion().front();
  int64_t perRound = 0;
  loop.walk([&](Operation *) { ++perRound; });
  if (loop.getIterations() > mostOperations / perRound)
    return ir::emitUnsupported(loop)
           << "has " << loop.getIterations() << " rounds of " << perRound
           << " operations; at most " << mostOperations << " are written out";
  OpBuilder b(loop);
  SmallVector<Value> values(loop.getTensors());
  for (uint32_t round = 0; round < loop.getIterations(); ++round) {
    IRMapping map;
    map.map(body.getArguments().drop_back(), values);
    BlockArgument index = loop.getIndexArg();
    auto type = cast<RankedTensorType>(index.getType());
    map.map(index,
            stablehlo::ConstantOp::create(
                b, loop.getLoc(),
                DenseElementsAttr::get(
                    type, b.getIntegerAttr(type.getElementType(), round))));
    for (Operation &op : body.without_terminator())
      setCounter(b.clone(op, map), round);
    for (auto [value, next] :
         llvm::zip(values, body.getTerminator()->getOperands()))
      value = map.lookupOrDefault(next);
  }
  loop->replaceAllUsesWith(values);
  loop->erase();
  return success();
}

/// A fragment that was unrolled before has the number of its round.
void countUnrolled(func::FuncOp function) {
  function.walk([](mpmd::FragmentOp op) {
    Attribute round = op->removeAttr("unroll_counter");
    if (round && !op->hasAttr(mpmd::callCounterName))
      op->setAttr(mpmd::callCounterName, round);
  });
}

/// The shardings that a fragment's function gives its values; null where it
/// gives none.
sdy::TensorShardingPerValueAttr
shardingsOf(func::FuncOp callee, unsigned count,
            function_ref<Attribute(unsigned)> attributeOf) {
  SmallVector<sdy::TensorShardingAttr> all;
  for (unsigned k = 0; k < count; ++k)
    if (auto one = dyn_cast_or_null<sdy::TensorShardingAttr>(attributeOf(k)))
      all.push_back(one);
  return all.size() == count && count > 0
             ? sdy::TensorShardingPerValueAttr::get(callee.getContext(), all)
             : sdy::TensorShardingPerValueAttr();
}

/// Makes a fragment of a call of one, with the callee's body.
LogicalResult inlineCall(mpmd::FragmentCallOp call, ModuleOp module) {
  auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
  if (!callee || callee.isExternal() || !callee.getBody().hasOneBlock())
    return ir::emitUnsupported(call)
           << "calls " << call.getCallee()
           << ", which is not a function with a body of one block";
  OpBuilder b(call);
  auto fragment = mpmd::FragmentOp::create(
      b, call.getLoc(), call->getResultTypes(), call.getTensors(),
      call.getOrigin(), call.getMeshNameAttr(), IntegerAttr(),
      shardingsOf(
          callee, callee.getNumArguments(),
          [&](unsigned k) { return callee.getArgAttr(k, sdy::shardingName); }),
      shardingsOf(callee, callee.getNumResults(), [&](unsigned k) {
        return callee.getResultAttr(k, sdy::shardingName);
      }));
  fragment->setDiscardableAttrs(call->getDiscardableAttrDictionary());
  IRMapping map;
  callee.getBody().cloneInto(&fragment.getRegion(), map);
  Operation *end = fragment.getRegion().front().getTerminator();
  b.setInsertionPoint(end);
  mpmd::ReturnOp::create(b, end->getLoc(), end->getOperands());
  end->erase();
  call->replaceAllUsesWith(fragment);
  call->erase();
  return success();
}

struct ExpandMpmd : impl::ExpandMpmdBase<ExpandMpmd> {
  using ExpandMpmdBase::ExpandMpmdBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal())
      return;
    SmallVector<mpmd::ForOp> loops; // inner ones first
    function.walk([&](mpmd::ForOp loop) { loops.push_back(loop); });
    for (mpmd::ForOp loop : loops)
      if (failed(unroll(loop)))
        return signalPassFailure();
    SmallVector<mpmd::FragmentCallOp> calls;
    function.walk([&](mpmd::FragmentCallOp call) { calls.push_back(call); });
    if (loops.empty() && calls.empty())
      return markAllAnalysesPreserved();
    llvm::SetVector<Operation *> callees;
    for (mpmd::FragmentCallOp call : calls) {
      callees.insert(getOperation().lookupSymbol(call.getCallee()));
      if (failed(inlineCall(call, getOperation())))
        return signalPassFailure();
    }
    countUnrolled(function);
    for (Operation *callee : callees) // they are not lowered
      if (SymbolTable::symbolKnownUseEmpty(callee, getOperation()))
        callee->erase();
  }
};

} // namespace

#define GEN_PASS_DEF_FLATTENMPMD
#include "dialect/conversion/Passes.h.inc"

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
