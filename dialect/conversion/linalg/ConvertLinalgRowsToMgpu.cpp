// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/ForwardStores.h"
#include "dialect/conversion/linalg/ProductSteps.h"
#include "dialect/conversion/linalg/RowThreads.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTLINALGROWSTOMGPU
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

// Launches whose threads share the rows of a run. docs/numerics.md states the
// order in which they add.

namespace {

/// Builds the body of the launch.
class RowBuilder {
public:
  RowBuilder(const RowRun &run, Value device);
  void build();
  ir::LaunchOp launch() const { return threads.launch; }

private:
  using Trip = function_ref<SmallVector<Value>(OpBuilder &, Value, ValueRange)>;

  Value index(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// Builds `make` for threads with a row; the others get `otherwise`.
  SmallVector<Value>
  guarded(ValueRange otherwise,
          function_ref<SmallVector<Value>(OpBuilder &)> make);
  /// Builds `make` for each of this thread's elements of the row, in order.
  SmallVector<Value> strips(ValueRange carried, Trip make);
  SmallVector<Value> stripsIn(OpBuilder &b, ValueRange carried, Trip make);
  void flush();
  void softmax(linalg::SoftmaxOp op);
  void scalars(const RowOp &each);
  /// Builds the body of one operation at element `k` of the row. `outputs` are
  /// the results so far of a reduction.
  SmallVector<Value> step(OpBuilder &b, const RowOp &each, Value k,
                          ValueRange outputs);
  /// The point of the operation's iteration space.
  SmallVector<Value> pointIn(const RowOp &each, Value k);
  SmallVector<Value> indices(OpBuilder &b, const RowOp &each,
                             OpOperand &operand, Value k);
  Value load(OpBuilder &b, const RowOp &each, OpOperand &operand, Value k);
  Value combined(gpu::AllReduceOperation kind, Value part);
  /// Keeps a number of the row for all its threads; one of them stores it.
  void storeOnce(const RowOp &each, OpOperand &init, Value value);
  void meet() { loaded.clear(); }

  ArrayRef<RowOp> run;
  Location loc;
  int64_t length;
  RowThreads threads;
  OpBuilder &inside;                ///< all threads of a block get there
  SmallVector<const RowOp *> group; ///< whose elements one loop goes through
  llvm::DenseMap<Value, Value> numbers; ///< the row's numbers, by memref
  /// Numbers of the row that were loaded since all threads met last.
  llvm::DenseSet<Value> loaded;
};

RowBuilder::RowBuilder(const RowRun &run, Value device)
    : run(run.ops), loc(run.ops.front().op->getLoc()), length(0),
      threads(run.ops.back().op, loc, device, run.ops.front().form.rows,
              run.sharing),
      inside(threads.body) {
  for (const RowOp &each : run.ops)
    length = std::max(length, each.form.length);
}

SmallVector<Value>
RowBuilder::guarded(ValueRange otherwise,
                    function_ref<SmallVector<Value>(OpBuilder &)> make) {
  if (!threads.hasRow)
    return make(inside);
  auto branch =
      scf::IfOp::create(inside, loc, otherwise.getTypes(), threads.hasRow,
                        /*withElseRegion=*/!otherwise.empty());
  OpBuilder then = branch.getThenBodyBuilder();
  SmallVector<Value> results = make(then);
  if (!otherwise.empty()) {
    scf::YieldOp::create(then, loc, results);
    OpBuilder rest = branch.getElseBodyBuilder();
    scf::YieldOp::create(rest, loc, otherwise);
  }
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> RowBuilder::strips(ValueRange carried, Trip make) {
  return guarded(carried,
                 [&](OpBuilder &b) { return stripsIn(b, carried, make); });
}

SmallVector<Value> RowBuilder::stripsIn(OpBuilder &b, ValueRange carried,
                                        Trip make) {
  int64_t whole = length / threads.parts, rest = length % threads.parts;
  SmallVector<Value> values(carried);
  if (whole == 1)
    values = make(b, threads.part, values);
  else if (whole > 0)
    values = makeLoop(b, loc, whole, values,
                      [&](OpBuilder &inner, Value strip, ValueRange now) {
                        Value first = arith::MulIOp::create(
                            inner, loc, strip, index(inner, threads.parts));
                        Value k = arith::AddIOp::create(inner, named(loc, "k"),
                                                        first, threads.part);
                        return make(inner, k, now);
                      });
  if (rest == 0)
    return values;
  Value isInside =
      arith::CmpIOp::create(b, named(loc, "hasRest"), arith::CmpIPredicate::slt,
                            threads.part, index(b, rest));
  auto branch =
      scf::IfOp::create(b, loc, ValueRange(values).getTypes(), isInside,
                        /*withElseRegion=*/!values.empty());
  auto finish = [&](OpBuilder &inner, ValueRange results) {
    if (!results.empty())
      scf::YieldOp::create(inner, loc, results);
  };
  OpBuilder then = branch.getThenBodyBuilder();
  Value k = arith::AddIOp::create(then, named(loc, "k"), threads.part,
                                  index(then, whole * threads.parts));
  finish(then, make(then, k, values));
  if (!values.empty()) {
    OpBuilder otherwise = branch.getElseBodyBuilder();
    finish(otherwise, values);
  }
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> RowBuilder::pointIn(const RowOp &each, Value k) {
  SmallVector<Value> point(threads.row);
  if (each.form.kind != RowKind::Scalars)
    point.insert(point.begin() + each.form.along, k);
  return point;
}

SmallVector<Value> RowBuilder::indices(OpBuilder &b, const RowOp &each,
                                       OpOperand &operand, Value k) {
  auto op = cast<linalg::LinalgOp>(each.op);
  SmallVector<Value> point = pointIn(each, k), all;
  for (AffineExpr expression : op.getMatchingIndexingMap(&operand).getResults())
    all.push_back(
        isa<AffineDimExpr>(expression)
            ? point[cast<AffineDimExpr>(expression).getPosition()]
            : affine::expandAffineExpr(b, loc, expression, point, {}));
  return all;
}

Value RowBuilder::load(OpBuilder &b, const RowOp &each, OpOperand &operand,
                       Value k) {
  Value memref = operand.get();
  if (!isa<MemRefType>(memref.getType()))
    return memref;
  if (auto known = numbers.find(memref); known != numbers.end()) {
    markForwarded(memref);
    return known->second;
  }
  loaded.insert(memref);
  return memref::LoadOp::create(b, loc, memref, indices(b, each, operand, k));
}

SmallVector<Value> RowBuilder::step(OpBuilder &b, const RowOp &each, Value k,
                                    ValueRange outputs) {
  auto op = cast<linalg::LinalgOp>(each.op);
  markProduct(op);
  IRMapping map;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    bool isOutput = op.isDpsInit(&operand);
    if (isOutput && !outputs.empty())
      map.map(argument,
              outputs[operand.getOperandNumber() - op.getNumDpsInputs()]);
    else if (!argument.use_empty())
      map.map(argument, load(b, each, operand, k));
  }
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      map.map(index.getResult(), pointIn(each, k)[index.getDim()]);
    else
      b.clone(inner, map);
  }
  SmallVector<Value> results;
  for (Value value : op.getBlock()->getTerminator()->getOperands())
    results.push_back(map.lookupOrDefault(value));
  addByFma(b, results);
  return results;
}

Value RowBuilder::combined(gpu::AllReduceOperation kind, Value part) {
  if (threads.combiningIsBarrier())
    meet();
  return threads.combined(loc, kind, part);
}

void RowBuilder::storeOnce(const RowOp &each, OpOperand &init, Value value) {
  OpBuilder &b = inside;
  if (loaded.contains(init.get())) { // another thread may still be at it
    gpu::BarrierOp::create(b, loc);
    meet();
  }
  numbers[init.get()] = value;
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        threads.part, index(b, 0));
  if (threads.hasRow)
    isFirst = arith::AndIOp::create(b, loc, isFirst, threads.hasRow);
  auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder then = branch.getThenBodyBuilder();
  memref::StoreOp::create(then, loc, value, init.get(),
                          indices(then, each, init, Value()));
}

/// One loop for all operations of the group.
void RowBuilder::flush() {
  if (group.empty())
    return;
  OpBuilder &b = inside;
  Location after = std::exchange(loc, group.front()->op->getLoc());
  SmallVector<Value> before, parts;
  SmallVector<std::pair<const RowOp *, OpOperand *>> results;
  for (const RowOp *each : group) {
    if (each->form.kind != RowKind::Reduce)
      continue;
    auto op = cast<linalg::LinalgOp>(each->op);
    for (auto [k, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      Type type = cast<MemRefType>(init.get().getType()).getElementType();
      parts.push_back(arith::ConstantOp::create(
          b, loc, neutralOf(each->form.combiners[k], type)));
      results.push_back({each, &init});
    }
  }
  before = guarded(parts, [&](OpBuilder &then) {
    SmallVector<Value> loads;
    for (auto [each, init] : results)
      loads.push_back(load(then, *each, *init, Value()));
    return loads;
  });
  parts = strips(parts, [&](OpBuilder &inner, Value k, ValueRange now) {
    SmallVector<Value> next;
    for (const RowOp *each : group) {
      auto op = cast<linalg::LinalgOp>(each->op);
      bool reduces = each->form.kind == RowKind::Reduce;
      ValueRange mine =
          reduces ? now.slice(next.size(), op.getNumDpsInits()) : ValueRange();
      SmallVector<Value> results = step(inner, *each, k, mine);
      if (reduces) {
        llvm::append_range(next, results);
        continue;
      }
      for (auto [init, result] :
           llvm::zip_equal(op.getDpsInitsMutable(), results))
        memref::StoreOp::create(inner, loc, result, init.get(),
                                indices(inner, *each, init, k));
    }
    return next;
  });
  SmallVector<Value> sums;
  for (const RowOp *each : group)
    for (gpu::AllReduceOperation kind : each->form.combiners)
      sums.push_back(combined(kind, parts[sums.size()]));
  for (auto [k, result] : llvm::enumerate(results)) {
    auto [each, init] = result;
    auto op = cast<linalg::LinalgOp>(each->op);
    unsigned number = init->getOperandNumber() - op.getNumDpsInputs();
    Operation *last = combinerOf(op, number);
    BlockArgument output = op.getRegionOutputArgs()[number];
    IRMapping map;
    for (Value operand : last->getOperands())
      map.map(operand, operand == output ? before[k] : sums[k]);
    storeOnce(*each, *init, b.clone(*last, map)->getResult(0));
  }
  group.clear();
  loc = after;
}

void RowBuilder::softmax(linalg::SoftmaxOp op) {
  OpBuilder &b = inside;
  auto type = cast<FloatType>(
      cast<MemRefType>(op.getInput().getType()).getElementType());
  const size_t along = op.getDimension();
  SmallVector<Value> at(threads.row);
  at.insert(at.begin() + along, Value());
  auto loadAt = [&](OpBuilder &inner, Value memref, Value k) -> Value {
    at[along] = k;
    return memref::LoadOp::create(inner, named(loc, "x"), memref, at);
  };
  auto store = [&](OpBuilder &inner, Value value, Value k) {
    at[along] = k;
    memref::StoreOp::create(inner, loc, value, op.getOutput(), at);
  };
  using Combine = gpu::AllReduceOperation;
  auto constant = [&](const APFloat &value) -> Value {
    return arith::ConstantOp::create(b, loc, FloatAttr::get(type, value));
  };
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  Value lowest = constant(APFloat::getInf(semantics, /*Negative=*/true));
  Value largest =
      combined(Combine::MAXNUMF,
               strips(lowest, [&](OpBuilder &inner, Value k, ValueRange now) {
                 Value x = loadAt(inner, op.getInput(), k);
                 return SmallVector<Value>{
                     arith::MaxNumFOp::create(inner, loc, now[0], x)};
               })[0]);
  Value sum = combined(
      Combine::ADD,
      strips(constant(APFloat::getZero(semantics)),
             [&](OpBuilder &inner, Value k, ValueRange now) {
               Value x = loadAt(inner, op.getInput(), k);
               Value below = arith::SubFOp::create(inner, loc, x, largest);
               Value power =
                   math::ExpOp::create(inner, named(loc, "power"), below);
               store(inner, power, k);
               return SmallVector<Value>{
                   arith::AddFOp::create(inner, loc, now[0], power)};
             })[0]);
  strips({}, [&](OpBuilder &inner, Value k, ValueRange) {
    Value power = loadAt(inner, op.getOutput(), k);
    store(inner, arith::DivFOp::create(inner, loc, power, sum), k);
    return SmallVector<Value>();
  });
}

void RowBuilder::scalars(const RowOp &each) {
  auto op = cast<linalg::LinalgOp>(each.op);
  SmallVector<Value> none;
  for (OpOperand &init : op.getDpsInitsMutable())
    none.push_back(arith::ConstantOp::create(
        inside, loc,
        inside.getZeroAttr(
            cast<MemRefType>(init.get().getType()).getElementType())));
  SmallVector<Value> results = guarded(
      none, [&](OpBuilder &then) { return step(then, each, Value(), {}); });
  for (auto [init, result] : llvm::zip_equal(op.getDpsInitsMutable(), results))
    storeOnce(each, init, result);
}

void RowBuilder::build() {
  for (const RowOp &each : run) {
    loc = each.op->getLoc();
    // A sum that is being made is not there yet.
    bool needsSum = llvm::any_of(group, [&](const RowOp *earlier) {
      return earlier->form.kind == RowKind::Reduce &&
             llvm::any_of(earlier->form.accesses, [&](const RowAccess &mine) {
               return mine.isWritten &&
                      llvm::any_of(each.form.accesses,
                                   [&](const RowAccess &theirs) {
                                     return ir::rootOf(mine.memref) ==
                                            ir::rootOf(theirs.memref);
                                   });
             });
    });
    bool isLoop = each.form.kind == RowKind::Reduce ||
                  each.form.kind == RowKind::Elements;
    if (needsSum || !isLoop)
      flush();
    if (auto op = dyn_cast<linalg::SoftmaxOp>(each.op))
      softmax(op);
    else if (isLoop)
      group.push_back(&each);
    else
      scalars(each);
  }
  flush();
}

} // namespace

/// Makes the launch of a run on `device`, before its last operation. The
/// operations stay. Marks the buffers whose numbers are kept in registers
/// (ForwardStores.h).
static ir::LaunchOp launchRows(const RowRun &run, Value device) {
  RowBuilder builder(run, device);
  builder.build();
  return builder.launch();
}

namespace {

LogicalResult convertRows(const LaunchGroup &group, const RowRun &run) {
  SmallVector<Value> memrefs;
  for (const RowAccess &access : run.ops.back().form.accesses)
    memrefs.push_back(access.memref);
  FailureOr<Value> device = ir::deviceOfAll(group.back(), memrefs);
  if (failed(device))
    return failure();
  replaceByLaunch(group, launchRows(run, *device));
  return success();
}

struct ConvertLinalgRowsToMgpu
    : impl::ConvertLinalgRowsToMgpuBase<ConvertLinalgRowsToMgpu> {
  using ConvertLinalgRowsToMgpuBase::ConvertLinalgRowsToMgpuBase;

  void runOnOperation() override {
    bool isChanged = false;
    for (const LaunchGroup &group : launchGroupsOf(getOperation(), entry)) {
      auto run = rowRunOf(group);
      if (!run)
        continue;
      if (failed(convertRows(group, *run)))
        return signalPassFailure();
      isChanged = true;
    }
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
