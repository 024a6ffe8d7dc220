// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/RowRun.h"

#include "dialect/conversion/linalg/PointRun.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"
#include "dialect/mgpu/MgpuDialect.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

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
          ir::rootOf(mine.memref) == ir::rootOf(theirs.memref) &&
          !ir::areApart(mine.memref, theirs.memref) &&
          (mine.memref != theirs.memref || !mine.axes ||
           mine.axes != theirs.axes))
        return false;
  return true;
}

/// The form in which `op` shares rows like those of `model`, which threads
/// share in that way; none if it does not.
std::optional<RowForm> formLike(const RowForm &model, RowSharing sharing,
                                Operation *op) {
  const bool sharesElements =
      mayShareElements(sharing, model.rows, model.length);
  for (RowKind kind : {RowKind::Reduce, RowKind::Softmax, RowKind::Scalars,
                       RowKind::Elements}) {
    auto form = rowFormOf(op, kind, model.along);
    if (form && form->rows == model.rows &&
        (kind == RowKind::Scalars || form->length == model.length) &&
        (!isReduction(*form) || form->isInner == model.isInner) &&
        (kind != RowKind::Elements || sharesElements))
      return form;
  }
  return std::nullopt;
}

/// The operations from `first` to `last`, or to the end of their block, that
/// share rows like those of `model`, which threads share in that way.
RowRun runOf(Operation *first, Operation *last, const RowForm &model,
             RowSharing sharing) {
  RowRun run{{}, sharing, ""};
  size_t whole = 0; // up to the last one that is of use here
  bool reduces = false;
  Value device;
  for (Operation *op = first; op; op = op->getNextNode()) {
    if (!isa<linalg::LinalgOp, linalg::SoftmaxOp>(op)) {
      if (mayBeBetween(op))
        continue;
      run.why = op->getName().getStringRef().str() + " at " +
                ir::describeLocation(op->getLoc()) + " is between them";
      break;
    }
    run.why = "its launch has as many operations as one may have";
    if (run.ops.size() == mostInLaunch)
      break;
    run.why = "it does not work on the same rows, or too few threads would "
              "share their elements";
    auto form = formLike(model, sharing, op);
    if (!form)
      break;
    run.why = "what one writes the other touches elsewhere in the row, or the "
              "text does not show that their buffers are of one device";
    Value here = visibleDevice(*form);
    if (!run.ops.empty() && (!here || here != device ||
                             !llvm::all_of(run.ops, [&](const RowOp &each) {
                               return mayFollow(each.form, *form);
                             })))
      break;
    device = here;
    reduces |= isReduction(*form);
    run.ops.push_back({op, std::move(*form)});
    if (reduces)
      whole = run.ops.size();
    if (op == last || !device)
      break;
  }
  if (whole < run.ops.size())
    run.why = "no reduction of the rows follows";
  run.ops.erase(run.ops.begin() + whole, run.ops.end());
  return run;
}

/// Whether none of the memrefs that it names first is of another device.
bool mayBeOn(Operation *op, Value device) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isa<MemRefType>(operand.getType()) ||
           ir::visibleDevice(operand) == device;
  });
}

} // namespace

/// The run from `first` to `last` at most whose rows are those of `reduction`.
static RowRun runLike(Operation *first, Operation *last,
                      const std::optional<RowForm> &reduction) {
  auto sharing = reduction ? sharingOf(*reduction) : std::nullopt;
  return sharing ? runOf(first, last, *reduction, *sharing)
                 : RowRun{{}, RowSharing::Block, ""};
}

/// The device of what may come before a reduction in its run; null for others.
static Value deviceBeforeReduction(Operation *first) {
  // It may be of elements, or of what each row has one of.
  auto form = rowFormOf(first, RowKind::Elements);
  if (!form)
    form = rowFormOf(first, RowKind::Scalars);
  return form ? visibleDevice(*form) : Value();
}

/// The first reduction of rows behind `first`, if all that is between them may
/// be between operations of a launch on that device.
Operation *RowRuns::reductionAfter(Operation *first, Value device) {
  SmallVector<Operation *> passed{first};
  Operation *found = nullptr;
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    const bool isOne = isa<linalg::LinalgOp, linalg::SoftmaxOp>(op);
    if (isOne ? !mayBeOn(op, device) : !mayBeBetween(op))
      break;
    if (!isOne)
      continue;
    if (reductionForm(op)) {
      found = op;
      break;
    }
    if (auto known = reductions.find({op, device}); known != reductions.end()) {
      found = known->second;
      break;
    }
    passed.push_back(op);
  }
  for (Operation *op : passed)
    reductions[{op, device}] = found;
  return found;
}

RowRun RowRuns::from(Operation *first) {
  RowRun run = runLike(first, nullptr, reductionForm(first));
  Value device = run.ops.empty() ? deviceBeforeReduction(first) : Value();
  if (!device)
    return run;
  auto known = reductions.find({first, device});
  Operation *next =
      known != reductions.end() ? known->second : reductionAfter(first, device);
  return next ? runLike(first, nullptr, reductionForm(next)) : run;
}

std::optional<RowRun> rowRunOf(const LaunchGroup &group) {
  Operation *first = group.front(), *last = group.back();
  RowRun run = runLike(first, last, reductionForm(first));
  if (run.ops.empty() && group.size() > 1 && deviceBeforeReduction(first))
    for (Operation *op : ArrayRef(group).drop_front())
      if (auto form = reductionForm(op)) {
        run = runLike(first, last, form);
        break;
      }
  if (run.ops.size() != group.size())
    return std::nullopt;
  for (auto [op, each] : llvm::zip_equal(group, run.ops))
    if (op != each.op)
      return std::nullopt;
  return run;
}

} // namespace mgpu::conversion
