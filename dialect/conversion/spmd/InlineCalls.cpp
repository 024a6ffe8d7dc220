// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/spmd/Programs.h"
#include "dialect/conversion/spmd/Reshard.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/spmd/SpmdDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"
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

#define GEN_PASS_DEF_INLINECALLS
#include "dialect/conversion/Passes.h.inc"

namespace {

/// Whether each device holds the same part under both.
bool areAlike(spmd::LayoutAttr a, spmd::LayoutAttr b, ArrayRef<int64_t> full) {
  for (int64_t device = a.firstDevice(); device < a.endDevice(); ++device)
    if (a.shardOffsets(full, device) != b.shardOffsets(full, device) ||
        a.shardShape(full, device) != b.shardShape(full, device))
      return false;
  return true;
}

/// The body of one spmd.call, for the devices that run it.
class InlinedCall {
public:
  InlinedCall(spmd::CallOp call, func::FuncOp callee)
      : call(call), callee(callee), first(call.getAnyLayout().firstDevice()),
        end(call.getAnyLayout().endDevice()) {}

  LogicalResult run() {
    OpBuilder b(call);
    auto on = spmd::OnOp::create(
        b, call.getLoc(), call->getResultTypes(), first, end,
        [&](OpBuilder &inner) -> ValueRange { return emit(inner); });
    on->setDiscardableAttrs(call->getDiscardableAttrDictionary());
    call->replaceAllUsesWith(on.getOutputs());
    call->erase();
    return failure(isFailed);
  }

private:
  /// The layout that the callee says, or all of it on each device.
  spmd::LayoutAttr layoutOr(spmd::LayoutAttr layout, Type type) {
    if (!layout)
      layout = spmd::replicated(call.getContext(), end - first,
                                cast<RankedTensorType>(type).getRank());
    return layout.startingAt(first);
  }
  Value change(OpBuilder &b, Value local, Type whole, spmd::LayoutAttr from,
               spmd::LayoutAttr to);
  SmallVector<Value> &emit(OpBuilder &b);
  void emitOp(OpBuilder &b, Operation *op);
  void shift(OpBuilder &b, Operation *op);
  Value rankFor(OpBuilder &b, Operation *index);
  ArrayAttr shifted(ArrayAttr lists);

  spmd::CallOp call;
  func::FuncOp callee;
  int64_t first, end;
  IRMapping map;
  SmallVector<Value> results;
  bool isFailed = false;
};

Value InlinedCall::change(OpBuilder &b, Value local, Type whole,
                          spmd::LayoutAttr from, spmd::LayoutAttr to) {
  auto type = cast<RankedTensorType>(whole);
  if (from == to || areAlike(from, to, type.getShape()))
    return local;
  Location loc = local.getLoc();
  Value init = emptyPart(b, loc, type.getShape(), type.getElementType(), to);
  return spmd::MoveOp::create(b, loc, TypeRange(init.getType()), local, init,
                              from, to, type.getShape())
      ->getResult(0);
}

SmallVector<Value> &InlinedCall::emit(OpBuilder &b) {
  for (BlockArgument argument : callee.getArguments()) {
    unsigned k = argument.getArgNumber();
    spmd::LayoutAttr wants =
        layoutOr(spmd::layoutOf(callee, argument), argument.getType());
    map.map(argument,
            change(b, call.getInputs()[k], argument.getType(),
                   cast<spmd::LayoutAttr>(call.getInLayouts()[k]), wants));
  }
  for (Operation &op : callee.front().without_terminator())
    emitOp(b, &op);
  for (OpOperand &returned : callee.front().getTerminator()->getOpOperands()) {
    unsigned k = returned.getOperandNumber();
    auto join = returned.get().getDefiningOp<spmd::ShardToFullOp>();
    Type whole = callee.getResultTypes()[k];
    spmd::LayoutAttr has = layoutOr(spmd::layoutOfResult(callee, k), whole);
    results.push_back(
        change(b, map.lookup(join ? join.getShard() : returned.get()), whole,
               has, cast<spmd::LayoutAttr>(call.getOutLayouts()[k])));
  }
  return results;
}

/// The number that `index`, an spmd.device_index, has in the callee's mesh.
Value InlinedCall::rankFor(OpBuilder &b, Operation *index) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(index);
  Location loc = index->getLoc();
  Value own =
      arith::SubIOp::create(b, loc, index->getResult(0),
                            arith::ConstantIndexOp::create(b, loc, first));
  index->getResult(0).replaceAllUsesExcept(own, own.getDefiningOp());
  return own;
}

void InlinedCall::emitOp(OpBuilder &b, Operation *op) {
  if (auto cut = dyn_cast<spmd::FullToShardOp>(op))
    return map.map(cut.getShard(), map.lookup(cut.getFull()));
  if (isa<spmd::ShardToFullOp>(op))
    return;
  if (isa<spmd::CallOp, spmd::OnOp>(op)) {
    ir::emitUnsupported(op) << "stands in a function that spmd.call runs";
    isFailed = true;
  }
  Operation *made = b.clone(*op, map);
  if (first == 0)
    return;
  if (isa<spmd::DeviceIndexOp>(op))
    map.map(op->getResult(0), rankFor(b, made));
  else
    shift(b, made);
}

/// Device k of the callee is device first + k.
ArrayAttr InlinedCall::shifted(ArrayAttr lists) {
  Builder b(lists.getContext());
  return b.getArrayAttr(
      llvm::map_to_vector(lists, [&](Attribute list) -> Attribute {
        SmallVector<int64_t> devices(
            cast<DenseI64ArrayAttr>(list).asArrayRef());
        for (int64_t &device : devices)
          device += first;
        return b.getDenseI64ArrayAttr(devices);
      }));
}

void InlinedCall::shift(OpBuilder &b, Operation *root) {
  root->walk([&](Operation *op) {
    for (StringRef name : {"groups", "pairs"})
      if (auto lists = op->getAttrOfType<ArrayAttr>(name);
          lists && isa<spmd::SpmdDialect>(op->getDialect()))
        op->setAttr(name, shifted(lists));
    if (auto move = dyn_cast<spmd::MoveOp>(op)) {
      move.setFromAttr(move.getFrom().startingAt(first));
      move.setToAttr(move.getTo().startingAt(first));
    }
    if (isa<spmd::DeviceIndexOp>(op))
      rankFor(b, op);
  });
}

struct InlineCalls : impl::InlineCallsBase<InlineCalls> {
  using InlineCallsBase::InlineCallsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::SetVector<func::FuncOp> programs = programsOf(module, entry);
    if (programs.size() < 2)
      return markAllAnalysesPreserved();
    SmallVector<spmd::CallOp> calls;
    func::FuncOp(programs[0]).walk([&](spmd::CallOp call) {
      calls.push_back(call);
    });
    SymbolTable symbols(module);
    for (spmd::CallOp call : calls)
      if (failed(
              InlinedCall(call, symbols.lookup<func::FuncOp>(call.getCallee()))
                  .run()))
        return signalPassFailure();
    llvm::StringSet<> used; // by functions that are not lowered
    for (auto function : module.getOps<func::FuncOp>())
      if (!programs.contains(function))
        if (auto uses = SymbolTable::getSymbolUses(function))
          for (SymbolTable::SymbolUse use : *uses)
            used.insert(use.getSymbolRef().getRootReference().getValue());
    for (func::FuncOp callee : programs.getArrayRef().drop_front())
      if (!used.contains(callee.getName()))
        callee.erase();
  }
};

} // namespace

#define GEN_PASS_DEF_INLINEFUNCTIONS
#include "dialect/conversion/Passes.h.inc"

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
