// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/RowLaunch.h"

#include "dialect/mgpu/Diagnostics.h"
#include "planner/import/PointLaunch.h"
#include "planner/import/RowForm.h"
#include "planner/import/TensorFusion.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

#include <numeric>

namespace mgpu::planner {

using namespace mlir;

namespace {

// A row is shared by so many threads, whoever computes it: they decide the
// order of its sums, which a tuner may not change.
constexpr int64_t threadsOfRow = 256;
// Fewer rows than a large card has threads for, each long enough for a block.
constexpr int64_t mostRows = 8192, leastLength = threadsOfRow;
// So few blocks would be slower at what needs no reduction than a thread for
// each element.
constexpr int64_t leastRowsToShare = 32;

struct RowOp {
  Operation *op;
  RowForm form;
};

int64_t countOf(ArrayRef<int64_t> rows) {
  return std::accumulate(rows.begin(), rows.end(), int64_t(1),
                         std::multiplies<>());
}

bool isReduction(const RowForm &form) {
  return form.kind == RowKind::Reduce || form.kind == RowKind::Softmax;
}

std::optional<RowForm> reductionForm(Operation *op) {
  auto form = rowFormOf(op, RowKind::Reduce);
  return form ? form : rowFormOf(op, RowKind::Softmax);
}

/// Whether what one of them writes the other touches only at the same element
/// of its row, or row: forms say that each is the only one to write there.
bool mayFollow(const RowForm &first, const RowForm &next) {
  for (const RowAccess &mine : first.accesses)
    for (const RowAccess &theirs : next.accesses)
      if ((mine.isWritten || theirs.isWritten) &&
          rootOf(mine.memref) == rootOf(theirs.memref) &&
          (mine.memref != theirs.memref || !mine.axes ||
           mine.axes != theirs.axes))
        return false;
  return true;
}

/// The device handle that all its memrefs show they were allocated with.
Value visibleDevice(const RowForm &form) {
  Value device;
  for (const RowAccess &access : form.accesses) {
    auto alloc = rootOf(access.memref).getDefiningOp<ir::AllocOp>();
    if (!alloc || (device && device != alloc.getDevice()))
      return {};
    device = alloc.getDevice();
  }
  return device;
}

/// The operations from `first` on that share rows like `rows` and `length`.
SmallVector<RowOp> runOf(Operation *first, ArrayRef<int64_t> rows,
                         int64_t length, bool fuse, std::string &why) {
  SmallVector<RowOp> run;
  size_t whole = 0; // up to the last one that is of use here
  bool reduces = false;
  Value device;
  bool sharesRows = countOf(rows) >= leastRowsToShare;
  for (Operation *op = first; op; op = op->getNextNode()) {
    if (!isa<linalg::LinalgOp, linalg::SoftmaxOp>(op)) {
      if (isa<ir::AllocOp>(op) || isMemoryEffectFree(op))
        continue;
      why = op->getName().getStringRef().str() + " at " +
            ir::describeLocation(op->getLoc()) + " is between them";
      break;
    }
    why = "it does not work on the same rows";
    std::optional<RowForm> form;
    for (RowKind kind : {RowKind::Reduce, RowKind::Softmax, RowKind::Scalars,
                         RowKind::Elements}) {
      form = rowFormOf(op, kind);
      if (form && form->rows == rows &&
          (kind == RowKind::Scalars || form->length == length) &&
          (kind != RowKind::Elements || sharesRows))
        break;
      form.reset();
    }
    if (!form)
      break;
    why = "what one writes the other touches elsewhere in the row, or the text "
          "does not show that their buffers are of one device";
    Value here = visibleDevice(*form);
    if (!run.empty() &&
        (!here || here != device || !llvm::all_of(run, [&](const RowOp &each) {
          return mayFollow(each.form, *form);
        })))
      break;
    device = here;
    reduces |= isReduction(*form);
    run.push_back({op, std::move(*form)});
    if (reduces)
      whole = run.size();
    if (!fuse || !device)
      break;
  }
  if (whole < run.size())
    why = "no reduction of the rows follows";
  run.resize(whole);
  return run;
}

SmallVector<RowOp> findRun(Operation *first, bool fuse,
                           std::string *why = nullptr) {
  SmallVector<RowOp> best;
  auto consider = [&](const std::optional<RowForm> &form) {
    if (!form || form->length < leastLength || countOf(form->rows) > mostRows)
      return;
    std::string reason;
    SmallVector<RowOp> run =
        runOf(first, form->rows, form->length, fuse, reason);
    if (run.size() <= best.size())
      return;
    best = std::move(run);
    if (why)
      *why = std::move(reason);
  };
  consider(reductionForm(first));
  consider(rowFormOf(first, RowKind::Elements));
  if (!best.empty() || !fuse)
    return best;
  // It may be of what each row has one of, and a reduction follow.
  auto scalars = rowFormOf(first, RowKind::Scalars);
  if (!scalars)
    return best;
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode())
    if (auto form = reductionForm(op)) {
      if (form->rows == scalars->rows)
        consider(form);
      break;
    }
  return best;
}

/// Builds the body of the launch.
class RowBuilder {
public:
  /// Adds the memrefs whose value it has at hand to `forwarded`.
  RowBuilder(ArrayRef<RowOp> run, Value device,
             llvm::SetVector<Value> &forwarded);
  void build();
  ir::LaunchOp launch;

private:
  using Trip = function_ref<SmallVector<Value>(OpBuilder &, Value, ValueRange)>;

  Value index(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// This thread's elements of the row, one after the other.
  SmallVector<Value> strips(ValueRange carried, Trip make);
  void flush();
  void softmax(linalg::SoftmaxOp op);
  void scalars(const RowOp &each);
  /// The body of one operation at element `k` of the row; results so far in
  /// place of its outputs where it is a reduction.
  SmallVector<Value> step(OpBuilder &b, const RowOp &each, Value k,
                          ValueRange outputs);
  /// Of the operation's iteration space.
  SmallVector<Value> pointIn(const RowOp &each, Value k);
  SmallVector<Value> indices(OpBuilder &b, const RowOp &each,
                             OpOperand &operand, Value k);
  Value load(OpBuilder &b, const RowOp &each, OpOperand &operand, Value k);
  Value combined(gpu::AllReduceOperation kind, Value part);
  /// Of a row: kept for all threads, stored by one.
  void storeOnce(const RowOp &each, OpOperand &init, Value value);
  void meet() { loaded.clear(); }

  ArrayRef<RowOp> run;
  Location loc;
  int64_t length;
  llvm::SetVector<Value> &forwarded;
  std::optional<OpBuilder> inside;
  SmallVector<Value> row;
  Value thread;
  SmallVector<const RowOp *> group; ///< whose elements one loop goes through
  llvm::DenseMap<Value, Value> numbers; ///< of the row, by memref
  /// Numbers of the row that were loaded since all threads met last.
  llvm::DenseSet<Value> loaded;
};

RowBuilder::RowBuilder(ArrayRef<RowOp> run, Value device,
                       llvm::SetVector<Value> &forwarded)
    : run(run), loc(run.front().op->getLoc()), length(0), forwarded(forwarded) {
  for (const RowOp &each : run)
    length = std::max(length, each.form.length);
  ArrayRef<int64_t> rows = run.front().form.rows;
  Operation *last = run.back().op;
  OpBuilder b(last);
  SmallVector<Value> grid, block;
  for (int64_t size : sizesOf(rows))
    grid.push_back(index(b, size));
  for (int64_t size : {threadsOfRow, int64_t(1), int64_t(1)})
    block.push_back(index(b, size));
  launch = makeLaunch(b, last, device, grid, block);
  inside.emplace(launch.getBody().front().getTerminator());
  Value ids[3];
  for (unsigned axis = 0; axis < std::min<size_t>(rows.size(), 3); ++axis)
    ids[axis] = gpu::BlockIdOp::create(*inside, loc, gpu::Dimension(axis));
  row = pointOf(*inside, loc, rows, ids);
  thread = gpu::ThreadIdOp::create(*inside, loc, gpu::Dimension::x);
}

SmallVector<Value> RowBuilder::strips(ValueRange carried, Trip make) {
  OpBuilder &b = *inside;
  int64_t whole = length / threadsOfRow, rest = length % threadsOfRow;
  SmallVector<Value> values(carried);
  if (whole > 0)
    values = makeLoop(b, loc, whole, values,
                      [&](OpBuilder &inner, Value strip, ValueRange now) {
                        Value first = arith::MulIOp::create(
                            inner, loc, strip, index(inner, threadsOfRow));
                        Value k =
                            arith::AddIOp::create(inner, loc, first, thread);
                        return make(inner, k, now);
                      });
  if (rest == 0)
    return values;
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         thread, index(b, rest));
  auto branch =
      scf::IfOp::create(b, loc, ValueRange(values).getTypes(), isInside,
                        /*withElseRegion=*/!values.empty());
  auto finish = [&](OpBuilder &inner, ValueRange results) {
    if (!results.empty())
      scf::YieldOp::create(inner, loc, results);
  };
  OpBuilder then = branch.getThenBodyBuilder();
  Value k = arith::AddIOp::create(then, loc, thread,
                                  index(then, whole * threadsOfRow));
  finish(then, make(then, k, values));
  if (!values.empty()) {
    OpBuilder otherwise = branch.getElseBodyBuilder();
    finish(otherwise, values);
  }
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> RowBuilder::pointIn(const RowOp &each, Value k) {
  auto op = cast<linalg::LinalgOp>(each.op);
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  unsigned along = op.getNumLoops(); // none
  if (each.form.kind == RowKind::Reduce)
    along = reductions[0];
  else if (each.form.kind == RowKind::Elements)
    --along;
  SmallVector<Value> point(row);
  if (along < op.getNumLoops())
    point.insert(point.begin() + along, k);
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
    forwarded.insert(memref);
    return known->second;
  }
  loaded.insert(memref);
  return memref::LoadOp::create(b, loc, memref, indices(b, each, operand, k));
}

SmallVector<Value> RowBuilder::step(OpBuilder &b, const RowOp &each, Value k,
                                    ValueRange outputs) {
  auto op = cast<linalg::LinalgOp>(each.op);
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
  return results;
}

Value RowBuilder::combined(gpu::AllReduceOperation kind, Value part) {
  OpBuilder &b = *inside;
  meet();
  return gpu::AllReduceOp::create(
      b, loc, part, gpu::AllReduceOperationAttr::get(b.getContext(), kind),
      b.getUnitAttr());
}

void RowBuilder::storeOnce(const RowOp &each, OpOperand &init, Value value) {
  OpBuilder &b = *inside;
  if (loaded.contains(init.get())) { // another thread may still be at it
    gpu::BarrierOp::create(b, loc);
    meet();
  }
  numbers[init.get()] = value;
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        thread, index(b, 0));
  auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder then = branch.getThenBodyBuilder();
  memref::StoreOp::create(then, loc, value, init.get(),
                          indices(then, each, init, Value()));
}

/// One loop for all operations of the group.
void RowBuilder::flush() {
  if (group.empty())
    return;
  OpBuilder &b = *inside;
  Location after = std::exchange(loc, group.front()->op->getLoc());
  SmallVector<Value> before, parts;
  for (const RowOp *each : group) {
    if (each->form.kind != RowKind::Reduce)
      continue;
    auto op = cast<linalg::LinalgOp>(each->op);
    for (auto [k, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      before.push_back(load(b, *each, init, Value()));
      parts.push_back(arith::ConstantOp::create(
          b, loc, neutralOf(each->form.combiners[k], before.back().getType())));
    }
  }
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
  size_t next = 0;
  SmallVector<Value> sums;
  for (const RowOp *each : group)
    for (gpu::AllReduceOperation kind : each->form.combiners)
      sums.push_back(combined(kind, parts[sums.size()]));
  for (const RowOp *each : group) {
    if (each->form.kind != RowKind::Reduce)
      continue;
    auto op = cast<linalg::LinalgOp>(each->op);
    for (auto [k, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      Operation *last = combinerOf(op, unsigned(k));
      BlockArgument output = op.getRegionOutputArgs()[k];
      IRMapping map;
      for (Value operand : last->getOperands())
        map.map(operand, operand == output ? before[next] : sums[next]);
      storeOnce(*each, init, b.clone(*last, map)->getResult(0));
      ++next;
    }
  }
  group.clear();
  loc = after;
}

void RowBuilder::softmax(linalg::SoftmaxOp op) {
  OpBuilder &b = *inside;
  auto type = cast<FloatType>(
      cast<MemRefType>(op.getInput().getType()).getElementType());
  SmallVector<Value> at(row);
  at.push_back(Value());
  auto loadAt = [&](OpBuilder &inner, Value memref, Value k) -> Value {
    at.back() = k;
    return memref::LoadOp::create(inner, loc, memref, at);
  };
  auto store = [&](OpBuilder &inner, Value value, Value k) {
    at.back() = k;
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
  Value sum =
      combined(Combine::ADD,
               strips(constant(APFloat::getZero(semantics)),
                      [&](OpBuilder &inner, Value k, ValueRange now) {
                        Value x = loadAt(inner, op.getInput(), k);
                        Value below =
                            arith::SubFOp::create(inner, loc, x, largest);
                        Value power = math::ExpOp::create(inner, loc, below);
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
  SmallVector<Value> results = step(*inside, each, Value(), {});
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
                      llvm::any_of(
                          each.form.accesses, [&](const RowAccess &theirs) {
                            return rootOf(mine.memref) == rootOf(theirs.memref);
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

SmallVector<Operation *> rowRunFrom(Operation *first, bool fuse,
                                    std::string *why) {
  SmallVector<Operation *> run;
  for (const RowOp &each : findRun(first, fuse, why))
    run.push_back(each.op);
  return run;
}

LogicalResult launchRows(Operation *first, bool fuse,
                         llvm::SetVector<Value> &forwarded) {
  SmallVector<RowOp> run = findRun(first, fuse);
  SmallVector<Value> memrefs;
  for (const RowAccess &access : run.back().form.accesses)
    memrefs.push_back(access.memref);
  FailureOr<Value> device = deviceOfAll(run.back().op, memrefs);
  if (failed(device))
    return failure();
  RowBuilder builder(run, *device, forwarded);
  builder.build();
  SmallVector<Operation *> operations;
  for (const RowOp &each : run)
    operations.push_back(each.op);
  if (run.size() > 1) {
    joinNames(builder.launch, operations);
    forwardStores(builder.launch, forwarded);
  }
  for (Operation *op : operations)
    op->erase();
  return success();
}

} // namespace mgpu::planner
