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

/// The operations from `first` on that share rows like those of `model`, which
/// threads share in that way.
RowRun runOf(Operation *first, const RowForm &model, RowSharing sharing,
             bool fuse) {
  RowRun run{{}, sharing, ""};
  size_t whole = 0; // up to the last one that is of use here
  bool reduces = false;
  Value device;
  const bool sharesElements =
      mayShareElements(sharing, model.rows, model.length);
  for (Operation *op = first; op; op = op->getNextNode()) {
    if (!isa<linalg::LinalgOp, linalg::SoftmaxOp>(op)) {
      if (mayBeBetween(op))
        continue;
      run.why = op->getName().getStringRef().str() + " at " +
                ir::describeLocation(op->getLoc()) + " is between them";
      break;
    }
    run.why = "it does not work on the same rows, or too few threads would "
              "share their elements";
    std::optional<RowForm> form;
    for (RowKind kind : {RowKind::Reduce, RowKind::Softmax, RowKind::Scalars,
                         RowKind::Elements}) {
      form = rowFormOf(op, kind, model.along);
      if (form && form->rows == model.rows &&
          (kind == RowKind::Scalars || form->length == model.length) &&
          (!isReduction(*form) || form->isInner == model.isInner) &&
          (kind != RowKind::Elements || sharesElements))
        break;
      form.reset();
    }
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
    if (!fuse || !device)
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

RowRun findRowRun(Operation *first, bool fuse) {
  RowRun best{{}, RowSharing::Block, ""};
  auto consider = [&](const std::optional<RowForm> &form) {
    auto sharing = form ? sharingOf(*form) : std::nullopt;
    if (!sharing)
      return;
    RowRun run = runOf(first, *form, *sharing, fuse);
    if (run.ops.size() > best.ops.size())
      best = std::move(run);
  };
  consider(reductionForm(first));
  if (!best.ops.empty() || !fuse)
    return best;
  // It may be of elements, or of what each row has one of, and a reduction
  // follow.
  auto elements = rowFormOf(first, RowKind::Elements);
  auto scalars = rowFormOf(first, RowKind::Scalars);
  if (!elements && !scalars)
    return best;
  const Value device = visibleDevice(elements ? *elements : *scalars);
  for (Operation *op = first->getNextNode(); op && device;
       op = op->getNextNode()) {
    bool isOne = isa<linalg::LinalgOp, linalg::SoftmaxOp>(op);
    if (isOne ? !mayBeOn(op, device) : !mayBeBetween(op))
      break;
    if (auto form = reductionForm(op)) {
      consider(form);
      break;
    }
  }
  return best;
}

std::optional<RowRun> rowRunOf(const LaunchGroup &group) {
  RowRun run = findRowRun(group.front(), group.size() > 1);
  if (run.ops.size() < group.size())
    return std::nullopt;
  run.ops.resize(group.size());
  bool isWhole = true, reduces = false;
  for (auto [op, each] : llvm::zip_equal(group, run.ops)) {
    isWhole &= op == each.op;
    reduces |= isReduction(each.form);
  }
  return isWhole && reduces ? std::optional(std::move(run)) : std::nullopt;
}

} // namespace mgpu::conversion
