// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/ForwardStores.h"
#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/conversion/linalg/RowThreads.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/IR/Remarks.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_FUSELAUNCHES
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

std::string describeOp(Operation *op) {
  return op->getName().stripDialect().str() + " at " +
         ir::describeLocation(op->getLoc());
}

/// The computation that comes after `last` in its block.
Operation *nextComputation(Operation *last) {
  for (Operation *op = last->getNextNode(); op; op = op->getNextNode())
    if (isa<linalg::LinalgOp, linalg::SoftmaxOp, scf::ParallelOp>(op))
      return op;
  return nullptr;
}

/// Says why what comes after `last` does not share its launch.
void explain(Operation *last, StringRef why) {
  Operation *next = nextComputation(last);
  if (!next || why.empty())
    return;
  remark::missed(
      next->getLoc(),
      remark::RemarkOpts::name("not-fused").category("mgpu-fuse-launches"))
      << StringRef(describeOp(next) + " with " + describeOp(last) + ": " +
                   why.str());
}

/// Drops what is of another fragment than the first operation: each fragment
/// starts as soon as its own operands are there.
void cutAtFragment(LaunchGroup &group, std::string &why) {
  auto other = llvm::find_if(group, [&](Operation *each) {
    return each->getAttr("mgpu.fragment") !=
           group.front()->getAttr("mgpu.fragment");
  });
  if (other == group.end())
    return;
  why = "it is of another fragment";
  group.erase(other, group.end());
}

/// The operations from `first` on that share a launch; `why` gets why the next
/// one is not among them. Empty where `first` has no form as a launch.
LaunchGroup groupFrom(Operation *first, FuseProducts products, RowRuns &rows,
                      std::string &why) {
  LaunchGroup group;
  if (!isa<scf::ParallelOp>(first)) {
    RowRun run = rows.from(first);
    why = std::move(run.why);
    for (const RowOp &each : run.ops)
      group.push_back(each.op);
    if (!group.empty())
      return group;
  }
  if (isa<linalg::SoftmaxOp>(first)) {
    why = "it has a thread for each row";
    return {first};
  }
  auto loop = dyn_cast<scf::ParallelOp>(first);
  auto structured = dyn_cast<linalg::LinalgOp>(first);
  if (loop ? loop.getNumResults() != 0 || loop.getNumLoops() > 3
           : !structured || !hasPointForm(structured))
    return {};
  why.clear();
  group = fusibleFrom(first, products, why);
  // Alone, such an operation would add in another order.
  auto ofRows =
      std::find_if(group.begin() + 1, group.end(), [](Operation *each) {
        return rowRunOf({each}).has_value();
      });
  if (ofRows != group.end()) {
    why = "it has a block for each row, which adds in another order";
    group.erase(ofRows, group.end());
  }
  return group;
}

/// Leaves fills at the end of `group` to the launch of what they begin: there
/// they cost nothing, and their buffers are needed no earlier.
void leaveFills(LaunchGroup &group, FuseProducts products, RowRuns &rows,
                std::string &why) {
  auto isFill = [](Operation *op) { return isa<linalg::FillOp>(op); };
  auto end = group.end();
  while (end != group.begin() && isFill(*std::prev(end)))
    --end;
  if (end == group.begin())
    ++end;
  if (end >= group.end())
    return;
  // All of them, or the last one alone.
  for (auto first : {end, std::prev(group.end())}) {
    std::string whyNext;
    if (llvm::all_of(groupFrom(*first, products, rows, whyNext), isFill))
      continue;
    why.clear();
    group.erase(first, group.end());
    return;
  }
}

struct FuseLaunches : impl::FuseLaunchesBase<FuseLaunches> {
  using FuseLaunchesBase::FuseLaunchesBase;

  void runOnOperation() override {
    Builder b(&getContext());
    llvm::SmallPtrSet<Operation *, 8> done;
    int64_t numGroups = 0;
    RowRuns rows;
    for (Operation *op : computationsOf(getOperation(), entry)) {
      if (done.contains(op))
        continue;
      op->removeAttr(launchGroupAttr); // of the text
      std::string why;
      LaunchGroup group = groupFrom(op, products, rows, why);
      cutAtFragment(group, why);
      leaveFills(group, products, rows, why);
      if (group.empty())
        continue;
      done.insert(group.begin(), group.end());
      explain(group.back(), why);
      if (group.size() < 2)
        continue;
      for (Operation *each : group)
        each->setAttr(launchGroupAttr, b.getI64IntegerAttr(numGroups));
      ++numGroups;
    }
    if (numGroups == 0)
      markAllAnalysesPreserved();
  }
};

} // namespace

#define GEN_PASS_DEF_REMOVEUNREADBUFFERS
#include "dialect/conversion/Passes.h.inc"

namespace {

/// Whether the memref is stored to, in a launch, or freed.
bool isStoreOrFree(OpOperand &use) {
  auto store = dyn_cast<memref::StoreOp>(use.getOwner());
  return isa<ir::FreeOp>(use.getOwner()) ||
         (store && store->getParentOfType<ir::LaunchOp>() &&
          &store.getMemrefMutable() == &use);
}

struct RemoveUnreadBuffers
    : impl::RemoveUnreadBuffersBase<RemoveUnreadBuffers> {
  void runOnOperation() override {
    SmallVector<ir::AllocOp> buffers;
    getOperation()->walk([&](ir::AllocOp alloc) {
      if (ir::takeMark(alloc, ir::Mark::Forwarded))
        buffers.push_back(alloc);
    });
    if (buffers.empty())
      return markAllAnalysesPreserved();
    for (ir::AllocOp alloc : buffers) {
      if (!llvm::all_of(alloc->getUses(), isStoreOrFree))
        continue;
      for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
        user->erase();
      alloc.erase();
    }
  }
};

} // namespace

} // namespace mgpu::conversion
